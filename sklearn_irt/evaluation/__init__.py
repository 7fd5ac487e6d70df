"""Strategies compared on one's own matrix: which anchors, which estimate, how many anchors."""

from sklearn_irt.evaluation._compare import compare_strategies
from sklearn_irt.evaluation._summary import summarize

__all__ = ["compare_strategies", "summarize"]
