"""Estimates of scenario scores against explicit loops over models, scenarios and items."""

import math

import numpy as np
import pytest

from sklearn_irt.kernels import logistic
from sklearn_irt.kernels.anchors import item_weights, random_anchors
from sklearn_irt.kernels.scores import scenario_scores


def make_problem(seed, n_models=7, n_items=40, n_dims=2, n_scenarios=3, k=18, missing=0.3):
    """Scenarios interleaved over the items, positions in no order, unequal weights."""
    rng = np.random.default_rng(seed)
    scenario = rng.permutation(np.arange(n_items) % n_scenarios)
    weights = rng.uniform(0.2, 1.0, size=n_items)
    for s in range(n_scenarios):
        weights[scenario == s] /= weights[scenario == s].sum()
    positions = rng.permutation(n_items)[:k]
    naive_weights = rng.uniform(0.1, 1.0, size=k)
    responses = rng.random((n_models, k))
    responses[rng.random((n_models, k)) < missing] = np.nan
    return {
        "responses": responses,
        "positions": positions,
        "naive_weights": naive_weights,
        "ability": rng.normal(size=(n_models, n_dims)),
        "discrimination": rng.normal(size=(n_items, n_dims)),
        "difficulty": rng.normal(size=n_items),
        "weights": weights,
        "scenario": scenario,
    }


def chance(case, row, item):
    logit = float(case["ability"][row] @ case["discrimination"][item]) - case["difficulty"][item]
    return 1.0 / (1.0 + math.exp(-logit))


def loop_scores(case, row, s):
    """All fields for one model and one scenario, by the definitions of section 4."""
    weights = case["weights"]
    known = {
        int(item): float(y)
        for item, y in zip(case["positions"], case["responses"][row], strict=True)
        if case["scenario"][item] == s and not math.isnan(y)
    }
    anchor = dict(zip(case["positions"].tolist(), case["naive_weights"].tolist(), strict=True))
    mass = sum(anchor[i] for i in known)
    naive = sum(anchor[i] * y for i, y in known.items()) / mass if known else math.nan
    naive_weight = sum((anchor[i] / mass) ** 2 for i in known) if known else 0.0
    known_score = sum(weights[i] * y for i, y in known.items())
    pirt = known_score
    gradient, noise = np.zeros(case["ability"].shape[1]), 0.0
    for i in np.flatnonzero(case["scenario"] == s):
        if int(i) not in known:
            p = chance(case, row, i)
            pirt += weights[i] * p
            gradient += weights[i] * p * (1 - p) * case["discrimination"][i]
            noise += weights[i] ** 2 * p * (1 - p)
    asked_weight = sum(weights[i] for i in known)
    weighted = sum(anchor[i] > 0 for i in known)
    in_mean = sum(weights[i] for i in known if anchor[i] > 0)
    return (
        len(known),
        weighted,
        naive,
        naive_weight,
        pirt,
        known_score,
        asked_weight,
        gradient,
        noise,
        in_mean,
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_scenarios, n_dims", [(1, 1), (3, 2), (5, 4)])
def test_every_field_equals_the_loops(seed, n_scenarios, n_dims):
    case = make_problem(seed, n_scenarios=n_scenarios, n_dims=n_dims)
    case["responses"][2] = np.nan
    computed = scenario_scores(**case)
    assert computed.n_asked.dtype.kind == "i"
    assert computed.gradient.shape == (7, n_scenarios, n_dims)
    for row in range(7):
        for s in range(n_scenarios):
            for field, expected in zip(computed, loop_scores(case, row, s), strict=True):
                np.testing.assert_allclose(field[row, s], expected, rtol=1e-11, atol=1e-14)


def test_nothing_depends_on_the_block_size(monkeypatch):
    case = make_problem(5, n_models=23)
    whole = scenario_scores(**case)
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 30)
    for field, expected in zip(scenario_scores(**case), whole, strict=True):
        np.testing.assert_allclose(field, expected, rtol=1e-12, atol=1e-15)


def test_the_order_of_the_anchors_does_not_matter():
    case = make_problem(6)
    sorted_case = dict(case)
    order = np.argsort(case["positions"])
    sorted_case["positions"] = case["positions"][order]
    sorted_case["naive_weights"] = case["naive_weights"][order]
    sorted_case["responses"] = case["responses"][:, order]
    both = zip(scenario_scores(**case), scenario_scores(**sorted_case), strict=True)
    for field, expected in both:
        np.testing.assert_allclose(field, expected, rtol=1e-12, atol=1e-15)


def test_the_gradient_is_that_of_pirt_by_finite_differences():
    case = make_problem(7, n_dims=3)
    computed = scenario_scores(**case).gradient
    step = 1e-5
    for j in range(3):
        sides = []
        for sign in (1.0, -1.0):
            moved = dict(case)
            moved["ability"] = case["ability"] + sign * step * np.eye(3)[j]
            sides.append(scenario_scores(**moved).pirt)
        difference = (sides[0] - sides[1]) / (2 * step)
        np.testing.assert_allclose(computed[:, :, j], difference, atol=1e-9, rtol=1e-6)


def test_the_noise_is_the_variance_of_simulated_scores():
    case = make_problem(8, n_models=2, n_items=12, n_scenarios=2, k=4)
    computed = scenario_scores(**case)
    rng = np.random.default_rng(8)
    for row in range(2):
        for s in range(2):
            answers = {
                int(i): y
                for i, y in zip(case["positions"], case["responses"][row], strict=True)
                if not math.isnan(y)
            }
            total = np.zeros(100_000)
            for i in np.flatnonzero(case["scenario"] == s):
                if int(i) in answers:
                    total += case["weights"][i] * answers[int(i)]
                else:
                    total += case["weights"][i] * (rng.random(100_000) < chance(case, row, i))
            # Standard error of a variance over 100,000 draws is about 0.5 %.
            assert computed.noise[row, s] == pytest.approx(total.var(), rel=0.025)
            assert computed.pirt[row, s] == pytest.approx(total.mean(), abs=5 * total.std() / 316)


def test_all_items_asked_gives_the_truth_without_noise():
    case = make_problem(9, k=40, missing=0.0)
    case["naive_weights"] = case["weights"][case["positions"]]
    computed = scenario_scores(**case)
    for s in range(3):
        members = case["scenario"][case["positions"]] == s
        truth = case["responses"][:, members] @ case["weights"][case["positions"][members]]
        np.testing.assert_allclose(computed.pirt[:, s], truth, rtol=1e-13)
        np.testing.assert_allclose(computed.naive[:, s], truth, rtol=1e-13)
    np.testing.assert_allclose(computed.asked_weight, 1.0, rtol=1e-13)
    np.testing.assert_allclose(computed.noise, 0.0, atol=1e-17)
    np.testing.assert_allclose(computed.gradient, 0.0, atol=1e-15)
    assert (computed.noise >= 0.0).all()
    assert (computed.n_asked == np.bincount(case["scenario"])).all()


def test_nothing_asked_leaves_the_model_alone():
    case = make_problem(10, missing=1.0)
    computed = scenario_scores(**case)
    assert np.isnan(computed.naive).all()
    assert (computed.n_asked == 0).all() and (computed.asked_weight == 0.0).all()
    no_columns = dict(case)
    no_columns["responses"] = np.empty((7, 0))
    no_columns["positions"], no_columns["naive_weights"] = np.empty(0, dtype=int), np.empty(0)
    for field, expected in zip(scenario_scores(**no_columns), computed, strict=True):
        np.testing.assert_allclose(field, expected, rtol=1e-13, atol=1e-15)
    for row in range(7):
        for s in range(3):
            expected = sum(
                case["weights"][i] * chance(case, row, i)
                for i in np.flatnonzero(case["scenario"] == s)
            )
            assert computed.pirt[row, s] == pytest.approx(expected, rel=1e-12)


def test_equal_weights_give_the_papers_form():
    """p-IRT = share * mean of the answers + (1 - share) * mean of the other probabilities."""
    case = make_problem(11, n_scenarios=1, n_items=30, k=12, missing=0.0)
    case["weights"] = np.full(30, 1 / 30)
    case["naive_weights"] = np.full(12, 1 / 12)
    computed = scenario_scores(**case)
    share = 12 / 30
    rest = [i for i in range(30) if i not in case["positions"]]
    for row in range(7):
        predicted = np.mean([chance(case, row, i) for i in rest])
        mean = case["responses"][row].mean()
        assert computed.naive[row, 0] == pytest.approx(mean, rel=1e-13)
        expected = share * mean + (1 - share) * predicted
        assert computed.pirt[row, 0] == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(computed.naive_weight, 1 / 12, rtol=1e-13)


def test_weights_of_the_mean_count_over_what_was_answered():
    case = make_problem(12, n_models=2, n_scenarios=1, n_items=6, k=3, missing=0.0)
    case["naive_weights"] = np.array([0.5, 0.3, 0.2])
    case["responses"] = np.array([[1.0, 0.0, np.nan], [np.nan, np.nan, 0.7]])
    computed = scenario_scores(**case)
    np.testing.assert_allclose(computed.naive[:, 0], [0.5 / 0.8, 0.7], rtol=1e-14)
    np.testing.assert_allclose(computed.naive_weight[:, 0], [0.34 / 0.64, 1.0], rtol=1e-14)
    np.testing.assert_array_equal(computed.n_asked[:, 0], [2, 1])


@pytest.mark.filterwarnings("error")
def test_anchors_without_weight_have_no_mean():
    case = make_problem(13, missing=0.0)
    case["naive_weights"] = np.zeros(18)
    computed = scenario_scores(**case)
    assert np.isnan(computed.naive).all() and np.isfinite(computed.pirt).all()
    assert (computed.n_asked > 0).all()


def test_balanced_scores_of_subscenarios_of_ten_a_hundred_and_a_thousand():
    """Accuracy constant within a subscenario: their mean is the score, whatever is drawn."""
    sizes, accuracy = [10, 100, 1000], np.array([[0.9, 0.4, 0.1], [0.0, 1.0, 0.3]])
    strata = np.repeat([0, 1, 2], sizes)
    strata = np.random.default_rng(14).permutation(strata)
    weights = item_weights(strata)
    truth = accuracy.mean(axis=1)
    np.testing.assert_allclose(accuracy[:, strata] @ weights, truth, rtol=1e-12)
    for seed in range(20):
        for k in (3, 4, 17, 60, 1110):
            rng = np.random.RandomState(seed)
            anchors = random_anchors(k, weights, strata=strata, random_state=rng)
            computed = scenario_scores(
                accuracy[:, strata[anchors.positions]],
                anchors.positions,
                anchors.weights,
                np.zeros((2, 1)),
                np.zeros((1110, 1)),
                np.zeros(1110),
                weights,
                np.zeros(1110, dtype=int),
            )
            np.testing.assert_allclose(computed.naive[:, 0], truth, rtol=1e-12)
