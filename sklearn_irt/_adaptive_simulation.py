"""Adaptive sessions of models whose responses are known: what adaptive asking is worth."""

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from sklearn_irt._adaptive import AdaptiveSession, as_asked, figures_of
from sklearn_irt._responses import read_all_items


class AdaptiveSimulation(NamedTuple):
    """Sessions of models whose responses are known, see `simulate_adaptive`.

    Attributes
    ----------
    items : ndarray of shape (n_models, k), int
        Positions of the items in the order of asking; -1 where no more could be asked.
    score, std : ndarray of shape (n_models, k)
        Running estimate and standard error after each answer, NaN where no more could be asked.
    final_score, final_std : ndarray of shape (n_models,)
        Of `AdaptiveSession.estimate` after all answers.
    """

    items: np.ndarray
    score: np.ndarray
    std: np.ndarray
    final_score: np.ndarray
    final_std: np.ndarray


def simulate_adaptive(
    estimator: Any,
    X: Any,
    k: int,
    *,
    scenario: str | None = None,
    costs: Any = None,
    budget: float | None = None,
) -> AdaptiveSimulation:
    """Ask models whose responses are known up to `k` items each, as `AdaptiveSession` would.

    The models share one copy of the benchmark, and one is simulated after the other.

    Parameters
    ----------
    estimator : GPIRTEstimator, Pipeline or TinyBenchmark
        Fitted.
    X : array-like of shape (n_models, n_items)
        Responses to all items of the benchmark; those that are NaN are never asked. A DataFrame's
        columns are matched by name where the estimator knows names.
    k : int
        Answers per model.
    scenario : str, default=None
        As in `AdaptiveSession`.
    costs : array-like of shape (n_items,), default=None
        As in `AdaptiveSession`.
    budget : float, default=None
        As in `AdaptiveSession`, per model.

    Returns
    -------
    AdaptiveSimulation
        In the unit of the responses.

    Examples
    --------
    >>> from sklearn_irt import GPIRTEstimator, simulate_adaptive
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=80, n_items=300, random_state=0)
    >>> estimator = GPIRTEstimator(random_state=0).fit(data.responses[:60])
    >>> found = simulate_adaptive(estimator, data.responses[60:], 20)
    >>> found.items.shape, bool(abs(found.final_score - data.scores[60:]).mean() < 0.08)
    ((20, 20), True)
    """
    first = AdaptiveSession(estimator, scenario, costs=costs, budget=budget)
    fitted, bank = first._estimator, first._bank
    if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= len(bank.positions):
        raise ValueError(
            f"k must be an integer from 1 to the number of items, {len(bank.positions)}, got {k!r}"
        )
    unit = _read_all(first, X)
    item_costs = None if first._costs is None else first._costs[bank.positions]
    shape = len(unit), int(k)
    items, score, std = np.full(shape, -1), np.full(shape, np.nan), np.full(shape, np.nan)
    final_score, final_std = np.empty(len(unit)), np.empty(len(unit))
    for row, answers in enumerate(unit):
        posterior = first._posterior.copy()
        allowed = ~np.isnan(answers[bank.positions])
        left = np.inf if budget is None else float(budget)
        for step in range(k):
            chosen = posterior.pick(1, allowed, item_costs, left)
            if not chosen:
                break
            allowed[chosen[0]] = False
            left -= 0.0 if item_costs is None else item_costs[chosen[0]]
            position = int(bank.positions[chosen[0]])
            answer = answers[position]
            modelled = fitted.irt_._modelled(np.array([[answer]]), np.array([position]))
            posterior.update(position, float(answer), float(modelled[0, 0]))
            items[row, step] = position
            score[row, step], std[row, step] = figures_of(fitted, first._factor, posterior)
        asked = items[row][items[row] >= 0]
        found = fitted._estimates_at(*as_asked(answers[asked], asked))
        if scenario is None:
            final, error = found.overall_scores["pirt"], found.overall_stds["pirt"]
        else:
            number = fitted.scenarios_.index(scenario)
            final, error = found.scores["pirt"][:, number], found.stds["pirt"][:, number]
        final_score[row] = fitted._in_unit(final)[0]
        final_std[row] = fitted._bounds.width * error[0]
    return AdaptiveSimulation(items, score, std, final_score, final_std)


def _read_all(session: AdaptiveSession, X: Any) -> np.ndarray:
    """Responses to all items on the scale of [0, 1], columns in the order of the benchmark."""
    names, n_items = session._names, len(session._bank.place)
    if isinstance(X, pd.DataFrame) and names is not None:
        columns = {str(name) for name in X.columns}
        missing = [name for name in names if name not in columns]
        if missing:
            raise ValueError(
                f"X has no column for {len(missing)} of the {n_items} items, the first is "
                f"{missing[0]!r}; give NaN for what cannot be asked"
            )
        X = X.set_axis([str(name) for name in X.columns], axis=1)[names]
    return read_all_items(X, n_items, names, session._estimator._bounds, "X")
