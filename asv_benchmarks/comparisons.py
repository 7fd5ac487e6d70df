"""Comparisons with peers in the same process: seconds, and held-out log-likelihoods of the fits.

Ours and the peer's run alternate, on the same data. Of every fit a tenth of the cells, drawn at
random, is held out of both; the log-likelihood of these, a response, is at point estimates.
"""

import os
import time
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from asv_benchmarks._data import hold_out, log_likelihood, real, simulated, sized
from asv_benchmarks.peers import (
    Fit,
    catsim_session,
    fit_girth,
    fit_mirt_em,
    fit_mirt_variational,
    fit_py_irt,
    published_evaluate,
    py_irt_train,
    py_irt_trainer,
    require,
)
from asv_benchmarks.registry import N_ITEMS, released_mmlu
from benchmarks_registry._release import convert
from sklearn_irt import AdaptiveSession, GPIRTEstimator, IRTRegressor

# py-irt's default, which the paper uses, and how many are timed where all would take too long.
EPOCHS, TIMED_EPOCHS = sized(2000, 5), sized(30, 3)
# Python mirt's variational fit has not converged by then, but the likelihood moves little.
VARIATIONAL_ROUNDS = sized(50, 3)
N_ANSWERS = sized(100, 5)


class Comparison(NamedTuple):
    """Seconds of each repeat, and held-out log-likelihoods a response (None: no fit)."""

    size: str
    ours: list[float]
    peer: list[float]
    likelihood_ours: float | None = None
    likelihood_peer: float | None = None

    @property
    def ratios(self) -> np.ndarray:
        """How many times longer the peer took, in each pair of repeats."""
        return np.array(self.peer) / np.array(self.ours)

    @property
    def ratio(self) -> float:
        return float(np.median(self.ratios))

    @property
    def likelihood_gain(self) -> float:
        if self.likelihood_ours is None or self.likelihood_peer is None:
            return np.nan
        return self.likelihood_ours - self.likelihood_peer


def seconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def alternate(
    ours: Callable[[], float], peer: Callable[[], float], repeats: int
) -> tuple[list[float], list[float]]:
    """Seconds of both, in turn; ours once before, as imports and caches cost the first call."""
    ours()
    pairs = [(ours(), peer()) for _ in range(repeats)]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def _size(responses: np.ndarray, n_dims: int) -> str:
    return f"{responses.shape[0]} x {responses.shape[1]:,}, d={n_dims}"


def fit_ours(responses: np.ndarray, n_dims: int) -> Fit:
    """IRTRegressor with its defaults."""
    irt = IRTRegressor(n_dims)
    taken = seconds(lambda: irt.fit(responses))
    return Fit(taken, (irt.ability_ @ irt.discrimination_.T - irt.difficulty_,))


def _compare_fits(
    responses: np.ndarray, n_dims: int, fit_peer: Callable[[np.ndarray], Fit], repeats: int
) -> Comparison:
    known, held = hold_out(responses)
    likelihoods = {}

    def run(name: str, fit: Callable[[np.ndarray], Fit]) -> float:
        found = fit(known)
        likelihoods[name] = max(log_likelihood(responses, z, held) for z in found.logits)
        return found.seconds

    times = alternate(
        lambda: run("ours", partial(fit_ours, n_dims=n_dims)),
        lambda: run("peer", fit_peer),
        repeats,
    )
    return Comparison(_size(responses, n_dims), *times, likelihoods["ours"], likelihoods["peer"])


def py_irt_all_epochs(repeats: int = 3) -> Comparison:
    """All epochs, on a real matrix."""
    require("py_irt", "py-irt")
    fit = partial(fit_py_irt, n_dims=10, epochs=EPOCHS)
    found = _compare_fits(real("commonsense", sized(63, 12)), 10, fit, repeats)
    return found._replace(size=f"real {found.size}")


def py_irt_large(repeats: int = 1) -> Comparison:
    """All epochs on a larger matrix: half an hour, so no row of the table."""
    require("py_irt", "py-irt")
    responses, n_dims = simulated(*sized((400, 4000, 10), (20, 30, 2))), 10
    return _compare_fits(responses, n_dims, partial(fit_py_irt, n_dims=10, epochs=EPOCHS), repeats)


def py_irt_scaled(repeats: int = 3) -> Comparison:
    """Some epochs are timed, less a run of one, and scaled to all; no likelihood without a fit."""
    require("py_irt", "py-irt")
    responses, n_dims = simulated(*sized((400, 4000, 10), (20, 30, 2))), 10
    known, _ = hold_out(responses)
    trainer = py_irt_trainer(known, n_dims)

    def peer() -> float:
        once = py_irt_train(trainer, 1)
        return (py_irt_train(trainer, 1 + TIMED_EPOCHS) - once) / TIMED_EPOCHS * EPOCHS

    times = alternate(lambda: fit_ours(known, n_dims).seconds, peer, repeats)
    return Comparison(_size(responses, n_dims), *times)


def girth(repeats: int = 1) -> Comparison:
    """Few items: beyond about a thousand its product of probabilities underflows."""
    require("girth", "girth")
    return _compare_fits(simulated(*sized((300, 200, 1), (60, 10, 1))), 1, fit_girth, repeats)


def mirt_em(repeats: int = 3) -> Comparison:
    """One dimension, by quadrature."""
    require("mirt", "mirt")
    return _compare_fits(simulated(*sized((300, 1319, 1), (60, 10, 1))), 1, fit_mirt_em, repeats)


def mirt_variational(n_dims: int, repeats: int = 3) -> Comparison:
    """Several dimensions, the rounds limited."""
    require("mirt", "mirt")
    n_items = {5: 1319, 3: 200}[n_dims]
    responses = simulated(*sized((300, n_items), (30, 10)), n_dims)
    fit = partial(fit_mirt_variational, n_dims=n_dims, max_iter=VARIATIONAL_ROUNDS)
    return _compare_fits(responses, n_dims, fit, repeats)


def published_estimate(repeats: int = 7) -> Comparison:
    """One model's score from 100 answers on a benchmark of MMLU's size."""
    release = released_mmlu()
    tiny = convert(release, "tinyMMLU")
    answers = np.random.default_rng(1).integers(0, 2, len(tiny.anchors())).astype(float)
    times = alternate(
        lambda: seconds(lambda: tiny.estimate(answers)),
        lambda: seconds(lambda: published_evaluate(answers, release["mmlu"])),
        repeats,
    )
    return Comparison(f"{len(answers)} answers, {N_ITEMS:,} items", *times)


@lru_cache(maxsize=2)
def adaptive_estimator(relatives: bool) -> tuple[GPIRTEstimator, np.ndarray]:
    """A fit that a session starts from, and the answers of a new model."""
    responses = simulated(sized(101, 31), N_ITEMS, 5 if relatives else 1)
    n_dims, related = (5, "auto") if relatives else (1, False)
    estimator = GPIRTEstimator(n_dims=n_dims, relatives=related, random_state=0)
    return estimator.fit(responses[1:]), responses[0]


def ask_and_tell(session: AdaptiveSession, answers: np.ndarray, n_answers: int) -> None:
    for _ in range(n_answers):
        (item,) = session.ask()
        session.tell(item, answers[item])


def catsim_adaptive(relatives: bool, repeats: int = 5) -> Comparison:
    """The steps of one session; catsim has the one-dimensional fit in either case."""
    require("catsim", "catsim")
    plain = adaptive_estimator(False)[0].irt_
    slope = np.maximum(plain.discrimination_[:, 0], 0.05)  # catsim takes positive ones
    estimator, answers = adaptive_estimator(relatives)

    def ours() -> float:
        session = AdaptiveSession(estimator)
        return seconds(lambda: ask_and_tell(session, answers, N_ANSWERS))

    times = alternate(
        ours,
        lambda: catsim_session(slope, plain.difficulty_ / slope, answers, N_ANSWERS),
        repeats,
    )
    return Comparison(f"{N_ANSWERS} answers, {N_ITEMS:,} items", *times)


# What is compared: names for the table, in its order.
COMPARISONS: dict[str, Callable[..., Comparison]] = {
    "fit / py-irt, 2,000 epochs": py_irt_all_epochs,
    "fit / py-irt, 2,000 epochs (scaled from 30)": py_irt_scaled,
    "fit / girth, twopl_mml": girth,
    "fit / mirt, EM": mirt_em,
    "fit / mirt, variational d=3": partial(mirt_variational, 3),
    "fit / mirt, variational d=5": partial(mirt_variational, 5),
    "estimate / published function": published_estimate,
    "adaptive, ability only / catsim": partial(catsim_adaptive, False),
    "adaptive, with relatives / catsim": partial(catsim_adaptive, True),
}
# Of these, what takes most of the time.
SLOW = (
    "fit / py-irt, 2,000 epochs",
    "fit / py-irt, 2,000 epochs (scaled from 30)",
    "fit / girth, twopl_mml",
    "fit / mirt, variational d=3",
    "fit / mirt, variational d=5",
)


# What the peers' own pools of threads read when they start.
POOLS = ("RAYON_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def measure(name: str) -> Comparison | str:
    """The comparison of this name, or why it cannot be made here; one thread for everybody."""
    for pool in POOLS:
        os.environ.setdefault(pool, "1")
    try:
        with threadpool_limits(1):
            return COMPARISONS[name]()
    except NotImplementedError as reason:
        return str(reason)
