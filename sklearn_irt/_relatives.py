"""Whom models resemble: weights of the training models, in a table and in words."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from sklearn_irt.kernels.benchmark import Benchmark, find_kin
from sklearn_irt.kernels.relatives import twins

# Relatives that are named in one cell, and the least weight worth naming.
SHOWN_RELATIVES, LEAST_WEIGHT = 2, 0.05


class Kin(NamedTuple):
    """Groups of twins among the training models, and how far each model resembles them."""

    group: np.ndarray  # (n_training,), the group of each training model
    weights: np.ndarray  # (n_models, n_groups)
    none: np.ndarray  # (n_models,), the weight of no relative


def kin_of(
    benchmark: Benchmark,
    share: float,
    answers: np.ndarray,
    modelled: np.ndarray,
    positions: np.ndarray,
) -> Kin:
    """Twins' weights together, for answers to the items at `positions`."""
    weights, none = find_kin(benchmark, share, answers, modelled, positions)
    group = twins(benchmark.training.responses, benchmark.training.scores)
    members = np.zeros((len(group), group.max() + 1))
    members[np.arange(len(group)), group] = 1.0
    return Kin(group, weights @ members, none)


def in_words(training_models: np.ndarray, kin: Kin) -> np.ndarray:
    """The heaviest relatives of each model and the share of none, as a text each."""
    names = np.asarray(training_models, dtype=object)[_firsts(kin.group)]
    texts = []
    for row, rest in zip(kin.weights, kin.none, strict=True):
        heaviest = np.argsort(-row, kind="stable")[:SHOWN_RELATIVES]
        parts = [f"{names[i]} {row[i]:.0%}" for i in heaviest if row[i] >= LEAST_WEIGHT]
        texts.append(", ".join([*parts, f"none {rest:.0%}"]))
    return np.array(texts, dtype=object)


def relatives_table(
    models: np.ndarray,
    training_models: np.ndarray,
    kin: Kin,
    training_scores: np.ndarray,
    n: int,
) -> pd.DataFrame:
    """The n heaviest relatives of each model, and none."""
    names = _joined_names(training_models, kin.group)
    scores = training_scores[_firsts(kin.group)].mean(axis=1)
    index, rows = [], []
    for model, row, rest in zip(models, kin.weights, kin.none, strict=True):
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


def _firsts(group: np.ndarray) -> np.ndarray:
    """The first training model of each group of twins."""
    return np.unique(group, return_index=True)[1]


def _joined_names(names: np.ndarray, group: np.ndarray) -> list[str]:
    """One name for each group of twins: all of theirs."""
    return [
        " = ".join(str(name) for name in np.asarray(names, dtype=object)[group == g])
        for g in range(group.max() + 1)
    ]
