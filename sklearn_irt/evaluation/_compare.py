"""Every strategy on every split of the models."""

import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils import check_array, check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_memory
from threadpoolctl import threadpool_limits

from sklearn_irt._irt import IRTRegressor
from sklearn_irt._responses import as_numbers, model_names, read_range
from sklearn_irt._scenarios import OVERALL, Scenarios, read_scenarios
from sklearn_irt._version import __version__
from sklearn_irt.evaluation._splits import read_splits
from sklearn_irt.evaluation._strategies import STRATEGIES, by_method, measure_method
from sklearn_irt.evaluation._table import ALL, COLUMNS
from sklearn_irt.model_selection import _is_positive


def compare_strategies(
    X: Any,
    y: Any = None,
    *,
    strategies: Sequence[str] | None = None,
    k: Sequence[float] | float = (30, 60, 100),
    cv: Any = 5,
    groups: Any = None,
    scenarios: Any = None,
    response_range: Any = None,
    n_dims: int | Sequence[int] = 5,
    memory: Any = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
    callback: Callable[[int, int], None] | None = None,
) -> pd.DataFrame:
    """Measure how far every strategy is off, on models left out of the training.

    Parameters
    ----------
    X : array-like of shape (n_models, n_items)
        Responses of models, NaN where not asked.
    y : array-like of shape (n_models,), default=None
        Handed to `cv`, e.g. the strength by which it splits; None: the models' full scores.
    strategies : sequence of str, default=None
        Some of "random/naive", "random/gpirt", "correctness/naive", "correctness/gpirt",
        "irt/naive", "irt/gpirt" (the paper's six), "information/pirt", "design/default" (what one
        gets who sets nothing) and "adaptive/pirt" (questions chosen one after the other, as by
        `AdaptiveSession`); None: all of them.
    k : int, float or sequence of them, default=(30, 60, 100)
        Anchors per scenario, and with "adaptive" answers: numbers (int), or shares of its items
        (float in (0, 1]).
    cv : int, splitter or iterable of (train, new), default=5
        How the models are split: so many random splits with a quarter of the models new and
        models that are the same on one side (see `RandomModelsSplit`), or any splitter of
        scikit-learn's kind. Rows are numbers from 0, or masks of all models.
    groups : array-like of shape (n_models,), default=None
        Handed to `cv`: models of one group are never on both sides.
    scenarios : array-like of shape (n_items,) or (n_items, 2), default=None
        Scenario, or scenario and subscenario, of each item.
    response_range : (low, high), default=None
        Lowest and highest possible response.
    n_dims : int or sequence of int, default=5
        Dimensions of the IRT model; of several the one that predicts best, by cross-validation on
        the training models of each split.
    memory : str or joblib.Memory, default=None
        Folder of what is done already: a comparison that was broken off goes on where it was. It
        needs an integer `random_state`.
    n_jobs : int, default=None
        Splits measured at a time.
    random_state : int, RandomState or None, default=None
    verbose : int, default=0
        1: a line on stderr for every split that is done.
    callback : callable, default=None
        Called with the number of splits done and the number of all, after each.

    Returns
    -------
    DataFrame
        A row per strategy, k, split, new model and scenario ("all": the mean over the scenarios),
        with these as columns, and true, estimated, std (standard error), low and high (90 %
        interval), in the unit of the responses.

    Raises
    ------
    ValueError
        Where X has no response, a strategy is unknown, `k` or `n_dims` are no positive numbers, or
        a split has fewer than two training models, no new one, a model on both sides, or a row
        that X lacks.

    See Also
    --------
    summarize : Errors, ranks and coverage of each strategy.

    Examples
    --------
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.evaluation import compare_strategies, summarize
    >>> data = make_responses(n_models=60, n_items=200, random_state=0)
    >>> results = compare_strategies(
    ...     data.responses, strategies=["random/naive", "random/gpirt"], k=20, cv=2, n_dims=2,
    ...     random_state=0,
    ... )
    >>> error = summarize(results)["mean_error"]
    >>> bool(error["random/gpirt", 20] < error["random/naive", 20])
    True
    """
    values = _read_values(X)
    names = [str(name) for name in X.columns] if isinstance(X, pd.DataFrame) else None
    parts = read_scenarios(scenarios, values.shape[1], names)
    if ALL in parts.names and len(parts.names) > 1:
        raise ValueError(f"no scenario may be called {ALL!r}: that is the mean over all")
    truth = _true_scores(values, parts)
    methods = by_method(STRATEGIES if strategies is None else strategies)
    sizes = _read_sizes(k)
    dims = _read_dims(n_dims)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    models = model_names(X, len(values))
    splits = read_splits(cv, X, truth.mean(axis=1) if y is None else y, groups, models, seed)
    bounds = read_range(values, response_range, X)
    if memory is not None and not isinstance(random_state, Integral):
        warnings.warn(
            "memory without an integer random_state: a comparison that is broken off starts anew",
            UserWarning,
            stacklevel=2,
        )
    seeds = rng.randint(2**31 - 1, size=len(splits))
    task = _Task(
        values, parts, _labels(scenarios, parts), (bounds.low, bounds.high), sizes, dims, memory
    )
    calls = (
        delayed(_measure)(task, methods, train, new, int(seed))
        for (train, new), seed in zip(splits, seeds, strict=True)
    )
    blocks = []
    running = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    for number, (found, seconds) in enumerate(running):
        train, new = splits[number]
        blocks.append(_tidy(found, number, models[new], truth[new], parts.names))
        if verbose:
            print(
                f"[compare_strategies] split {number + 1}/{len(splits)}: {len(train)} training "
                f"models, {len(new)} new, {seconds:.1f} s",
                file=sys.stderr,
                flush=True,
            )
        if callback is not None:
            callback(number + 1, len(splits))
    results = pd.concat(blocks, ignore_index=True)
    rank = {name: i for i, name in enumerate(dict.fromkeys(results["strategy"]))}
    order = np.lexsort([results["split"], results["k"], results["strategy"].map(rank)])
    return results.iloc[order].reset_index(drop=True)


class _Task(NamedTuple):
    """What is the same for every split."""

    values: np.ndarray
    scenarios: Scenarios
    labels: np.ndarray | None
    bounds: tuple[float, float]
    sizes: list
    dims: list[int]
    memory: Any


def _read_values(X: Any) -> np.ndarray:
    table = as_numbers(X)
    shape = getattr(table, "shape", ())
    if len(shape) == 2 and shape[1] == 0:
        raise ValueError(f"X has no item (column): its shape is {shape}")
    values = check_array(
        table,
        dtype=float,
        ensure_all_finite="allow-nan",
        ensure_min_samples=3,
        input_name="X",
    )
    if np.isnan(values).all():
        raise ValueError("X has no observed response: every cell is NaN")
    return values


def _listed(given: Any) -> list:
    """One value or several, numpy's as Python's."""
    if isinstance(given, (np.ndarray, np.generic)):
        given = given.tolist()
    values = [given] if isinstance(given, str) or not np.iterable(given) else list(given)
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _read_sizes(k: Any) -> list:
    sizes = _listed(k)
    for size in sizes:
        share = isinstance(size, float) and 0 < size <= 1
        if not share and not _is_positive(size):
            raise ValueError(
                f"k must be positive numbers of anchors, or shares in (0, 1], got {size!r}"
            )
    if not sizes:
        raise ValueError("k is empty")
    if len({type(size) for size in sizes if size == 1}) > 1:
        raise ValueError(
            "k has 1 and 1.0, one anchor and all items, which the column k of the results cannot "
            "tell apart: leave one out"
        )
    return list(dict.fromkeys(sizes))


def _read_dims(n_dims: Any) -> list[int]:
    dims = _listed(n_dims)
    if not dims or not all(map(_is_positive, dims)):
        raise ValueError(f"n_dims must be a positive integer or several of them, got {n_dims!r}")
    return [int(d) for d in dims]


def _labels(given: Any, scenarios: Scenarios) -> np.ndarray | None:
    """Scenario and subscenario of every item, in the order of the columns; None where not given."""
    if given is None:
        return None
    within = [
        scenarios.subscenarios[s][t] if scenarios.subscenarios[s] else None
        for s, t in zip(scenarios.index, scenarios.strata, strict=True)
    ]
    names = np.array(scenarios.names, dtype=object)[scenarios.index]
    return np.column_stack([names, np.array(within, dtype=object)])


def _true_scores(values: np.ndarray, scenarios: Scenarios) -> np.ndarray:
    """Score of every model on every scenario, over the items that it was asked; NaN of none."""
    members = np.zeros((values.shape[1], len(scenarios.names)))
    members[np.arange(values.shape[1]), scenarios.index] = scenarios.weights
    known = ~np.isnan(values)
    mass = known @ members
    total = np.where(known, values, 0.0) @ members
    return np.divide(total, mass, out=np.full(mass.shape, np.nan), where=mass > 0)


def _measure(task: _Task, methods: dict, train, new, seed: int) -> tuple[list, float]:
    """Tables of all strategies on one split, and the seconds that it took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, threadpool_limits(limits=1):
        # The fits of a split are shared by its strategies: kept for good, or while it lasts.
        fits = joblib.Memory(folder, verbose=0) if task.memory is None else task.memory
        measured = check_memory(task.memory).cache(measure_method, ignore=["fits"])
        with warnings.catch_warnings():
            # The cap on the rounds is part of what is measured.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "Persisting input arguments")
            dims = _choose_dims(task, train, fits)
            found = []
            for method, kinds in methods.items():
                found += measured(
                    task.values[train],
                    task.values[new],
                    task.labels,
                    task.bounds,
                    method,
                    kinds,
                    task.sizes,
                    dims,
                    seed,
                    __version__,
                    fits=fits,
                )
    return found, time.perf_counter() - start


def _choose_dims(task: _Task, train: np.ndarray, fits: Any) -> int:
    """The dimensions by which left-out training models' answers are the most probable."""
    if len(task.dims) == 1 or len(train) < 4:
        return task.dims[0]
    irt = IRTRegressor(memory=fits, scenarios=task.labels, response_range=task.bounds)
    halves = KFold(2, shuffle=True, random_state=0)
    search = GridSearchCV(irt, {"n_dims": task.dims}, cv=halves, refit=False, error_score="raise")
    search.fit(task.values[train])
    return int(search.best_params_["n_dims"])


def _tidy(found, split, models, truth, scenarios) -> pd.DataFrame:
    """The rows of one split."""
    names, truth = list(scenarios), truth
    if names != [ALL]:
        names, truth = [*names, ALL], np.column_stack([truth, truth.mean(axis=1)])
    blocks = []
    for strategy, k, table in found:
        by_row = [table.iloc[table.index.get_level_values(1) == name] for name in scenarios]
        if names != list(scenarios):
            whole = OVERALL if len(scenarios) > 1 else scenarios[0]
            by_row.append(table.iloc[table.index.get_level_values(1) == whole])
        for name, true, part in zip(names, truth.T, by_row, strict=True):
            block = part.reset_index(drop=True)
            block.insert(0, "true", true)
            block.insert(0, "scenario", name)
            block.insert(0, "model", models)
            block.insert(0, "split", split)
            block.insert(0, "k", k)
            block.insert(0, "strategy", strategy)
            blocks.append(block)
    return pd.concat(blocks, ignore_index=True)[COLUMNS]
