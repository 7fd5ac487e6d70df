"""Benchmark scores of language models from few questions: item response theory for scikit-learn."""

from sklearn_irt._anchors import AnchorSelector
from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._irt import IRTRegressor
from sklearn_irt._version import __version__

__all__ = ["AnchorSelector", "GPIRTEstimator", "IRTRegressor", "__version__"]
