"""Plots, as Display objects in scikit-learn's style; they need the extra "plot" (matplotlib)."""

from sklearn_irt.plots._coverage import CoverageDisplay
from sklearn_irt.plots._items import ItemCurvesDisplay, ItemMapDisplay
from sklearn_irt.plots._lower_bound import LowerBoundDisplay
from sklearn_irt.plots._relatives import RelativesDisplay
from sklearn_irt.plots._results import ModelErrorsDisplay, StrategiesDisplay
from sklearn_irt.plots._scores import EstimatesDisplay, ScoresDisplay
from sklearn_irt.plots._session import SessionDisplay
from sklearn_irt.plots._wright import WrightMapDisplay

__all__ = [
    "CoverageDisplay",
    "EstimatesDisplay",
    "ItemCurvesDisplay",
    "ItemMapDisplay",
    "LowerBoundDisplay",
    "ModelErrorsDisplay",
    "RelativesDisplay",
    "ScoresDisplay",
    "SessionDisplay",
    "StrategiesDisplay",
    "WrightMapDisplay",
]
