"""The mixture of p-IRT and relatives against loops over all of its components."""

import math

import numpy as np
import pytest
from scipy.special import expit

from sklearn_irt.kernels import estimates as module
from sklearn_irt.kernels import relatives as relatives_module
from sklearn_irt.kernels.benchmark import (
    Benchmark,
    Training,
    copy_noise,
    find_kin,
    relatives_at,
    unexplained,
    wide_precision,
)
from sklearn_irt.kernels.estimates import Settings, Tuning, estimate, ingredients
from sklearn_irt.kernels.logistic import ItemModel, map_abilities
from sklearn_irt.kernels.mixing import paper_mixing
from sklearn_irt.kernels.scores import scenario_scores

DISTANCES = (0.3, 0.6, 1.0)


class Case:
    """A small benchmark with unequal weights, training models, and new models' answers."""

    def __init__(self, seed=0, n_scenarios=2, n_models=8, n_training=6, n_dims=2, missing=0.3):
        rng = np.random.default_rng(seed)
        n_items = 30
        self.scenario = np.sort(rng.permutation(np.arange(n_items) % n_scenarios))
        weights = rng.choice([1.0, 3.0], size=n_items)  # as of subscenarios of two sizes
        self.weights = weights / np.bincount(self.scenario, weights)[self.scenario]
        loadings = rng.normal(0.5, 0.8, size=(n_items, n_dims))
        difficulty = rng.normal(size=n_items)
        ability = rng.normal(size=(n_training, n_dims))
        chance = expit(ability @ loadings.T - difficulty)
        self.responses = (rng.random(chance.shape) < chance).astype(float)
        self.items = ItemModel(loadings, difficulty, np.eye(n_dims) + 0.2)
        self.anchors = np.sort(rng.permutation(n_items)[:14])
        self.chance = chance
        members = np.zeros((n_items, n_scenarios))
        members[np.arange(n_items), self.scenario] = self.weights
        self.scores = self.responses @ members
        noise = copy_noise(self.responses, chance, self.weights, self.scenario)
        training = Training(ability, self.responses[:, self.anchors], self.scores, noise)
        self.benchmark = Benchmark(self.items, self.scenario, self.weights, self.anchors, training)
        self.tuning = Tuning(
            np.full(n_scenarios, 0.05),
            np.full(n_scenarios, 0.2),
            4.0,
            np.full((2, n_scenarios), 0.02),
            np.linspace(0.7, 1.0, n_scenarios),
            0.6,
        )
        parent = rng.integers(n_training, size=n_models)
        self.full = np.where(
            rng.random((n_models, n_items)) < 0.8,
            self.responses[parent],
            (rng.random((n_models, n_items)) < 0.5) * 1.0,
        )
        self.answers = self.full[:, self.anchors].copy()
        self.answers[rng.random(self.answers.shape) < missing] = np.nan
        counts = np.bincount(self.scenario[self.anchors], minlength=n_scenarios)
        self.naive_weights = 1.0 / counts[self.scenario[self.anchors]]

    def estimate(self, share=0.6, mixing="paper", answers=None, ability="map", **changes):
        answers = self.answers if answers is None else answers
        return estimate(
            changes.get("benchmark", self.benchmark),
            self.tuning,
            Settings(ability, mixing, share),
            answers,
            answers,
            changes.get("positions", self.anchors),
            changes.get("naive_weights", self.naive_weights),
        )


def clip(p):
    return min(max(p, 0.001), 0.999)


def log_likelihood(y, p):
    return y * math.log(p) + (1 - y) * math.log(1 - p)


def components(case, row, share, hidden=()):
    """Every component's weight, its probability of each anchor, score and variance by scenario.

    `hidden` are anchors whose answers must not count. None of the relatives comes last.
    """
    answers, anchors = case.answers[row].copy(), case.anchors
    answers[list(hidden)] = np.nan
    asked = [j for j in range(len(anchors)) if not np.isnan(answers[j])]
    n_scenarios = case.scores.shape[1]
    twin_count = [
        sum((case.responses[t] == other).all() for other in case.responses)
        for t in range(len(case.responses))
    ]
    n_groups = sum(1 / count for count in twin_count)
    log_weights, chances, scores, variances = [], [], [], []
    for t, responses in enumerate(case.responses):
        for distance in DISTANCES:
            q = [
                clip((1 - distance) * responses[i] + distance * clip(case.chance[t, i]))
                for i in range(30)
            ]
            prior = share / (n_groups * twin_count[t]) / 3
            log_weight = math.log(prior) if prior else -math.inf
            log_weights.append(
                log_weight + sum(log_likelihood(answers[j], q[anchors[j]]) for j in asked)
            )
            chances.append([q[i] for i in anchors])
            score, variance = [], []
            for s in range(n_scenarios):
                members = [i for i in range(30) if case.scenario[i] == s]
                known = {anchors[j]: answers[j] for j in asked if case.scenario[anchors[j]] == s}
                score.append(sum(case.weights[i] * known.get(i, responses[i]) for i in members))
                r = {
                    i: (1 - distance) * responses[i] + distance * case.chance[t, i] for i in members
                }
                noise = sum(case.weights[i] ** 2 * r[i] * (1 - r[i]) for i in members)
                squares = sum(case.weights[i] ** 2 for i in members)
                left = sum(case.weights[i] ** 2 for i in members if i not in known)
                variance.append(noise * left / squares)
            scores.append(score)
            variances.append(variance)
    # None: p-IRT with a prior four times wider (of one scenario), Laplace's evidence.
    a, b = case.items.discrimination, case.items.difficulty
    several = case.benchmark.scenario.max() > 0
    precision = case.items.prior_precision / (1 if several else 4)
    fit = map_abilities(answers[None], a[anchors], b[anchors], prior_precision=precision)
    theta = fit.ability[0]
    p = expit(a @ theta - b)
    information = precision + sum(
        p[anchors[j]] * (1 - p[anchors[j]]) * np.outer(a[anchors[j]], a[anchors[j]]) for j in asked
    )
    covariance = np.linalg.inv(information)
    evidence = sum(log_likelihood(answers[j], clip(p[anchors[j]])) for j in asked)
    evidence -= theta @ precision @ theta / 2
    evidence += 0.5 * math.log(np.linalg.det(precision) * np.linalg.det(covariance))
    log_weights.append(evidence + math.log(1 - share))
    chances.append(p[anchors])
    score, variance, gradients = [], [], []
    for s in range(n_scenarios):
        members = [i for i in range(30) if case.scenario[i] == s]
        known = {anchors[j]: answers[j] for j in asked if case.scenario[anchors[j]] == s}
        score.append(sum(case.weights[i] * known.get(i, p[i]) for i in members))
        rest = [i for i in members if i not in known]
        gradient = sum((case.weights[i] * p[i] * (1 - p[i]) * a[i] for i in rest), np.zeros(2))
        noise = sum(case.weights[i] ** 2 * p[i] * (1 - p[i]) for i in rest)
        gradients.append(gradient)
        variance.append(gradient @ covariance @ gradient + noise)
    mean_gradient = np.mean(gradients, axis=0)
    noises = [v - g @ covariance @ g for v, g in zip(variance, gradients, strict=True)]
    overall = mean_gradient @ covariance @ mean_gradient + sum(noises) / n_scenarios**2
    scores.append(score)
    variances.append(variance)
    weights = np.exp(np.array(log_weights) - max(log_weights))
    variances = np.array(variances)
    overall_variances = variances.sum(axis=1) / n_scenarios**2
    overall_variances[-1] = overall
    return (
        weights / weights.sum(),
        np.array(chances),
        np.array(scores),
        variances,
        overall_variances,
    )


@pytest.mark.parametrize("n_scenarios", [1, 2])
@pytest.mark.parametrize("share", [0.2, 0.9])
def test_prediction_is_the_mixture_of_all_components(n_scenarios, share):
    case = Case(seed=n_scenarios, n_scenarios=n_scenarios)
    case.answers[3] = np.nan
    found = case.estimate(share)
    for row in range(len(case.answers)):
        weights, _, scores, variances, overall_variances = components(case, row, share)
        mean = weights @ scores
        np.testing.assert_allclose(found.scores["pirt"][row], mean, rtol=1e-9)
        second = weights @ (scores**2 + variances)
        np.testing.assert_allclose(found.stds["pirt"][row], np.sqrt(second - mean**2), rtol=1e-7)
        overall = scores.mean(axis=1)
        assert found.overall_scores["pirt"][row] == pytest.approx(weights @ overall, rel=1e-9)
        second = weights @ (overall**2 + overall_variances)
        std = math.sqrt(second - (weights @ overall) ** 2)
        assert found.overall_stds["pirt"][row] == pytest.approx(std, rel=1e-7)


@pytest.mark.parametrize("share", [0.0, 0.6])
def test_residuals_are_of_predictions_from_the_other_folds(share):
    """Every anchor against the mixture of all components that the other folds support."""
    case = Case(seed=3)
    [parts] = ingredients(
        case.benchmark,
        case.tuning,
        "map",
        share,
        case.answers,
        case.answers,
        case.anchors,
        case.naive_weights,
        corrected=True,
    )
    in_scenario = case.scenario[case.anchors]
    fold = np.empty(14, dtype=int)
    for s in range(2):
        fold[in_scenario == s] = np.arange((in_scenario == s).sum()) % 5
    for row in range(len(case.answers)):
        expected = np.empty(14)
        for f in range(5):
            hidden = np.flatnonzero(fold == f)
            weights, chances, *_ = components(case, row, share, hidden)
            expected[hidden] = (weights @ chances)[hidden]
        for s in range(2):
            mine = [j for j in np.flatnonzero(in_scenario == s) if case.answers[row, j] >= 0]
            mass = sum(case.naive_weights[j] for j in mine)
            residual = sum(
                case.naive_weights[j] * (case.answers[row, j] - expected[j]) for j in mine
            )
            noise = sum(
                case.naive_weights[j] ** 2 * max(expected[j] * (1 - expected[j]), 1e-3)
                for j in mine
            )
            # Copies are clipped at 0.001 in the likelihood, not in what is expected of them.
            assert parts.residual[row, s] == pytest.approx(residual / mass, abs=2e-3)
            dispersed = case.tuning.dispersion[s] * noise / mass**2
            assert parts.noise[row, s] == pytest.approx(dispersed, rel=0.02)


@pytest.mark.parametrize("n_scenarios", [1, 2])
def test_without_relatives_it_is_the_papers_estimator(n_scenarios):
    case = Case(seed=5, n_scenarios=n_scenarios)
    found = case.estimate(0.0)
    a, b = case.items.discrimination, case.items.difficulty
    asked = a[case.anchors], b[case.anchors]
    fit = map_abilities(case.answers, *asked, prior_precision=case.items.prior_precision)
    known = scenario_scores(
        case.answers,
        case.anchors,
        case.naive_weights,
        fit.ability,
        a,
        b,
        case.weights,
        case.scenario,
    )
    mixing = paper_mixing(0.05, 0.2, known.n_weighted, 4.0)
    np.testing.assert_array_equal(found.scores["pirt"], known.pirt)
    np.testing.assert_array_equal(found.scores["naive"], known.naive)
    np.testing.assert_allclose(found.mixing, mixing, rtol=1e-12)
    expected = mixing * known.naive + (1 - mixing) * known.pirt
    np.testing.assert_allclose(found.scores["gpirt"], expected, rtol=1e-12)
    # No training model is needed for it.
    nobody = Training(np.empty((0, 2)), np.empty((0, 14)), np.empty((0, n_scenarios)), None)
    alone = case.estimate(0.6, benchmark=case.benchmark._replace(training=nobody))
    for kind in ("naive", "pirt", "gpirt"):
        np.testing.assert_array_equal(alone.scores[kind], found.scores[kind])
        np.testing.assert_array_equal(alone.stds[kind], found.stds[kind])


def test_naive_does_not_depend_on_relatives_or_mixing():
    case = Case(seed=6)
    expected = case.estimate(0.0)
    for share in (0.0, 0.5):
        for mixing in ("paper", "robust", 0.3):
            found = case.estimate(share, mixing)
            np.testing.assert_array_equal(found.scores["naive"], expected.scores["naive"])
            np.testing.assert_array_equal(found.stds["naive"], expected.stds["naive"])


@pytest.mark.parametrize("mixing", [0.0, 0.4, 1.0])
def test_a_number_with_relatives_is_the_share_of_the_residual(mixing):
    case = Case(seed=7)
    found = case.estimate(0.6, mixing)
    [parts] = ingredients(
        case.benchmark,
        case.tuning,
        "map",
        0.6,
        case.answers,
        case.answers,
        case.anchors,
        case.naive_weights,
        corrected=True,
    )
    for s in range(2):
        own = case.scenario[case.anchors] == s
        weights = case.weights[case.anchors[own]]
        seen = ~np.isnan(case.answers[:, own])
        left = 1 - seen @ weights
        known = np.nan_to_num(case.answers[:, own]) @ weights
        score = found.scores["pirt"][:, s] + left * mixing * parts.residual[:, s]
        score = np.clip(score, known, known + left)
        np.testing.assert_allclose(found.scores["gpirt"][:, s], score, rtol=1e-12)
        np.testing.assert_array_equal(found.mixing[:, s], mixing)


@pytest.mark.parametrize("mixing", ["paper", "robust", 0.5])
@pytest.mark.parametrize("share", [0.0, 0.6])
@pytest.mark.parametrize("ability", ["map", "mle"])
def test_blocks_of_rows_give_the_same_as_one_by_one(monkeypatch, mixing, share, ability):
    case = Case(seed=8, n_models=11)
    whole = case.estimate(share, mixing, ability=ability)
    rows = [case.estimate(share, mixing, case.answers[[row]], ability) for row in range(11)]
    kin = find_kin(case.benchmark, 0.6, case.answers, case.answers, case.anchors)
    monkeypatch.setattr(relatives_module, "BLOCK_ELEMENTS", 900)
    assert len(relatives_module.kin_blocks(11, 14 * 7)) > 3
    blocks = case.estimate(share, mixing, ability=ability)
    for found in (blocks, module.concatenate(rows)):
        np.testing.assert_array_equal(found.n_asked, whole.n_asked)
        np.testing.assert_array_equal(found.bounded, whole.bounded)
        np.testing.assert_allclose(found.mixing, whole.mixing, atol=1e-8)
        for field in ("scores", "stds", "overall_scores", "overall_stds"):
            for kind, values in getattr(whole, field).items():
                np.testing.assert_allclose(getattr(found, field)[kind], values, atol=1e-8)
    in_blocks = find_kin(case.benchmark, 0.6, case.answers, case.answers, case.anchors)
    for found, expected in zip(in_blocks, kin, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_kin_are_the_weights_of_the_components():
    case = Case(seed=9)
    weights, none = find_kin(case.benchmark, 0.7, case.answers, case.answers, case.anchors)
    for row in range(len(case.answers)):
        expected = components(case, row, 0.7)[0]
        np.testing.assert_allclose(weights[row], expected[:-1].reshape(6, 3).sum(axis=1), rtol=1e-8)
        assert none[row] == pytest.approx(expected[-1], rel=1e-8)


def larger(seed=0, n_training=30, n_items=400, n_anchors=120, shift=0.0):
    """A benchmark with one dimension and many anchors."""
    rng = np.random.default_rng(seed)
    loadings, difficulty = rng.uniform(0.5, 1.5, size=(n_items, 1)), rng.normal(size=n_items)
    ability = rng.normal(size=(n_training, 1)) + shift
    chance = expit(ability @ loadings.T - difficulty)
    responses = (rng.random(chance.shape) < chance).astype(float)
    scenario, weights = np.zeros(n_items, dtype=int), np.full(n_items, 1 / n_items)
    anchors = np.sort(rng.permutation(n_items)[:n_anchors])
    training = Training(
        ability,
        responses[:, anchors],
        responses.mean(axis=1, keepdims=True),
        copy_noise(responses, chance, weights, scenario),
    )
    items = ItemModel(loadings, difficulty, np.eye(1))
    benchmark = Benchmark(items, scenario, weights, anchors, training)
    tuning = Tuning(np.full(1, 0.02), np.full(1, 0.2), 1.0, np.full((2, 1), 0.01), np.ones(1), 0.7)
    return benchmark, tuning, responses, rng


def test_a_copy_of_a_training_model_has_its_score():
    benchmark, tuning, responses, _ = larger()
    answers = responses[:, benchmark.anchors]
    naive_weights = np.full(120, 1 / 120)
    found, alone = (
        estimate(
            benchmark,
            tuning,
            Settings("map", "robust", share),
            answers,
            answers,
            benchmark.anchors,
            naive_weights,
        )
        for share in (0.7, 0.0)
    )
    truth = responses.mean(axis=1)
    errors = [np.abs(e.scores["pirt"][:, 0] - truth) for e in (found, alone)]
    assert errors[0].max() < 1e-3 and errors[1].mean() > 0.005
    np.testing.assert_allclose(found.scores["gpirt"][:, 0], truth, atol=0.015)
    assert (found.stds["pirt"] < alone.stds["pirt"]).all()
    weights, none = find_kin(benchmark, 0.7, answers, answers, benchmark.anchors)
    np.testing.assert_array_equal(weights.argmax(axis=1), np.arange(30))
    assert weights.max(axis=1).min() > 0.999 and none.max() < 1e-3


@pytest.mark.parametrize("share", [0.0, 0.7])
def test_a_model_unlike_all_is_judged_by_its_own_answers(share):
    """All right, while the training models have few right: prior and relatives are wrong."""
    benchmark, tuning, responses, _ = larger(1, n_anchors=30, shift=-2.5)
    assert responses.mean(axis=1).max() < 0.4
    naive_weights, answers = np.full(30, 1 / 30), np.ones((1, 30))
    errors = {}
    for mixing in ("paper", "robust"):
        found = estimate(
            benchmark,
            tuning,
            Settings("map", mixing, share),
            answers,
            answers,
            benchmark.anchors,
            naive_weights,
        )
        errors[mixing] = 1.0 - found.scores["gpirt"][0, 0]
    assert errors["paper"] > 0.03
    assert errors["robust"] < 0.7 * errors["paper"]


@pytest.mark.parametrize("mixing", ["robust", 1.0])
@pytest.mark.parametrize("share", [0.0, 0.6])
def test_scores_are_possible(mixing, share):
    """Between all other answers wrong and all right, whatever the residual."""
    case = Case(seed=10, n_models=60, missing=0.5)
    case.answers[0], case.answers[1] = 1.0, 0.0
    found = case.estimate(share, mixing)
    for s in range(2):
        own = case.scenario[case.anchors] == s
        weights = case.weights[case.anchors[own]]
        seen = ~np.isnan(case.answers[:, own])
        known, left = np.nan_to_num(case.answers[:, own]) @ weights, 1 - seen @ weights
        score = found.scores["gpirt"][:, s]
        assert (score >= known - 1e-12).all() and (score <= known + left + 1e-12).all()
    assert (found.stds["gpirt"] > 0).all()


@pytest.mark.parametrize("mixing", ["paper", "robust", 1.0])
def test_all_answers_are_the_score_itself(mixing):
    """Also where the training models' responses are known on the anchors only."""
    case = Case(seed=11)
    every = np.arange(30)
    naive_weights = np.zeros(30)
    naive_weights[case.anchors] = case.naive_weights
    found = case.estimate(0.6, mixing, case.full, positions=every, naive_weights=naive_weights)
    for s in range(2):
        own = case.scenario == s
        truth = case.full[:, own] @ case.weights[own]
        for kind in ("pirt", "gpirt"):
            np.testing.assert_allclose(found.scores[kind][:, s], truth, atol=1e-12)
            np.testing.assert_allclose(found.stds[kind][:, s], 0.0, atol=1e-7)
    for kind in ("pirt", "gpirt"):
        np.testing.assert_allclose(found.overall_stds[kind], 0.0, atol=1e-7)


def test_a_twin_of_a_training_model_changes_nothing():
    case = Case(seed=12)
    training = case.benchmark.training
    twice = Training(*(np.concatenate([values, values[[2]]]) for values in training))
    for mixing in ("paper", "robust"):
        one = case.estimate(0.6, mixing)
        two = case.estimate(0.6, mixing, benchmark=case.benchmark._replace(training=twice))
        for kind in ("pirt", "gpirt"):
            np.testing.assert_allclose(two.scores[kind], one.scores[kind], atol=1e-12)
            np.testing.assert_allclose(two.stds[kind], one.stds[kind], atol=1e-12)


def test_the_order_of_the_training_models_changes_nothing():
    case = Case(seed=13)
    order = np.random.default_rng(0).permutation(6)
    shuffled = Training(*(values[order] for values in case.benchmark.training))
    one = case.estimate(0.6, "robust")
    two = case.estimate(0.6, "robust", benchmark=case.benchmark._replace(training=shuffled))
    for kind in ("pirt", "gpirt"):
        np.testing.assert_allclose(two.scores[kind], one.scores[kind], atol=1e-12)
        np.testing.assert_allclose(two.stds[kind], one.stds[kind], atol=1e-12)


def test_items_beyond_the_anchors_are_read_by_what_the_model_expects():
    case = Case(seed=14)
    positions = np.union1d(case.anchors, [0, 7, 29])
    found = relatives_at(case.benchmark, positions)
    for j, item in enumerate(positions):
        expected = (case.responses if item in case.anchors else case.chance)[:, item]
        np.testing.assert_allclose(found.responses[:, j], expected, rtol=1e-12)
    np.testing.assert_allclose(found.probabilities, case.chance[:, positions], rtol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_noise_of_copies_is_that_of_the_loops(missing):
    rng = np.random.default_rng(15)
    responses, chance = rng.random((4, 9)), rng.random((4, 9))
    responses[rng.random((4, 9)) < missing] = np.nan
    weights, scenario = rng.random(9), np.arange(9) % 2
    found = copy_noise(responses, chance, weights, scenario)
    for t in range(4):
        for s in range(2):
            for e, distance in enumerate(DISTANCES):
                expected = 0.0
                for i in np.flatnonzero(scenario == s):
                    known = chance[t, i] if np.isnan(responses[t, i]) else responses[t, i]
                    p = (1 - distance) * known + distance * chance[t, i]
                    expected += weights[i] ** 2 * p * (1 - p)
                assert found[t, s, e] == pytest.approx(expected, rel=1e-12)


def test_unexplained_is_the_answer_less_its_probability():
    case = Case(seed=16)
    a, b = case.items.discrimination[case.anchors], case.items.difficulty[case.anchors]
    precision = wide_precision(case.benchmark)
    likely = map_abilities(case.answers, a, b, prior_precision=precision)
    found = unexplained(case.benchmark, case.answers, case.anchors, likely)
    theta = likely.ability
    missing = np.isnan(case.answers)
    np.testing.assert_array_equal(found[missing], 0.0)
    expected = case.answers - expit(theta @ a.T - b)
    np.testing.assert_allclose(found[~missing], expected[~missing], atol=1e-9)


def test_only_the_prior_of_one_scenario_is_widened():
    one, two = (Case(n_scenarios=n).benchmark for n in (1, 2))
    np.testing.assert_allclose(wide_precision(one), one.items.prior_precision / 4.0)
    np.testing.assert_array_equal(wide_precision(two), two.items.prior_precision)
