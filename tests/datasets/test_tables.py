"""Item tables and benchmark scores."""

import numpy as np

from sklearn_irt.datasets._tables import benchmark_scores, item_table


def test_scores_leave_missing_cells_out():
    items = item_table({"a": {"x": 1, "y": 3}, "b": 2})
    responses = np.array([[1.0, 0.0, np.nan, 1.0, 1.0, np.nan]])
    expected = ((1 + 0.5) / 2 + 1.0) / 2
    np.testing.assert_allclose(benchmark_scores(responses, items), [expected])


def test_a_scenario_without_responses_has_no_score():
    items = item_table({"a": 1, "b": 2})
    responses = np.array([[1.0, np.nan, np.nan], [1.0, 0.0, np.nan]])
    np.testing.assert_array_equal(benchmark_scores(responses, items), [np.nan, 0.5])


def test_items_of_a_scenario_need_not_stand_side_by_side():
    items = item_table({"a": 2, "b": 2}).iloc[[0, 2, 1, 3]]
    responses = np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]])
    np.testing.assert_array_equal(benchmark_scores(responses, items), [0.5, 0.75])
