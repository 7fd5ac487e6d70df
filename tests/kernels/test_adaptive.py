"""Adaptive testing: gains and posteriors against brute force."""

import numpy as np
import pytest
from scipy.special import expit

from sklearn_irt.kernels import adaptive
from sklearn_irt.kernels.adaptive import Posterior, make_bank
from sklearn_irt.kernels.benchmark import Benchmark, Training, copy_noise, wide_precision
from sklearn_irt.kernels.estimates import Settings, Tuning, estimate
from sklearn_irt.kernels.logistic import ItemModel, map_abilities
from sklearn_irt.kernels.relatives import CLIP, DISTANCES

SHARE = 0.8


def make_benchmark(n_training=9, sizes=(14, 10), n_dims=2, anchors=None, fractional=False):
    rng = np.random.RandomState(3)
    scenario = np.repeat(np.arange(len(sizes)), sizes)
    m, n_abilities = len(scenario), n_dims * len(sizes)
    loadings = np.zeros((m, n_abilities))
    for s in range(len(sizes)):
        own = scenario == s
        loadings[own, s * n_dims : (s + 1) * n_dims] = rng.normal(1.0, 0.5, (sizes[s], n_dims))
    root = np.eye(n_abilities) + 0.3
    items = ItemModel(loadings, rng.normal(size=m), np.linalg.inv(root @ root.T))
    ability = rng.normal(size=(n_training, n_abilities)) @ root.T
    chance = expit(ability @ loadings.T - items.difficulty)
    responses = (rng.random_sample(chance.shape) < chance).astype(float)
    if fractional:
        responses = 0.6 * responses + 0.2
    weights = np.concatenate([np.full(size, 1.0 / size) for size in sizes])
    members = np.zeros((m, len(sizes)))
    members[np.arange(m), scenario] = weights
    anchors = np.arange(m) if anchors is None else anchors
    training = Training(
        ability,
        responses[:, anchors],
        responses @ members,
        copy_noise(responses, chance, weights, scenario),
    )
    return Benchmark(items, scenario, weights, anchors, training)


def components(benchmark, bank, targets):
    """Probability of every item and weight in the prior of every component, one by one."""
    items, training = benchmark.items, benchmark.training
    n_items = len(benchmark.weights)
    chance = expit(training.ability @ items.discrimination.T - items.difficulty)
    chance = chance.clip(CLIP, 1 - CLIP)
    known = chance.copy()
    known[:, benchmark.anchors] = training.responses
    rows, prior, scores = [], [], []
    for l in range(len(known)):  # noqa: E741
        for e in DISTANCES:
            rows.append((1 - e) * known[l] + e * chance[l])
            prior.append(SHARE / len(known) / len(DISTANCES))
            own = training.scores[l, targets].mean()
            expected = sum(
                benchmark.weights[i] * chance[l, i]
                for i in range(n_items)
                if benchmark.scenario[i] in targets
            ) / len(targets)
            scores.append((1 - e) * own + e * expected)
    for theta in bank.abilities:
        rows.append(expit(items.discrimination @ theta - items.difficulty).clip(CLIP, 1 - CLIP))
        prior.append((1 - SHARE) / len(bank.abilities))
        own = np.isin(benchmark.scenario, targets)
        scores.append(rows[-1][own] @ benchmark.weights[own] / len(targets))
    return np.array(rows), np.array(prior), np.array(scores)


def brute_gain(rows, weights, rest, item):
    """Expected decrease of the variance of the target by a right-or-wrong answer."""
    weights = weights / weights.sum()
    mean = weights @ rest
    before = weights @ (rest - mean) ** 2
    after = 0.0
    for answer in (0, 1):
        likelihood = weights * (rows[:, item] if answer else 1 - rows[:, item])
        chance = likelihood.sum()
        part = likelihood / chance
        after += chance * (part @ (rest - part @ rest) ** 2)
    return before - after


@pytest.mark.parametrize("scenario", [None, 1])
@pytest.mark.parametrize("anchors", [None, np.array([0, 3, 4, 11, 15, 20])])
def test_gain_is_the_expected_decrease_of_the_variance(scenario, anchors, monkeypatch):
    monkeypatch.setattr(adaptive, "LEFT_OUT", 0.0)
    benchmark = make_benchmark(anchors=anchors)
    targets = [0, 1] if scenario is None else [scenario]
    bank = make_bank(benchmark, SHARE, scenario)
    rows, weights, rest = components(benchmark, bank, targets)
    posterior = Posterior(bank)
    for item, answer in [(None, None), (16, 1.0), (2, 0.0), (20, 0.3)]:
        if item is not None:
            posterior.update(item, answer)
            weights = weights * rows[:, item] ** answer * (1 - rows[:, item]) ** (1 - answer)
            if benchmark.scenario[item] in targets:
                rest = rest - benchmark.weights[item] / len(targets) * rows[:, item]
        gain = posterior.gain()
        expected = [brute_gain(rows, weights, rest, i) for i in bank.positions]
        np.testing.assert_allclose(gain, expected, rtol=2e-3, atol=1e-8)


def test_gain_without_relatives_is_the_information_on_the_score():
    benchmark = make_benchmark()
    bank = make_bank(benchmark, 0.0)
    posterior = Posterior(bank)
    answers = {3: 1.0, 8: 0.0, 17: 1.0, 20: 0.25}
    for item, answer in answers.items():
        posterior.update(item, answer)
    asked = list(answers)
    items = benchmark.items
    fit = map_abilities(
        np.array([list(answers.values())]),
        items.discrimination[asked],
        items.difficulty[asked],
        prior_precision=items.prior_precision,
    )
    theta, S = fit.ability[0], fit.covariance[0]
    np.testing.assert_allclose(posterior.ability, theta, atol=1e-4)
    w = expit(items.discrimination @ theta - items.difficulty)
    w = w * (1 - w)
    weights = benchmark.weights / 2
    weights[asked] = 0.0
    g = (w * weights) @ items.discrimination
    a = items.discrimination
    expected = w * (a @ S @ g) ** 2 / (1 + w * np.einsum("id,de,ie->i", a, S, a))
    np.testing.assert_allclose(posterior.gain(), expected, rtol=1e-3)


@pytest.mark.parametrize("share", [0.0, SHARE])
@pytest.mark.parametrize("fractional", [False, True])
def test_running_posterior_is_that_of_the_estimate(share, fractional):
    benchmark = make_benchmark(fractional=fractional)
    tuning = Tuning(np.zeros(2), np.ones(2), 1.0, np.zeros((2, 2)), np.ones(2), share)
    rng = np.random.RandomState(0)
    for scenario in (None, 0):
        posterior = Posterior(make_bank(benchmark, share, scenario))
        order = rng.permutation(len(benchmark.weights))
        answers = rng.randint(0, 2, len(order)) * (0.6 if fractional else 1.0)
        for k, item in enumerate(order[:20], 1):
            posterior.update(item, answers[item])
            asked = np.sort(order[:k])
            found = estimate(
                benchmark,
                tuning,
                Settings("map", "paper", share),
                answers[None, asked],
                answers[None, asked],
                asked,
                np.zeros(k),
            )
            if scenario is None:
                score, std = found.overall_scores["pirt"][0], found.overall_stds["pirt"][0]
            else:
                score, std = found.scores["pirt"][0, 0], found.stds["pirt"][0, 0]
            assert posterior.mean == pytest.approx(score, abs=3e-3)
            assert posterior.std == pytest.approx(std, abs=3e-3)


def test_prior_of_the_ability_is_wide_with_relatives_only():
    benchmark = make_benchmark()
    precision = benchmark.items.prior_precision
    np.testing.assert_allclose(make_bank(benchmark, 0.0).precision, precision)
    np.testing.assert_allclose(make_bank(benchmark, SHARE).precision, wide_precision(benchmark))


@pytest.mark.parametrize("share", [0.0, SHARE])
def test_items_of_a_batch_are_conditioned_on_each_other(share, monkeypatch):
    monkeypatch.setattr(adaptive, "LEFT_OUT", 0.0)
    benchmark = make_benchmark()
    bank = make_bank(benchmark, share)
    posterior = Posterior(bank)
    posterior.update(5, 1.0)
    m = len(bank.positions)
    allowed = np.ones(m, dtype=bool)
    allowed[5] = False
    chosen = posterior.pick(4, allowed)
    # Best linear prediction of the target from the answers, with the whole covariance matrix.
    if share:
        rows, weights, rest = components(benchmark, bank, [0, 1])
        weights = weights * rows[:, 5]
        weights /= weights.sum()
        rest = rest - benchmark.weights[5] / 2 * rows[:, 5]
        mean = weights @ rows
        K = (rows - mean).T @ ((rows - mean) * weights[:, None])
        np.fill_diagonal(K, mean * (1 - mean))
        c = (weights * (rest - weights @ rest)) @ rows
    else:
        a = benchmark.items.discrimination
        p = expit(a @ posterior.ability - benchmark.items.difficulty)
        w = p * (1 - p)
        open_weights = np.where(np.arange(m) == 5, 0.0, benchmark.weights / 2)
        K = w[:, None] * w * (a @ posterior.covariance @ a.T)
        c = w * (a @ posterior.covariance @ ((w * open_weights) @ a))
        K[np.diag_indices(m)] += w
    for k in range(4):
        given = chosen[:k]
        gain = np.full(m, -1.0)
        for i in np.flatnonzero(allowed):
            if i not in given:
                both = [*given, i]
                gain[i] = c[both] @ np.linalg.solve(K[np.ix_(both, both)], c[both])
        assert gain[chosen[k]] >= gain.max() * (1 - 1e-3)
    assert posterior.pick(2, allowed, pending=chosen[:2]) == chosen[2:]


def test_near_duplicates_are_not_asked_together():
    benchmark = make_benchmark()
    benchmark.items.discrimination[1] = benchmark.items.discrimination[0]
    benchmark.items.difficulty[1] = benchmark.items.difficulty[0]
    benchmark.training.responses[:, 1] = benchmark.training.responses[:, 0]
    posterior = Posterior(make_bank(benchmark, SHARE))
    pair = np.zeros(24, dtype=bool)
    pair[[0, 1]] = True
    first = posterior.pick(1, pair)[0]
    others = pair.copy()
    others[np.argsort(-posterior.gain())[:6]] = True
    chosen = posterior.pick(2, others, pending=[first])
    assert {0, 1}.isdisjoint(chosen)


def test_large_benchmarks_are_looked_at_block_by_block(monkeypatch):
    benchmark = make_benchmark()
    whole = Posterior(make_bank(benchmark, SHARE))
    monkeypatch.setattr(adaptive, "MAX_CANDIDATES", 10)
    bank = make_bank(benchmark, SHARE)
    assert bank.width == 8 and len(bank.known) == 3
    posterior = Posterior(bank)
    order = np.argsort(bank.positions)
    allowed = np.ones(24, dtype=bool)
    for turn, (item, answer) in enumerate([(7, 1.0), (20, 0.0), (3, 1.0), (11, 1.0)]):
        np.testing.assert_allclose(posterior.mean, whole.mean, atol=1e-6)
        np.testing.assert_allclose(posterior.gain()[order][allowed], whole.gain()[allowed], 1e-3)
        (place,) = posterior.pick(1, np.ones(24, dtype=bool))
        assert place // 8 == turn % 3
        posterior.update(item, answer)
        whole.update(item, answer)
        allowed[item] = False
    everything = posterior.pick(30, np.ones(24, dtype=bool), pending=[2, 12])
    assert sorted([*everything, 2, 12]) == list(range(24))


def test_copies_are_independent():
    posterior = Posterior(make_bank(make_benchmark(), SHARE))
    posterior.update(1, 1.0)
    before = posterior.mean, posterior.std, posterior.gain()
    other = posterior.copy()
    for item in range(2, 20):
        other.update(item, 0.0)
    assert (posterior.mean, posterior.std) == before[:2]
    np.testing.assert_array_equal(posterior.gain(), before[2])


def test_costs_and_budget():
    posterior = Posterior(make_bank(make_benchmark(), SHARE))
    costs = np.linspace(1, 3, 24)
    gain = posterior.gain() / costs
    allowed = np.ones(24, dtype=bool)
    assert posterior.pick(1, allowed, costs) == [int(np.argmax(gain))]
    chosen = posterior.pick(24, allowed, costs, budget=7.5)
    assert costs[chosen].sum() <= 7.5
    assert costs[np.setdiff1d(np.arange(24), chosen)].min() > 7.5 - costs[chosen].sum()
