"""What a GPIRTEstimator is trained on: the benchmark behind X, and fits without some models."""

import warnings
from typing import Any

import numpy as np

from sklearn_irt._context import AnchorContext
from sklearn_irt._irt import IRTRegressor, fit_scenarios
from sklearn_irt._responses import model_names, read_range, to_unit
from sklearn_irt._scenarios import read_scenarios
from sklearn_irt.kernels.logistic import ItemModel
from sklearn_irt.kernels.mixing import prediction_bias

# From so many training models on, two halves are enough to judge by; below, more folds.
TWO_HALVES, MAX_FOLDS = 60, 4
# Rounds of a fold's fit: more change its predictions by less than the folds differ.
FOLD_ROUNDS = 60


def held_out_fits(
    modelled, responses, weights, index, strata, n_dims, abilities, max_iter, tol, ability, seed
) -> tuple[np.ndarray, list[ItemModel], np.ndarray]:
    """The paper's bias, and fits without each fold of the models; arrays only, to be cached."""

    def fit(part: np.ndarray, rounds: int = max_iter) -> ItemModel:
        return fit_scenarios(part, index, n_dims, abilities, rounds, tol, seed, strata=strata)[0]

    rng = np.random.RandomState(seed)
    bias, half, test = prediction_bias(modelled, weights, fit, rng, ability, truth=responses)
    n_models = len(modelled)
    if n_models >= TWO_HALVES:  # the half that the bias needs is one of two folds
        fold = np.zeros(n_models, dtype=int)
        fold[test] = 1
        return bias, [fit(modelled[test]), half], fold
    n_folds = min(n_models, MAX_FOLDS)
    fold = rng.permutation(n_models) % n_folds
    rounds = min(max_iter, FOLD_ROUNDS)
    return bias, [fit(modelled[fold != f], rounds) for f in range(n_folds)], fold


def whole_benchmark(
    values: np.ndarray, X: Any, labels: Any, response_range: Any, item_names: Any
) -> AnchorContext:
    """The context of a full matrix X, read as `values`: every item is an anchor."""
    bounds = read_range(values, response_range, X)
    scenarios = read_scenarios(labels, values.shape[1], item_names)
    return AnchorContext(
        anchors=np.arange(values.shape[1]),
        weights=scenarios.weights,
        gain=1.0,
        scenarios=scenarios,
        bounds=bounds,
        irt=IRTRegressor(random_state=0),
        item_names=item_names,
        responses=to_unit(values, bounds, X),
        models=model_names(X, len(values)),
    )


def warn_if_lost(context: AnchorContext, y: np.ndarray | None) -> None:
    """Warn where y is not the score of X: X is then a part of the benchmark."""
    if y is None:
        return
    weights = context.scenarios.weights / len(context.scenarios.names)
    complete = ~np.isnan(context.responses).any(axis=1)
    bounds = context.bounds
    score = bounds.low + bounds.width * (context.responses[complete] @ weights)
    if not np.allclose(score, y[complete], rtol=1e-3, atol=1e-3 * bounds.width):
        warnings.warn(
            "y is not the mean of the columns of X, which are taken as the whole benchmark. "
            "If X are anchors, their context was lost between AnchorSelector and "
            "GPIRTEstimator (another step between them, a union, a copy by hand, polars "
            "output): let GPIRTEstimator follow AnchorSelector directly. Otherwise give "
            "scenarios, or leave y out",
            UserWarning,
            stacklevel=5,
        )


def check_context(context: AnchorContext, values: np.ndarray, X: Any) -> None:
    """Refuse an X whose rows, columns or values are not those that the selector handed on."""
    if context.responses is None:
        raise ValueError(
            "X is the output of AnchorSelector.transform, which does not carry the training "
            "models' full responses; use fit_transform, as a Pipeline does"
        )
    anchors = context.responses[:, context.anchors]
    if values.shape != anchors.shape:
        raise ValueError(
            f"X has shape {values.shape}, but comes from an AnchorSelector that was fitted on "
            f"{len(anchors)} models and chose {anchors.shape[1]} anchors; rows or columns were "
            "taken away between the two: split the models before the Pipeline"
        )
    values = values.astype(anchors.dtype, copy=False)  # the selector's of a file are float32
    if not np.array_equal(to_unit(values, context.bounds, X), anchors, equal_nan=True):
        raise ValueError(
            "X differs from the anchors' responses that AnchorSelector.fit_transform returned; "
            "rows, columns or values were changed between the two"
        )
