"""What is learned from training models that were left out: shares, biases, honest errors."""

from typing import NamedTuple

import numpy as np

from sklearn_irt.kernels.benchmark import (
    Benchmark,
    kin_evidence,
    likely_abilities,
    relatives_at,
    unexplained,
)
from sklearn_irt.kernels.estimates import (
    Ingredients,
    Settings,
    Tuning,
    concatenate,
    ingredients,
    mix,
)
from sklearn_irt.kernels.logistic import ItemModel
from sklearn_irt.kernels.mixing import robust_mixing
from sklearn_irt.kernels.pairing import alikeness, coverage_factor, learn_pairing
from sklearn_irt.kernels.relatives import learn_share

# By how much the odds of having a relative are lower for new models than among training models.
NEWER = 8.0
# Training models that are left out, at most.
MAX_HELD_OUT = 500
# Where all items are anchors: how many of how many a model that is left out is asked.
N_ASKED, MAX_COLUMNS = 100, 1000
BIAS_GRID = np.array([0.0025, 0.005, 0.01, 0.02, 0.03, 0.045, 0.07, 0.1, 0.15])
# Kinds of estimates that are calibrated: (estimate, mixing, with relatives).
KINDS = (
    ("naive", None, False),
    ("pirt", None, False),
    ("gpirt", "paper", False),
    ("gpirt", "robust", False),
    ("pirt", None, True),
    ("gpirt", "paper", True),
    ("gpirt", "robust", True),
)


class HeldOut(NamedTuple):
    """Training models that were left out of fits.

    Attributes
    ----------
    items : list of ItemModel
        The fit without each fold.
    fold : ndarray of shape (n_training,), int
    """

    items: list[ItemModel]
    fold: np.ndarray


def tune(
    benchmark: Benchmark,
    held_out: HeldOut,
    tuning: Tuning,
    modelled: np.ndarray,
    naive_weights: np.ndarray,
    observed: np.ndarray,
    ability: str,
    random_state: np.random.RandomState,
) -> tuple[Tuning, np.ndarray, np.ndarray]:
    """Learn the share of relatives, the usual bias, and by how much errors exceed their estimate.

    Every training model that is left out of a fit is estimated from its answers on the anchors,
    as a new model would be, and never its own relative.

    Parameters
    ----------
    benchmark : Benchmark
        Fitted to all training models.
    held_out : HeldOut
    tuning : Tuning
        With the paper's figures.
    modelled : ndarray of shape (n_training, n_anchors)
        Training responses as the IRT model sees them.
    naive_weights : ndarray of shape (n_anchors,)
    observed : ndarray of shape (n_training, n_scenarios)
        Share of each scenario's score that a training model's responses make known.
    ability : {"map", "mle"}
    random_state : RandomState

    Returns
    -------
    tuning : Tuning
    calibration : ndarray of shape (n_kinds, n_scenarios + 1)
        Factors of the standard errors of `KINDS` on each scenario and overall.
    pairing : ndarray of shape (n_kinds, n_scenarios + 1, 3)
        See `learn_pairing`.
    """
    training = benchmark.training
    n_models, n_scenarios = training.scores.shape
    asked, shown = asked_anchors(benchmark, n_models, random_state)
    rows = random_state.permutation(n_models)[:MAX_HELD_OUT]
    positions, weights = benchmark.anchors[asked], naive_weights[asked]
    relatives = relatives_at(benchmark, positions)
    parts = []  # (rows, benchmark without them)
    for fold, items in enumerate(held_out.items):
        own = np.sort(rows[held_out.fold[rows] == fold])
        if len(own):
            parts.append((own, benchmark._replace(items=items)))
    rows = np.concatenate([own for own, _ in parts])
    known = observed[rows] > 0.5

    def answers_of(responses: np.ndarray, own: np.ndarray) -> np.ndarray:
        return np.where(shown[own], responses[np.ix_(own, asked)], np.nan)

    def parts_of(share: float, among: bool = True) -> list[Ingredients]:
        """With relatives from all other models, or not from `among` those left out together."""
        return [
            block
            for own, part in parts
            for block in ingredients(
                part,
                tuning,
                ability,
                share,
                answers_of(training.responses, own),
                answers_of(modelled, own),
                positions,
                weights,
                corrected=True,
                exclude=own if among else np.isin(np.arange(n_models), own),
                relatives=relatives,
            )
        ]

    found, rest = [], []
    for own, part in parts:
        answers = answers_of(training.responses, own)
        likely = likely_abilities(part, answers_of(modelled, own), positions)
        found.append(kin_evidence(part, relatives, answers, positions, likely, exclude=own))
        rest.append(unexplained(part, answers, positions, likely))
    likelihood, none = (np.concatenate(values) for values in zip(*found, strict=True))
    share = learn_share(likelihood, none, relatives.prior)
    share /= share + NEWER * (1.0 - share)
    tuning = tuning._replace(share=share)
    del likelihood, found
    # Without and with relatives.
    found = [parts_of(0.0), parts_of(share)]
    usual = np.empty((2, n_scenarios))
    for related in (0, 1):
        base, left, residual, noise = (
            np.concatenate(values)
            for values in zip(
                *(
                    (p.base.score, 1.0 - p.found.asked_weight, p.residual, p.noise)
                    for p in found[related]
                ),
                strict=True,
            )
        )
        error = training.scores[rows] - base
        for s in range(n_scenarios):
            use = known[:, s]
            usual[related, s] = _usual_bias(
                error[use, s], left[use, s], residual[use, s], noise[use, s], n_models
            )
    tuning = tuning._replace(usual_bias=usual)
    calibration = np.ones((len(KINDS), n_scenarios + 1))
    pairing = np.zeros((len(KINDS), n_scenarios + 1, 3))
    pairing[:, :, 2] = 1.0
    chosen = tuning.gain != 1.0
    # Two new models are no relatives of each other's: neither may those be that are paired.
    strangers = [found[0], parts_of(share, among=False)]
    together = held_out.fold[rows]
    rest = np.concatenate(rest)
    alike = np.where(together[:, None] == together, alikeness(rest, rest), np.nan)
    truth = np.column_stack([training.scores[rows], training.scores[rows].mean(axis=1)])
    known = np.column_stack([known, known.all(axis=1)])
    for number, (kind, mixing, related) in enumerate(KINDS):
        settings = Settings(ability, mixing or "paper", share * related)
        error, std = _errors(tuning, settings, found[related], kind, truth)
        apart, apart_std = _errors(tuning, settings, strangers[related], kind, truth)
        for s in range(n_scenarios + 1):
            use = known[:, s] & np.isfinite(error[:, s]) & (std[:, s] > 1e-9)
            calibration[number, s] = coverage_factor(error[use, s], std[use, s], chosen)
            paired = calibration[number, s] * apart_std[use, s]
            pairing[number, s] = learn_pairing(
                apart[use, s], paired, alike[np.ix_(use, use)], chosen
            )
    return tuning, calibration, pairing


def _errors(
    tuning: Tuning, settings: Settings, blocks: list[Ingredients], kind: str, truth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Errors and standard errors on every scenario and overall, (n_models, n_scenarios + 1)."""
    part = concatenate([mix(tuning, settings, block) for block in blocks])
    error = truth - np.column_stack([part.scores[kind], part.overall_scores[kind]])
    return error, np.column_stack([part.stds[kind], part.overall_stds[kind]])


def asked_anchors(
    benchmark: Benchmark, n_models: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Columns of the anchors to ask, and (n_models, n_columns) which of them each model is asked.

    Where nearly all items are anchors little would be left to predict, so every model is asked
    some of its own.
    """
    columns, masks = [], []
    for s in range(benchmark.scenario.max() + 1):
        own = np.flatnonzero(benchmark.scenario[benchmark.anchors] == s)
        n_items = int((benchmark.scenario == s).sum())
        mask = np.ones((n_models, len(own)), dtype=bool)
        if len(own) > n_items // 2:
            own = np.sort(rng.permutation(own)[:MAX_COLUMNS])
            n_asked = min(N_ASKED, max(1, len(own) // 2))
            mask = np.argsort(rng.random_sample((n_models, len(own))), axis=1) < n_asked
        columns.append(own)
        masks.append(mask)
    columns = np.concatenate(columns)
    order = np.argsort(columns)
    return columns[order], np.concatenate(masks, axis=1)[:, order]


def _usual_bias(
    error: np.ndarray,
    left: np.ndarray,
    residual: np.ndarray,
    noise: np.ndarray,
    n_models: int,
) -> float:
    """The bias with which the corrected predictions err least, near what is usual.

    With few training models the usual bias is larger, and a priori so.
    """
    prior = 0.005 * (1.0 + 30.0 / n_models)
    some = np.isfinite(noise)
    error, left, residual, noise = error[some], left[some], residual[some], noise[some]
    penalty = 0.5 * np.log(BIAS_GRID / prior) ** 2
    if not len(error):
        return float(BIAS_GRID[int(np.argmin(penalty))])
    corrected = [
        error - left * robust_mixing(residual, noise, bias).share * residual for bias in BIAS_GRID
    ]
    loss = [0.5 * len(error) * np.log(np.mean(rest**2) + 1e-8) for rest in corrected]
    return float(BIAS_GRID[int(np.argmin(loss + penalty))])


def by_kind(table: np.ndarray, kind: str, mixing: str | float, *, related: bool) -> np.ndarray:
    """Row of a table by `KINDS`; a mixing by number lies between naive and p-IRT."""
    if kind == "naive":
        return table[KINDS.index(("naive", None, False))]
    if kind == "pirt":
        return table[KINDS.index(("pirt", None, related))]
    if isinstance(mixing, str):
        return table[KINDS.index(("gpirt", mixing, related))]
    naive, pirt = (by_kind(table, k, mixing, related=related) for k in ("naive", "pirt"))
    return mixing * naive + (1.0 - mixing) * pirt
