"""Pairs of models on the same anchors: how well the difference of their scores is known."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from sklearn_irt.kernels.benchmark import Benchmark, likely_abilities, unexplained
from sklearn_irt.kernels.pairing import paired_std, row_alikeness


def in_pairs(answers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Both sides row by row; a single row on one side goes with all of the other."""
    n_pairs = max(map(len, answers))
    if min(map(len, answers)) not in (1, n_pairs):
        raise ValueError(
            f"X_a has {len(answers[0])} models and X_b {len(answers[1])}: give as many, or one "
            "on one side"
        )
    return [np.broadcast_to(a, (n_pairs, a.shape[1])) for a in answers]


def pair_alikeness(
    benchmark: Benchmark,
    answers: Sequence[np.ndarray],
    modelled: Sequence[np.ndarray],
    positions: np.ndarray,
) -> np.ndarray:
    """How alike each pair's answers are beyond what their abilities explain."""
    rest = []
    for a, m in zip(answers, modelled, strict=True):
        likely = likely_abilities(benchmark, m, positions)
        rest.append(unexplained(benchmark, a, positions, likely))
    return row_alikeness(*rest)


def paired_stds(stds: Sequence[np.ndarray], alike: np.ndarray, pairing: np.ndarray) -> np.ndarray:
    """Standard errors of the differences, (n_pairs, n_rows), from those of both sides."""
    return np.column_stack(
        [
            paired_std(stds[0][:, s], stds[1][:, s], alike, pairing[s])
            for s in range(stds[0].shape[1])
        ]
    )


def compare_table(
    scores: Sequence[np.ndarray],
    std: np.ndarray,
    names: Sequence[np.ndarray],
    rows: list[str],
    coverage: float,
) -> pd.DataFrame:
    """Differences of pairs of models with their intervals."""
    n_pairs = len(std)
    difference = scores[0] - scores[1]
    half = ndtri(0.5 * (1.0 + coverage)) * std
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(
            std > 0, ndtr(-difference / std), (difference < 0) + 0.5 * (difference == 0)
        )
    columns = {
        "a": scores[0],
        "b": scores[1],
        "difference": difference,
        "std_error": std,
        "low": difference - half,
        "high": difference + half,
        "probability_lower": lower,
    }
    first, second = (np.resize(name, n_pairs) for name in names)
    index = pd.MultiIndex.from_arrays(
        [np.repeat(first, len(rows)), np.repeat(second, len(rows)), rows * n_pairs],
        names=["a", "b", "scenario"],
    )
    return pd.DataFrame({name: value.ravel() for name, value in columns.items()}, index)
