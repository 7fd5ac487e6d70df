"""AnchorSelector: the k weighted items of every scenario that are worth asking."""

import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, _fit_context, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from sklearn_irt._context import AnchorContext, attach
from sklearn_irt._irt import IRTRegressor
from sklearn_irt._responses import as_numbers, model_names, read_range, read_responses, to_unit
from sklearn_irt._scenarios import Scenarios, read_scenarios
from sklearn_irt._state import unchanged_on_error
from sklearn_irt.kernels.anchors import (
    Anchors,
    cluster_anchors,
    effective_sample_size,
    random_anchors,
)
from sklearn_irt.kernels.design import unknown_after
from sklearn_irt.kernels.logistic import response_probabilities
from sklearn_irt.kernels.mixing import CLUSTER_GAIN

# Abilities that the choice of anchors is averaged over.
MAX_ABILITIES = 300


class AnchorSelector(SelectorMixin, BaseEstimator):
    """Select k weighted anchor items per scenario.

    As a step of a Pipeline it also hands the benchmark (the training responses, the anchors'
    weights, the IRT model) to a following `GPIRTEstimator`.

    Parameters
    ----------
    k : int, float or dict, default=100
        Anchors per scenario: a number, a share of the scenario's items in (0, 1] (a float), or
        {scenario: number or share}. All items where there are fewer than k.
    method : {"irt", "correctness", "random"}, default="irt"
        Cluster the items by their IRT parameters (scaled by the square root of the information
        in their responses), or by the training models' responses; or draw them at random,
        stratified over the subscenarios.
    n_dims : int, default=5
        Dimensions of the IRT model; not used where `irt` is given.
    irt : IRTRegressor, default=None
        Settings of the IRT model (it is cloned); None: ``IRTRegressor(n_dims)``.
    scenarios : array-like of shape (n_items,) or (n_items, 2), default=None
        Scenario, or scenario and subscenario, of each item. Subscenarios of a scenario count
        the same, whatever their sizes.
    response_range : (low, high), default=None
        Lowest and highest possible response. None: [0, 1] where all training responses lie in
        it, else their minimum and maximum, with a warning.
    n_init : int, default=10
        Starts of k-means. The one that is kept has the tightest clusters (`correctness`), or its
        anchors leave the least standard error in the score (`irt`).
    memory : str or joblib.Memory, default=None
        Where IRT fits are cached, so that a grid search over `k` fits once.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors,), int
        Positions of the anchors among the items, ascending.
    weights_ : ndarray of shape (n_anchors,)
        Weights of the anchors, sum 1 in each scenario.
    irt_ : IRTRegressor
        The fitted model (only with ``method="irt"``; the others need none).
    item_weights_ : ndarray of shape (n_items,)
        Weight of each item in its scenario's score.
    effective_sample_size_ : ndarray of shape (n_scenarios,)
        How many equally weighted items the anchors' weights amount to.
    scenarios_ : tuple of str
        Names of the scenarios.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_items,)
        Item names, where X was a DataFrame with string columns.

    See Also
    --------
    GPIRTEstimator : Scores from the answers to the anchors.

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.
       Section 3, appendix A.

    Examples
    --------
    >>> from sklearn_irt import AnchorSelector
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=60, n_items=300, random_state=0)
    >>> selector = AnchorSelector(k=20, random_state=0).fit(data.responses)
    >>> selector.transform(data.responses).shape
    (60, 20)
    >>> float(selector.weights_.sum().round(6))
    1.0
    """

    _parameter_constraints: dict = {
        "k": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            dict,
        ],
        "method": [StrOptions({"random", "correctness", "irt"})],
        "n_dims": [Interval(Integral, 1, None, closed="left")],
        "irt": [IRTRegressor, None],
        "scenarios": ["array-like", None],
        "response_range": ["array-like", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "memory": [str, HasMethods("cache"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        k=100,
        *,
        method: str = "irt",
        n_dims: int = 5,
        irt: IRTRegressor | None = None,
        scenarios=None,
        response_range=None,
        n_init: int = 10,
        memory=None,
        random_state=None,
    ):
        self.k = k
        self.method = method
        self.n_dims = n_dims
        self.irt = irt
        self.scenarios = scenarios
        self.response_range = response_range
        self.n_init = n_init
        self.memory = memory
        self.random_state = random_state

    @unchanged_on_error
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "AnchorSelector":
        """Choose the anchors.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses of the training models, NaN where not asked.
        y : None
            Ignored.

        Returns
        -------
        AnchorSelector
        """
        self._fit(X)
        return self

    def _fit(self, X: Any) -> np.ndarray:
        """Fit, and return the training responses scaled to [0, 1]."""
        values = read_responses(self, X, reset=True)
        names = getattr(self, "feature_names_in_", None)
        scenarios = read_scenarios(self.scenarios, values.shape[1], names)
        wanted = self._anchors_per_scenario(scenarios)
        bounds = read_range(values, self.response_range, X)
        responses = to_unit(values, bounds, X)
        rng = check_random_state(self.random_state)
        irt = self._irt_settings(rng)
        if self.method == "irt":
            self.irt_ = irt._fit_unit(responses, scenarios, bounds)
        elif hasattr(self, "irt_"):
            del self.irt_
        chosen = [
            self._choose(wanted[s], responses, scenarios, s, rng)
            for s in range(len(scenarios.names))
        ]
        positions = np.concatenate([c.positions for c in chosen])
        order = np.argsort(positions)
        self.anchors_ = positions[order]
        self.weights_ = np.concatenate([c.weights for c in chosen])[order]
        self.effective_sample_size_ = np.array([effective_sample_size(c.weights) for c in chosen])
        self.item_weights_ = scenarios.weights
        self.scenarios_ = scenarios.names
        self._context = AnchorContext(
            anchors=self.anchors_,
            weights=self.weights_,
            gain=1.0 if self.method == "random" else CLUSTER_GAIN,
            scenarios=scenarios,
            bounds=bounds,
            irt=getattr(self, "irt_", irt),
            item_names=names,
        )
        return responses

    def _irt_settings(self, rng: np.random.RandomState) -> IRTRegressor:
        irt = IRTRegressor(self.n_dims) if self.irt is None else clone(self.irt)
        for name in ("scenarios", "response_range"):
            if getattr(irt, name) is not None:
                raise ValueError(f"{name} belongs to AnchorSelector, not to its irt")
        if self.memory is not None and irt.memory is None:
            irt.set_params(memory=self.memory)
        if irt.random_state is None:
            irt.set_params(random_state=rng.randint(2**31 - 1))
        return irt

    def _anchors_per_scenario(self, scenarios: Scenarios) -> list[int]:
        if isinstance(self.k, dict):
            if len({str(name) for name in self.k}) < len(self.k):
                raise ValueError(f"k names a scenario twice: {list(self.k)}")
            for name in self.k:
                if str(name) not in scenarios.names:
                    raise ValueError(
                        f"k names the scenario {name!r}, but the scenarios are "
                        f"{list(scenarios.names)}"
                    )
            given = {str(name): k for name, k in self.k.items()}
            for name in scenarios.names:
                if name not in given:
                    raise ValueError(f"k has no entry for the scenario {name!r}")
        else:
            given = dict.fromkeys(scenarios.names, self.k)
        wanted = []
        for s, name in enumerate(scenarios.names):
            k, size = given[name], len(scenarios.members(s))
            share = not isinstance(k, Integral)
            if not isinstance(k, Real) or k <= 0 or (share and not k <= 1):
                raise ValueError(
                    f"k must be a positive number of items or a share in (0, 1] for the scenario "
                    f"{name!r}, got {k!r}"
                )
            number = max(1, round(k * size)) if share else int(k)
            if number > size:
                warnings.warn(
                    f"k={number} anchors were asked for, but the scenario {name!r} has {size} "
                    "items: all of them are anchors",
                    UserWarning,
                    stacklevel=5,
                )
            wanted.append(min(number, size))
        return wanted

    def _choose(self, k: int, responses: np.ndarray, scenarios: Scenarios, s: int, rng) -> Anchors:
        members = scenarios.members(s)
        weights = scenarios.weights[members]
        part = responses[:, members]
        counts = len(part) - np.isnan(part).sum(axis=0)
        # An item that few models answered is known badly: only where nothing else is left.
        eligible = (counts > 0) & (counts >= 0.5 * np.median(counts))
        common = {"eligible": eligible, "random_state": rng}
        if self.method == "random":
            found = random_anchors(k, weights, strata=scenarios.strata[members], **common)
        elif self.method == "correctness":
            points = np.ascontiguousarray(_filled(part, counts).T)
            found = cluster_anchors(k, points, weights, n_init=self.n_init, **common)
        else:
            points, loss = self._item_points(members, weights)
            found = cluster_anchors(k, points, weights, n_init=self.n_init, loss=loss, **common)
        return Anchors(members[found.positions], found.weights)

    def _item_points(self, members: np.ndarray, weights: np.ndarray) -> tuple:
        """The items as points to cluster, and what a choice of anchors leaves unknown.

        The points are the IRT parameters in units of the information that the responses carry.
        Where hardly any model answers differently, parameters that differ by much stand for
        responses that differ by little; unscaled, such outliers would take many clusters.
        """
        loadings, difficulty = self.irt_.discrimination_[members], self.irt_.difficulty_[members]
        own = loadings.any(axis=0)  # not the other scenarios' abilities
        loadings, ability = loadings[:, own], self.irt_.ability_[:, own]
        if len(ability) > MAX_ABILITIES:
            spaced = np.linspace(0, len(ability) - 1, MAX_ABILITIES).round().astype(int)
            ability = ability[np.argsort(ability[:, 0], kind="stable")[spaced]]
        p = response_probabilities(ability, loadings, difficulty)
        spread = p * (1.0 - p)
        scale = np.sqrt(spread.mean(axis=0))
        points = np.column_stack([loadings, difficulty]) * scale[:, None]
        return points, partial(
            unknown_after, spread=spread, discrimination=loadings, weights=weights
        )

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.anchors_] = True
        return mask

    def transform(self, X: Any) -> Any:
        """Keep the anchors' columns.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.

        Returns
        -------
        ndarray of shape (n_models, n_anchors), or DataFrame under ``set_output``
            In the unit of X, in the order of `anchors_`.
        """
        check_is_fitted(self)
        X = _dense(X)
        try:
            return attach(super().transform(X), self._context)
        except ValueError as error:
            if np.ndim(X) == 2 and np.shape(X)[1] == len(self.anchors_):
                raise ValueError(
                    f"{error}\nX seems to hold the anchors only: hand it to the next step, as in "
                    "pipe[-1].predict(answers)"
                ) from None
            raise

    @unchanged_on_error
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Choose the anchors and keep their columns, with all that a `GPIRTEstimator` needs.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses of the training models, NaN where not asked.
        y : None
            Ignored.

        Returns
        -------
        ndarray of shape (n_models, n_anchors), or DataFrame under ``set_output``
        """
        self._validate_params()
        responses = self._fit(X)
        context = replace(
            self._context,
            # A copy: the matrix is the caller's, who may change it before the next step.
            responses=responses.copy(),
            models=model_names(X, len(responses)),
        )
        return attach(super().transform(_dense(X)), context)

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Full-width responses: the anchors' answers, NaN elsewhere.

        Parameters
        ----------
        X : array-like of shape (n_models, n_anchors)

        Returns
        -------
        ndarray of shape (n_models, n_items)
        """
        check_is_fitted(self)
        X = as_numbers(X)
        if isinstance(X, pd.DataFrame) and hasattr(self, "feature_names_in_"):
            names = self.get_feature_names_out()
            X = X[names] if set(names) <= set(X.columns) else X
        answers = np.asarray(X, dtype=float)
        if answers.ndim != 2 or answers.shape[1] != len(self.anchors_):
            raise ValueError(
                f"X must have shape (n_models, {len(self.anchors_)}), one column per anchor, "
                f"got {answers.shape}"
            )
        full = np.full((len(answers), self.n_features_in_), np.nan)
        full[:, self.anchors_] = answers
        return full

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the anchors: the items to ask a new model.

        Parameters
        ----------
        input_features : array-like of shape (n_items,), default=None
            Item names; by default those seen in `fit`.

        Returns
        -------
        ndarray of shape (n_anchors,) of str
        """
        check_is_fitted(self)
        return _check_feature_names_in(self, input_features)[self.anchors_]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _dense(X: Any) -> Any:
    """Responses that the selector can pass on as they are."""
    if issparse(X):
        raise TypeError("Sparse data was passed for X, but dense data is required")
    return as_numbers(X)


def _filled(responses: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Responses with what is missing replaced by the item's mean."""
    missing = np.isnan(responses)
    if not missing.any():
        return responses
    total = np.where(missing, 0.0, responses).sum(axis=0)
    return np.where(missing, np.where(counts > 0, total / np.maximum(counts, 1), 0.5), responses)
