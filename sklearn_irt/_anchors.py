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
from sklearn_irt._costs import read_costs
from sklearn_irt._irt import IRTRegressor
from sklearn_irt._responses import as_numbers, model_names, read_range, read_responses, to_unit
from sklearn_irt._scenarios import Scenarios, read_scenarios
from sklearn_irt._state import unchanged_on_error
from sklearn_irt.kernels.anchors import (
    Anchors,
    calibrated_weights,
    cluster_anchors,
    effective_sample_size,
    random_anchors,
    stratified_order,
    stratified_weights,
)
from sklearn_irt.kernels.design import (
    fill_up,
    greedy,
    information_order,
    simulated_order,
    unknown_after,
)
from sklearn_irt.kernels.logistic import response_probabilities
from sklearn_irt.kernels.mixing import CLUSTER_GAIN
from sklearn_irt.kernels.relatives import Relatives, shared_prior, twins
from sklearn_irt.kernels.scores import weighted_sums
from sklearn_irt.kernels.threshold import is_right_or_wrong

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
    method : {"design", "information", "irt", "correctness", "random"}, default="design"
        "design": one item after the other, the one whose answer is expected to tell most about
        the score of a new model that resembles a training model, or none. "information": the
        same by the IRT model alone. "irt", "correctness": cluster the items by their IRT
        parameters (scaled by the square root of the information in their responses), or by the
        training models' responses. "random": drawn, stratified over the subscenarios.
    random_share : float in [0, 1], default=0.5
        With "design" and "information": share of the anchors that are drawn at random instead,
        so that a model unlike the training models does not pass unseen. 0 is sharper for models
        like them.
    costs : array-like of shape (n_items,), default=None
        What asking each item costs (tokens, money, time). "design" and "information" then pick
        by gain per cost.
    budget : float, default=None
        Total cost of a scenario's anchors at most; needs `costs`. The random share is that of
        the budget, too.
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
        anchors leave the least error in the scores (`irt`).
    memory : str or joblib.Memory, default=None
        Where IRT fits are cached, so that a grid search over `k` fits once.
    verbose : int, default=0
        Print how many anchors are chosen, every ten.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    anchors_ : ndarray of shape (n_anchors,), int
        Positions of the anchors among the items, ascending.
    weights_ : ndarray of shape (n_anchors,)
        Weights of the anchors, sum 1 in each scenario.
    irt_ : IRTRegressor
        The fitted model ("random" and "correctness" need none).
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
        "method": [StrOptions({"random", "correctness", "irt", "information", "design"})],
        "random_share": [Interval(Real, 0, 1, closed="both")],
        "costs": ["array-like", None],
        "budget": [Interval(Real, 0, None, closed="neither"), None],
        "n_dims": [Interval(Integral, 1, None, closed="left")],
        "irt": [IRTRegressor, None],
        "scenarios": ["array-like", None],
        "response_range": ["array-like", None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "memory": [str, HasMethods("cache"), None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        k=100,
        *,
        method: str = "design",
        random_share: float = 0.5,
        costs=None,
        budget: float | None = None,
        n_dims: int = 5,
        irt: IRTRegressor | None = None,
        scenarios=None,
        response_range=None,
        n_init: int = 10,
        memory=None,
        verbose: int = 0,
        random_state=None,
    ):
        self.k = k
        self.method = method
        self.random_share = random_share
        self.costs = costs
        self.budget = budget
        self.n_dims = n_dims
        self.irt = irt
        self.scenarios = scenarios
        self.response_range = response_range
        self.n_init = n_init
        self.memory = memory
        self.verbose = verbose
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
        costs = self._read_costs(values.shape[1])
        if self.method in ("irt", "information", "design"):
            self.irt_ = irt._fit_unit(responses, scenarios, bounds)
        elif hasattr(self, "irt_"):
            del self.irt_
        chosen = [
            self._choose(wanted[s], responses, scenarios, s, rng, costs)
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
            gain=self._gain(),
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

    def _gain(self) -> float:
        """How many random items an anchor is worth in the anchors' mean."""
        if self.method in ("irt", "correctness"):
            return CLUSTER_GAIN
        return 1.0 if self.method == "random" else float(self.random_share)

    def _read_costs(self, n_items: int) -> np.ndarray | None:
        if self.costs is None:
            if self.budget is not None:
                raise ValueError("budget needs costs: what each item costs, one number per item")
            return None
        if self.method not in ("design", "information"):
            raise ValueError(
                f'costs are for method="design" and "information", not for {self.method!r}'
            )
        names = getattr(self, "feature_names_in_", None)
        return read_costs(self.costs, n_items, self.budget, names)

    def _choose(
        self, k: int, responses: np.ndarray, scenarios: Scenarios, s: int, rng, costs
    ) -> Anchors:
        members = scenarios.members(s)
        weights = scenarios.weights[members]
        part = scenarios.part(responses, s)
        counts = len(part) - np.isnan(part).sum(axis=0)
        # An item that few models answered is known badly: only where nothing else is left.
        eligible = (counts > 0) & (counts >= 0.5 * np.median(counts))
        strata = scenarios.strata[members]
        if self.method == "random":
            found = random_anchors(k, weights, strata=strata, eligible=eligible, random_state=rng)
        elif self.method == "correctness":
            points = np.ascontiguousarray(_filled(part, counts).T)
            found = cluster_anchors(
                k, points, weights, eligible=eligible, random_state=rng, n_init=self.n_init
            )
        elif self.method == "irt":
            points, unknown = self._item_points(members, weights, s)
            filled = _filled(part, counts)
            truth = filled @ weights

            def loss(anchors: Anchors) -> float:
                """Standard error of p-IRT, and error of the naive estimate on training models."""
                naive = filled[:, anchors.positions] @ anchors.weights
                return unknown(anchors.positions) + np.sqrt(np.mean((naive - truth) ** 2))

            found = cluster_anchors(
                k,
                points,
                weights,
                eligible=eligible,
                random_state=rng,
                n_init=self.n_init,
                loss=loss,
            )
        else:
            own_costs = None if costs is None else costs[members]
            found = self._designed(
                k, part, members, weights, strata, eligible, rng, own_costs, scenarios.names[s], s
            )
        return Anchors(members[found.positions], found.weights)

    def _designed(
        self, k, responses, members, weights, strata, eligible, rng, costs, name, s
    ) -> Anchors:
        """Designed anchors first, then random ones, with calibrated weights."""
        seed = rng.randint(2**31 - 1)
        # Drawn first and independent of k, so that fewer anchors are a part of more.
        order = stratified_order(strata, eligible, np.random.RandomState(seed))
        budget = np.inf if self.budget is None else float(self.budget)
        n_designed = k - int(round(self.random_share * k))
        if eligible.sum() < k:
            eligible = np.ones(len(eligible), dtype=bool)
        loadings, difficulty, ability = self._own_model(members, s)
        # Single precision: the choice of anchors takes no more, and half of the memory.
        chance = response_probabilities(
            *(array.astype(np.float32) for array in (ability, loadings, difficulty))
        )
        binary = is_right_or_wrong(responses)
        known = responses.astype(np.float32)
        np.copyto(known, chance, where=np.isnan(known))
        covariance = self.irt_.item_covariance_
        if len(members) < len(covariance):
            covariance = covariance[members]  # a copy
        if self.method == "design":
            group = twins(responses, (known @ weights.astype(np.float32))[:, None].astype(float))
            relatives = Relatives(known, chance, shared_prior(group))
            gains = simulated_order(
                relatives,
                loadings,
                difficulty,
                covariance,
                weights,
                np.random.RandomState(seed),
                eligible,
                fractional=not binary,
            )
        else:
            gains = _information_gains(chance, ability, loadings, covariance, weights)
            del chance

        def progress(n_chosen: int) -> None:
            if self.verbose and (n_chosen % 10 == 0 or n_chosen == n_designed):
                print(f"[AnchorSelector] {name}: {n_chosen}/{n_designed} anchors designed")

        designed = []
        if n_designed:
            share = 1.0 - self.random_share
            designed = greedy(gains, n_designed, eligible, costs, share * budget, progress)
        gains.close()  # which frees its workspace
        positions = np.sort(np.array(fill_up(designed, order, k, costs, budget), dtype=int))
        if not len(positions):
            raise ValueError(
                f"budget={budget:g} is below the cheapest item of the scenario {name!r}, which "
                f"costs {costs[eligible].min():g}"
            )
        start = stratified_weights(weights, strata, positions)
        scores = weighted_sums(known, weights)
        return Anchors(positions, calibrated_weights(known[:, positions], scores, start))

    def _own_model(self, members: np.ndarray, s: int) -> tuple:
        """Discriminations, difficulties and abilities of scenario `s`, without the others'."""
        n_dims = self.irt_.item_covariance_.shape[1] - 1
        stacked = self.irt_.discrimination_.shape[1] > n_dims
        own = slice(s * n_dims, (s + 1) * n_dims) if stacked else slice(None)
        loadings = self.irt_.discrimination_[members, own]
        return loadings, self.irt_.difficulty_[members], self.irt_.ability_[:, own]

    def _item_points(self, members: np.ndarray, weights: np.ndarray, s: int) -> tuple:
        """The items as points to cluster, and what a choice of anchors leaves unknown.

        The points are the IRT parameters in units of the information that the responses carry.
        Where hardly any model answers differently, parameters that differ by much stand for
        responses that differ by little; unscaled, such outliers would take many clusters.
        """
        loadings, difficulty, ability = self._own_model(members, s)
        ability = ability[_spaced(ability)]
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
            responses=responses if _is_ours(responses, X) else responses.copy(),
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


def _information_gains(chance, ability, loadings, covariance, weights):
    """`information_order` at the training models' abilities."""
    rows = _spaced(ability)
    spread = chance[rows] * (1.0 - chance[rows])
    z = np.concatenate([ability[rows], -np.ones((len(rows), 1))], axis=1)
    outer = (z[:, :, None] * z[:, None, :]).reshape(len(rows), -1).astype(np.float32)
    blurred = outer @ covariance.reshape(len(loadings), -1).T.astype(np.float32)
    return information_order(spread, loadings, weights, blurred)


def _is_ours(responses: np.ndarray, X: Any) -> bool:
    """Whether the caller, who gave X, cannot change the responses before the next step."""
    if not isinstance(X, np.ndarray):
        return False
    from_file = isinstance(X, np.memmap) and not X.flags.writeable
    return from_file or not np.may_share_memory(responses, X)


def _filled(responses: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Responses with what is missing replaced by the item's mean."""
    missing = np.isnan(responses)
    if not missing.any():
        return responses
    total = np.where(missing, 0.0, responses).sum(axis=0)
    return np.where(missing, np.where(counts > 0, total / np.maximum(counts, 1), 0.5), responses)


def _spaced(ability: np.ndarray) -> np.ndarray:
    """Rows that stand for all abilities: at most MAX_ABILITIES, spaced evenly by the first."""
    if len(ability) <= MAX_ABILITIES:
        return np.arange(len(ability))
    spaced = np.linspace(0, len(ability) - 1, MAX_ABILITIES).round().astype(int)
    return np.argsort(ability[:, 0], kind="stable")[spaced]
