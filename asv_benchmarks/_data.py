"""Matrices that the benchmarks run on, at full size or tiny."""

import os
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np

from sklearn_irt.datasets import fetch_helm_lite, make_responses

# "tiny": every benchmark in well under a second, to see that it runs.
TINY = os.environ.get("SKLEARN_IRT_ASV_SIZE", "full") == "tiny"
SHARE_HELD_OUT = 0.1

T = TypeVar("T")


def sized(full: T, tiny: T) -> T:
    """One of two values, by the size of this run."""
    return tiny if TINY else full


@lru_cache(maxsize=4)
def simulated(n_models: int, n_items: int, n_dims: int) -> np.ndarray:
    """Simulated binary responses, of shape (n_models, n_items)."""
    return make_responses(n_models, n_items, n_dims, random_state=0).responses.to_numpy()


@lru_cache(maxsize=4)
def real(task: str, n_models: int) -> np.ndarray:
    """Responses of some models, drawn at random, to a scenario of HELM Lite.

    Found as the tests find them: in the folder that SKLEARN_IRT_SHARED names, by default
    ``shared`` beside the checkout. Where they are absent the benchmark is skipped.
    """
    beside = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("SKLEARN_IRT_SHARED", beside)) / "data"
    if not folder.is_dir():
        raise NotImplementedError(f"no shared data at {folder.parent}; set SKLEARN_IRT_SHARED")
    found = fetch_helm_lite(task, data_home=folder, download_if_missing=False)
    responses = found.responses.to_numpy()
    return responses[np.random.RandomState(0).permutation(len(responses))[:n_models]]


def hold_out(responses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The responses without a tenth of the cells (NaN), and which cells these are."""
    held = np.random.RandomState(0).random_sample(responses.shape) < SHARE_HELD_OUT
    return np.where(held, np.nan, responses), held


def log_likelihood(responses: np.ndarray, logits: np.ndarray, held: np.ndarray) -> float:
    """Mean log-likelihood of the responses in some cells, in natural units."""
    y, z = responses[held], logits[held]
    return float(np.mean(y * z - np.logaddexp(0.0, z)))
