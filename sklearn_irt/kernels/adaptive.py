"""Adaptive testing: which item to ask one model next, given its answers so far."""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.special import expit

from sklearn_irt.kernels.benchmark import Benchmark, wide_precision
from sklearn_irt.kernels.logistic import MAX_STEP, response_probabilities
from sklearn_irt.kernels.relatives import CLIP, DISTANCES, shared_prior, twins

# Newton steps per answer: the ability moves little by one answer.
N_STEPS = 3
# A step so short leaves an error of its square.
CONVERGED = 1e-3
# Posterior weight of the components that a gain may leave out.
LEFT_OUT = 0.002
# Share of the components above which picking their rows costs more than it saves.
MOST = 0.5
# Items looked at for one answer, of larger benchmarks a random part in turn: as many as keep
# what is known of them near so many numbers, within limits.
MAX_NUMBERS, MIN_CANDIDATES, MAX_CANDIDATES = 500_000, 250, 1000
MIN_SPREAD = 1e-6
# Abilities that stand for "no relative" in the choice of items, and the seed that draws them.
N_ABILITIES, SEED = 150, 0


_NO_ITEMS = np.empty(0, dtype=int)


class Bank(NamedTuple):
    """What an adaptive test knows before the first answer; it is never written to.

    The target is a weighted mean of the items at `positions`: those that may be asked.

    Attributes
    ----------
    benchmark : Benchmark
    positions : ndarray of shape (n_items,), int
        In blocks of `width` items: in random order where there are several.
    width : int
    place : ndarray of shape (n_all_items,), int
        Where each item of the benchmark stands in `positions`, -1 where it does not.
    weights : ndarray of shape (n_items,)
        Of the items in the target, sum 1.
    part : ndarray of shape (n_items,), int
        Scenario of each item among those of the target.
    loadings : ndarray of shape (n_abilities, n_items), float32
    difficulty : ndarray of shape (n_items,), float32
    precision : ndarray of shape (n_abilities, n_abilities)
        Of the prior of the ability.
    abilities : ndarray of shape (n_drawn, n_abilities)
        Drawn from the prior: each stands for new models without a relative.
    known : list of ndarray of shape (2 * n_training + n_drawn, width), float32
        By block: responses of the training models, what the IRT model expects of them, and of
        the drawn abilities.
    scores : ndarray of shape (2 * n_training + n_drawn,)
        Their targets.
    noise : ndarray of shape (n_training, n_parts, n_distances)
        Variance of the target of copies of them, by scenario.
    log_prior : ndarray of shape (n_training, 1)
        Of each training model at each distance.
    share : float
        Prior probability of having a relative.
    """

    benchmark: Benchmark
    positions: np.ndarray
    width: int
    place: np.ndarray
    weights: np.ndarray
    part: np.ndarray
    loadings: np.ndarray
    difficulty: np.ndarray
    precision: np.ndarray
    abilities: np.ndarray
    known: list[np.ndarray]
    scores: np.ndarray
    noise: np.ndarray
    log_prior: np.ndarray
    share: float


def make_bank(benchmark: Benchmark, share: float, scenario: int | None = None) -> Bank:
    """Prepare adaptive testing for the score of one scenario, or the mean of all.

    Parameters
    ----------
    benchmark : Benchmark
    share : float in [0, 1)
        Prior probability of having a relative; 0: the IRT model alone.
    scenario : int, optional

    Returns
    -------
    Bank
    """
    training, items = benchmark.training, benchmark.items
    n_training, n_scenarios = training.scores.shape
    if not n_training:
        share = 0.0
    if share == 0.0:
        n_training = 0
    n_drawn = N_ABILITIES if n_training else 0
    parts = np.arange(n_scenarios) if scenario is None else np.array([scenario])
    positions = np.flatnonzero(np.isin(benchmark.scenario, parts))
    n_candidates = MAX_NUMBERS // max(2 * n_training + n_drawn, 1)
    n_candidates = min(max(n_candidates, MIN_CANDIDATES), MAX_CANDIDATES)
    n_blocks = -(-len(positions) // n_candidates)
    width = -(-len(positions) // n_blocks)
    rng = np.random.RandomState(SEED)
    abilities = rng.normal(size=(n_drawn, len(items.prior_precision)))
    abilities = abilities @ np.linalg.cholesky(np.linalg.inv(items.prior_precision)).T
    if n_blocks > 1:
        positions = rng.permutation(positions)
    place = np.full(len(benchmark.scenario), -1)
    place[positions] = np.arange(len(positions))
    weights = benchmark.weights[positions] / len(parts)
    known, scores = [], np.zeros(2 * n_training + n_drawn)
    log_prior = np.empty((n_training, 1))
    if n_training:
        for start in range(0, len(positions), width):
            block = slice(start, start + width)
            known.append(_known(benchmark, abilities, positions[block]))
            scores += known[-1] @ weights[block].astype(np.float32)
        scores[:n_training] = training.scores[:, parts].mean(axis=1)
        prior = shared_prior(twins(training.responses, training.scores))
        log_prior[:, 0] = np.log(share * prior / len(DISTANCES))
    return Bank(
        benchmark,
        positions,
        width,
        place,
        weights,
        np.searchsorted(parts, benchmark.scenario[positions]),
        np.ascontiguousarray(items.discrimination[positions].T, dtype=np.float32),
        items.difficulty[positions].astype(np.float32),
        wide_precision(benchmark) if share > 0 else items.prior_precision,
        abilities,
        known,
        scores,
        training.noise[:n_training, parts] / len(parts) ** 2,
        log_prior,
        share,
    )


def _known(benchmark: Benchmark, abilities: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rows of `Bank.known` on the items at `positions`."""
    training, items = benchmark.training, benchmark.items
    everyone = np.concatenate([training.ability, abilities]).astype(np.float32)
    chance = response_probabilities(
        everyone,
        items.discrimination[positions].astype(np.float32),
        items.difficulty[positions].astype(np.float32),
    )
    np.clip(chance, CLIP, 1.0 - CLIP, out=chance)
    responses = chance[: len(training.ability)].copy()
    anchors = benchmark.anchors
    column = np.minimum(np.searchsorted(anchors, positions), len(anchors) - 1)
    asked = anchors[column] == positions
    given = training.responses[:, column[asked]]
    responses[:, asked] = np.where(np.isnan(given), responses[:, asked], given)
    return np.concatenate([responses, chance])


class Posterior:
    """What the answers so far say of one model; each answer updates it in place.

    Parameters
    ----------
    bank : Bank

    Attributes
    ----------
    mean, std : float
        Of the target, on the scale of [0, 1].
    ability : ndarray of shape (n_abilities,)
        Most probable ability.
    covariance : ndarray of shape (n_abilities, n_abilities)
    weights : ndarray of shape (n_training, n_distances)
        Posterior probability of each relative.
    none : float
        Posterior probability of no relative.

    Notes
    -----
    Two posteriors share the relatives. In that of the estimate, "no relative" is the IRT model
    at its most probable ability (Laplace), as in the final estimate. In that of the choice it is
    some drawn abilities: the items that tell relatives apart are the better choice long after the
    IRT model's evidence has overtaken theirs.
    """

    def __init__(self, bank: Bank):
        self.bank = bank
        n_abilities = len(bank.precision)
        self.ability = np.zeros(n_abilities)
        self.covariance = np.linalg.inv(bank.precision)
        self._log_det = np.linalg.slogdet(bank.precision)[1]
        self._n_asked, self._steepest = 0, 0.0  # the latter: the largest norm of their loadings
        self._asked = np.empty((64, n_abilities))  # loadings, difficulty, answers: as they come
        self._thresholds, self._answers, self._modelled = np.empty(64), np.empty(64), np.empty(64)
        self._likelihood = np.zeros((len(bank.log_prior), len(DISTANCES)))
        self._drawn = np.zeros(len(bank.abilities))
        # Of the score that is not known yet: the weights of its items, and of the components.
        self._rest = bank.weights.copy()
        self._rest32 = self._rest.astype(np.float32)
        self._scores = bank.scores.copy()
        self._known = 0.0
        self._squares = np.bincount(bank.part, bank.weights**2)
        self._hidden = np.ones(len(self._squares))
        self._weigh()

    def copy(self) -> "Posterior":
        """An independent posterior with the same answers."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        for name in (
            "_asked",
            "_thresholds",
            "_answers",
            "_modelled",
            "_likelihood",
            "_drawn",
            "_rest",
            "_rest32",
            "_scores",
            "_hidden",
        ):
            setattr(new, name, getattr(self, name).copy())
        return new

    def update(self, position: int, answer: float, modelled: float | None = None) -> None:
        """Take one answer.

        Parameters
        ----------
        position : int
            Item of the benchmark, also one that does not count in the target.
        answer : float in [0, 1]
        modelled : float in [0, 1], optional
            The answer as the IRT model sees it, where it has a threshold.
        """
        bank = self.bank
        items = bank.benchmark.items
        k = self._n_asked
        if k == len(self._answers):
            self._asked = np.concatenate([self._asked, np.empty_like(self._asked)])
            for name in ("_thresholds", "_answers", "_modelled"):
                setattr(self, name, np.concatenate([getattr(self, name), np.empty(k)]))
        self._asked[k] = items.discrimination[position]
        self._thresholds[k] = items.difficulty[position]
        self._answers[k] = answer
        self._modelled[k] = answer if modelled is None else modelled
        self._n_asked = k + 1
        self._steepest = max(self._steepest, math.sqrt(self._asked[k] @ self._asked[k]))
        column = bank.place[position]
        if len(bank.scores):
            if column >= 0:
                known = self._column(column)
            else:
                known = _known(bank.benchmark, bank.abilities, np.array([position]))[:, 0]
            copied, drawn = self._split(known)
            self._likelihood += _log_likelihood(answer, copied.clip(CLIP, 1.0 - CLIP))
            self._drawn += _log_likelihood(answer, drawn)
        if column >= 0:
            weight = bank.weights[column]
            self._known += weight * answer
            self._rest[column] = self._rest32[column] = 0.0
            part = bank.part[column]
            self._hidden[part] = max(self._hidden[part] - weight**2 / self._squares[part], 0.0)
            if len(bank.scores):
                self._scores -= weight * known
        self._newton()
        self._weigh()

    def _newton(self) -> None:
        """The most probable ability, from the last one, and its covariance."""
        k = self._n_asked
        loadings, answers = self._asked[:k], self._modelled[:k]
        theta, precision = self.ability, self.bank.precision
        thresholds = self._thresholds[:k]
        probability = expit(loadings @ theta - thresholds)
        for _ in range(N_STEPS):
            weight = probability * (1.0 - probability)
            information = (loadings.T * weight) @ loadings + precision
            gradient = (answers - probability) @ loadings - precision @ theta
            step = lapack.dposv(information, gradient)[1]
            length = math.sqrt(step @ step)
            if length > MAX_STEP:
                step *= MAX_STEP / length
            # Only steps that move a logit far can overshoot.
            if length * self._steepest > 0.5:
                before = self._objective(theta)
                while self._objective(theta + step) < before and length > 1e-8:
                    step *= 0.5
                    length *= 0.5
            theta = theta + step
            probability = expit(loadings @ theta - thresholds)
            if length < CONVERGED:
                break
        weight = probability * (1.0 - probability)
        self.ability = theta
        factor = np.linalg.cholesky((loadings.T * weight) @ loadings + precision)
        root = lapack.dtrtri(factor, lower=1)[0]
        self.covariance = root.T @ root
        clipped = probability.clip(CLIP, 1.0 - CLIP)
        answers = self._answers[:k]
        likelihood = answers @ np.log(clipped) + (1.0 - answers) @ np.log1p(-clipped)
        self._evidence = (
            likelihood
            - 0.5 * theta @ precision @ theta
            + 0.5 * self._log_det
            - np.log(factor.diagonal()).sum()
        )

    def _objective(self, theta: np.ndarray) -> float:
        """Log posterior of an ability, up to a constant."""
        k = self._n_asked
        logit = self._asked[:k] @ theta - self._thresholds[:k]
        value = self._modelled[:k] @ logit - np.logaddexp(0.0, logit).sum()
        return value - 0.5 * theta @ self.bank.precision @ theta

    def _weigh(self) -> None:
        """Posterior weights, and the mean and standard deviation of the target."""
        bank = self.bank
        theta = self.ability.astype(np.float32)
        # The logistic function; in single precision tanh is twice as fast as expit.
        self._chance = 0.5 + 0.5 * np.tanh(0.5 * (theta @ bank.loadings - bank.difficulty))
        self._spread = self._chance * (1.0 - self._chance)
        along = self._spread * self._rest32
        self._gradient = (bank.loadings @ along).astype(float)
        own = float(self._rest32 @ self._chance)
        own_variance = float(along @ self._rest32)
        own_variance += self._gradient @ self.covariance @ self._gradient
        if not len(bank.scores):
            self.weights, self.none = np.zeros((0, len(DISTANCES))), 1.0
            self.mean = self._known + own
            self.std = float(np.sqrt(own_variance))
            return
        evidence = self._evidence if self._n_asked else 0.0
        log_weights = self._likelihood + bank.log_prior
        none = evidence + np.log1p(-bank.share)
        top = max(log_weights.max(), none)
        weights, none = np.exp(log_weights - top), np.exp(none - top)
        total = weights.sum() + none
        self.weights, self.none = weights / total, none / total
        each = self.weights.sum(axis=1)
        scores = self._scores[: len(each)]
        rest = each @ scores + self.none * own
        between = each @ (scores - rest) ** 2
        between += self.none * ((own - rest) ** 2 + own_variance)
        noise = np.einsum("le,lse,s->", self.weights, bank.noise, self._hidden)
        self.mean = self._known + rest
        self.std = float(np.sqrt(between + noise))
        drawn = self._drawn + np.log1p(-bank.share) - np.log(len(self._drawn))
        top = max(log_weights.max(), drawn.max())
        weights, drawn = np.exp(log_weights - top), np.exp(drawn - top)
        total = weights.sum() + drawn.sum()
        self._choice = weights / total, drawn / total

    def _split(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What the rows of `known` say of copies (n_training, n_distances) and drawn abilities."""
        n_training = len(self.bank.log_prior)
        response, chance = rows[:n_training, None], rows[n_training : 2 * n_training, None]
        return response * (1.0 - DISTANCES) + chance * DISTANCES, rows[2 * n_training :]

    def _column(self, place: int) -> np.ndarray:
        """What the rows of `known` say of one item."""
        block, column = divmod(place, self.bank.width)
        return self.bank.known[block][:, column].astype(float)

    def gain(self) -> np.ndarray:
        """By how much the answer to each item is expected to lower the variance of the target.

        Returns
        -------
        ndarray of shape (n_items,), float32
            In the order of the bank's positions.
        """
        places = np.arange(len(self.bank.positions))
        blocks = np.split(places, range(self.bank.width, len(places), self.bank.width))
        return np.concatenate([_Moments(self, block).gain() for block in blocks])

    def pick(
        self,
        n: int,
        allowed: np.ndarray,
        costs: np.ndarray | None = None,
        budget: float = np.inf,
        pending: list[int] | None = None,
    ) -> list[int]:
        """Items to ask next.

        Several at once are chosen one after the other, each the one that adds most to those
        before: the answers not known yet enter by their covariances only, so that items which
        would say the same are not asked together. Of large benchmarks one block of items is
        looked at, another after each answer.

        Parameters
        ----------
        n : int
            At most.
        allowed : ndarray of shape (n_items,), bool
            By place in the bank's positions.
        costs : ndarray of shape (n_items,), optional
            Positive; the gain counts per cost.
        budget : float
            What they may cost in all.
        pending : list of int, optional
            Places of the items that are being asked; they are not chosen again.

        Returns
        -------
        list of int
            Places in the bank's positions.
        """
        bank = self.bank
        chosen: list[int] = []
        allowed = allowed.copy()
        allowed[list(pending or [])] = False
        n_blocks = -(-len(bank.positions) // bank.width)
        for turn in range(n_blocks):
            start = (self._n_asked + turn) % n_blocks * bank.width
            block = np.arange(start, min(start + bank.width, len(bank.positions)))
            open_items = allowed[block]  # a copy
            if costs is not None:
                open_items &= costs[block] <= budget
            if not open_items.any():
                continue
            before = [*(pending or []), *chosen]
            others = np.array([place for place in before if place not in block], dtype=int)
            moments = _Moments(self, block, others)
            given = [moments.index(place) for place in before]
            while len(chosen) < n and open_items.any():
                for index in given:
                    moments.condition(index)
                gain = moments.gain()[: len(block)]
                if costs is not None:
                    gain = gain / costs[block]
                index = int(np.argmax(np.where(open_items, gain, -1.0)))
                chosen.append(int(block[index]))
                given = [index]
                open_items[index] = False
                if costs is not None:
                    budget -= costs[block[index]]
                    open_items &= costs[block] <= budget
            if len(chosen) == n:
                break
        return chosen


class _Moments:
    """Moments of the answers to some items and of the target, as the posterior expects them.

    The gain of a right-or-wrong answer is its squared covariance with the target over its
    variance: exactly the expected decrease of the variance of the target.
    """

    def __init__(self, posterior: Posterior, block: np.ndarray, others: np.ndarray = _NO_ITEMS):
        bank = posterior.bank
        self.posterior = posterior
        self.places = np.concatenate([block, others])
        # A view of the block where it is all.
        self.columns = slice(block[0], block[-1] + 1) if not len(others) else self.places
        self.related = len(bank.scores) > 0
        self.factors: list[np.ndarray] = []
        if self.related:
            weights, drawn = posterior._choice
            each = np.concatenate([weights.sum(axis=1), drawn])
            order = np.argsort(-each)
            n_kept = np.searchsorted(np.cumsum(each[order]), 1.0 - LEFT_OUT) + 1
            kept = np.sort(order[:n_kept])
            rows = bank.known[block[0] // bank.width]
            n_training = len(weights)
            self.models = kept[kept < n_training]
            self.drawn = kept[len(self.models) :] - n_training
            self.all = len(kept) > MOST * len(each)
            if not self.all:
                own = (self.models, self.models + n_training, self.drawn + 2 * n_training)
                rows = rows[np.concatenate(own)]
            if len(others):
                more = np.stack([posterior._column(place) for place in others], axis=1)
                more = more if self.all else more[np.concatenate(own)]
                rows = np.concatenate([rows, more.astype(np.float32)], axis=1)
            self.rows = rows
            copied, other = posterior._split(posterior._scores)
            rest = (weights * copied).sum() + drawn @ other
            mean, self.covariance = self._combine(
                (weights, drawn), (weights * (copied - rest), drawn * (other - rest))
            )
            self.variance = mean * (1.0 - mean)
            return
        self.loadings = bank.loadings[:, self.columns]
        self.spread = posterior._spread[self.columns]
        # S g of every item, times how fast its probability moves with the logit.
        along = (posterior.covariance @ posterior._gradient).astype(np.float32)
        self.covariance = self.spread * (along @ self.loadings)
        moved = np.linalg.cholesky(posterior.covariance).T.astype(np.float32) @ self.loadings
        self.variance = self.spread + np.einsum("di,di->i", moved, moved) * self.spread**2

    def _combine(self, *pairs: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Sums of the components' probabilities with some weights, (n_pairs, n_items)."""
        rows = []  # of all sums, so that the probabilities are read once
        for weights, drawn in pairs:
            if not self.all:
                weights, drawn = weights[self.models], drawn[self.drawn]
            rows.append(np.concatenate([weights @ (1.0 - DISTANCES), weights @ DISTANCES, drawn]))
        return np.array(rows, dtype=np.float32) @ self.rows

    def index(self, place: int) -> int:
        """Where an item stands among these."""
        return int(np.flatnonzero(self.places == place)[0])

    def gain(self) -> np.ndarray:
        """Expected decrease of the variance of the target by each answer."""
        return self.covariance**2 / np.maximum(self.variance, MIN_SPREAD)

    def condition(self, index: int) -> None:
        """Take an answer as known, without knowing it: one step of a pivoted Cholesky."""
        row = self._with(index)
        for factor in self.factors:
            row -= factor[index] * factor
        root = np.sqrt(max(self.variance[index], MIN_SPREAD))
        row /= root
        self.covariance = self.covariance - row * (self.covariance[index] / root)
        self.variance = self.variance - row**2
        self.factors.append(row)

    def _with(self, index: int) -> np.ndarray:
        """Covariance of the answer to one item with those to all, (n_items,)."""
        posterior = self.posterior
        if self.related:
            weights, drawn = posterior._choice
            copied, other = posterior._split(posterior._column(self.places[index]))
            mean = (weights * copied).sum() + drawn @ other
            return self._combine((weights * (copied - mean), drawn * (other - mean)))[0]
        direction = (posterior.covariance @ self.loadings[:, index]).astype(np.float32)
        return self.spread[index] * self.spread * (direction @ self.loadings)


def _log_likelihood(answer: float, chance: np.ndarray) -> np.ndarray:
    """Of one answer in [0, 1], fractional ones as a quasi-likelihood."""
    if answer == 1.0:
        return np.log(chance)
    if answer == 0.0:
        return np.log1p(-chance)
    return answer * np.log(chance) + (1.0 - answer) * np.log1p(-chance)
