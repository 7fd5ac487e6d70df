"""Tables of estimates, as people read them."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

# Relatives that are named in one cell, and the least weight worth naming.
SHOWN_RELATIVES, LEAST_WEIGHT = 2, 0.05


def check_coverage(coverage: Any) -> None:
    """Refuse what is no share in (0, 1)."""
    if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be a number in (0, 1), got {coverage!r}")


def table_of(columns: dict, models: np.ndarray | None, rows: list[str]) -> pd.DataFrame:
    """A table from (n_models, n_rows) columns; without `models`, of one model."""
    if models is None:
        index = pd.Index(rows, name="scenario")
    else:
        index = pd.MultiIndex.from_arrays(
            [np.repeat(models, len(rows)), rows * len(models)], names=["model", "scenario"]
        )
    return pd.DataFrame({name: np.ravel(value) for name, value in columns.items()}, index)


def in_words(names: np.ndarray, weights: np.ndarray, none: np.ndarray) -> np.ndarray:
    """The heaviest relatives of each model and the share of none, as a text each."""
    texts = []
    for row, rest in zip(weights, none, strict=True):
        heaviest = np.argsort(-row, kind="stable")[:SHOWN_RELATIVES]
        parts = [f"{names[i]} {row[i]:.0%}" for i in heaviest if row[i] >= LEAST_WEIGHT]
        texts.append(", ".join([*parts, f"none {rest:.0%}"]))
    return np.array(texts, dtype=object)


def joined_names(names: np.ndarray, group: np.ndarray) -> list[str]:
    """One name for each group of twins: all of theirs."""
    return [
        " = ".join(str(name) for name in np.asarray(names, dtype=object)[group == g])
        for g in range(group.max() + 1)
    ]


def relatives_table(
    models: np.ndarray,
    names: list[str],
    weights: np.ndarray,
    none: np.ndarray,
    scores: np.ndarray,
    n: int,
) -> pd.DataFrame:
    """The n heaviest relatives of each model, and none."""
    index, rows = [], []
    for model, row, rest in zip(models, weights, none, strict=True):
        for i in np.argsort(-row, kind="stable")[:n]:
            index.append((model, names[i]))
            rows.append((row[i], scores[i]))
        index.append((model, "(none)"))
        rows.append((rest, np.nan))
    return pd.DataFrame(
        rows,
        pd.MultiIndex.from_tuples(index, names=["model", "relative"]),
        columns=["weight", "score"],
    )


def compare_table(
    scores: list[np.ndarray],
    std: np.ndarray,
    names: list[np.ndarray],
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
