"""Benchmark scores of language models from few questions: item response theory for scikit-learn."""

from sklearn_irt._adaptive import AdaptiveSession
from sklearn_irt._adaptive_simulation import simulate_adaptive
from sklearn_irt._anchors import AnchorSelector
from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._irt import IRTRegressor
from sklearn_irt._version import __version__

__all__ = [
    "AdaptiveSession",
    "AnchorSelector",
    "GPIRTEstimator",
    "IRTRegressor",
    "__version__",
    "simulate_adaptive",
]
