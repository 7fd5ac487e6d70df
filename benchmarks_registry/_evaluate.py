"""`evaluate`: what the authors' function of that name returns, from the released parameters."""

import functools
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from benchmarks_registry import _release
from benchmarks_registry._benchmark import TinyBenchmark
from sklearn_irt.datasets._files import get_data_home
from sklearn_irt.kernels.logistic import map_abilities, mle_abilities
from sklearn_irt.kernels.mixing import paper_mixing

# The names that the published function takes.
BENCHES = {
    "lb": "tinyBenchmarks",
    "mmlu": "tinyMMLU",
    "alpaca": "tinyAlpacaEval",
    "helm_lite": "tinyHelmLite",
    "truthfulqa": "tinyTruthfulQA",
    "gsm8k": "tinyGSM8k",
    "winogrande": "tinyWinogrande",
    "arc": "tinyArc",
    "hellaswag": "tinyHellaswag",
}
# Keeps Newton's steps regular; polished away afterwards.
RIDGE = 1e-10
# At a maximum a further step moves no logit; where there is none it moves one by about 1.
MAX_MOVE = 0.05


def evaluate(
    y: Any, bench: str, *, data_home: str | os.PathLike | None = None
) -> dict[str, dict[str, float]]:
    """Estimate a model's scores from its answers, as the authors' function of this name does.

    Parameters
    ----------
    y : array-like of shape (n_anchors,)
        Scores in [0, 1] on the items of the tiny benchmark, in the order in which it is
        published. NaN is "not asked": the others are used.
    bench : str
        "lb", "mmlu", "alpaca", "helm_lite", "truthfulqa", "gsm8k", "winogrande", "arc" or
        "hellaswag"; or the name of a released benchmark ("tinyMMLU").
    data_home : path, default=None
        Where the released parameters are kept; see :func:`sklearn_irt.datasets.get_data_home`.

    Returns
    -------
    dict
        By scenario: "irt", the weighted mean of its answers (NaN where there are none), "pirt" and
        "gpirt". The ability is the maximum-likelihood one; where the likelihood has no maximum it
        is held at a norm of 10, with a warning.

    Raises
    ------
    ValueError
        Where the bench is unknown, or y has another length or values outside [0, 1].
    OSError
        If the released parameters can neither be found nor downloaded.

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.

    Examples
    --------
    >>> from benchmarks_registry import evaluate  # doctest: +SKIP
    >>> evaluate([1] * 60 + [0] * 40, "mmlu")  # doctest: +SKIP
    {'mmlu': {'irt': 0.58..., 'pirt': 0.61..., 'gpirt': 0.60...}}
    """
    name = _name(bench)
    tiny = _loaded(name, str(get_data_home(data_home)), _release.RELEASE.sha256)
    answers = _answers(y, bench, tiny)
    estimator = tiny.estimator
    irt, anchors, scenario = estimator.irt_, estimator.anchors_, estimator._scenarios.index
    n_scenarios = len(estimator.scenarios_)
    asked = ~np.isnan(answers)
    seen, known = anchors[asked], answers[asked]
    ability = _ability(known, irt.discrimination_[seen], irt.difficulty_[seen])
    expected = expit(irt.discrimination_ @ ability - irt.difficulty_)
    expected[seen] = known
    pirt = np.bincount(scenario, estimator.item_weights_ * expected, n_scenarios)

    def total(values: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        return np.bincount(scenario[anchors[chosen]], values, n_scenarios)

    weights = estimator.weights_
    n_asked, n_anchors = total(None, asked), total(None, slice(None))
    naive, mass = total(weights[asked] * known, asked), total(weights[asked], asked)
    complete = n_asked == n_anchors
    # The weights are as released, so that a complete mean is the published one to the last digit.
    share = np.where(complete, 1.0, mass / total(weights, slice(None)))
    naive = np.divide(naive, share, out=np.full(n_scenarios, np.nan), where=share > 0)
    mixing = paper_mixing(estimator.bias_, estimator.variance_, n_asked, estimator._gain)
    mixing = np.where(complete, estimator.mixing_, np.where(share > 0, mixing, 0.0))
    gpirt = mixing * np.nan_to_num(naive) + (1.0 - mixing) * pirt
    return {
        label: {"irt": float(naive[s]), "pirt": float(pirt[s]), "gpirt": float(gpirt[s])}
        for s, label in enumerate(estimator.scenarios_)
    }


def _name(bench: str) -> str:
    if isinstance(bench, str):
        name = BENCHES.get(bench.strip().lower()) or _release.canonical_name(bench)
        if name is not None:
            return name
    raise ValueError(
        f"bench must be one of {list(BENCHES)} or {list(_release.RELEASED)}, got {bench!r}"
    )


@functools.lru_cache(maxsize=len(_release.RELEASED))
def _loaded(name: str, home: str, sha256: str) -> TinyBenchmark:
    """The benchmark, read once in a process; `sha256` is that of the release."""
    del sha256
    return _release.load_released(name, Path(home))


def _answers(y: Any, bench: str, tiny: TinyBenchmark) -> np.ndarray:
    """Answers in the order of the estimator's anchors."""
    try:
        values = np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        try:
            values = pd.Series(y).to_numpy(dtype=float, na_value=np.nan)  # pd.NA
        except (TypeError, ValueError) as error:
            raise ValueError(f"y must be scores in [0, 1] (NaN for not asked): {error}") from None
    estimator = tiny.estimator
    if values.shape != estimator.anchors_.shape:
        counts = np.bincount(estimator._scenarios.index[estimator.anchors_])
        expected = ", ".join(
            f"{label} {count}" for label, count in zip(estimator.scenarios_, counts, strict=True)
        )
        got = f"{len(values)} answers" if values.ndim == 1 else f"the shape {values.shape}"
        raise ValueError(
            f"y has {got}, but {bench!r} takes {len(estimator.anchors_)} of one model, in this "
            f"order: {expected}"
        )
    missing = np.isnan(values)
    outside = ~missing & ~((values >= 0.0) & (values <= 1.0))
    if outside.any():
        place = int(np.argmax(outside))
        raise ValueError(
            f"y has the value {values[place]:g} at position {place} ({tiny.anchors()[place]}), "
            "outside [0, 1]"
        )
    if missing.all():
        raise ValueError("y has no answer: every value is NaN")
    if missing.any():
        warnings.warn(
            f"y has {missing.sum()} NaN among {len(values)} values; the {(~missing).sum()} answers "
            "are used, their weights scaled up",
            UserWarning,
            stacklevel=3,
        )
    ordered = np.empty_like(values)
    ordered[tiny._answer_order] = values
    return ordered


def _ability(answers: np.ndarray, loadings: np.ndarray, difficulty: np.ndarray) -> np.ndarray:
    """Maximum-likelihood ability of one model, without a bound where there is a maximum."""
    precision = RIDGE * np.eye(loadings.shape[1])
    fit = map_abilities(answers[None], loadings, difficulty, prior_precision=precision)
    ability = fit.ability[0]
    for _ in range(3):
        step = _newton_step(ability, answers, loadings, difficulty)
        if not np.abs(loadings @ step).max() <= MAX_MOVE:
            break
        ability = ability + step
    else:
        return ability
    warnings.warn(
        "these answers have no finite maximum-likelihood ability (all right, all wrong, or "
        "separable by the items' parameters): its norm is held at 10, where the published function "
        "returns what its optimiser stopped at",
        UserWarning,
        stacklevel=3,
    )
    return mle_abilities(answers[None], loadings, difficulty).ability[0]


def _newton_step(
    ability: np.ndarray, answers: np.ndarray, loadings: np.ndarray, difficulty: np.ndarray
) -> np.ndarray:
    """Without the ridge; zero along directions on which no item loads."""
    probability = expit(loadings @ ability - difficulty)
    information = (loadings * (probability * (1.0 - probability))[:, None]).T @ loadings
    values, vectors = np.linalg.eigh(information)
    gradient = vectors.T @ (loadings.T @ (answers - probability))
    loaded = np.linalg.norm(loadings @ vectors, axis=0) > 1e-9 * np.linalg.norm(loadings)
    return vectors[:, loaded] @ (gradient[loaded] / np.maximum(values[loaded], 1e-300))
