"""A fitted estimator as a benchmark file, and back."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from benchmarks_registry._benchmark import (
    DESCRIPTION_FIELDS,
    KEPT_FIELDS,
    TinyBenchmark,
    is_heldout,
)
from benchmarks_registry._format import (
    BenchmarkFileError,
    read_benchmark_file,
    write_benchmark_file,
)
from sklearn_irt import GPIRTEstimator, IRTRegressor
from sklearn_irt import __version__ as sklearn_irt_version
from sklearn_irt._responses import ResponseRange
from sklearn_irt._scenarios import Scenarios
from sklearn_irt.kernels.relatives import DISTANCES
from sklearn_irt.kernels.tuning import KINDS


def save_benchmark(
    estimator: GPIRTEstimator | Pipeline | TinyBenchmark,
    path: str | os.PathLike,
    *,
    name: str,
    items: Any = None,
    **info: Any,
) -> Path:
    """Write a fitted estimator as one benchmark file.

    Parameters
    ----------
    estimator : GPIRTEstimator, Pipeline that ends in one, or TinyBenchmark
        Fitted.
    path : path-like
        Written atomically: a failure leaves an old file whole.
    name : str
        Name of the benchmark.
    items : sequence of str, or DataFrame with the column item, default=None
        Ids of all items in the order of the training columns; None: the training DataFrame's
        column names.
    **info : JSON-serialisable
        source, licence, citation, description, metric (str), and heldout (dict).

    Returns
    -------
    Path

    Raises
    ------
    ValueError
        Where the ids are missing, repeated or too few, or the information is of another kind.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.pipeline import make_pipeline
    >>> from benchmarks_registry import load_benchmark, save_benchmark
    >>> from sklearn_irt import AnchorSelector, GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=50, n_items=200, random_state=0)
    >>> pipe = make_pipeline(AnchorSelector(k=20, random_state=0), GPIRTEstimator())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_benchmark(pipe.fit(data.responses), Path(folder) / "mine.npz", name="mine")
    ...     load_benchmark(path)
    <TinyBenchmark mine: 20 anchors of 200 items in all; trained on 50 models>
    """
    fitted, order = estimator, None
    if isinstance(estimator, Pipeline):
        fitted = estimator.steps[-1][1]
    elif isinstance(estimator, TinyBenchmark):
        fitted, order = estimator.estimator, estimator._asked
        kept = {field: value for field, value in estimator.info.items() if field in KEPT_FIELDS}
        info = kept | info
        items = estimator.items if items is None else items
    if not isinstance(fitted, GPIRTEstimator):
        raise ValueError(
            f"estimator must be a GPIRTEstimator or a Pipeline that ends in one, got "
            f"{type(fitted).__name__}"
        )
    check_is_fitted(fitted)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name must be a non-empty string, got {name!r}")
    unknown = set(info) - KEPT_FIELDS
    if unknown:
        raise ValueError(f"unknown information {sorted(unknown)}; known are {sorted(KEPT_FIELDS)}")
    if "heldout" in info and not is_heldout(info["heldout"], fitted.scenarios_):
        raise ValueError(
            "heldout must be a dict with mean and worst, each {scenario: points} for "
            f"{list(fitted.scenarios_)}"
        )
    for field in DESCRIPTION_FIELDS:
        if not isinstance(info.get(field, ""), str):
            raise ValueError(f"{field} must be a string, got {type(info[field]).__name__}")
    ids = _item_ids(fitted, items)
    arrays, meta = _pack(fitted, {"name": name, **info}, ids)
    if order is not None:
        arrays["answer_order"] = np.searchsorted(fitted.anchors_, order).astype(np.int32)
    return write_benchmark_file(path, arrays, meta)


def _item_ids(estimator: GPIRTEstimator, items: Any) -> list[str]:
    n_items = len(estimator.item_weights_)
    if items is None:
        items = estimator._item_names
        if items is None:
            raise ValueError(
                "items must be given: the estimator was fitted on an array without item names"
            )
    if isinstance(items, pd.DataFrame):
        if "item" not in items:
            raise ValueError(f"items has no column 'item', only {list(items.columns)}")
        items = items["item"]
    ids = [str(item) for item in items]
    if len(ids) != n_items:
        raise ValueError(f"items has {len(ids)} ids, but the benchmark has {n_items} items")
    repeated = pd.Series(ids)[pd.Series(ids).duplicated()]
    if len(repeated):
        raise ValueError(f"items has the id {repeated.iloc[0]!r} more than once")
    return ids


def _pack(estimator: GPIRTEstimator, info: dict, ids: list[str]) -> tuple[dict, dict]:
    """The arrays and the metadata from which `_unpack` makes an equal estimator."""
    irt = estimator.irt_
    answers = estimator.training_responses_
    arrays = {
        "discrimination": irt.discrimination_,
        "difficulty": irt.difficulty_,
        "prior_precision": irt.prior_precision_,
        "ability": estimator.training_abilities_,
        "scenario": estimator._scenarios.index.astype(np.int32),
        "stratum": estimator._scenarios.strata.astype(np.int32),
        "item_weights": estimator.item_weights_,
        "anchors": estimator.anchors_.astype(np.int32),
        "anchor_weights": estimator.weights_,
        "bias": estimator.bias_,
        "variance": estimator.variance_,
        "mixing": estimator.mixing_,
        "training_scores": estimator.training_scores_,
        "training_responses": answers,
        "training_noise": estimator.training_noise_,
        "usual_bias": estimator.usual_bias_,
        "dispersion": estimator.dispersion_,
        "calibration": estimator.calibration_,
        "pairing": estimator.pairing_,
    }
    if len(estimator.appropriateness_limits_):
        arrays["appropriateness_limits"] = estimator.appropriateness_limits_
    if np.isin(answers, (0, 1)).all():
        arrays["training_responses"] = answers.astype(np.uint8)
    meta = {
        "info": info,
        "items": ids,
        "scenarios": list(estimator.scenarios_),
        "subscenarios": [list(names) for names in estimator._scenarios.subscenarios],
        "training_models": [str(model) for model in estimator.training_models_],
        "response_range": [estimator._bounds.low, estimator._bounds.high],
        "response_range_learned": bool(estimator._bounds.learned),
        "gain": float(estimator._gain),
        "estimator": {
            "estimate": estimator.estimate,
            "mixing": estimator.mixing
            if isinstance(estimator.mixing, str)
            else float(estimator.mixing),
            "relatives": estimator.relatives
            if isinstance(estimator.relatives, (str, bool))
            else float(estimator.relatives),
            "ability": estimator.ability,
        },
        "share": float(estimator.share_),
        "irt": {
            "n_dims": int(irt.n_dims),
            "abilities": irt.abilities,
            "thresholds": None if irt.thresholds_ is None else irt.thresholds_.tolist(),
        },
        "sklearn_irt_version": sklearn_irt_version,
    }
    return arrays, meta


def read_benchmark(path: str | os.PathLike) -> TinyBenchmark:
    """Read a benchmark file that `save_benchmark` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    TinyBenchmark

    Raises
    ------
    BenchmarkFileError
        Where the file is damaged, not a benchmark, or inconsistent.
    FileNotFoundError
    """
    arrays, meta = read_benchmark_file(path)
    try:
        return _unpack(arrays, meta)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        reason = f"lacks {error}" if isinstance(error, KeyError) else str(error)
        raise BenchmarkFileError(
            f"{os.fspath(path)}: the content is not a consistent benchmark ({reason})"
        ) from None


def _unpack(arrays: dict, meta: dict) -> TinyBenchmark:
    ids, names = meta["items"], tuple(meta["scenarios"])
    models = np.array(meta["training_models"], dtype=object)
    arrays = _with_defaults(arrays, len(names), len(models))
    _check_shapes(arrays, len(ids), len(names), len(models))
    if len(set(ids)) < len(ids) or not all(isinstance(item, str) for item in ids):
        raise ValueError("the item ids are not distinct strings")
    low, high = map(float, meta["response_range"])
    if not low < high or not meta["gain"] >= 0:
        raise ValueError("response_range is empty, or gain is negative")
    share = float(meta.get("share", 0.0))
    if not 0.0 <= share < 1.0:
        raise ValueError("share is not in [0, 1)")
    index, strata = arrays["scenario"].astype(int), arrays["stratum"].astype(int)
    subscenarios = tuple(tuple(found) for found in meta["subscenarios"])
    scenarios = Scenarios(names, index, strata, arrays["item_weights"], subscenarios)
    bounds = ResponseRange(
        *map(float, meta["response_range"]), learned=bool(meta["response_range_learned"])
    )
    settings, fitted_settings = meta["irt"], meta["estimator"]
    thresholds = settings.get("thresholds")
    irt = IRTRegressor(
        settings["n_dims"],
        abilities=settings["abilities"],
        response_model="fractional" if thresholds is None else "threshold",
    )
    irt._validate_params()
    irt.thresholds_ = None if thresholds is None else np.array(thresholds, dtype=float)
    if thresholds is not None and irt.thresholds_.shape != (len(names),):
        raise ValueError("thresholds are not one per scenario")
    irt.discrimination_, irt.difficulty_ = arrays["discrimination"], arrays["difficulty"]
    irt.prior_precision_, irt.ability_ = arrays["prior_precision"], arrays["ability"]
    irt.item_weights_, irt.scenarios_ = scenarios.weights, names
    irt.n_features_in_, irt._scenario_index, irt._bounds = len(ids), index, bounds
    estimator = GPIRTEstimator(
        fitted_settings["estimate"],
        mixing=fitted_settings["mixing"],
        relatives=fitted_settings.get("relatives", False),
        ability=fitted_settings["ability"],
    )
    estimator._validate_params()
    estimator.irt_ = irt
    estimator.anchors_ = arrays["anchors"].astype(int)
    estimator.weights_, estimator.item_weights_ = arrays["anchor_weights"], scenarios.weights
    estimator.bias_, estimator.variance_ = arrays["bias"], arrays["variance"]
    estimator.mixing_, estimator.scenarios_ = arrays["mixing"], names
    estimator.training_models_ = models
    estimator.training_scores_ = arrays["training_scores"]
    estimator.training_responses_ = arrays["training_responses"].astype(float)
    estimator.training_abilities_ = arrays["ability"].astype(float)
    estimator.training_noise_ = arrays["training_noise"].astype(float)
    estimator.usual_bias_, estimator.dispersion_ = arrays["usual_bias"], arrays["dispersion"]
    estimator.calibration_, estimator.pairing_ = arrays["calibration"], arrays["pairing"]
    estimator.appropriateness_limits_ = arrays["appropriateness_limits"]
    estimator.share_ = share
    estimator._scenarios, estimator._bounds = scenarios, bounds
    estimator._gain, estimator._from_selector = float(meta["gain"]), True
    estimator._item_names = np.array(ids, dtype=object)
    estimator.n_features_in_ = len(estimator.anchors_)
    weights = np.zeros(len(ids))
    weights[estimator.anchors_] = estimator.weights_
    items = pd.DataFrame(
        {
            "item": ids,
            "scenario": np.array(names, dtype=object)[index],
            "subscenario": pd.array(
                [
                    subscenarios[s][t] if subscenarios[s] else None
                    for s, t in zip(index, strata, strict=True)
                ],
                dtype="string",
            ),
            "difficulty": irt.difficulty_,
            "anchor_weight": weights,
        }
    )
    order = arrays["answer_order"].astype(int) if "answer_order" in arrays else None
    return TinyBenchmark(estimator, items, meta["info"], order)


def _with_defaults(arrays: dict, n_scenarios: int, n_models: int) -> dict:
    """What files without calibration and relatives lack (the authors' release), as if unlearned."""
    n_kinds = len(KINDS)
    pairing = np.zeros((n_kinds, n_scenarios + 1, 3))
    pairing[:, :, 2] = 1.0
    defaults = {
        "training_noise": np.zeros((n_models, n_scenarios, len(DISTANCES))),
        "usual_bias": np.full((2, n_scenarios), 0.01),
        "dispersion": np.ones(n_scenarios),
        "calibration": np.ones((n_kinds, n_scenarios + 1)),
        "pairing": pairing,
        "appropriateness_limits": np.empty((0, 2)),
    }
    return defaults | arrays


def _check_shapes(arrays: dict, n_items: int, n_scenarios: int, n_models: int) -> None:
    n_dims, n_anchors = arrays["prior_precision"].shape[0], len(arrays["anchors"])
    expected = {
        "discrimination": (n_items, n_dims),
        "difficulty": (n_items,),
        "prior_precision": (n_dims, n_dims),
        "ability": (n_models, n_dims),
        "scenario": (n_items,),
        "stratum": (n_items,),
        "item_weights": (n_items,),
        "anchors": (n_anchors,),
        "anchor_weights": (n_anchors,),
        "bias": (n_scenarios,),
        "variance": (n_scenarios,),
        "mixing": (n_scenarios,),
        "training_scores": (n_models, n_scenarios),
        "training_responses": (n_models, n_anchors),
        "training_noise": (n_models, n_scenarios, len(DISTANCES)),
        "usual_bias": (2, n_scenarios),
        "dispersion": (n_scenarios,),
        "calibration": (len(KINDS), n_scenarios + 1),
        "pairing": (len(KINDS), n_scenarios + 1, 3),
        "appropriateness_limits": (len(arrays["appropriateness_limits"]), 2),
    }
    for name, shape in expected.items():
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has shape {arrays[name].shape}, expected {shape}")
        if arrays[name].dtype.kind not in "fiu":
            raise ValueError(f"{name} has the type {arrays[name].dtype}")
        if name != "training_responses" and not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} has values that are not finite")
    sizes, limits = arrays["appropriateness_limits"].T
    if (np.diff(sizes, prepend=0.0) <= 0).any() or (limits > 0).any():
        raise ValueError("appropriateness_limits do not ascend in the answers, or are positive")
    for name, size in (("anchors", n_items), ("scenario", n_scenarios)):
        if n_items == 0 or arrays[name].min() < 0 or arrays[name].max() >= size:
            raise ValueError(f"{name} points outside the benchmark")
    for name in (
        "item_weights",
        "anchor_weights",
        "bias",
        "variance",
        "mixing",
        "training_noise",
        "usual_bias",
        "dispersion",
        "calibration",
    ):
        if (arrays[name] < 0).any():
            raise ValueError(f"{name} has negative values")
    for name, scenario in (
        ("item_weights", arrays["scenario"]),
        ("anchor_weights", arrays["scenario"][arrays["anchors"]]),
    ):
        if not np.allclose(np.bincount(scenario, arrays[name], n_scenarios), 1.0):
            raise ValueError(f"{name} do not sum to 1 in every scenario")
    if (np.linalg.eigvalsh(arrays["prior_precision"].astype(float)) <= 0).any():
        raise ValueError("prior_precision is not positive definite")
    if (np.diff(arrays["anchors"].astype(int)) <= 0).any():
        raise ValueError("anchors are not distinct and ascending")
    order = arrays.get("answer_order", np.arange(n_anchors))
    if order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n_anchors)):
        raise ValueError("answer_order is not a permutation of the anchors")
