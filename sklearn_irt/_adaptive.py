"""AdaptiveSession: ask a new model the items that say most about its score, one after the other."""

import copy
import os
import warnings
from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sklearn_irt._costs import read_costs
from sklearn_irt._gpirt import GPIRTEstimator
from sklearn_irt._responses import ROUNDING
from sklearn_irt._session_file import fingerprint, read_session, write_session
from sklearn_irt.kernels.adaptive import Bank, Posterior, make_bank
from sklearn_irt.kernels.tuning import by_kind

# So many answers of at most 1 on a scale up to 10 or more are taken for shares of it.
N_SUSPICIOUS, WIDE_SCALE = 5, 10.0


class AdaptiveSession:
    """Ask one new model the items that say most about its score, given its answers so far.

    `ask` names the items, `tell` takes the scores, `estimate` is the usual table, and `done` says
    when to stop. Thirty such answers are worth a hundred to random items. A model of which some
    answers are known already starts from these: `tell` takes answers to items never asked.

    The item asked next is the one whose answer is expected to lower the variance of the score
    most. With training models as relatives these are weighed by how well they explain the
    answers; without, it is the item with the most information on the score at the current
    ability (greedy c-optimal design).

    Parameters
    ----------
    source : TinyBenchmark, GPIRTEstimator or Pipeline
        A loaded benchmark, a fitted estimator, or a fitted Pipeline that ends in one. All items of
        the benchmark may be asked, not only the anchors; fit the estimator on the full matrix
        (without an `AnchorSelector`), so that the training models' responses to all are known.
        The estimator's parameters are read here, later changes of it are not seen.
    scenario : str, default=None
        Ask for the score of this scenario only. None: for the mean of all scenarios.
    costs : array-like of shape (n_items,), default=None
        Cost of asking each item of the benchmark; the gain then counts per cost. A Series indexed
        by item ids is matched by id.
    budget : float, default=None
        What all items that are asked may cost together; needs `costs`.

    See Also
    --------
    GPIRTEstimator : The estimates.
    simulate_adaptive : The sessions of many models whose responses are known.

    References
    ----------
    .. [1] Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML.
       Section 6: adaptive testing.
    .. [2] Chaloner & Verdinelli (1995), Bayesian experimental design: a review, Statistical
       Science 10(3).

    Examples
    --------
    >>> from sklearn_irt import AdaptiveSession, GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> data = make_responses(n_models=61, n_items=300, random_state=0)
    >>> known, new = data.responses.iloc[:60], data.responses.iloc[60]
    >>> session = AdaptiveSession(GPIRTEstimator(random_state=0).fit(known))
    >>> while not session.done(max_items=25):
    ...     for item in session.ask():
    ...         session.tell(item, new[item])
    >>> session.n_asked
    25
    >>> bool(abs(session.estimate().loc["all", "pirt"] - data.scores.iloc[60]) < 0.06)
    True
    """

    def __init__(
        self,
        source: Any,
        scenario: str | None = None,
        *,
        costs: Any = None,
        budget: float | None = None,
    ):
        estimator, names = _read_source(source)
        self._estimator, self._names = _predicting(estimator), names
        self.scenario = scenario
        number = _scenario_number(estimator, scenario)
        n_items = len(estimator.item_weights_)
        self._places = None if names is None else {name: i for i, name in enumerate(names)}
        if budget is not None and costs is None:
            raise ValueError("budget needs costs; stop at a number of items by done(max_items=...)")
        if budget is not None and (not _is_number(budget) or not 0.0 < budget < np.inf):
            raise ValueError(f"budget must be a positive number, got {budget!r}")
        self._costs = None if costs is None else read_costs(costs, n_items, budget, names)
        self.budget = budget
        self._bank = _bank(self._estimator, number)
        self._factor = _factor(self._estimator, number)
        self._posterior = Posterior(self._bank)
        self._told: dict[int, tuple[float, bool]] = {}  # position: score, whether it was asked
        self._pending: list[int] = []
        self._trace: list[tuple[int, float, float, float]] = []

    @property
    def n_asked(self) -> int:
        """Number of answers so far; items that could not be asked do not count."""
        return len(self._trace)

    @property
    def history(self) -> list[tuple[Hashable, float]]:
        """What was told, in order: (item, score), NaN where an item could not be asked."""
        return [(self._name(position), score) for position, (score, _) in self._told.items()]

    @property
    def spent(self) -> float:
        """Cost of the items that were asked and answered; 0 without costs."""
        if self._costs is None:
            return 0.0
        answered = (p for p, (score, asked) in self._told.items() if asked and score == score)
        return float(sum(self._costs[position] for position in answered))

    @property
    def trace(self) -> pd.DataFrame:
        """The score and its standard error after every answer.

        Index answers (1, 2, ...), columns item, score, estimate, std_error; in the unit of the
        responses, of the scenario or the mean of all. From the running posterior, which takes a
        few Newton steps where `estimate` iterates to the end: they differ by less than a
        thousandth or so; by some thousandths where the source knows the training models' answers
        on its anchors only, and so what they gave to the other items only on average.
        """
        rows = [(self._name(position), *figures) for position, *figures in self._trace]
        index = pd.RangeIndex(1, len(rows) + 1, name="answers")
        return pd.DataFrame(rows, index, ["item", "score", "estimate", "std_error"])

    def ask(self, n: int = 1) -> list[Hashable]:
        """The items to ask next.

        Several are chosen one after the other, each the one that adds most to those before:
        answers not known yet enter by their covariances, so that near-duplicates are not asked
        together. Items that were asked before and not told yet come first, so asking again
        without telling returns the same.

        Parameters
        ----------
        n : int, default=1

        Returns
        -------
        list
            Ids of `n` items (positions where the benchmark knows no ids); fewer where no more are
            left or the budget does not allow more.
        """
        if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}")
        more = n - len(self._pending)
        if more > 0:
            places = self._bank.place[self._pending]
            costs = None if self._costs is None else self._costs[self._bank.positions]
            chosen = self._posterior.pick(
                more, self._open_items(), costs, self._left(), places.tolist()
            )
            self._pending += self._bank.positions[chosen].tolist()
        return [self._name(position) for position in self._pending[:n]]

    def _open_items(self) -> np.ndarray:
        """Which items of the target may be asked yet, apart from the budget."""
        allowed = np.ones(len(self._bank.positions), dtype=bool)
        places = self._bank.place[[*self._told, *self._pending]]
        allowed[places[places >= 0]] = False
        return allowed

    def _left(self) -> float:
        """What the items yet to be asked may cost."""
        if self.budget is None:
            return np.inf
        # As the choice subtracts costs one by one, a sum may exceed the budget by rounding only.
        return self.budget - self.spent - float(self._costs[self._pending].sum())

    def tell(self, items: Any, scores: Any = None) -> None:
        """Take the model's scores on some items.

        Parameters
        ----------
        items : item, sequence of items, mapping or Series
            Ids (positions where the benchmark knows none); {item: score} or a Series indexed by
            item holds the scores too. Items need not have been asked; of any scenario.
        scores : float or sequence of float, default=None
            In the unit of the benchmark's responses; NaN: the item could not be asked, and never
            will be.

        Raises
        ------
        ValueError
            Naming the item that is unknown, told twice, or whose score is not a number in the
            response range. Nothing is taken then.
        """
        items, scores = _pairs(items, scores)
        positions = [self._position(item) for item in items]
        seen = set(self._told)
        for item, position in zip(items, positions, strict=True):
            if position in seen:
                raise ValueError(
                    f"the score of the item {item!r} was told before, or is given twice"
                )
            seen.add(position)
        values = np.array(
            [_score(item, score) for item, score in zip(items, scores, strict=True)], dtype=float
        )
        unit = self._unit(items, values)
        for position, value, answer in zip(positions, values.tolist(), unit, strict=True):
            asked = position in self._pending
            self._take(position, value, answer, asked)
            if asked:
                self._pending.remove(position)

    def _unit(self, items: list, values: np.ndarray) -> np.ndarray:
        """Scores on the scale of [0, 1]."""
        bounds = self._estimator._bounds
        slack = ROUNDING * bounds.width
        outside = (values < bounds.low - slack) | (values > bounds.high + slack)
        if outside.any() and not bounds.learned:
            number = int(np.argmax(outside))
            raise ValueError(
                f"the score {values[number]:g} of the item {items[number]!r} is outside the "
                f"response range [{bounds.low:g}, {bounds.high:g}]; NaN marks an item that could "
                "not be asked"
            )
        if outside.any():
            warnings.warn(
                f"scores outside the range [{bounds.low:g}, {bounds.high:g}] of the training "
                "responses are clipped to it; give response_range at fit",
                UserWarning,
                stacklevel=3,
            )
        n_before, n_new = self.n_asked, int((values == values).sum())
        if bounds.low <= 0.0 and bounds.high >= WIDE_SCALE:
            if n_before < N_SUSPICIOUS <= n_before + n_new:
                highest = np.nanmax([*values, *(score for _, score, *_ in self._trace)])
                if 0.0 < highest <= 1.0:
                    warnings.warn(
                        f"every score is at most 1, on a scale from {bounds.low:g} to "
                        f"{bounds.high:g}: are they shares of it? Then multiply them by "
                        f"{bounds.high:g}",
                        UserWarning,
                        stacklevel=3,
                    )
        return ((values - bounds.low) / bounds.width).clip(0.0, 1.0)

    def _take(self, position: int, score: float, answer: float, asked: bool) -> None:
        self._told[position] = score, asked
        if score != score:
            return
        modelled = self._estimator.irt_._modelled(np.array([[answer]]), np.array([position]))
        self._posterior.update(position, float(answer), float(modelled[0, 0]))
        self._trace.append((position, score, *self._running()))

    def _running(self) -> tuple[float, float]:
        """The score and its standard error, in the unit of the responses."""
        return figures_of(self._estimator, self._factor, self._posterior)

    def estimate(self, coverage: float = 0.9) -> pd.DataFrame:
        """Estimate the model's score from its answers so far.

        Parameters
        ----------
        coverage : float in (0, 1), default=0.9
            Of the interval.

        Returns
        -------
        DataFrame
            As `GPIRTEstimator.predict_table` gives for one model: index scenario, columns
            answered, naive, pirt, gpirt, std_error, low, high. Items chosen for what they tell
            do not represent the others, so naive is missing, gpirt is pirt, and the standard
            error and the interval are those of pirt. With `scenario`, its row only.
        """
        answered = {p: s for p, (s, _) in self._told.items() if s == s}
        bounds = self._estimator._bounds
        scores = np.array(list(answered.values()), dtype=float)
        answers = ((scores - bounds.low) / bounds.width).clip(0.0, 1.0)
        positions = np.array(list(answered), dtype=int)
        final = as_asked(answers, positions)
        table = self._estimator._table(*final, None, coverage)
        # Usual answers were learned on the anchors; to chosen items many models look unusual.
        table = table.drop(columns="unusual", errors="ignore")
        return table if self.scenario is None else table.loc[[self.scenario]]

    def done(self, max_items: int | None = None, target_std: float | None = None) -> bool:
        """Whether to stop asking.

        Parameters
        ----------
        max_items : int, default=None
            So many answers are enough.
        target_std : float, default=None
            So small a standard error is enough: that of `trace`, in the unit of the responses.

        Returns
        -------
        bool
            Also true where no item is left, or none that the budget allows.
        """
        if max_items is not None:
            if not isinstance(max_items, Integral) or isinstance(max_items, bool) or max_items < 0:
                raise ValueError(
                    f"max_items must be an integer of at least 0 or None, got {max_items!r}"
                )
            if self.n_asked >= max_items:
                return True
        if target_std is not None:
            if not _is_number(target_std) or not target_std > 0:
                raise ValueError(
                    f"target_std must be a positive number or None, got {target_std!r}"
                )
            if self._running()[1] <= target_std:
                return True
        if self._pending:
            return False
        allowed = self._open_items()
        if self.budget is not None:
            allowed &= self._costs[self._bank.positions] <= self._left()
        return not allowed.any()

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the session to a JSON file, atomically.

        It holds what was asked and told, not the benchmark; see `load`.

        Parameters
        ----------
        path : str or path-like
            A file there is replaced.

        Returns
        -------
        Path
            The path that was given.
        """
        history = [
            [self._name(position), None if score != score else score, asked]
            for position, (score, asked) in self._told.items()
        ]
        document = {
            "fingerprint": fingerprint(self._estimator, self._names),
            "scenario": self.scenario,
            "costs": None if self._costs is None else self._costs.tolist(),
            "budget": None if self.budget is None else float(self.budget),
            "history": history,
            "pending": [self._name(position) for position in self._pending],
        }
        return write_session(path, document)

    @classmethod
    def load(cls, path: str | os.PathLike[str], source: Any) -> "AdaptiveSession":
        """Resume a saved session where it was.

        Parameters
        ----------
        path : str or path-like
            A file that `save` wrote.
        source : TinyBenchmark, GPIRTEstimator or Pipeline
            The one that the session was begun with, loaded or unpickled again.

        Returns
        -------
        AdaptiveSession

        Raises
        ------
        ValueError
            Where the file is no session, is damaged, or was begun with another benchmark or
            another fit of it.
        """
        document = read_session(path)
        estimator, names = _read_source(source)
        if document.get("fingerprint") != fingerprint(_predicting(estimator), names):
            raise ValueError(
                f"{path} was begun with another benchmark, another fit of it, or other parameters; "
                "give the source that it was begun with"
            )
        try:
            costs = document["costs"]
            session = cls(
                source,
                document["scenario"],
                costs=costs,
                budget=document["budget"],
            )
            for item, score, asked in document["history"]:
                position = session._position(item)
                value = np.array([np.nan if score is None else float(score)])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # they were given when it was told
                    answer = session._unit([item], value)[0]
                if position in session._told or not isinstance(asked, bool):
                    raise ValueError(f"the item {item!r}")
                session._take(position, float(value[0]), answer, asked)
            session._pending = [session._position(item) for item in document["pending"]]
            if (session._bank.place[session._pending] < 0).any():
                raise ValueError("an item of another scenario was asked")
            if len({*session._pending, *session._told}) < len(session._pending) + len(
                session._told
            ):
                raise ValueError("an item was asked twice")
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
        return session

    def _name(self, position: int) -> Hashable:
        return int(position) if self._names is None else self._names[position]

    def _position(self, item: Any) -> int:
        if self._places is None:
            n_items = len(self._bank.place)
            if isinstance(item, Integral) and not isinstance(item, bool) and 0 <= item < n_items:
                return int(item)
            raise ValueError(
                f"there is no item {item!r}; the benchmark has no item ids, so items are positions "
                f"from 0 to {n_items - 1}"
            )
        try:
            for name in (item, str(item)):
                if name in self._places:
                    return self._places[name]
        except TypeError:  # not hashable
            pass
        raise ValueError(f"there is no item {item!r}; ids look like {self._names[0]!r}")

    def __repr__(self) -> str:
        score, std = self._running()
        of = "" if self.scenario is None else f" of {self.scenario}"
        return f"<AdaptiveSession{of}: {self.n_asked} answers, score {score:.4g} ± {std:.2g}>"


def _read_source(source: Any) -> tuple[GPIRTEstimator, list | None]:
    """The fitted estimator and the ids of the items, if they have any."""
    names = None
    if isinstance(source, Pipeline):
        source = source.steps[-1][1]
    elif hasattr(source, "estimator") and isinstance(getattr(source, "items", None), pd.DataFrame):
        names = source.items["item"].tolist()
        source = source.estimator
    if not isinstance(source, GPIRTEstimator):
        raise ValueError(
            "source must be a loaded benchmark, a fitted GPIRTEstimator, or a Pipeline that ends "
            f"in one, got {type(source).__name__}"
        )
    check_is_fitted(source)
    if names is None and source._item_names is not None:
        names = [str(name) for name in source._item_names]
    return source, names


def _predicting(estimator: GPIRTEstimator) -> GPIRTEstimator:
    """The same estimator for p-IRT: the mean of chosen items is no estimate to mix with."""
    estimator = copy.copy(estimator)  # the fitted arrays are shared
    estimator.estimate, estimator.mixing = "pirt", "paper"
    estimator._validate_params()
    return estimator


def _scenario_number(estimator: GPIRTEstimator, scenario: str | None) -> int | None:
    if scenario is None:
        return None
    if scenario not in estimator.scenarios_:
        raise ValueError(
            f"there is no scenario {scenario!r}; the scenarios are {list(estimator.scenarios_)}"
        )
    return estimator.scenarios_.index(scenario)


def _bank(estimator: GPIRTEstimator, scenario: int | None) -> Bank:
    return make_bank(estimator._kernel_benchmark(), estimator._relative_share(), scenario)


def _factor(estimator: GPIRTEstimator, scenario: int | None) -> float:
    """The calibration of the standard errors of p-IRT."""
    related = estimator._relative_share() > 0
    factors = by_kind(estimator.calibration_, "pirt", "paper", related=related)
    return float(factors[-1 if scenario is None else scenario])


def figures_of(estimator, factor: float, posterior: Posterior) -> tuple[float, float]:
    """Running score and standard error, in the unit of the responses."""
    score = float(estimator._in_unit(posterior.mean))
    return score, float(estimator._bounds.width * factor * posterior.std)


def as_asked(answers: np.ndarray, positions: np.ndarray) -> tuple:
    """One model's answers in [0, 1] as the estimator takes them: answers, positions, weights."""
    if not len(positions):
        answers, positions = np.array([np.nan]), np.array([0])
    order = np.argsort(positions)
    no_weight = np.zeros(len(positions))  # nothing chosen counts in the naive mean
    return answers[order][None], positions[order], no_weight


def _pairs(items: Any, scores: Any) -> tuple[list, list]:
    """Items and scores as lists of the same length."""
    if isinstance(items, (Mapping, pd.Series)):
        if scores is not None:
            raise ValueError("scores must be left out where items is a mapping or Series of them")
        return list(items.keys()), list(items.values() if isinstance(items, Mapping) else items)
    one = isinstance(items, (str, Real)) or (isinstance(items, np.ndarray) and items.ndim == 0)
    items = [items] if one else list(items)
    if np.ndim(scores) == 0 and len(items) == 1 and scores is not None:
        scores = [scores]
    if scores is None or np.ndim(scores) == 0:
        raise ValueError("scores must hold one score per item, NaN where one could not be asked")
    scores = list(scores)
    if len(items) != len(scores):
        raise ValueError(f"there are {len(items)} items but {len(scores)} scores")
    return items, scores


def _score(item: Any, score: Any) -> float:
    if score is None or score is pd.NA:
        return np.nan
    try:
        value = float(score)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"the score of the item {item!r} must be a number, got {score!r}"
        ) from None
    if np.isinf(value):
        raise ValueError(f"the score of the item {item!r} is infinite")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
