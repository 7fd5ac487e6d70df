"""Whether a new model's answers look like those of any model: person fit.

Item response theory calls it person fit, or appropriateness: does a respondent's pattern of right
and wrong answers fit the model? The usual statistic, the standardised log-likelihood l_z (Drasgow,
Levine, Williams 1985; Snijders 2001), says little here: an ability of several dimensions is fitted
to the answers themselves, and follows most patterns. The evidence, in which such an ability is
paid for, tells more, against what an unusual model would do: answer whatever the question is, or
the wrong way round. That ratio is Levine and Drasgow's (1988) optimal appropriateness measure.
"""

import numpy as np
from scipy.special import xlogy

from sklearn_irt.kernels.benchmark import Benchmark, kin_evidence, likely_abilities, relatives_at
from sklearn_irt.kernels.relatives import (
    Relatives,
    kin_blocks,
    related_evidence,
    twins,
    weighted_likelihood,
)
from sklearn_irt.kernels.tuning import MAX_HELD_OUT, HeldOut, asked_anchors

# Share of models like the training models that may be called unusual: under 5 % with some room.
LEVEL = 0.045
# The ratio is learned for these shares of the anchors, as it grows with the number of answers.
SHARES = (0.125, 0.25, 0.5, 1.0)
# Whatever the training models are like, answers with lower odds than 7 to 1 against are usual.
UNLIKELY = -2.0


def appropriateness(
    benchmark: Benchmark,
    relatives: Relatives,
    share: float,
    answers: np.ndarray,
    modelled: np.ndarray,
    positions: np.ndarray,
    own: np.ndarray | None = None,
) -> np.ndarray:
    """Log-ratio of the evidence for the benchmark's model and for an unusual one.

    The unusual model is right as often on any question of a scenario as on another, or wrong
    where the benchmark's model expects it to be right.

    Parameters
    ----------
    benchmark : Benchmark
    relatives : Relatives
        On the items at `positions`.
    share : float
        Prior share of models with a relative.
    answers, modelled : ndarray of shape (n_models, n_asked)
        In [0, 1], NaN where not answered; the latter as the IRT model sees them.
    positions : ndarray of shape (n_asked,), int
    own : ndarray of shape (n_models,), int, optional
        Training model that each row is; neither it nor its twins may be the relative.

    Returns
    -------
    ndarray of shape (n_models,)
        The lower, the less the answers fit; 0 without answers.

    References
    ----------
    .. [1] Levine, Drasgow (1988), Optimal appropriateness measurement, Psychometrika 53.
    .. [2] Drasgow, Levine, Williams (1985), Appropriateness measurement with polychotomous item
       response models and standardized indices, BJMSP 38.
    .. [3] Snijders (2001), Asymptotic null distribution of person fit statistics with estimated
       person parameter, Psychometrika 66.
    """
    excluded = None
    if own is not None:
        group = twins(benchmark.training.responses, benchmark.training.scores)
        excluded = group[own][:, None] == group
    out = np.empty(len(answers))
    for rows in kin_blocks(len(answers), max(len(relatives.prior), len(positions))):
        hidden = None if excluded is None else excluded[rows]
        seen = answers[rows], modelled[rows]
        fitting, reversed_ = (
            _evidence(benchmark, relatives, share, *given, positions, hidden)
            for given in (seen, (1.0 - seen[0], 1.0 - seen[1]))
        )
        constant = _constant_likelihood(seen[0], benchmark.scenario[positions])
        out[rows] = fitting - np.logaddexp(reversed_, constant) + np.log(2.0)
    return out


def _evidence(benchmark, relatives, share, answers, modelled, positions, excluded) -> np.ndarray:
    """Log-evidence of the mixture of relatives and none."""
    likely = likely_abilities(benchmark, modelled, positions)
    found = kin_evidence(benchmark, relatives, answers, positions, likely)
    if not share:
        return found.none
    likelihood = found.relatives
    if excluded is not None:
        likelihood[excluded] = -np.inf
    related = related_evidence(weighted_likelihood(likelihood, share * relatives.prior))
    return np.logaddexp(related, found.none + np.log1p(-share))


def _constant_likelihood(answers: np.ndarray, scenario: np.ndarray) -> np.ndarray:
    """Highest log-likelihood of a model that is right as often on any question of a scenario."""
    seen = ~np.isnan(answers)
    total = np.zeros(len(answers))
    for s in range(scenario.max(initial=-1) + 1):
        own = scenario == s
        count = seen[:, own].sum(axis=1)
        right = np.where(seen[:, own], answers[:, own], 0.0).sum(axis=1)
        wrong = count - right
        some = np.maximum(count, 1)
        total += xlogy(right, right / some) + xlogy(wrong, wrong / some)
    return total


def appropriateness_limits(
    benchmark: Benchmark,
    held_out: HeldOut,
    share: float,
    modelled: np.ndarray,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Below which log-ratio answers are unusual, from training models that were left out.

    Parameters
    ----------
    benchmark : Benchmark
        Fitted to all training models.
    held_out : HeldOut
    share : float
        Prior share of models with a relative.
    modelled : ndarray of shape (n_training, n_anchors)
        Training responses as the IRT model sees them.
    random_state : RandomState

    Returns
    -------
    ndarray of shape (n_sizes, 2)
        Numbers of answers, ascending, and the limit for each; see `unusual`.
    """
    training = benchmark.training
    n_models = len(training.scores)
    asked, shown = asked_anchors(benchmark, n_models, random_state)
    rows = random_state.permutation(n_models)[:MAX_HELD_OUT]
    positions = benchmark.anchors[asked]
    relatives = relatives_at(benchmark, positions)
    order = random_state.random_sample(shown.shape)
    limits: dict[int, float] = {}
    for part in SHARES:
        found, counts = [], []
        for fold, items in enumerate(held_out.items):
            own = np.sort(rows[held_out.fold[rows] == fold])
            if not len(own):
                continue
            known = shown[own] & ~np.isnan(training.responses[np.ix_(own, asked)])
            kept = _some_of(known, order[own], part)
            answers, seen = (
                np.where(kept, values[np.ix_(own, asked)], np.nan)
                for values in (training.responses, modelled)
            )
            left_out = benchmark._replace(items=items)
            found.append(appropriateness(left_out, relatives, share, answers, seen, positions, own))
            counts.append(kept.sum(axis=1))
        limits[int(np.median(np.concatenate(counts)))] = _limit(np.concatenate(found))
    limits.pop(0, None)
    return np.array(sorted(limits.items()), dtype=float).reshape(-1, 2)


def _some_of(known: np.ndarray, order: np.ndarray, share: float) -> np.ndarray:
    """A share of what is known of each row, at least one, by the order given."""
    number = np.maximum(np.round(share * known.sum(axis=1)), 1)
    rank = np.argsort(np.argsort(np.where(known, order, np.inf), axis=1), axis=1)
    return known & (rank < number[:, None])


def _limit(ratios: np.ndarray) -> float:
    """The ratio below which at most `LEVEL` of further models like these are to be expected."""
    ratios = np.sort(ratios)
    place = LEVEL * (len(ratios) + 1)  # of so many models, counted from 1, one more is below
    limit = np.interp(place, np.arange(1, len(ratios) + 1), ratios)
    return float(min(limit, UNLIKELY))


def unusual(ratios: np.ndarray, n_answers: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """Whether answers are unlike those of the training models.

    Parameters
    ----------
    ratios : ndarray of shape (n_models,)
        See `appropriateness`.
    n_answers : ndarray of shape (n_models,), int
    limits : ndarray of shape (n_sizes, 2)
        See `appropriateness_limits`; between the numbers of answers linear.

    Returns
    -------
    ndarray of shape (n_models,), bool
    """
    sizes, bounds = limits.T
    limit = np.interp(n_answers, np.r_[0.0, sizes], np.r_[UNLIKELY, bounds])
    # Where the model errs it does so with every answer.
    return ratios < limit * np.maximum(n_answers / sizes[-1], 1.0)
