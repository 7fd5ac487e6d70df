"""Response matrices to learn and measure on: simulated ones and public ones."""

from sklearn_irt.datasets._fetch import (
    fetch_alpaca_eval,
    fetch_glue,
    fetch_helm_lite,
    fetch_open_llm,
)
from sklearn_irt.datasets._files import get_data_home
from sklearn_irt.datasets._simulate import make_responses

__all__ = [
    "fetch_alpaca_eval",
    "fetch_glue",
    "fetch_helm_lite",
    "fetch_open_llm",
    "get_data_home",
    "make_responses",
]
