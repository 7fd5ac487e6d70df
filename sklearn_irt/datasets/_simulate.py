"""Simulated responses with known abilities, discriminations and difficulties."""

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.utils import Bunch, check_random_state

from sklearn_irt.datasets._tables import benchmark_scores, item_table

SCENARIO_CORRELATION = 0.7
DIRECTION_SPREAD = 0.3
GROUP_DIFFICULTY_SPREAD = 0.5
BETA_PRECISION = 4.0
CHUNK_CELLS = 2**20

DESCRIPTION = """\
Simulated responses
===================
{n_models} models, {n_items} items in {n_scenarios} scenario(s), {n_dims} dimension(s),
{response} responses, missing share {missing}.

Multidimensional two-parameter logistic model: p = sigmoid(discrimination . ability - difficulty).
Nothing was dropped; `scores` are those of the complete responses, before cells went missing.
"""


def make_responses(
    n_models: int = 100,
    n_items: int = 200,
    n_dims: int = 2,
    *,
    scenarios: int | Mapping[str, int | Mapping[str, int]] | None = None,
    missing: float = 0.0,
    response: str = "binary",
    random_state: int | np.random.RandomState | None = None,
    return_X_y: bool = False,
) -> Bunch | tuple[pd.DataFrame, pd.Series]:
    """Simulate the responses of language models to the items of a benchmark.

    The multidimensional two-parameter logistic model [1]_: model l answers item i correctly with
    probability ``sigmoid(discrimination[i] @ ability[l] - difficulty[i])``, where abilities are
    standard normal in `n_dims` dimensions.

    Parameters
    ----------
    n_models : int, default=100
        Number of models (rows), n.
    n_items : int, default=200
        Number of items (columns), m. Ignored when `scenarios` is a mapping.
    n_dims : int, default=2
        Number of ability dimensions, d.
    scenarios : int or mapping, default=None
        A number of scenarios that share `n_items` as evenly as possible, or
        ``{scenario: number of items}``, or ``{scenario: {subscenario: number of items}}``.
        None is one scenario.
    missing : float in [0, 1), default=0.0
        Probability of each cell, independently, to be NaN. A row or column may end up empty.
    response : {"binary", "fractional"}, default="binary"
        "binary" draws 0 or 1; "fractional" draws a score in [0, 1] from the Beta distribution
        with mean p and precision 4 (parameters ``4 p`` and ``4 (1 - p)``).
    random_state : int, RandomState instance or None, default=None
        Seed. Abilities and item parameters do not depend on `response` or `missing`, nor
        `scores` on `missing`.
    return_X_y : bool, default=False
        Return ``(responses, scores)`` instead of a Bunch.

    Returns
    -------
    data : Bunch
        Read the item table as ``data["items"]``: ``data.items`` is the method of dict.

        responses : DataFrame of shape (n, m)
            Float scores in [0, 1]; rows named "model_0000", columns by item id.
        items : DataFrame of shape (m, 3)
            Columns item, scenario, subscenario (NA where there is none).
        models : DataFrame of shape (n, 1)
            Column model.
        probabilities : ndarray of shape (n, m)
            Expected responses.
        ability : ndarray of shape (n, d)
            Abilities, in standard deviations of the population.
        discrimination : ndarray of shape (m, d)
            Discriminations, in logits per unit of ability.
        difficulty : ndarray of shape (m,)
            Difficulties, in logits.
        scores : Series of shape (n,)
            Score of every model on the whole benchmark, in [0, 1], from the complete responses:
            mean over scenarios of the item mean, subscenarios counting equally.
        DESCR : str
            Description.
    (responses, scores) : tuple
        If `return_X_y` is True.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.
    TypeError
        If a parameter is of the wrong type; the message names it.

    Notes
    -----
    All scenarios share one ability vector per model, and correlate through the directions that
    their items discriminate along. With ``n_dims > 1`` and several scenarios, the mean direction
    of scenario s is ``sqrt(0.7) * e_0 + sqrt(0.3) * e_j`` with ``j = 1 + s % (n_dims - 1)``: what
    two scenarios measure correlates at 0.7 when their j differ, at 1 when they are the same.
    One scenario, or one dimension, has direction ``e_0``. An item's direction is that plus normal
    noise of standard deviation 0.3 in every dimension, rescaled to a log-normal length (median
    1.2, log standard deviation 0.3). Difficulties are standard normal, plus a shift of standard
    deviation 0.5 for each scenario or subscenario where there are several.

    References
    ----------
    .. [1] Reckase, M. D. (2009). Multidimensional Item Response Theory. Springer.

    Examples
    --------
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(50, 120, scenarios={"maths": {"algebra": 40, "geometry": 20},
    ...                                           "law": 60}, random_state=0)
    >>> data.responses.shape
    (50, 120)
    >>> data["items"].groupby("scenario", sort=False).size().to_dict()
    {'maths': 60, 'law': 60}
    >>> X, y = make_responses(50, missing=0.2, random_state=0, return_X_y=True)
    >>> X.shape, y.shape
    ((50, 200), (50,))
    """
    _check_count("n_models", n_models)
    _check_count("n_dims", n_dims)
    layout = _layout(n_items, scenarios)
    if isinstance(missing, bool) or not isinstance(missing, Real):
        raise TypeError(f"missing must be a number in [0, 1); got {missing!r}")
    if not 0 <= missing < 1:
        raise ValueError(f"missing must be a number in [0, 1); got {missing!r}")
    if response not in ("binary", "fractional"):
        raise ValueError(f'response must be "binary" or "fractional"; got {response!r}')
    try:
        rng = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            f"random_state must be None, an int or a RandomState; got {random_state!r}"
        ) from error

    items = item_table(layout)
    ability = rng.standard_normal((n_models, n_dims))
    discrimination = _draw_discrimination(items["scenario"], n_dims, rng)
    difficulty = _draw_difficulty(layout, rng)
    probabilities = ability @ discrimination.T
    probabilities -= difficulty
    expit(probabilities, out=probabilities)
    # Seeds first, so that neither draw depends on how much the other one consumes.
    seeds = rng.randint(np.iinfo(np.int32).max, size=2)
    values = _draw_responses(probabilities, response, np.random.RandomState(seeds[0]))
    names = [f"model_{position:04d}" for position in range(n_models)]
    index = pd.Index(names, name="model")
    scores = pd.Series(benchmark_scores(values, items), index=index, name="score")
    if missing > 0:
        _delete_cells(values, missing, np.random.RandomState(seeds[1]))
    responses = pd.DataFrame(values, index=index, columns=items["item"].to_numpy(), copy=False)
    if return_X_y:
        return responses, scores
    return Bunch(
        responses=responses,
        items=items,
        models=pd.DataFrame({"model": names}),
        probabilities=probabilities,
        ability=ability,
        discrimination=discrimination,
        difficulty=difficulty,
        scores=scores,
        DESCR=DESCRIPTION.format(
            n_models=n_models,
            n_items=len(items),
            n_scenarios=len(layout),
            n_dims=n_dims,
            response=response,
            missing=missing,
        ),
    )


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a positive integer; got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be a positive integer; got {value!r}")


def _layout(n_items: Any, scenarios: Any) -> dict[str, int | dict[str, int]]:
    if not isinstance(scenarios, Mapping):
        _check_count("n_items", n_items)
        n_scenarios = 1 if scenarios is None else scenarios
        _check_count("scenarios", n_scenarios)
        if n_scenarios > n_items:
            raise ValueError(
                f"scenarios must be at most n_items={n_items}, so that none is empty; "
                f"got {n_scenarios}"
            )
        share, rest = divmod(n_items, n_scenarios)
        return {f"scenario_{s}": share + (s < rest) for s in range(n_scenarios)}
    if not scenarios:
        raise ValueError("scenarios must name at least one scenario; got an empty mapping")
    return {
        _check_name("scenarios", scenario): _sizes(scenario, size)
        for scenario, size in scenarios.items()
    }


def _sizes(scenario: str, size: Any) -> int | dict[str, int]:
    label = f"scenarios[{scenario!r}]"
    if not isinstance(size, Mapping):
        _check_count(label, size)
        return size
    if not size:
        raise ValueError(f"{label} must name at least one subscenario; got an empty mapping")
    for subscenario, count in size.items():
        _check_name(label, subscenario)
        _check_count(f"{label}[{subscenario!r}]", count)
    return dict(size)


def _check_name(label: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{label} must have non-empty strings as names; got {name!r}")
    return name


def _draw_discrimination(
    scenario: pd.Series, n_dims: int, rng: np.random.RandomState
) -> np.ndarray:
    codes, names = pd.factorize(scenario)
    directions = np.zeros((len(names), n_dims))
    directions[:, 0] = 1.0
    if n_dims > 1 and len(names) > 1:
        own = 1 + np.arange(len(names)) % (n_dims - 1)
        directions[:, 0] = np.sqrt(SCENARIO_CORRELATION)
        directions[np.arange(len(names)), own] = np.sqrt(1 - SCENARIO_CORRELATION)
    vectors = directions[codes]
    vectors += DIRECTION_SPREAD * rng.standard_normal(vectors.shape)
    lengths = rng.lognormal(np.log(1.2), 0.3, size=len(vectors))
    vectors *= (lengths / np.linalg.norm(vectors, axis=1))[:, None]
    return vectors


def _draw_difficulty(
    layout: Mapping[str, int | Mapping[str, int]], rng: np.random.RandomState
) -> np.ndarray:
    sizes: list[int] = []
    for size in layout.values():
        sizes.extend(size.values() if isinstance(size, Mapping) else [size])
    difficulty = rng.standard_normal(sum(sizes))
    if len(sizes) > 1:
        difficulty += np.repeat(GROUP_DIFFICULTY_SPREAD * rng.standard_normal(len(sizes)), sizes)
    return difficulty


def _row_chunks(values: np.ndarray) -> list[slice]:
    rows = max(1, CHUNK_CELLS // values.shape[1])
    return [slice(start, start + rows) for start in range(0, len(values), rows)]


def _draw_responses(
    probabilities: np.ndarray, response: str, rng: np.random.RandomState
) -> np.ndarray:
    values = np.empty_like(probabilities)
    for rows in _row_chunks(values):
        p = probabilities[rows]
        if response == "binary":
            np.less(rng.random_sample(p.shape), p, out=values[rows], casting="unsafe")
        else:
            # A Beta parameter must not be zero, which sigmoid reaches in floating point.
            first = np.maximum(BETA_PRECISION * p, 1e-12)
            second = np.maximum(BETA_PRECISION * (1 - p), 1e-12)
            values[rows] = rng.beta(first, second)
    return values


def _delete_cells(values: np.ndarray, missing: float, rng: np.random.RandomState) -> None:
    for rows in _row_chunks(values):
        block = values[rows]
        block[rng.random_sample(block.shape) < missing] = np.nan
