"""Readers of evaluation harnesses' logs: each to one tidy table, and on to a response matrix."""

from sklearn_irt.logs._alpaca_eval import read_alpaca_eval
from sklearn_irt.logs._helm import read_helm
from sklearn_irt.logs._inspect import read_inspect
from sklearn_irt.logs._lm_eval import read_lm_eval
from sklearn_irt.logs._pivot import ResponseMatrix, pivot
from sklearn_irt.logs._recognise import read_logs
from sklearn_irt.logs._table import read_table
from sklearn_irt.logs._tidy import left_out, provenance

__all__ = [
    "ResponseMatrix",
    "left_out",
    "pivot",
    "provenance",
    "read_alpaca_eval",
    "read_helm",
    "read_inspect",
    "read_lm_eval",
    "read_logs",
    "read_table",
]
