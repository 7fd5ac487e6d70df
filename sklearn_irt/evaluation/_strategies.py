"""One strategy on one split: fitted to the training models, shown the new ones' answers only."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._adaptive_simulation import simulate_adaptive
from sklearn_irt._anchors import AnchorSelector
from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._irt import IRTRegressor

COVERAGE = 0.9
ADAPTIVE = "adaptive"
_PAPER = {"relatives": False, "mixing": "paper"}
# How each anchors' method may be read: {estimate: parameters of GPIRTEstimator}.
_NAIVE_AND_GPIRT = {
    "naive": {**_PAPER, "estimate": "naive"},
    "gpirt": {**_PAPER, "estimate": "gpirt"},
}
ESTIMATES: dict[str, dict[str, dict]] = {
    "random": _NAIVE_AND_GPIRT,
    "correctness": _NAIVE_AND_GPIRT,
    "irt": _NAIVE_AND_GPIRT,
    "information": {"pirt": {**_PAPER, "estimate": "pirt"}},
    "design": {"default": {}},
    ADAPTIVE: {"pirt": {"estimate": "pirt"}},
}
STRATEGIES = tuple(f"{method}/{kind}" for method, kinds in ESTIMATES.items() for kind in kinds)


def by_method(strategies: Sequence[str]) -> dict[str, list[str]]:
    """{anchors' method: estimates}, in the order given."""
    if not np.iterable(strategies):
        raise ValueError(
            f"strategies must be a sequence of names, got {strategies!r}; known are "
            f"{', '.join(STRATEGIES)}"
        )
    names = [strategies] if isinstance(strategies, str) else list(strategies)
    for name in names:
        if name not in STRATEGIES:
            raise ValueError(f"unknown strategy {name!r}; known are {', '.join(STRATEGIES)}")
    if not names:
        raise ValueError("strategies is empty; None means all of them")
    methods: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        method, kind = name.split("/")
        methods.setdefault(method, []).append(kind)
    return methods


def measure_method(
    train: np.ndarray,
    new: np.ndarray,
    labels: np.ndarray | None,
    bounds: tuple[float, float],
    method: str,
    kinds: list[str],
    sizes: list,
    n_dims: int,
    seed: int,
    version: str,
    fits: Any,
) -> list[tuple[str, Any, pd.DataFrame]]:
    """(strategy, k, table of the new models) for one way to choose the anchors; to be cached."""
    shared = {"memory": fits, "random_state": seed}
    irt = IRTRegressor(n_dims, **shared)
    if method == ADAPTIVE:
        return _measure_adaptive(train, new, labels, bounds, kinds, sizes, irt, shared)
    found = []
    for size in sizes:
        selector = AnchorSelector(
            size, method=method, irt=irt, scenarios=labels, response_range=bounds, **shared
        )
        estimator = GPIRTEstimator(**shared).fit(selector.fit_transform(train))
        answers = np.asarray(selector.transform(new))
        found += _tables(method, kinds, size, estimator, answers)
    return found


def _measure_adaptive(train, new, labels, bounds, kinds, sizes, irt, shared) -> list:
    """A session per scenario: its own questions tell most, and `k` is as for anchors."""
    estimator = GPIRTEstimator(irt=irt, scenarios=labels, response_range=bounds, **shared)
    estimator.fit(train)
    n_items = np.bincount(estimator._scenarios.index)
    numbers = [_number_of_answers(size, n_items) for size in sizes]
    asked = [
        simulate_adaptive(estimator, new, int(most), scenario=name).items
        for name, most in zip(estimator.scenarios_, np.max(numbers, axis=0), strict=True)
    ]
    found = []
    for size, number in zip(sizes, numbers, strict=True):
        answers = np.full(new.shape, np.nan)
        for items, n in zip(asked, number, strict=True):
            rows, steps = np.nonzero(items[:, :n] >= 0)
            chosen = items[rows, steps]
            answers[rows, chosen] = new[rows, chosen]
        found += _tables(ADAPTIVE, kinds, size, estimator, answers)
    return found


def _number_of_answers(size: Any, n_items: np.ndarray) -> np.ndarray:
    """As many answers in each scenario as there would be anchors."""
    wanted = np.round(size * n_items).astype(int) if isinstance(size, float) else size
    return np.minimum(np.maximum(wanted, 1), n_items)


def _tables(method, kinds, size, estimator, answers) -> list:
    found, defaults = [], estimator.get_params()
    for kind in kinds:
        estimator.set_params(**ESTIMATES[method][kind])
        table = estimator.predict_table(answers, coverage=COVERAGE)
        chosen = table[estimator.estimate].rename("estimated")
        figures = table[["std_error", "low", "high"]].rename(columns={"std_error": "std"})
        found.append((f"{method}/{kind}", size, pd.concat([chosen, figures], axis=1)))
        estimator.set_params(**{name: defaults[name] for name in ESTIMATES[method][kind]})
    return found
