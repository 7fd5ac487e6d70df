"""The paper's threshold, by brute force."""

import numpy as np
import pytest

from sklearn_irt.kernels.threshold import response_threshold, right_or_wrong


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_no_other_threshold_is_closer(seed, missing):
    rng = np.random.default_rng(seed)
    responses = rng.integers(0, 8, (9, 7)) / 7
    responses[rng.random(responses.shape) < missing] = np.nan
    observed = responses[~np.isnan(responses)]
    found = response_threshold(responses)
    distance = {c: abs((observed >= c).sum() - observed.sum()) for c in np.unique(observed)}
    assert distance[found] == min(distance.values())


def test_binary_responses_stay():
    responses = np.array([[0.0, 1.0, np.nan], [1.0, 1.0, 0.0]])
    assert response_threshold(responses) == 1.0
    np.testing.assert_array_equal(right_or_wrong(responses, np.ones(3)), responses)


def test_each_item_has_its_threshold_and_the_type_stays():
    found = right_or_wrong(np.array([[0.4, 0.4], [np.nan, 0.6]], np.float32), np.array([0.4, 0.5]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, 0], [np.nan, 1]])


def test_nothing_asked_has_no_threshold():
    assert np.isnan(response_threshold(np.full((2, 2), np.nan)))
