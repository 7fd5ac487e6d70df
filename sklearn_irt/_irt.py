"""IRTRegressor: the multidimensional two-parameter IRT model as an estimator."""

import functools
import warnings
from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    check_memory,
    column_or_1d,
)

from sklearn_irt._chunks import stored_chunks
from sklearn_irt._responses import (
    MappedResponses,
    is_narrow,
    map_responses,
    read_range,
    read_responses,
    to_unit,
)
from sklearn_irt._scenarios import Scenarios, read_scenarios
from sklearn_irt._state import unchanged_on_error
from sklearn_irt.kernels.cavi import CaviFit, fit_cavi
from sklearn_irt.kernels.correlated import StackedAbilities, block_diagonal, correlate
from sklearn_irt.kernels.logistic import (
    Abilities,
    ItemModel,
    estimate_abilities,
    response_probabilities,
    row_blocks,
)
from sklearn_irt.kernels.threshold import response_threshold, right_or_wrong


def fit_scenarios(
    responses: np.ndarray,
    index: np.ndarray,
    n_dims: int,
    abilities: str,
    max_iter: int,
    tol: float,
    seed: int,
    n_jobs: int | None = None,
    verbose: int = 0,
    strata: np.ndarray | None = None,
    solver: str = "cavi",
    device: str | None = None,
) -> tuple[ItemModel, StackedAbilities, list[CaviFit]]:
    """Fit the IRT model of every scenario and stack them; see `IRTRegressor`.

    `strata` of shape (n_items,) numbers the subscenarios within each scenario; the items of each
    have a prior mean of their own. None: those of a fit share one.
    """
    fit_model = _solver(solver, device)
    n_items = responses.shape[1]
    parts = [np.arange(n_items)] if abilities == "joint" else _members(index)
    groups = None if strata is None else index * (strata.max() + 1) + strata

    def progress(part: int):
        def report(n_iter: int, bound: float) -> None:
            if n_iter == 1 or n_iter % 10 == 0:
                print(f"[IRTRegressor] part {part + 1}/{len(parts)}, round {n_iter}: {bound:.5f}")

        return report if verbose else None

    # Slices are views; one fit is one block of columns of the response matrix.
    fits = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(fit_model)(
            responses if len(parts) == 1 else responses[:, members],
            n_dims,
            groups=None if groups is None else groups[members],
            max_iter=max_iter,
            tol=tol,
            random_state=seed,
            callback=progress(part),
        )
        for part, members in enumerate(parts)
    )
    return *_stack(parts, fits, n_items, abilities), fits


def _solver(solver: str, device: str | None) -> Callable[..., CaviFit]:
    if solver == "cavi":
        return fit_cavi
    from sklearn_irt.kernels.svi import fit_svi, import_pyro

    import_pyro()  # an error before anything is computed
    return functools.partial(fit_svi, device=device)


def _members(index: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(index == s) for s in range(index.max() + 1)]


def _stack(
    parts: list[np.ndarray], fits: list[CaviFit], n_items: int, abilities: str
) -> tuple[ItemModel, StackedAbilities]:
    n_dims = fits[0].discrimination.shape[1]
    discrimination = np.zeros((n_items, n_dims * len(parts)), fits[0].discrimination.dtype)
    difficulty = np.empty(n_items, fits[0].difficulty.dtype)
    for part, (members, fit) in enumerate(zip(parts, fits, strict=True)):
        block = slice(part * n_dims, (part + 1) * n_dims)
        discrimination[members, block] = fit.discrimination
        difficulty[members] = fit.difficulty
    if abilities == "correlated" and len(parts) > 1:
        stacked = correlate([f.ability for f in fits], [f.ability_covariance for f in fits])
    else:
        stacked = StackedAbilities(
            np.concatenate([fit.ability for fit in fits], axis=1),
            block_diagonal([fit.ability_covariance for fit in fits]),
            np.eye(n_dims * len(parts)),
        )
    precision = np.linalg.inv(stacked.prior_covariance)
    return ItemModel(discrimination, difficulty, precision), stacked


class IRTRegressor(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, RegressorMixin, BaseEstimator
):
    """Multidimensional two-parameter logistic item response model.

    ``P(y_li = 1) = sigmoid(discrimination_i . ability_l - difficulty_i)``, fitted by
    variational inference with hierarchical priors. Responses in [0, 1] that are
    not 0 or 1 enter as a quasi-likelihood. Dimensions that the data does not need shrink to zero.

    Parameters
    ----------
    n_dims : int, default=5
        Dimensions of the abilities (of each scenario).
    solver : {"cavi", "svi"}, default="cavi"
        Coordinate ascent, or stochastic gradients in Pyro: slower, but it runs on a GPU and
        reads a file that does not fit in memory by rows. "svi" needs
        ``pip install "sklearn-irt[svi]"``.
    device : str, default=None
        Where "svi" computes: "cpu" (None) or "cuda".
    max_iter : int, default=200
        Rounds at most; one of "svi" has 10 to 100 gradient steps.
    tol : float, default=1e-5
        The fit has converged when a round raises the lower bound of the log-evidence by less
        than `tol` per observed response; with "svi", the mean over 20 rounds.
    response_model : {"fractional", "threshold"}, default="fractional"
        Responses that are not 0 or 1 enter as they are, or as right or wrong by the threshold of
        their scenario (the paper, section 4.3).
    response_range : (low, high), default=None
        Lowest and highest possible response. None: [0, 1] where all training responses lie in
        it, else their minimum and maximum, with a warning.
    scenarios : array-like of shape (n_items,) or (n_items, 2), default=None
        Scenario, or scenario and subscenario, of each item.
    abilities : {"correlated", "separate", "joint"}, default="correlated"
        With several scenarios: a fit for each with correlated or independent abilities, or one
        fit with the same abilities in all (the paper).
    ability : {"map", "mle"}, default="map"
        How abilities of given responses are estimated: maximum a posteriori, or maximum
        likelihood (the paper) with the norm of the ability held at 10.
    memory : str or joblib.Memory, default=None
        Where fits are cached, so that a grid search repeats none.
    n_jobs : int, default=None
        Scenarios that are fitted at a time, in threads; with "svi" one after the other.
    random_state : int, RandomState or None, default=None
        Batches and draws of "svi". With "cavi" the start vector of the truncated SVD, of no
        influence below 2,000 models.
    verbose : int, default=0
        Print the lower bound every ten rounds.

    Attributes
    ----------
    discrimination_ : ndarray of shape (n_items, n_abilities)
        ``n_abilities`` is `n_dims`, times the number of scenarios unless `abilities` is "joint".
    difficulty_ : ndarray of shape (n_items,)
        On the logit scale.
    item_covariance_ : ndarray of shape (n_items, n_dims + 1, n_dims + 1)
        Posterior covariance of an item's own discriminations and difficulty.
    ability_ : ndarray of shape (n_models, n_abilities)
        Posterior means of the training models' abilities; correlated ones, so that a scenario
        that a model lacks is judged by its others.
    ability_covariance_ : ndarray of shape (n_models, n_abilities, n_abilities)
    prior_precision_ : ndarray of shape (n_abilities, n_abilities)
        Of the abilities of a new model; their prior mean is zero.
    lower_bounds_ : ndarray of shape (n_iter,), or a list of them
        Lower bound of the log-evidence per observed response, round by round, noisy with "svi";
        a list with one array per scenario where there are several fits.
    n_iter_ : int
        Rounds of the slowest fit.
    converged_ : bool
    thresholds_ : ndarray of shape (n_scenarios,)
        Responses of at least so much, on the scale of [0, 1], count as right; None with
        ``response_model="fractional"``.
    item_weights_ : ndarray of shape (n_items,)
        Weight of each item in its scenario's score.
    scenarios_ : tuple of str
        Names of the scenarios.
    n_features_in_ : int
        Items of the benchmark.
    feature_names_in_ : ndarray of shape (n_items,)
        Item names, where X was a DataFrame with string columns.

    See Also
    --------
    AnchorSelector : Picks the items that are worth asking.
    GPIRTEstimator : Scores from the answers to some items.

    Notes
    -----
    A row without any response gets the prior's mean ability; an item without any response gets
    the mean of the items of its subscenario.

    References
    ----------
    .. [1] Maia Polo, Weber, Choshen, Sun, Xu, Yurochkin (2024), tinyBenchmarks: evaluating LLMs
       with fewer examples, ICML. Section 4.
    .. [2] Polson, Scott, Windle (2013), Bayesian inference for logistic models using
       Polya-Gamma latent variables, JASA 108.

    Examples
    --------
    >>> from sklearn_irt import IRTRegressor
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=60, n_items=200, n_dims=2, random_state=0)
    >>> irt = IRTRegressor(n_dims=2).fit(data.responses)
    >>> irt.transform(data.responses).shape
    (60, 2)
    >>> bool(abs(irt.predict(data.responses) - data.scores).mean() < 0.02)
    True
    """

    _parameter_constraints: dict = {
        "n_dims": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"cavi", "svi"})],
        "device": [str, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "response_model": [StrOptions({"fractional", "threshold"})],
        "response_range": ["array-like", None],
        "scenarios": ["array-like", None],
        "abilities": [StrOptions({"correlated", "separate", "joint"})],
        "ability": [StrOptions({"map", "mle"})],
        "memory": [str, HasMethods("cache"), None],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_dims: int = 5,
        *,
        solver: str = "cavi",
        device: str | None = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        response_model: str = "fractional",
        response_range=None,
        scenarios=None,
        abilities: str = "correlated",
        ability: str = "map",
        memory=None,
        n_jobs: int | None = None,
        random_state=None,
        verbose: int = 0,
    ):
        self.n_dims = n_dims
        self.solver = solver
        self.device = device
        self.max_iter = max_iter
        self.tol = tol
        self.response_model = response_model
        self.response_range = response_range
        self.scenarios = scenarios
        self.abilities = abilities
        self.ability = ability
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @unchanged_on_error
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> "IRTRegressor":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items), or an iterator of such chunks of rows
            Responses, NaN where not asked. A numpy.memmap is not read into memory as a whole;
            the chunks of an iterator are stored in a temporary file, which is read like one.
        y : array-like of shape (n_models,), default=None
            Ignored.

        Returns
        -------
        IRTRegressor
        """
        if isinstance(X, Iterator):
            with stored_chunks(X) as (cells, named):
                return self._fit_matrix(named, y, cells)
        return self._fit_matrix(X, y, X if isinstance(X, np.memmap) else None)

    def _fit_matrix(self, X: Any, y: Any, cells: np.memmap | None) -> "IRTRegressor":
        """`fit`, given a whole matrix and its cells where they lie in a file."""
        by_blocks = self.solver == "svi" or self.response_model == "fractional"
        if by_blocks and cells is not None:
            values = map_responses(self, cells, X)
        else:
            if cells is not None and is_narrow(cells) and isinstance(X, pd.DataFrame):
                X = X.astype(np.float32)
            values = read_responses(self, X, reset=True)
        check_ignored_target(y, len(values))
        scenarios = read_scenarios(
            self.scenarios, values.shape[1], getattr(self, "feature_names_in_", None)
        )
        bounds = read_range(values, self.response_range, X)
        return self._fit_unit(to_unit(values, bounds, X), scenarios, bounds)

    def _fit_unit(
        self, responses: np.ndarray | MappedResponses, scenarios: Scenarios, bounds
    ) -> "IRTRegressor":
        """Fit validated responses, scaled to [0, 1]."""
        if self.device is not None and self.solver != "svi":
            raise ValueError(f'device={self.device!r} needs solver="svi", got {self.solver!r}')
        self.n_features_in_ = responses.shape[1]
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        if self.solver == "cavi" and len(responses) <= 2000:
            seed = 0  # of no influence there: one cache entry for every seed
        self._scenario_index, self._bounds = scenarios.index, bounds
        self.thresholds_ = self._find_thresholds(responses, scenarios)
        responses = self._modelled(responses)
        cached = check_memory(self.memory).cache(fit_scenarios, ignore=["n_jobs", "verbose"])
        model, stacked, fits = cached(
            responses,
            scenarios.index,
            self.n_dims,
            self.abilities if len(scenarios.names) > 1 else "separate",
            self.max_iter,
            self.tol,
            seed,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            strata=scenarios.strata,
            solver=self.solver,
            device=self.device,
        )
        self.discrimination_, self.difficulty_, self.prior_precision_ = model
        self.ability_, self.ability_covariance_, _ = stacked
        self.item_covariance_ = np.empty((responses.shape[1],) + fits[0].item_covariance.shape[1:])
        for members, fit in zip(
            [slice(None)] if len(fits) == 1 else _members(scenarios.index), fits, strict=True
        ):
            self.item_covariance_[members] = fit.item_covariance
        bounds_by_fit = [fit.lower_bounds for fit in fits]
        self.lower_bounds_ = bounds_by_fit[0] if len(fits) == 1 else bounds_by_fit
        self.n_iter_ = max(fit.n_iter for fit in fits)
        self.converged_ = all(fit.converged for fit in fits)
        self.item_weights_ = scenarios.weights
        self.scenarios_ = scenarios.names
        if not self.converged_ and self.tol > 0:
            warnings.warn(
                f"the lower bound still rose by more than tol={self.tol:g} per response after "
                f"max_iter={self.max_iter} rounds; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _find_thresholds(self, responses: np.ndarray, scenarios: Scenarios) -> np.ndarray | None:
        if self.response_model == "fractional":
            return None
        if isinstance(responses, MappedResponses):
            raise ValueError(
                'response_model="threshold" needs X in memory, but it is memory-mapped: give '
                'numpy.array(X), or use response_model="fractional"'
            )
        parts = [responses[:, members] for members in _members(scenarios.index)]
        thresholds = np.array([response_threshold(part) for part in parts])
        for name, part, threshold in zip(scenarios.names, parts, thresholds, strict=True):
            varied = np.fmin.reduce(part, axis=None) < np.fmax.reduce(part, axis=None)
            if varied and threshold <= np.fmin.reduce(part, axis=None):
                raise ValueError(
                    f'response_model="threshold" puts every response of the scenario {name!r} on '
                    'one side; use response_model="fractional"'
                )
        return thresholds

    def _modelled(self, responses: np.ndarray, positions: Any = slice(None)) -> np.ndarray:
        """Responses in [0, 1] to the items at `positions` as the model sees them."""
        if self.thresholds_ is None:
            return responses
        return right_or_wrong(responses, self.thresholds_[self._scenario_index[positions]])

    def _read(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return to_unit(read_responses(self, X, reset=False), self._bounds, X)

    def _abilities(self, responses: np.ndarray, positions: Any = slice(None)) -> Abilities:
        """Abilities of responses in [0, 1] to the items at `positions`."""
        fit = estimate_abilities(
            self.ability,
            self._modelled(responses, positions),
            self.discrimination_[positions],
            self.difficulty_[positions],
            self.prior_precision_,
        )
        warn_if_bounded(fit.bounded)
        return fit

    def transform(self, X: Any) -> np.ndarray:
        """Abilities of models.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.

        Returns
        -------
        ndarray of shape (n_models, n_abilities)
        """
        responses = self._read(X)
        return self._abilities(responses).ability.astype(responses.dtype, copy=False)

    def predict_responses(self, X: Any) -> np.ndarray:
        """Expected response of every model to every item, given its observed responses.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.

        Returns
        -------
        ndarray of shape (n_models, n_items)
            In the unit of the responses.
        """
        ability = self._abilities(self._read(X)).ability
        expected = response_probabilities(ability, self.discrimination_, self.difficulty_)
        return self._bounds.low + self._bounds.width * expected

    def predict(self, X: Any) -> np.ndarray:
        """Expected benchmark score of every model: the mean over the scenarios.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.

        Returns
        -------
        ndarray of shape (n_models,)
            In the unit of the responses.
        """
        ability = self._abilities(self._read(X)).ability
        weights = self.item_weights_ / len(self.scenarios_)
        scores = np.empty(len(ability))
        for rows in row_blocks(len(ability), len(weights)):
            scores[rows] = (
                response_probabilities(ability[rows], self.discrimination_, self.difficulty_)
                @ weights
            )
        return self._bounds.low + self._bounds.width * scores

    def item_information(self, ability: Any) -> np.ndarray:
        """Fisher information of every item along the direction in which it discriminates.

        Parameters
        ----------
        ability : array-like of shape (n_models, n_abilities)

        Returns
        -------
        ndarray of shape (n_models, n_items)
            ``p (1 - p) |discrimination|**2``, the trace of the item's information matrix.
        """
        check_is_fitted(self)
        ability = check_array(ability, dtype=float)
        if ability.ndim != 2 or ability.shape[1] != self.discrimination_.shape[1]:
            raise ValueError(
                f"ability must have shape (n_models, {self.discrimination_.shape[1]}), "
                f"got {ability.shape}"
            )
        p = response_probabilities(ability, self.discrimination_, self.difficulty_)
        return p * (1.0 - p) * (self.discrimination_**2).sum(axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean held-out log-likelihood of a response.

        Each model's ability is estimated from every other item and judged on the rest, both ways.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_models,), default=None

        Returns
        -------
        float
            Negative; higher is better. `GridSearchCV(IRTRegressor(), {"n_dims": [2, 5, 10, 15]})`
            selects the dimension by it.
        """
        responses = self._read(X)
        weight = _check_sample_weight(sample_weight, responses, ensure_non_negative=True)
        # Every other item within each scenario, so that each half has half of every scenario.
        half = np.empty(responses.shape[1], dtype=bool)
        for members in _members(self._scenario_index):
            half[members] = np.arange(len(members)) % 2 == 0
        total = count = 0.0
        for known in (half, ~half):
            ability = self._abilities(responses[:, known], known).ability
            for rows in row_blocks(len(responses), responses.shape[1]):
                judged = self._modelled(responses[rows][:, ~known], ~known)
                logit = ability[rows] @ self.discrimination_[~known].T - self.difficulty_[~known]
                likelihood = judged * logit - np.logaddexp(0.0, logit)
                observed = ~np.isnan(judged)
                total += weight[rows] @ np.where(observed, likelihood, 0.0).sum(axis=1)
                count += weight[rows] @ observed.sum(axis=1)
        if count == 0:
            raise ValueError("X has no observed response that could be judged")
        return float(total / count)

    @property
    def _n_features_out(self) -> int:
        return self.discrimination_.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = False
        tags.regressor_tags.poor_score = True
        return tags


def check_ignored_target(y: Any, n_models: int) -> np.ndarray | None:
    """Validate a target that is not used for fitting, so that a wrong one does not pass unseen."""
    if y is None:
        return None
    y = column_or_1d(y, warn=True)
    y = np.asarray(y, dtype=float)
    if len(y) != n_models:
        raise ValueError(f"y has {len(y)} scores, but X has {n_models} models (rows)")
    if not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return y


def warn_if_bounded(bounded: np.ndarray, stacklevel: int = 3) -> None:
    """Warn where a maximum-likelihood ability is not finite."""
    if bounded.any():
        warnings.warn(
            f"{bounded.sum()} of {len(bounded)} models have no finite maximum-likelihood "
            "ability (all answers right, all wrong, or separable): its norm is held at 10; "
            'ability="map" has no such limit',
            UserWarning,
            stacklevel=stacklevel + 1,
        )
