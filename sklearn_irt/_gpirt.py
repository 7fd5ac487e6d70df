"""GPIRTEstimator: a new model's full score from its answers on the anchors."""

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_memory

from sklearn_irt._context import AnchorContext, context_of
from sklearn_irt._irt import (
    IRTRegressor,
    abilities_with_warning,
    check_ignored_target,
    fit_scenarios,
)
from sklearn_irt._responses import model_names, read_range, read_responses, to_unit
from sklearn_irt._scenarios import OVERALL, read_scenarios
from sklearn_irt._state import unchanged_on_error
from sklearn_irt.kernels.logistic import response_probabilities, row_blocks
from sklearn_irt.kernels.mixing import paper_mixing, prediction_bias, response_variance
from sklearn_irt.kernels.scores import Estimates, combine, scenario_scores
from sklearn_irt.metrics import mean_win_rate, win_rate_error


def _cached_bias(
    modelled, responses, weights, index, n_dims, abilities, max_iter, tol, ability, seed
) -> np.ndarray:
    """`prediction_bias` of arrays only, so that it can be cached."""

    def fit(part: np.ndarray):
        return fit_scenarios(part, index, n_dims, abilities, max_iter, tol, seed)[0]

    rng = np.random.RandomState(seed)
    return prediction_bias(modelled, weights, fit, rng, ability, truth=responses)


class GPIRTEstimator(RegressorMixin, BaseEstimator):
    """Estimate models' full benchmark scores from their answers on a few items.

    Three estimates: `naive`, the weighted mean of the answers; `pirt`, the known answers and the
    IRT model's expected ones for the other items; `gpirt`, a combination of both,
    ``mixing * naive + (1 - mixing) * pirt``.

    It is fitted on the output of `AnchorSelector.fit_transform`, as a Pipeline does; on any other
    matrix every column is an item of the benchmark and all are anchors (NaN for what is not
    asked).

    Parameters
    ----------
    estimate : {"gpirt", "pirt", "naive"}, default="gpirt"
        What `predict` returns. Read at predict time.
    n_dims : int, default=None
        Dimensions of the IRT model; None: those of the selector's, which is then used as it is
        (5 without a selector).
    irt : IRTRegressor, default=None
        Settings of an IRT model of its own (it is cloned); None: the selector's.
    mixing : "paper" or float in [0, 1], default="paper"
        Share of the naive estimate in gp-IRT: from the bias of the IRT model and the variance of
        the responses, or a fixed number. Read at predict time.
    ability : {"map", "mle"}, default="map"
        How the ability of a new model is estimated: maximum a posteriori, or maximum likelihood
        (the paper) with its norm held at 10. The mixing is learned with it in `fit`.
    aggregate : {"mean", "mean_win_rate"}, default="mean"
        What `predict` makes of the scenarios' scores: their mean, or the share of training
        models that the model beats, averaged over the scenarios (HELM; in [0, 1] whatever the
        unit of the responses). Read at predict time.
    scenarios : array-like of shape (n_items,) or (n_items, 2), default=None
        Scenario, or scenario and subscenario, of each item. With an `AnchorSelector` give them
        there.
    response_range : (low, high), default=None
        Lowest and highest possible response. With an `AnchorSelector` give it there.
    memory : str or joblib.Memory, default=None
        Where IRT fits are cached.
    random_state : int, RandomState or None, default=None
        Split of the training models from which the bias of the IRT model is learned.

    Attributes
    ----------
    irt_ : IRTRegressor
    anchors_ : ndarray of shape (n_anchors,), int
        Positions of the columns of X among the items of the benchmark.
    weights_ : ndarray of shape (n_anchors,)
        Weights of the anchors in the naive estimate, sum 1 in each scenario.
    item_weights_ : ndarray of shape (n_items,)
        Weights of the items in their scenario's score, sum 1 in each scenario.
    mixing_ : ndarray of shape (n_scenarios,)
        The paper's lambda when every anchor is answered.
    bias_ : ndarray of shape (n_scenarios,)
        Mean absolute error of the IRT model's predicted scores, on the scale of [0, 1].
    variance_ : ndarray of shape (n_scenarios,)
        Variance of a model's responses over the items, on the scale of [0, 1].
    scenarios_ : tuple of str
    training_models_ : ndarray of shape (n_models,) of str
    training_scores_ : ndarray of shape (n_models, n_scenarios)
        In the unit of the responses; what a training model lacks is filled by the IRT model.
    training_responses_ : ndarray of shape (n_models, n_anchors)
        Their responses on the anchors, on the scale of [0, 1].
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_anchors,)

    See Also
    --------
    AnchorSelector : Picks the items that are worth asking.

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.
       Section 4.2: p-IRT (equation 4.2) and gp-IRT (equation 4.4).

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_irt import AnchorSelector, GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=80, n_items=400, random_state=0)
    >>> train, new = data.responses[:60], data.responses[60:]
    >>> pipe = make_pipeline(
    ...     AnchorSelector(k=50, random_state=0), GPIRTEstimator(random_state=0)
    ... ).fit(train)
    >>> score, std = pipe.predict(new, return_std=True)
    >>> bool(abs(score - data.scores[60:]).mean() < 0.06)
    True
    """

    _parameter_constraints: dict = {
        "estimate": [StrOptions({"gpirt", "pirt", "naive"})],
        "n_dims": [Interval(Integral, 1, None, closed="left"), None],
        "irt": [IRTRegressor, None],
        "mixing": [StrOptions({"paper"}), Interval(Real, 0, 1, closed="both")],
        "ability": [StrOptions({"map", "mle"})],
        "aggregate": [StrOptions({"mean", "mean_win_rate"})],
        "scenarios": ["array-like", None],
        "response_range": ["array-like", None],
        "memory": [str, HasMethods("cache"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimate: str = "gpirt",
        *,
        n_dims: int | None = None,
        irt: IRTRegressor | None = None,
        mixing="paper",
        ability: str = "map",
        aggregate: str = "mean",
        scenarios=None,
        response_range=None,
        memory=None,
        random_state=None,
    ):
        self.estimate = estimate
        self.n_dims = n_dims
        self.irt = irt
        self.mixing = mixing
        self.ability = ability
        self.aggregate = aggregate
        self.scenarios = scenarios
        self.response_range = response_range
        self.memory = memory
        self.random_state = random_state

    @unchanged_on_error
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "GPIRTEstimator":
        """Learn the IRT model (unless the selector has) and the mixing.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            The output of `AnchorSelector.fit_transform`, or full responses of the training
            models, NaN where not asked.
        y : array-like of shape (n_models,), default=None
            The models' full scores. Not used for fitting: the responses say it all.

        Returns
        -------
        GPIRTEstimator
        """
        context = context_of(X)  # before the validation, which returns a plain array
        from_selector = context is not None
        values = read_responses(self, X, reset=True)
        y = check_ignored_target(y, len(values))
        if context is None:
            context = self._whole_benchmark(values, X)
            self._warn_if_lost(context, y)
        else:
            self._check_context(context, values, X)
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31 - 1)
        scenarios, responses = context.scenarios, context.responses
        self.irt_ = self._irt_model(context, seed)
        weights = np.zeros((len(scenarios.names), responses.shape[1]))
        weights[scenarios.index, np.arange(responses.shape[1])] = scenarios.weights
        cached = check_memory(self.memory or self.irt_.memory).cache(_cached_bias)
        self.bias_ = cached(
            self.irt_._modelled(responses),
            responses,
            weights,
            scenarios.index,
            self.irt_.n_dims,
            self.irt_.abilities if len(scenarios.names) > 1 else "separate",
            self.irt_.max_iter,
            self.irt_.tol,
            self.ability,
            seed,
        )
        self.variance_ = np.array(
            [
                response_variance(responses[:, members], scenarios.weights[members])
                for members in map(scenarios.members, range(len(scenarios.names)))
            ]
        )
        self.anchors_, self.weights_ = context.anchors, context.weights
        self.item_weights_, self.scenarios_ = scenarios.weights, scenarios.names
        self._scenarios, self._gain = scenarios, context.gain
        self._from_selector = from_selector
        self._bounds, self._item_names = context.bounds, context.item_names
        n_anchors = np.bincount(scenarios.index[self.anchors_], minlength=len(scenarios.names))
        self.mixing_ = paper_mixing(self.bias_, self.variance_, n_anchors, self._gain)
        self.training_models_ = context.models
        self.training_responses_ = np.array(responses[:, self.anchors_])
        self.training_scores_ = self._in_unit(self._training_scores(responses))
        return self

    def _whole_benchmark(self, values: np.ndarray, X: Any) -> AnchorContext:
        """The context of a full matrix: every item is an anchor."""
        bounds = read_range(values, self.response_range, X)
        scenarios = read_scenarios(
            self.scenarios, values.shape[1], getattr(self, "feature_names_in_", None)
        )
        return AnchorContext(
            anchors=np.arange(values.shape[1]),
            weights=scenarios.weights,
            gain=1.0,
            scenarios=scenarios,
            bounds=bounds,
            irt=IRTRegressor(random_state=0),
            item_names=getattr(self, "feature_names_in_", None),
            responses=to_unit(values, bounds, X),
            models=model_names(X, len(values)),
        )

    def _warn_if_lost(self, context: AnchorContext, y: np.ndarray | None) -> None:
        """Warn where y is not the score of X: X is then a part of the benchmark."""
        if y is None:
            return
        weights = context.scenarios.weights / len(context.scenarios.names)
        complete = ~np.isnan(context.responses).any(axis=1)
        score = self._in_unit(context.responses[complete] @ weights, context.bounds)
        if not np.allclose(score, y[complete], rtol=1e-3, atol=1e-3 * context.bounds.width):
            warnings.warn(
                "y is not the mean of the columns of X, which are taken as the whole benchmark. "
                "If X are anchors, their context was lost between AnchorSelector and "
                "GPIRTEstimator (another step between them, a union, a copy by hand, polars "
                "output): let GPIRTEstimator follow AnchorSelector directly. Otherwise give "
                "scenarios, or leave y out",
                UserWarning,
                stacklevel=5,
            )

    def _check_context(self, context: AnchorContext, values: np.ndarray, X: Any) -> None:
        for name in ("scenarios", "response_range"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} belongs to the AnchorSelector, from which GPIRTEstimator gets it"
                )
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
        if not np.array_equal(to_unit(values, context.bounds, X), anchors, equal_nan=True):
            raise ValueError(
                "X differs from the anchors' responses that AnchorSelector.fit_transform returned; "
                "rows, columns or values were changed between the two"
            )

    def _irt_model(self, context: AnchorContext, seed: int) -> IRTRegressor:
        """The selector's model where it is fitted and meets the parameters, else a new one."""
        settings = context.irt if self.irt is None else self.irt
        same_dims = self.n_dims is None or self.n_dims == settings.n_dims
        if self.irt is None and same_dims and hasattr(settings, "discrimination_"):
            return settings
        irt = clone(settings)
        if self.n_dims is not None:
            irt.set_params(n_dims=self.n_dims)
        if irt.memory is None:
            irt.set_params(memory=self.memory)
        if irt.random_state is None:
            irt.set_params(random_state=seed)
        return irt._fit_unit(context.responses, context.scenarios, context.bounds)

    def _training_scores(self, responses: np.ndarray) -> np.ndarray:
        """Scores of the training models; the model fills in what they were not asked."""
        scores = np.empty((len(responses), len(self.scenarios_)))
        items = self.irt_.discrimination_, self.irt_.difficulty_
        weights = np.zeros((responses.shape[1], len(self.scenarios_)))
        weights[np.arange(responses.shape[1]), self._scenarios.index] = self.item_weights_
        for rows in row_blocks(*responses.shape):
            known = responses[rows]
            missing = np.isnan(known)
            if missing.any():
                expected = response_probabilities(self.irt_.ability_[rows], *items)
                known = np.where(missing, expected, known)
            scores[rows] = known @ weights
        return scores

    def _in_unit(self, scores: np.ndarray, bounds: Any = None) -> np.ndarray:
        bounds = self._bounds if bounds is None else bounds
        return bounds.low + bounds.width * scores

    def _read_answers(self, X: Any) -> np.ndarray:
        """Answers to the anchors on the scale of [0, 1]; a DataFrame's are matched by item name."""
        if not self._from_selector or not isinstance(X, pd.DataFrame) or self._item_names is None:
            return to_unit(read_responses(self, X, reset=False), self._bounds, X)
        names = self._item_names[self.anchors_]
        missing = [name for name in names if name not in X.columns]
        if missing and any(isinstance(name, str) for name in X.columns):
            raise ValueError(
                f"X has no column for {len(missing)} of the {len(names)} anchors, the first is "
                f"{missing[0]!r}; give NaN for what was not asked"
            )
        if not missing:
            X = X[names]  # columns without names are read by position
        with warnings.catch_warnings():
            # Between the steps of a Pipeline the columns have no names, so none were recorded.
            warnings.filterwarnings("ignore", "X has feature names, but")
            return to_unit(read_responses(self, X, reset=False), self._bounds, X)

    def _estimates(self, X: Any) -> Estimates:
        check_is_fitted(self)
        return self._estimates_at(self._read_answers(X), self.anchors_, self.weights_)

    def _estimates_at(
        self, answers: np.ndarray, positions: np.ndarray, weights: np.ndarray
    ) -> Estimates:
        """Estimates from answers in [0, 1] to any items; items without weight only help p-IRT."""
        self._validate_params()  # estimate, mixing and ability are read now
        items = self.irt_.discrimination_, self.irt_.difficulty_
        asked = tuple(parameter[positions] for parameter in items)
        abilities = abilities_with_warning(
            self.ability,
            self.irt_._modelled(answers, positions),
            *asked,
            self.irt_.prior_precision_,
        )
        scenarios = self._scenarios
        found = scenario_scores(
            answers,
            positions,
            weights,
            abilities.ability,
            *items,
            scenarios.weights,
            scenarios.index,
        )
        if self.mixing == "paper":
            # p-IRT errs on what was not asked only, so answers beyond the anchors lower its bias.
            left, beyond = 1.0 - found.asked_weight, 1.0 - found.anchor_weight
            share = np.divide(left, beyond, out=np.ones_like(left), where=beyond > 1e-9)
            bias = self.bias_ * np.where(share > 1e-9, share, 0.0)
            mixing = paper_mixing(bias, self.variance_, found.n_weighted, self._gain)
        else:
            mixing = np.where(found.n_weighted > 0, float(self.mixing), 0.0)
        return combine(found, abilities.covariance, mixing, self.variance_)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Estimate the full benchmark scores of models: the `aggregate` of the scenarios.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked. After a selector that saw item names, a
            DataFrame's named columns are matched by name, and others than the anchors' are left
            out.
        return_std : bool, default=False
            Also return the standard errors.

        Returns
        -------
        score : ndarray of shape (n_models,)
            In the unit of the responses. A row without any answer gets the expected score of a
            model of mean ability, or NaN from the naive estimate.
        std : ndarray of shape (n_models,)
            Standard errors, if `return_std`.
        """
        found = self._estimates(X)
        score, std = self._overall(found, self.estimate)
        return (score, std) if return_std else score

    def _overall(self, found: Estimates, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Aggregate over the scenarios and its standard error, in the unit of the aggregate."""
        if self.aggregate == "mean":
            std = self._bounds.width * found.overall_stds[kind]
            return self._in_unit(found.overall_scores[kind]), std
        if not len(self.training_scores_):
            raise ValueError(
                'aggregate="mean_win_rate" needs the scores of training models, and this estimator '
                "has none"
            )
        scores, stds = self._in_unit(found.scores[kind]), self._bounds.width * found.stds[kind]
        rate = mean_win_rate(scores, self.training_scores_)
        return rate, win_rate_error(scores, stds, self.training_scores_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Coefficient of determination (R squared) of the estimated scores.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked.
        y : array-like of shape (n_models,)
            The models' full scores. In a search over a Pipeline give them to its `fit`.
        sample_weight : array-like of shape (n_models,), default=None

        Returns
        -------
        float
        """
        if y is None:
            raise ValueError(
                "y is needed to judge the estimates: the models' full scores, e.g. "
                "X.mean(axis=1) of the full responses; GridSearchCV(...).fit(X, y)"
            )
        return super().score(X, y, sample_weight)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Interval of the full benchmark score of every model.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked.
        coverage : float in (0, 1), default=0.9

        Returns
        -------
        ndarray of shape (n_models, 2)
            Lower and upper bound by the normal approximation, inside the response range.
        """
        score, std = self.predict(X, return_std=True)
        return self._interval(score, std, coverage)

    def _interval(self, score: np.ndarray, std: np.ndarray, coverage: float) -> np.ndarray:
        if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage must be a number in (0, 1), got {coverage!r}")
        half = ndtri(0.5 * (1.0 + coverage)) * std
        low, high = self._bounds.low, self._bounds.low + self._bounds.width
        if self.aggregate == "mean_win_rate":
            low, high = min(low, 0.0), max(high, 1.0)
        return np.stack([np.maximum(score - half, low), np.minimum(score + half, high)], axis=-1)

    def predict_scenarios(self, X: Any) -> pd.DataFrame:
        """Estimate the scores of models on every scenario.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked.

        Returns
        -------
        DataFrame of shape (n_models, n_scenarios)
            In the unit of the responses.
        """
        found = self._estimates(X)
        names = pd.Index(model_names(X, len(found.n_asked)), name="model")
        columns = pd.Index(self.scenarios_, name="scenario")
        return pd.DataFrame(self._in_unit(found.scores[self.estimate]), names, columns)

    def predict_table(self, X: Any, coverage: float = 0.9) -> pd.DataFrame:
        """Every figure: a row per model and scenario, and one for the whole benchmark.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked.
        coverage : float in (0, 1), default=0.9
            Of the interval.

        Returns
        -------
        DataFrame
            Index (model, scenario), "(all)" for the aggregate where there are several
            scenarios; columns answered, naive, pirt, gpirt, and of the chosen `estimate` the
            std_error and the interval from low to high. In the unit of the responses.
        """
        found = self._estimates(X)
        return self._table(found, model_names(X, len(found.n_asked)), coverage)

    def _table(self, found: Estimates, models: np.ndarray | None, coverage: float) -> pd.DataFrame:
        """The table of `predict_table`; without `models`, of one model, by scenario only."""
        names = list(self.scenarios_)
        several = len(names) > 1 or self.aggregate != "mean"

        def rows(parts: np.ndarray, overall: np.ndarray) -> np.ndarray:
            return np.column_stack([parts, overall]) if several else parts

        answered = rows(found.n_asked, found.n_asked.sum(axis=1))
        overall = {kind: self._overall(found, kind) for kind in ("naive", "pirt", "gpirt")}
        figures = {
            kind: rows(self._in_unit(found.scores[kind]), score)
            for kind, (score, _) in overall.items()
        }
        std = rows(self._bounds.width * found.stds[self.estimate], overall[self.estimate][1])
        interval = self._interval(figures[self.estimate], std, coverage)
        names += [OVERALL] if several else []
        if models is None:
            index = pd.Index(names, name="scenario")
        else:
            index = pd.MultiIndex.from_arrays(
                [np.repeat(models, len(names)), names * len(models)], names=["model", "scenario"]
            )
        columns = {
            "answered": answered,
            **figures,
            "std_error": std,
            "low": interval[..., 0],
            "high": interval[..., 1],
        }
        return pd.DataFrame({name: value.ravel() for name, value in columns.items()}, index)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True
        return tags
