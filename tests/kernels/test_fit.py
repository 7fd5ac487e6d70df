"""Person fit: whether answers look like those of any model."""

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.special import expit

from sklearn_irt.kernels import fit as module
from sklearn_irt.kernels.benchmark import Benchmark, Training, relatives_at
from sklearn_irt.kernels.fit import appropriateness, appropriateness_limits, unusual
from sklearn_irt.kernels.logistic import ItemModel
from sklearn_irt.kernels.tuning import HeldOut

N_ITEMS = 100


def simulated(n_models, seed=0, n_scenarios=1):
    """A benchmark with known items, all of them anchors, and further models like its own."""
    rng = np.random.default_rng(0)
    loadings, difficulty = rng.uniform(0.8, 1.6, (N_ITEMS, 1)), rng.normal(0, 1.5, N_ITEMS)
    rng = np.random.default_rng(seed + 1)
    ability = rng.normal(size=(2 * n_models, 1))
    chance = expit(ability @ loadings.T - difficulty)
    responses = (rng.random(chance.shape) < chance) * 1.0
    scenario = np.arange(N_ITEMS) % n_scenarios
    scores = np.stack(
        [responses[:n_models, scenario == s].mean(axis=1) for s in range(n_scenarios)], axis=1
    )
    training = Training(
        ability[:n_models],
        responses[:n_models],
        scores,
        np.full((n_models, n_scenarios, 3), 1e-3),
    )
    items = ItemModel(loadings, difficulty, np.eye(1))
    weights = 1.0 / np.bincount(scenario)[scenario]
    benchmark = Benchmark(items, scenario, weights, np.arange(N_ITEMS), training)
    return benchmark, HeldOut([items, items], np.arange(n_models) % 2), responses[n_models:]


def ratios_of(benchmark, answers, share=0.3, positions=None, own=None):
    positions = np.arange(N_ITEMS) if positions is None else positions
    relatives = relatives_at(benchmark, positions)
    return appropriateness(benchmark, relatives, share, answers, answers, positions, own)


def limits_of(case, share=0.3, seed=0):
    benchmark, held_out, _ = case
    rng = np.random.RandomState(seed)
    return appropriateness_limits(benchmark, held_out, share, benchmark.training.responses, rng)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_ratio_by_brute_force(share):
    """Evidence by numerical integration over the one ability, and copies one by one."""
    benchmark, _, new = simulated(5)
    answers = new[:4].copy()
    answers[1, 30:] = np.nan
    items = benchmark.items
    grid = np.linspace(-16, 16, 8001)[:, None]
    density = np.exp(-0.5 * grid[:, 0] ** 2 / 4) / np.sqrt(2 * np.pi * 4)  # the wider prior
    chance = np.clip(expit(grid @ items.discrimination.T - items.difficulty), 1e-3, 1 - 1e-3)

    def likelihood(given, p):
        seen = ~np.isnan(given)
        return np.prod(np.where(given == 1, p, 1 - p)[..., seen], axis=-1)

    def evidence(given):
        none = trapezoid(likelihood(given, chance) * density, grid[:, 0])
        copies = []
        for ability, responses in zip(
            benchmark.training.ability, benchmark.training.responses, strict=True
        ):
            own = expit(ability @ items.discrimination.T - items.difficulty)
            for distance in (0.3, 0.6, 1.0):
                p = np.clip((1 - distance) * responses + distance * own, 1e-3, 1 - 1e-3)
                copies.append(likelihood(given, p))
        return (1 - share) * none + share * np.mean(copies)

    expected = []
    for given in answers:
        known = given[~np.isnan(given)]
        constant = likelihood(given, np.full(N_ITEMS, known.mean()))
        expected.append(np.log(evidence(given) / (0.5 * (evidence(1 - given) + constant))))
    # Laplace's approximation of the integral.
    np.testing.assert_allclose(ratios_of(benchmark, answers, share), expected, atol=0.15)


def test_no_answers_say_nothing():
    benchmark, _, _ = simulated(20)
    found = ratios_of(benchmark, np.full((2, N_ITEMS), np.nan), share=0.0)
    np.testing.assert_allclose(found, 0.0, atol=1e-6)
    assert not unusual(found, np.zeros(2, dtype=int), np.array([[50.0, -2.0]])).any()


def test_nobody_is_their_own_or_a_twins_relative():
    benchmark, _, _ = simulated(20)
    responses, scores = benchmark.training.responses.copy(), benchmark.training.scores.copy()
    responses[3], scores[3] = responses[7], scores[7]
    training = benchmark.training._replace(responses=responses, scores=scores)
    benchmark = benchmark._replace(training=training)
    own = np.array([3])
    answers = responses[own]
    assert ratios_of(benchmark, answers, own=own) < ratios_of(benchmark, answers) - 5
    others = np.delete(np.arange(20), [3, 7])
    part = training._replace(**{k: v[others] for k, v in training._asdict().items()})
    alone = benchmark._replace(training=part)
    # Twins share their prior weight: 18 of 19 groups are left.
    found, expected = ratios_of(benchmark, answers, own=own), ratios_of(alone, answers)
    np.testing.assert_allclose(found, expected, atol=0.1)


def test_blocks_do_not_matter(monkeypatch):
    benchmark, _, new = simulated(20)
    whole = ratios_of(benchmark, new)
    monkeypatch.setattr(module, "kin_blocks", lambda n, _: [slice(0, 3), slice(3, n)])
    np.testing.assert_allclose(ratios_of(benchmark, new), whole)


@pytest.mark.parametrize("n_scenarios", [1, 2])
def test_few_like_the_training_models_are_flagged_and_most_others(n_scenarios):
    alarms, power = [], {"reversed": [], "shuffled": []}
    for seed in range(4):
        case = simulated(80, seed, n_scenarios)
        benchmark, _, new = case
        limits = limits_of(case)
        rng = np.random.default_rng(seed)

        def flags(answers, benchmark=benchmark, limits=limits):
            n_answers = (~np.isnan(answers)).sum(axis=1)
            return unusual(ratios_of(benchmark, answers), n_answers, limits)

        alarms.append(flags(new))
        for share in (0.5, 0.2):
            some = np.where(rng.random(new.shape) < share, new, np.nan)
            alarms.append(flags(some))
        power["reversed"].append(flags(1 - new))
        power["shuffled"].append(flags(rng.permuted(new, axis=1)))
    assert np.mean(alarms) < 0.06
    assert np.mean(power["reversed"]) > 0.97
    assert np.mean(power["shuffled"]) > 0.9


def test_limits_are_reproducible_and_ascend_in_the_number_of_answers():
    limits = limits_of(simulated(60))
    np.testing.assert_array_equal(limits[:, 0], [6, 12, 25, 50])
    np.testing.assert_array_equal(limits_of(simulated(60)), limits)
    assert np.isfinite(limits).all()


def test_few_training_models_leave_a_limit_that_is_unlikely():
    limits = limits_of(simulated(6))
    assert (limits[:, 1] <= module.UNLIKELY).all()


def test_limit_is_a_quantile_that_counts_the_new_one():
    ratios = np.arange(1.0, 200.0) - 50
    assert module._limit(ratios) == pytest.approx(0.045 * 200 - 50)
    assert module._limit(ratios[:10]) == -49.0
    assert module._limit(ratios + 50) == module.UNLIKELY


def test_between_the_numbers_of_answers_and_beyond():
    limits = np.array([[10.0, -4.0], [20.0, -3.0]])
    n_answers = np.array([0, 5, 10, 15, 20, 40])
    bounds = np.array([-2.0, -3.0, -4.0, -3.5, -3.0, -6.0])
    assert unusual(bounds - 1e-9, n_answers, limits).all()
    assert not unusual(bounds, n_answers, limits).any()
