"""Designed anchors: gains against the posterior recomputed from scratch, order, and budgets."""

import itertools

import numpy as np
import pytest
from scipy.special import expit

from sklearn_irt.kernels import design
from sklearn_irt.kernels.design import (
    greedy,
    information_order,
    simulated_order,
    unknown_after,
)
from sklearn_irt.kernels.relatives import DISTANCES, make_relatives, twins


def make_items(seed, n_items=12, n_dims=2):
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 1.5, size=n_items)
    return rng.normal(size=(n_items, n_dims)), rng.normal(size=n_items), weights / weights.sum()


@pytest.mark.parametrize("blurred", [False, True])
@pytest.mark.parametrize("n_dims", [1, 3])
def test_information_gains_are_those_of_the_posterior_variance(blurred, n_dims):
    """After every answer the covariance is inverted anew, with each item and without."""
    loadings, difficulty, weights = make_items(0, n_dims=n_dims)
    rng = np.random.default_rng(1)
    chance = expit(rng.normal(size=(5, n_dims)) @ loadings.T - difficulty)
    spread = chance * (1 - chance)
    logit_variance = rng.random((5, 12)) if blurred else None
    information = spread / (1 + spread * logit_variance) if blurred else spread

    def variance(model, asked):
        precision = np.eye(n_dims) + sum(
            (information[model, i] * np.outer(loadings[i], loadings[i]) for i in asked),
            np.zeros((n_dims, n_dims)),
        )
        gradient = (spread[model] * weights) @ loadings
        return gradient @ np.linalg.inv(precision) @ gradient

    gains = information_order(spread, loadings, weights, logit_variance)
    found, asked = next(gains), []
    for item in (3, 0, 7, 11, 2):
        for other in set(range(12)) - set(asked):
            expected = np.mean(
                [variance(m, asked) - variance(m, [*asked, other]) for m in range(5)]
            )
            assert found[other] == pytest.approx(expected, rel=2e-3, abs=1e-7)
        found = gains.send(item)
        asked.append(item)


def test_an_item_that_is_badly_known_says_less():
    loadings, difficulty, weights = make_items(2)
    spread = np.full((4, 12), 0.2)
    sharp = next(information_order(spread, loadings, weights))
    blurred = np.zeros((4, 12))
    blurred[:, 5] = 10.0
    found = next(information_order(spread, loadings, weights, blurred))
    assert found[5] < 0.5 * sharp[5]
    others = np.arange(12) != 5
    np.testing.assert_allclose(found[others], sharp[others], rtol=1e-5)


def test_informative_items_leave_less_unknown():
    loadings, difficulty, weights = make_items(3, n_items=60)
    chance = expit(np.random.default_rng(3).normal(size=(40, 2)) @ loadings.T - difficulty)
    spread = chance * (1 - chance)
    chosen = greedy(information_order(spread, loadings, weights), 8, np.ones(60, dtype=bool))
    rng = np.random.default_rng(4)

    def unknown_ability(asked):
        """Posterior variance of the score, the noise of what is not asked aside."""
        total = 0.0
        for model in spread:
            information = np.eye(2) + (loadings[asked].T * model[asked]) @ loadings[asked]
            gradient = (model * weights) @ loadings
            total += gradient @ np.linalg.inv(information) @ gradient
        return total

    drawn = [rng.permutation(60)[:8] for _ in range(50)]
    assert unknown_ability(chosen) < 0.7 * min(map(unknown_ability, drawn))
    errors = [unknown_after(asked, spread, loadings, weights) for asked in drawn]
    assert unknown_after(np.array(chosen), spread, loadings, weights) < np.mean(errors)


class Simulation:
    """A tiny benchmark for the simulated design."""

    def __init__(self, seed=0, n_training=3, n_items=6, fractional=False):
        rng = np.random.default_rng(seed)
        self.loadings, self.difficulty, self.weights = make_items(seed, n_items, 1)
        ability = rng.normal(size=(n_training, 1))
        chance = expit(ability @ self.loadings.T - self.difficulty)
        responses = rng.random(chance.shape)
        if not fractional:
            responses = (responses < chance).astype(float)
        scores = responses @ self.weights[:, None]
        self.relatives = make_relatives(responses, chance, twins(responses, scores))
        self.covariance = np.tile(0.05 * np.eye(2), (n_items, 1, 1))
        self.n_items = n_items

    def gains(self, seed=0, candidates=None):
        candidates = np.ones(self.n_items, dtype=bool) if candidates is None else candidates
        return simulated_order(
            self.relatives,
            self.loadings,
            self.difficulty,
            self.covariance,
            self.weights,
            np.random.RandomState(seed),
            candidates,
        )

    def components(self, abilities):
        """Prior and probabilities of all copies and of the abilities."""
        chances, prior = [], []
        relatives = self.relatives
        for t, weight in enumerate(relatives.prior):
            for distance in DISTANCES:
                q = (1 - distance) * relatives.responses[t] + distance * relatives.probabilities[t]
                chances.append(np.clip(q, 0.001, 0.999))
                prior.append(design.SHARE * weight / 3)
        for theta in abilities:
            chances.append(np.clip(expit(self.loadings @ theta - self.difficulty), 0.001, 0.999))
            prior.append((1 - design.SHARE) / len(abilities))
        return np.array(prior), np.array(chances)


def expected_decrease(posterior, chances, scores, item):
    """Of the variance of the score by the answer to an item, over its two values."""

    def variance(weights):
        weights = weights / weights.sum()
        return weights @ scores**2 - (weights @ scores) ** 2

    right, wrong = posterior * chances[:, item], posterior * (1 - chances[:, item])
    after = right.sum() * variance(right) + wrong.sum() * variance(wrong)
    return variance(posterior) - after


def test_simulated_gains_are_those_of_loops_over_all_components(monkeypatch):
    """Three simulated models: after each item, of all answers they may have given, one fits."""
    monkeypatch.setattr(design, "N_SIMULATED", 3)
    monkeypatch.setattr(design, "N_ABILITIES", 2)
    case = Simulation()
    abilities = np.random.RandomState(0).normal(size=(2, 1))
    prior, chances = case.components(abilities)
    scores = chances @ case.weights
    gains = case.gains()
    found = next(gains)
    histories = [[prior] * 3]
    asked = []
    for item in (4, 1, 3, 0):
        fitting = []
        for posteriors in histories:
            expected = [
                np.mean([expected_decrease(p, chances, scores, i) for p in posteriors])
                for i in range(6)
            ]
            rest = np.setdiff1d(np.arange(6), asked)
            if np.allclose(found[rest], np.array(expected)[rest], rtol=1e-3, atol=1e-7):
                fitting.append(posteriors)
        assert fitting, f"no answers to {asked} explain the gains"
        assert (found[asked] == -np.inf).all()
        histories = []
        for posteriors in fitting[:6]:
            for given in itertools.product((0, 1), repeat=3):
                after = [
                    p * (chances[:, item] if y else 1 - chances[:, item])
                    for p, y in zip(posteriors, given, strict=True)
                ]
                histories.append([p / p.sum() for p in after])
        found = gains.send(item)
        asked.append(item)


def test_simulated_answers_are_as_frequent_as_the_prior_says(monkeypatch):
    """With one training model and one item the gain after asking tells how many were right."""
    case = Simulation(1, n_training=1, n_items=2)
    monkeypatch.setattr(design, "N_ABILITIES", 400)
    monkeypatch.setattr(design, "N_SIMULATED", 4000)
    abilities = np.random.RandomState(3).normal(size=(400, 1))
    prior, chances = case.components(abilities)
    scores = chances @ case.weights
    gains = case.gains(3)
    next(gains)
    found = gains.send(0)[1]
    after = [
        expected_decrease(posterior / posterior.sum(), chances, scores, 1)
        for posterior in (prior * chances[:, 0], prior * (1 - chances[:, 0]))
    ]
    share = (found - after[1]) / (after[0] - after[1])
    assert share == pytest.approx(prior @ chances[:, 0], abs=0.04)


@pytest.mark.parametrize("fractional", [False, True])
def test_simulated_design_is_seeded_and_nests(fractional, monkeypatch):
    monkeypatch.setattr(design, "N_SIMULATED", 100)  # so few that the seed matters
    case = Simulation(2, n_training=8, n_items=40, fractional=fractional)
    every = np.ones(40, dtype=bool)
    five, ten = (greedy(case.gains(7), k, every) for k in (5, 10))
    assert ten[:5] == five and len(set(ten)) == 10
    assert greedy(case.gains(7), 10, every) == ten
    assert any(greedy(case.gains(seed), 10, every) != ten for seed in range(4))


@pytest.mark.parametrize("fractional", [False, True])
def test_designed_items_tell_more_than_drawn_ones(fractional):
    """The share of the score's variance that the training models' answers leave."""
    rng = np.random.default_rng(5)
    ability = rng.normal(size=(200, 1))
    loadings = np.where(np.arange(60) < 15, 2.0, 0.1)[:, None]  # only some items tell anything
    difficulty = rng.normal(scale=0.5, size=60)
    chance = expit(ability @ loadings.T - difficulty)
    noise = rng.random(chance.shape)
    responses = (
        np.clip(chance + 0.2 * (noise - 0.5), 0, 1) if fractional else 1.0 * (noise < chance)
    )
    weights = np.full(60, 1 / 60)
    relatives = make_relatives(responses, chance, twins(responses, responses @ weights[:, None]))
    covariance = np.tile(0.01 * np.eye(2), (60, 1, 1))
    gains = simulated_order(
        relatives,
        loadings,
        difficulty,
        covariance,
        weights,
        np.random.RandomState(0),
        np.ones(60, dtype=bool),
    )
    chosen = greedy(gains, 8, np.ones(60, dtype=bool))
    assert np.mean(np.array(chosen) < 15) > 0.7


def test_only_candidates_are_looked_at():
    case = Simulation(3, n_training=4, n_items=20)
    candidates = np.arange(20) % 3 > 0
    gains = case.gains(candidates=candidates)
    found = next(gains)
    for item in (1, 4, 19):
        np.testing.assert_array_equal(np.isfinite(found), candidates)
        found = gains.send(item)
        candidates[item] = False


def test_many_items_are_looked_at_in_part(monkeypatch):
    monkeypatch.setattr(design, "MAX_CANDIDATES", 7)
    case = Simulation(4, n_training=4, n_items=20)
    every = np.ones(20, dtype=bool)
    assert np.isfinite(next(case.gains())).sum() == 7
    assert sorted(greedy(case.gains(), 20, every)) == list(range(20))


def test_many_training_models_are_thinned(monkeypatch):
    monkeypatch.setattr(design, "MAX_TRAINING", 5)
    case = Simulation(5, n_training=30, n_items=20)
    chosen = greedy(case.gains(), 6, np.ones(20, dtype=bool))
    assert len(set(chosen)) == 6


@pytest.mark.filterwarnings("error")
def test_gains_stay_finite_to_the_last_item():
    for seed, fractional in itertools.product(range(3), (False, True)):
        case = Simulation(seed, n_training=5, n_items=30, fractional=fractional)
        gains = case.gains(seed)
        found = next(gains)
        for item in range(29):
            assert (found[item:] > -1e-6).all() and np.isfinite(found[item:]).all()
            found = gains.send(item)


def constant(gain):
    """Gains that do not depend on what was asked."""
    while True:
        yield gain


def test_greedy_takes_the_largest_gain_of_those_allowed():
    gain = np.array([1.0, 5.0, 3.0, 4.0, 2.0])
    allowed = np.array([True, True, True, False, True])
    assert greedy(constant(gain), 3, allowed) == [1, 2, 4]
    assert allowed.tolist() == [True, True, True, False, True]  # the caller's own
    assert greedy(constant(gain), 9, allowed) == [1, 2, 4, 0]
    seen = []
    greedy(constant(gain), 3, allowed, callback=seen.append)
    assert seen == [1, 2, 3]


def test_greedy_sends_back_what_it_asks():
    sent = []

    def gains():
        while True:
            sent.append((yield np.array([3.0, 2.0, 1.0])))

    assert greedy(gains(), 3, np.ones(3, dtype=bool)) == [0, 1, 2]
    assert sent == [0, 1]  # after the last nothing is computed


@pytest.mark.parametrize("budget", [0.5, 1.0, 3.7, 10.0, np.inf])
def test_greedy_with_costs_never_exceeds_the_budget(budget):
    rng = np.random.default_rng(6)
    for _ in range(50):
        gain, costs = rng.random(15), rng.uniform(0.2, 3.0, size=15)
        chosen = greedy(constant(gain), 15, np.ones(15, dtype=bool), costs, budget)
        assert costs[chosen].sum() <= budget + 1e-9
        assert len(set(chosen)) == len(chosen)
        worth = gain / costs
        left = budget
        for step, item in enumerate(chosen):
            payable = [i for i in range(15) if i not in chosen[:step] and costs[i] <= left]
            assert item == max(payable, key=lambda i: worth[i])
            left -= costs[item]
        assert not any(costs[i] <= left - 1e-9 for i in set(range(15)) - set(chosen))
