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

from sklearn_irt._added_models import read_added
from sklearn_irt._comparison import compare_table, in_pairs, pair_alikeness, paired_stds
from sklearn_irt._context import AnchorContext, context_of
from sklearn_irt._irt import (
    IRTRegressor,
    check_ignored_target,
    warn_if_bounded,
)
from sklearn_irt._relatives import Kin, in_words, kin_of, relatives_table
from sklearn_irt._reports import check_coverage, table_of
from sklearn_irt._responses import model_names, read_responses, to_unit
from sklearn_irt._scenarios import OVERALL
from sklearn_irt._state import unchanged_on_error
from sklearn_irt._training import check_context, held_out_fits, warn_if_lost, whole_benchmark
from sklearn_irt.kernels.benchmark import (
    Benchmark,
    Training,
    TrainingFigures,
    relatives_at,
    training_figures,
)
from sklearn_irt.kernels.estimates import Estimates, Settings, Tuning, estimate
from sklearn_irt.kernels.fit import appropriateness, appropriateness_limits, unusual
from sklearn_irt.kernels.logistic import ItemModel
from sklearn_irt.kernels.mixing import paper_mixing, response_variance
from sklearn_irt.kernels.threshold import is_right_or_wrong
from sklearn_irt.kernels.tuning import HeldOut, by_kind, tune
from sklearn_irt.metrics import mean_win_rate, win_rate_error


class GPIRTEstimator(RegressorMixin, BaseEstimator):
    """Estimate models' full benchmark scores from their answers on a few items.

    Three estimates: `naive`, the weighted mean of the anchors' answers; `pirt`, the known answers
    and the expected ones for the other items, by the training models that the model resembles and
    by the IRT model; `gpirt`, a combination of both.

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
    mixing : {"robust", "paper"} or float in [0, 1], default="robust"
        How gp-IRT joins the prediction and the anchors' mean. "robust": model by model, by how far
        its answers are from what the other answers predict, so that a model unlike the training
        ones is judged by its own answers. "paper": one share of the naive estimate, from the bias
        of the IRT model and the variance of the responses. A number: this share of the naive
        estimate, or with relatives of the residual. Read at predict time.
    relatives : "auto", False or float in [0, 1), default="auto"
        Prior probability that a new model is a more or less exact copy of one of the training
        models, in which case their scores are the prediction; "auto" learns it. False: the IRT
        model alone; with ``mixing="paper"`` this is the paper's estimator. Read at predict time.
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
    training_abilities_ : ndarray of shape (n_models, n_abilities)
    training_noise_ : ndarray of shape (n_models, n_scenarios, 3)
        Variance of the scores of copies of them, at the distances 0.3, 0.6 and 1.
    share_ : float
        Learned share of models that have a relative.
    usual_bias_ : ndarray of shape (2, n_scenarios)
        Usual bias of the prediction without and with relatives, for the robust mixing.
    dispersion_ : ndarray of shape (n_scenarios,)
        Variance of the responses as a share of that of right or wrong ones.
    calibration_ : ndarray of shape (7, n_scenarios + 1)
        Factors of the standard errors of every kind of estimate, from training models left out.
    pairing_ : ndarray of shape (7, n_scenarios + 1, 3)
        Correlation of the errors of two models by how alike their answers are, for `compare`.
    appropriateness_limits_ : ndarray of shape (n_sizes, 2)
        Numbers of answers, and the log-ratio below which so many answers are unusual; no rows
        where no training models' answers are known.
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
    >>> data = make_responses(n_models=120, n_items=400, random_state=0)
    >>> train, new = data.responses[:100], data.responses[100:]
    >>> pipe = make_pipeline(
    ...     AnchorSelector(k=50, random_state=0), GPIRTEstimator(random_state=0)
    ... ).fit(train)
    >>> score, std = pipe.predict(new, return_std=True)
    >>> bool(abs(score - data.scores[100:]).mean() < 0.06)
    True
    """

    _parameter_constraints: dict = {
        "estimate": [StrOptions({"gpirt", "pirt", "naive"})],
        "n_dims": [Interval(Integral, 1, None, closed="left"), None],
        "irt": [IRTRegressor, None],
        "mixing": [StrOptions({"robust", "paper"}), Interval(Real, 0, 1, closed="both")],
        "relatives": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
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
        mixing="robust",
        relatives="auto",
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
        self.relatives = relatives
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
            names = getattr(self, "feature_names_in_", None)
            context = whole_benchmark(values, X, self.scenarios, self.response_range, names)
            warn_if_lost(context, y)
        else:
            for name in ("scenarios", "response_range"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"{name} belongs to the AnchorSelector, from which GPIRTEstimator gets it"
                    )
            check_context(context, values, X)
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31 - 1)
        scenarios, responses = context.scenarios, context.responses
        self.irt_ = self._irt_model(context, seed)
        weights = np.zeros((len(scenarios.names), responses.shape[1]))
        weights[scenarios.index, np.arange(responses.shape[1])] = scenarios.weights
        cached = check_memory(self.memory or self.irt_.memory).cache(held_out_fits)
        modelled = self.irt_._modelled(responses)
        self.bias_, held_out, fold = cached(
            modelled,
            responses,
            weights,
            scenarios.index,
            scenarios.strata,
            self.irt_.n_dims,
            self.irt_.abilities if len(scenarios.names) > 1 else "separate",
            self.irt_.max_iter,
            self.irt_.tol,
            self.ability,
            seed,
        )
        self.variance_ = np.array(
            [
                response_variance(
                    scenarios.part(responses, s), scenarios.weights[scenarios.members(s)]
                )
                for s in range(len(scenarios.names))
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
        self.training_abilities_ = self.irt_.ability_
        figures = self._training_figures(responses, self.irt_.ability_)
        self.training_scores_ = self._in_unit(figures.scores)
        self.training_noise_ = figures.noise
        self.dispersion_ = figures.squares / np.maximum(figures.spread, 1e-12)
        if is_right_or_wrong(responses):
            self.dispersion_[:] = 1.0
        self.share_, self.usual_bias_ = 0.0, np.zeros((2, len(scenarios.names)))
        benchmark, held_out = self._kernel_benchmark(), HeldOut(held_out, fold)
        tuning, self.calibration_, self.pairing_ = tune(
            benchmark,
            held_out,
            self._tuning(),
            modelled[:, self.anchors_],
            self.weights_,
            figures.observed,
            self.ability,
            np.random.RandomState(seed),
        )
        self.share_, self.usual_bias_ = tuning.share, tuning.usual_bias
        self.appropriateness_limits_ = appropriateness_limits(
            benchmark,
            held_out,
            self.share_,
            modelled[:, self.anchors_],
            np.random.RandomState(seed),
        )
        return self

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

    def _training_figures(self, responses: np.ndarray, abilities: np.ndarray) -> TrainingFigures:
        return training_figures(
            responses, abilities, self._items(), self.item_weights_, self._scenarios.index
        )

    def _items(self) -> ItemModel:
        irt = self.irt_
        return ItemModel(irt.discrimination_, irt.difficulty_, irt.prior_precision_)

    def _kernel_benchmark(self) -> Benchmark:
        training = Training(
            self.training_abilities_,
            self.training_responses_,
            (self.training_scores_ - self._bounds.low) / self._bounds.width,
            self.training_noise_,
        )
        return Benchmark(
            self._items(),
            self._scenarios.index,
            self.item_weights_,
            self.anchors_,
            training,
        )

    def _tuning(self) -> Tuning:
        return Tuning(
            self.bias_, self.variance_, self._gain, self.usual_bias_, self.dispersion_, self.share_
        )

    def _in_unit(self, scores: np.ndarray) -> np.ndarray:
        return self._bounds.low + self._bounds.width * scores

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
        """Estimates from answers in [0, 1] to any items; items without weight count for p-IRT only.

        The standard errors are calibrated.
        """
        self._validate_params()  # estimate, mixing, relatives and ability are read now
        share = self._relative_share()
        modelled = self.irt_._modelled(answers, positions)
        found = estimate(
            self._kernel_benchmark(),
            self._tuning(),
            Settings(self.ability, self.mixing, share),
            answers,
            modelled,
            positions,
            weights,
        )
        warn_if_bounded(found.bounded, stacklevel=4)
        stds, overall_stds = {}, {}
        for kind, std in found.stds.items():
            factor = by_kind(self.calibration_, kind, self.mixing, related=share > 0)
            stds[kind], overall_stds[kind] = (
                std * factor[:-1],
                found.overall_stds[kind] * factor[-1],
            )
        return found._replace(stds=stds, overall_stds=overall_stds)

    def _relative_share(self) -> float:
        """Share of new models with a relative; 0 where there are none."""
        if self.relatives is False or not len(self.training_scores_):
            return 0.0
        return self.share_ if self.relatives == "auto" else float(self.relatives)

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

    def _by_row(self, found: Estimates, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Scores and standard errors in the rows of a table: scenarios, and their aggregate."""
        overall, overall_std = self._overall(found, kind)
        score, std = self._in_unit(found.scores[kind]), self._bounds.width * found.stds[kind]
        n_rows = len(self._row_names())
        return (
            np.column_stack([score, overall])[:, :n_rows],
            np.column_stack([std, overall_std])[:, :n_rows],
        )

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
        check_coverage(coverage)
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
            scenarios; columns answered, naive, pirt, gpirt, of the chosen `estimate` the
            std_error and the interval from low to high, unusual: whether the model's pattern of
            answers is unlike those of the training models, so that the estimate is not to be
            trusted (at most one in twenty models like them is called so), and relatives: whom
            the model resembles. In the unit of the responses.
        """
        check_is_fitted(self)
        answers = self._read_answers(X)
        return self._table(
            answers, self.anchors_, self.weights_, model_names(X, len(answers)), coverage
        )

    def _table(
        self,
        answers: np.ndarray,
        positions: np.ndarray,
        weights: np.ndarray,
        models: np.ndarray | None,
        coverage: float,
    ) -> pd.DataFrame:
        """The table of `predict_table`; without `models`, of one model, by scenario only."""
        check_coverage(coverage)
        found = self._estimates_at(answers, positions, weights)
        names = self._row_names()
        figures = {kind: self._by_row(found, kind) for kind in ("naive", "pirt", "gpirt")}
        score, std = figures[self.estimate]
        interval = self._interval(score, std, coverage)
        answered = np.column_stack([found.n_asked, found.n_asked.sum(axis=1)])
        columns = {
            "answered": answered[:, : len(names)],
            **{kind: scores for kind, (scores, _) in figures.items()},
            "std_error": std,
            "low": interval[..., 0],
            "high": interval[..., 1],
        }
        if len(self.appropriateness_limits_) and len(self.training_scores_):
            columns["unusual"] = np.repeat(self._is_unusual(answers, positions), len(names))
        kin = self._kin_in_words(answers, positions)
        columns["relatives"] = np.repeat(kin, len(names))
        return table_of(columns, models, names)

    def _is_unusual(self, answers: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Whether each model's pattern of answers is unlike those of the training models."""
        benchmark = self._kernel_benchmark()
        ratios = appropriateness(
            benchmark,
            relatives_at(benchmark, positions),
            self.share_,
            answers,
            self.irt_._modelled(answers, positions),
            positions,
        )
        return unusual(ratios, (~np.isnan(answers)).sum(axis=1), self.appropriateness_limits_)

    def _row_names(self) -> list[str]:
        several = len(self.scenarios_) > 1 or self.aggregate != "mean"
        return [*self.scenarios_, *([OVERALL] if several else [])]

    def _find_kin(self, answers: np.ndarray, positions: np.ndarray) -> Kin:
        return kin_of(
            self._kernel_benchmark(),
            self._relative_share(),
            answers,
            self.irt_._modelled(answers, positions),
            positions,
        )

    def _kin_in_words(self, answers: np.ndarray, positions: np.ndarray) -> np.ndarray:
        if self._relative_share() == 0.0:
            off = "off" if len(self.training_scores_) else "off: no training answers"
            return np.full(len(answers), off, dtype=object)
        return in_words(self.training_models_, self._find_kin(answers, positions))

    def relatives_of(self, X: Any, n: int = 5) -> pd.DataFrame:
        """Whom models resemble: their nearest training models.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)
            Answers to the anchors, NaN where not asked.
        n : int, default=5
            Relatives of each model.

        Returns
        -------
        DataFrame
            Index (model, relative), heaviest first and "(none)" last; columns weight, the
            posterior probability, and score, the relative's own on the whole benchmark. Twins
            (training models with equal answers) are one row, named together.

        Raises
        ------
        ValueError
            Where `n` is not positive, relatives are off, or no training model is known.
        """
        check_is_fitted(self)
        self._validate_params()
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}")
        if self._relative_share() == 0.0:
            raise ValueError(
                "relatives are off: "
                + (
                    f"relatives={self.relatives!r}"
                    if len(self.training_scores_)
                    else "this estimator holds no training models' answers"
                )
            )
        answers = self._read_answers(X)
        return relatives_table(
            model_names(X, len(answers)),
            self.training_models_,
            self._find_kin(answers, self.anchors_),
            self.training_scores_,
            int(n),
        )

    def compare(self, X_a: Any, X_b: Any, coverage: float = 0.9) -> pd.DataFrame:
        """Compare models on the same anchors.

        The errors of two models that were asked the same items have much in common, the more the
        more alike their answers are, so a difference is known better than from two intervals.

        Parameters
        ----------
        X_a, X_b : array-like of shape (n_pairs, n_anchors)
            Answers to the anchors, NaN where not asked; row by row, or one row against all.
        coverage : float in (0, 1), default=0.9
            Of the interval.

        Returns
        -------
        DataFrame
            Index (model a, model b, scenario), "(all)" for the aggregate where there are several
            scenarios; columns a, b, difference (a less b), std_error, low, high (interval of the
            difference), and probability_lower: that a scores lower than b. In the unit of the
            responses.
        """
        check_is_fitted(self)
        check_coverage(coverage)
        answers = [self._read_answers(X) for X in (X_a, X_b)]
        names = [model_names(X, len(a)) for X, a in zip((X_a, X_b), answers, strict=True)]
        answers = in_pairs(answers)
        found = [self._estimates_at(a, self.anchors_, self.weights_) for a in answers]
        modelled = [self.irt_._modelled(a, self.anchors_) for a in answers]
        alike = pair_alikeness(self._kernel_benchmark(), answers, modelled, self.anchors_)
        pairing = by_kind(
            self.pairing_, self.estimate, self.mixing, related=self._relative_share() > 0
        )
        scores, stds = zip(*(self._by_row(side, self.estimate) for side in found), strict=True)
        std = paired_stds(stds, alike, pairing)
        return compare_table(scores, std, names, self._row_names(), coverage)

    @unchanged_on_error
    def add_models(self, responses: Any, names: Any = None) -> "GPIRTEstimator":
        """Make further models relatives of the models to come, without a refit.

        Parameters
        ----------
        responses : array-like of shape (n_models, n_items)
            Full or partial responses to the items of the benchmark, NaN where not asked. A
            DataFrame's columns are matched by item name where the estimator knows them, and may
            be some of the items.
        names : array-like of shape (n_models,) of str, default=None
            Names of the models; None: the DataFrame's index.

        Returns
        -------
        GPIRTEstimator
            Itself.

        Raises
        ------
        ValueError
            Where the width, a value or a name does not fit; nothing is added then.
        """
        check_is_fitted(self)
        values, names = read_added(
            responses,
            names,
            taken=self.training_models_,
            n_items=len(self.item_weights_),
            item_names=self._item_names,
            bounds=self._bounds,
        )
        ability = self.irt_._abilities(values).ability
        figures = self._training_figures(values, ability)
        for attribute, more in (
            ("training_models_", names),
            ("training_responses_", values[:, self.anchors_]),
            ("training_abilities_", ability),
            ("training_scores_", self._in_unit(figures.scores)),
            ("training_noise_", figures.noise),
        ):
            setattr(self, attribute, np.concatenate([getattr(self, attribute), more]))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True
        return tags
