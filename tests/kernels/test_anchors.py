"""Anchors: how many, which ones and with what weights, whatever the items look like."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import minimize

from sklearn_irt.kernels.anchors import (
    calibrated_weights,
    cluster_anchors,
    effective_sample_size,
    item_weights,
    random_anchors,
)


def assert_valid(anchors, k, n_items):
    assert len(anchors.positions) == len(anchors.weights) == min(k, n_items)
    assert (np.diff(anchors.positions) > 0).all()  # ascending, hence distinct
    assert anchors.positions[0] >= 0 and anchors.positions[-1] < n_items
    assert np.isfinite(anchors.weights).all() and (anchors.weights >= 0).all()
    assert anchors.weights.sum() == pytest.approx(1.0, abs=1e-12)


def kinds_of_points(rng, n_items):
    base = rng.normal(size=(n_items, 3))
    return {
        "distinct": base,
        "duplicates": base[rng.integers(0, max(1, n_items // 3), size=n_items)],
        "constant": np.ones((n_items, 2)),
        "binary": (base > 0.5).astype(float),
        "one outlier": np.r_[np.zeros((n_items - 1, 1)), np.full((1, 1), 1e6)],
    }


def masks(rng, n_items):
    few = np.zeros(n_items, dtype=bool)
    few[rng.integers(n_items)] = True
    return [None, np.ones(n_items, dtype=bool), np.zeros(n_items, dtype=bool), few,
            rng.random(n_items) < 0.5]  # fmt: skip


def test_item_weights_give_every_stratum_the_same():
    rng = np.random.default_rng(0)
    for _ in range(20):
        strata = rng.choice([0, 3, 4, 11], size=50)
        weights = item_weights(strata)
        labels = sorted(set(strata.tolist()))
        for item in range(50):
            size = sum(strata == strata[item])
            assert weights[item] == pytest.approx(1 / (len(labels) * size), rel=1e-14)
        for label in labels:
            assert weights[strata == label].sum() == pytest.approx(1 / len(labels), rel=1e-12)
    np.testing.assert_allclose(item_weights(np.zeros(8, dtype=int)), 1 / 8)


def test_effective_sample_size_is_kishs():
    assert effective_sample_size(np.full(7, 3.0)) == pytest.approx(7.0, rel=1e-14)
    assert effective_sample_size(np.array([1.0, 0.0, 0.0])) == 1.0
    assert effective_sample_size(np.array([0.5, 0.3, 0.2])) == pytest.approx(1 / 0.38, rel=1e-14)
    weights = np.random.default_rng(1).random(30)
    assert 1.0 < effective_sample_size(weights) < 30.0
    assert effective_sample_size(5 * weights) == pytest.approx(effective_sample_size(weights))


def test_random_anchors_are_valid_for_any_size_strata_and_mask():
    rng = np.random.default_rng(2)
    for seed in range(60):
        n_items = int(rng.integers(1, 25))
        strata = rng.integers(0, int(rng.integers(1, 8)), size=n_items)
        for k in {1, n_items // 2 + 1, n_items, n_items + 5}:
            for eligible in masks(rng, n_items):
                for groups in (None, strata):
                    weights = item_weights(strata)
                    state = np.random.RandomState(seed)
                    anchors = random_anchors(
                        k, weights, strata=groups, eligible=eligible, random_state=state
                    )
                    assert_valid(anchors, k, n_items)
                    if eligible is not None:
                        used = eligible[anchors.positions].sum()
                        assert used == min(k, eligible.sum(), n_items)


def test_strata_get_counts_that_differ_by_at_most_one_until_they_are_exhausted():
    rng = np.random.default_rng(3)
    for seed in range(60):
        strata = rng.permutation(np.repeat(np.arange(5), rng.integers(1, 12, size=5)))
        sizes = np.bincount(strata)
        for k in range(1, len(strata) + 1):
            anchors = random_anchors(
                k, item_weights(strata), strata=strata, random_state=np.random.RandomState(seed)
            )
            counts = np.bincount(strata[anchors.positions], minlength=5)
            open_strata = counts < sizes
            if open_strata.any():
                assert counts.max() - counts[open_strata].min() <= 1


def test_strata_of_random_anchors_count_as_they_do_in_the_score():
    rng = np.random.default_rng(4)
    for seed in range(30):
        strata = np.concatenate([np.arange(4), rng.integers(0, 4, size=30)])
        for weights in (item_weights(strata), np.full(34, 1 / 34), rng.dirichlet(np.ones(34))):
            anchors = random_anchors(
                int(rng.integers(4, 35)),
                weights,
                strata=strata,
                random_state=np.random.RandomState(seed),
            )
            for s in range(4):
                got = anchors.weights[strata[anchors.positions] == s]
                assert got.sum() == pytest.approx(weights[strata == s].sum(), rel=1e-12)
                assert np.ptp(got) < 1e-15


def test_fewer_random_anchors_than_strata_come_from_different_ones():
    strata = np.repeat(np.arange(10), 7)
    seen = set()
    for seed in range(60):
        anchors = random_anchors(
            4, item_weights(strata), strata=strata, random_state=np.random.RandomState(seed)
        )
        chosen = strata[anchors.positions]
        assert len(set(chosen.tolist())) == 4
        np.testing.assert_allclose(anchors.weights, 0.25, rtol=1e-12)
        seen.update(chosen.tolist())
    assert seen == set(range(10))


def test_every_item_of_a_stratum_is_drawn_equally_often():
    strata = np.r_[np.zeros(5, dtype=int), np.ones(10, dtype=int)]
    rng, counts = np.random.RandomState(0), np.zeros(15)
    for _ in range(4000):
        anchors = random_anchors(4, item_weights(strata), strata=strata, random_state=rng)
        counts[anchors.positions] += 1
    expected = 4000 * np.r_[np.full(5, 2 / 5), np.full(10, 2 / 10)]
    deviation = (counts - expected) / np.sqrt(expected * (1 - expected / 4000))
    assert np.abs(deviation).max() < 4.5


@pytest.mark.parametrize("seed", range(3))
def test_cluster_anchors_are_valid_for_any_points_size_and_mask(seed):
    rng = np.random.default_rng(seed)
    for n_items in (1, 2, 5, 14):
        for points in kinds_of_points(rng, n_items).values():
            for k in {1, 2, n_items - 1, n_items, n_items + 3} - {0}:
                for eligible in masks(rng, n_items):
                    anchors = cluster_anchors(
                        k,
                        points,
                        rng.dirichlet(np.ones(n_items)),
                        eligible=eligible,
                        n_init=1,
                        random_state=np.random.RandomState(seed),
                    )
                    assert_valid(anchors, k, n_items)


@pytest.mark.parametrize("seed", range(3))
def test_clusters_take_other_items_only_when_the_eligible_are_used_up(seed):
    rng = np.random.default_rng(10 + seed)
    for _ in range(6):
        for points in kinds_of_points(rng, 20).values():
            eligible = rng.random(20) < rng.uniform(0.1, 0.9)
            k = int(rng.integers(1, 20))
            anchors = cluster_anchors(
                k,
                points,
                np.full(20, 0.05),
                eligible=eligible,
                n_init=1,
                random_state=np.random.RandomState(seed),
            )
            assert eligible[anchors.positions].sum() == min(k, eligible.sum())


def separated_clusters(rng, n_clusters, scale=1.0):
    """Clusters of diameter about 1 whose centres lie 100 apart; with their labels."""
    sizes = rng.integers(3, 12, size=n_clusters)
    labels = rng.permutation(np.repeat(np.arange(n_clusters), sizes))
    centres = 100.0 * rng.permutation(n_clusters)[:, None] * np.ones(2)
    return (centres[labels] + rng.uniform(-0.5, 0.5, size=(len(labels), 2))) * scale, labels


def brute_force_anchors(points, weights, labels, eligible=None):
    """Of every cluster the item nearest to the weighted mean, and the cluster's weight."""
    result = {}
    for label in np.unique(labels):
        members = [i for i in range(len(points)) if labels[i] == label]
        mass = sum(weights[i] for i in members)
        centre = sum(weights[i] * points[i] for i in members) / mass
        able = [i for i in members if eligible is None or eligible[i]]
        nearest = min(able, key=lambda i, c=centre: float(np.linalg.norm(points[i] - c)))
        result[nearest] = mass
    return result


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_an_anchor_is_the_nearest_item_of_its_own_cluster(weighted, masked):
    rng = np.random.default_rng(5)
    for seed in range(12):
        points, labels = separated_clusters(rng, 6)
        n_items = len(labels)
        weights = rng.dirichlet(np.ones(n_items)) if weighted else np.full(n_items, 1 / n_items)
        eligible = None
        if masked:
            eligible = rng.random(n_items) < 0.5
            eligible[np.unique(labels, return_index=True)[1]] = True
        anchors = cluster_anchors(
            6, points, weights, eligible=eligible, random_state=np.random.RandomState(seed)
        )
        expected = brute_force_anchors(points, weights, labels, eligible)
        assert anchors.positions.tolist() == sorted(expected)
        np.testing.assert_allclose(
            anchors.weights, [expected[i] for i in sorted(expected)], rtol=1e-12
        )


@pytest.mark.parametrize("power", [-24, -17, -10, 10, 24])
def test_the_nearest_item_is_found_whatever_the_scale_of_the_points(power):
    rng = np.random.default_rng(6)
    points, labels = separated_clusters(rng, 5)
    weights = np.full(len(labels), 1 / len(labels))
    scaled = points * 2.0**power
    anchors = cluster_anchors(5, scaled, weights, random_state=np.random.RandomState(0))
    assert anchors.positions.tolist() == sorted(brute_force_anchors(points, weights, labels))


def test_one_cluster_is_represented_by_the_item_nearest_to_the_weighted_mean():
    points, weights = np.array([[0.0], [1.0], [2.0], [10.0]]), np.array([0.1, 0.1, 0.1, 0.7])
    anchors = cluster_anchors(1, points, weights, random_state=np.random.RandomState(0))
    assert anchors.positions.tolist() == [3] and anchors.weights.tolist() == [1.0]
    equal = cluster_anchors(1, points, np.full(4, 0.25), random_state=np.random.RandomState(0))
    assert equal.positions.tolist() == [2]


def test_all_items_asked_keep_their_own_weights():
    weights = np.array([1.0, 2.0, 3.0, 4.0]) / 10
    points = np.zeros((4, 2))
    for k in (4, 9):
        anchors = cluster_anchors(k, points, weights, random_state=np.random.RandomState(0))
        assert anchors.positions.tolist() == [0, 1, 2, 3]
        np.testing.assert_allclose(anchors.weights, weights, rtol=1e-14)


def test_duplicates_split_the_weight_of_the_heaviest_cluster():
    """Two distinct points, three anchors: the second anchor goes to the heavier cluster."""
    points = np.array([[0.0]] * 5 + [[9.0]] * 2)
    anchors = cluster_anchors(3, points, np.full(7, 1 / 7), random_state=np.random.RandomState(0))
    assert anchors.positions.tolist() == [0, 1, 5]
    np.testing.assert_allclose(anchors.weights, [2.5 / 7, 2.5 / 7, 2 / 7], rtol=1e-12)


def test_a_cluster_without_an_eligible_item_leaves_its_weight_to_the_others():
    points = np.array([[0.0], [0.1], [50.0], [50.1], [99.0], [99.1]])
    eligible = np.array([True, True, False, False, True, True])
    anchors = cluster_anchors(
        3, points, np.full(6, 1 / 6), eligible=eligible, random_state=np.random.RandomState(0)
    )
    assert eligible[anchors.positions].all()
    low = anchors.weights[points[anchors.positions, 0] < 25].sum()
    assert low == pytest.approx(0.5, rel=1e-12)


def test_equal_distances_are_decided_by_position():
    points = np.array([[1.0], [-1.0], [50.0], [52.0]])
    anchors = cluster_anchors(2, points, np.full(4, 0.25), random_state=np.random.RandomState(0))
    assert anchors.positions.tolist() == [0, 2]


def test_the_random_state_decides():
    rng = np.random.default_rng(7)
    points, weights = rng.normal(size=(80, 2)), np.full(80, 1 / 80)

    def both(seed):
        state = np.random.RandomState(seed)
        drawn = random_anchors(10, weights, random_state=state)
        nearest = cluster_anchors(10, points, weights, n_init=1, random_state=state)
        return [*drawn.positions, *drawn.weights], [*nearest.positions, *nearest.weights]

    first, again, other = both(0), both(0), both(1)
    assert first == again
    assert first[0] != other[0] and first[1] != other[1]


SCRIPT = """
import json
import numpy as np
from sklearn_irt.kernels.anchors import cluster_anchors, item_weights, random_anchors
rng = np.random.default_rng(0)
ability, difficulty = rng.normal(size=(40, 1)), rng.normal(size=900)
right = (rng.random((40, 900)) < 1 / (1 + np.exp(difficulty - ability))).astype(float)
strata = rng.integers(0, 5, size=900)
state = np.random.RandomState(0)
result = [random_anchors(50, item_weights(strata), strata=strata, random_state=state)]
for points in (right.T, np.repeat(right.T[:90], 10, axis=0), rng.normal(size=(900, 6))):
    for weights in (np.full(900, 1 / 900), item_weights(strata)):
        result.append(cluster_anchors(40, points, weights, n_init=2, random_state=state))
print(json.dumps([[a.positions.tolist(), a.weights.tolist()] for a in result]))
"""


@pytest.mark.slow
def test_anchors_do_not_depend_on_the_number_of_threads():
    outputs = []
    for threads in ("1", "2"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        environment["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(json.loads(done.stdout))
    for one, two in zip(*outputs, strict=True):
        assert one[0] == two[0]
        np.testing.assert_allclose(one[1], two[1], rtol=1e-12)


def calibration_case(seed, n_models=25, k=8):
    rng = np.random.default_rng(seed)
    responses = (rng.random((n_models, k)) < rng.random((n_models, 1))).astype(float)
    scores = np.clip(responses @ rng.dirichlet(np.ones(k)) + 0.05 * rng.normal(size=n_models), 0, 1)
    return responses, scores, rng.dirichlet(np.full(k, 3.0))


def calibration_loss(weights, responses, scores, start, ridge):
    error = responses @ weights - scores
    return (error**2).sum() + ridge * len(start) * ((weights - start) ** 2).sum()


@pytest.mark.parametrize("ridge", [0.01, 0.5, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_calibrated_weights_are_the_constrained_minimum(seed, ridge):
    responses, scores, start = calibration_case(seed)
    found = calibrated_weights(responses, scores, start, ridge)
    assert (found >= 0).all() and found.sum() == pytest.approx(1.0, abs=1e-12)
    arguments = responses, scores, start, ridge
    expected = minimize(
        calibration_loss,
        start,
        arguments,
        method="SLSQP",
        bounds=[(0, 1)] * len(start),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert expected.success
    np.testing.assert_allclose(found, expected.x, atol=2e-4)
    assert calibration_loss(found, *arguments) <= expected.fun + 1e-6
    assert calibration_loss(found, *arguments) <= calibration_loss(start, *arguments) + 1e-9


def test_weights_that_are_calibrated_already_stay():
    responses, _, start = calibration_case(5)
    found = calibrated_weights(responses, responses @ start, start)
    np.testing.assert_allclose(found, start, atol=1e-6)
    np.testing.assert_allclose(calibrated_weights(responses[:0], np.empty(0), start), start)


def test_calibrated_weights_follow_the_order_of_the_anchors():
    responses, scores, start = calibration_case(6)
    order = np.random.default_rng(0).permutation(8)
    found = calibrated_weights(responses, scores, start)
    moved = calibrated_weights(responses[:, order], scores, start[order])
    np.testing.assert_allclose(moved, found[order], atol=1e-8)
    assert calibrated_weights(responses[:, :1], scores, np.ones(1)).tolist() == [1.0]
