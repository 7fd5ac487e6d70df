"""Simulated responses follow the model they claim to follow."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from sklearn_irt.datasets import make_responses


def test_shapes_names_and_truth():
    data = make_responses(30, 40, 3, random_state=0)
    assert data.responses.shape == data.probabilities.shape == (30, 40)
    assert data.ability.shape == (30, 3)
    assert data.discrimination.shape == (40, 3)
    assert data.difficulty.shape == (40,)
    assert list(data.responses.index[:2]) == ["model_0000", "model_0001"]
    assert list(data.responses.columns) == data["items"]["item"].tolist()
    assert data["items"]["item"].iloc[12] == "scenario_0/00012"
    assert list(data["items"].columns) == ["item", "scenario", "subscenario"]
    assert data["items"]["subscenario"].isna().all()
    assert data.models["model"].tolist() == data.responses.index.tolist()
    assert data.scores.index.equals(data.responses.index)
    expected = expit(data.ability @ data.discrimination.T - data.difficulty)
    np.testing.assert_allclose(data.probabilities, expected, rtol=1e-12)
    assert "logistic" in data.DESCR


def test_binary_responses_have_the_stated_probabilities():
    data = make_responses(2000, 50, 2, random_state=1)
    values = data.responses.to_numpy()
    assert set(np.unique(values)) == {0.0, 1.0}
    error = values.mean(axis=0) - data.probabilities.mean(axis=0)
    assert np.abs(error).max() < 5 * np.sqrt(0.25 / 2000)


def test_fractional_responses_have_the_stated_mean_and_variance():
    data = make_responses(4000, 20, 2, response="fractional", random_state=2)
    values, p = data.responses.to_numpy(), data.probabilities
    assert values.min() >= 0 and values.max() <= 1
    assert ((values > 0) & (values < 1)).mean() > 0.9
    np.testing.assert_allclose(values.mean(axis=0), p.mean(axis=0), atol=0.03)
    expected = (p * (1 - p)).mean() / 5
    assert np.square(values - p).mean() == pytest.approx(expected, rel=0.03)


def test_scenarios_by_number_share_the_items():
    data = make_responses(5, 11, scenarios=3, random_state=0)
    sizes = data["items"].groupby("scenario").size()
    assert sizes.to_dict() == {"scenario_0": 4, "scenario_1": 4, "scenario_2": 3}


def test_scenarios_by_name_and_balanced_scores():
    layout = {"maths": {"algebra": 30, "geometry": 5}, "law": 10}
    data = make_responses(6, 999, scenarios=layout, random_state=0)
    items, values = data["items"], data.responses.to_numpy()
    assert values.shape == (6, 45)
    assert items["item"].iloc[30] == "maths/00030"
    assert items["item"].iloc[35] == "law/00000"
    assert items.loc[items["scenario"] == "law", "subscenario"].isna().all()
    maths = (values[:, :30].mean(axis=1) + values[:, 30:35].mean(axis=1)) / 2
    np.testing.assert_allclose(data.scores, (maths + values[:, 35:].mean(axis=1)) / 2)
    assert not np.allclose(data.scores, values.mean(axis=1))


def test_scenarios_correlate_as_documented():
    data = make_responses(1, 40_000, 4, scenarios=4, random_state=3)
    blocks = np.split(data.discrimination, 4)
    directions = [block.mean(axis=0) for block in blocks]
    directions = np.array([vector / np.linalg.norm(vector) for vector in directions])
    # Abilities are standard normal, so that cosines are correlations.
    correlation = directions @ directions.T
    assert correlation[0, 1] == pytest.approx(0.7, abs=0.02)
    assert correlation[1, 2] == pytest.approx(0.7, abs=0.02)
    # The fourth scenario is on the dimension of the first.
    assert correlation[0, 3] == pytest.approx(1, abs=0.01)


def test_abilities_are_standard_normal():
    ability = make_responses(20_000, 1, 3, random_state=3).ability
    np.testing.assert_allclose(ability.mean(axis=0), np.zeros(3), atol=0.03)
    np.testing.assert_allclose(np.cov(ability.T), np.eye(3), atol=0.04)


def test_missing_cells_leave_the_rest_unchanged():
    complete = make_responses(200, 100, random_state=4)
    data = make_responses(200, 100, missing=0.3, random_state=4)
    lost = data.responses.isna().to_numpy()
    assert lost.mean() == pytest.approx(0.3, abs=0.02)
    same = data.responses.to_numpy()[~lost] == complete.responses.to_numpy()[~lost]
    assert same.all()
    pd.testing.assert_series_equal(data.scores, complete.scores)


def test_seeds():
    first, second = (make_responses(10, 10, random_state=5) for _ in range(2))
    pd.testing.assert_frame_equal(first.responses, second.responses)
    other = make_responses(10, 10, random_state=6)
    assert not np.array_equal(first.ability, other.ability)
    fractional = make_responses(10, 10, response="fractional", random_state=5)
    np.testing.assert_array_equal(first.probabilities, fractional.probabilities)
    state = np.random.RandomState(5)
    pd.testing.assert_frame_equal(
        make_responses(10, 10, random_state=state).responses, first.responses
    )


def test_return_X_y():
    X, y = make_responses(7, 9, random_state=0, return_X_y=True)
    assert X.shape == (7, 9) and y.shape == (7,)
    np.testing.assert_allclose(y, X.mean(axis=1))


def test_one_dimension_and_many_models():
    data = make_responses(10_001, 2, 1, scenarios=2, random_state=0)
    assert data.ability.shape == (10_001, 1)
    assert data.responses.index.is_unique
    assert (data.discrimination > 0).mean() > 0.5


def test_extreme_probabilities_stay_in_range():
    data = make_responses(100, 3000, 10, response="fractional", random_state=7)
    assert np.isfinite(data.responses.to_numpy()).all()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_models": 0}, ValueError, "n_models"),
        ({"n_models": 2.5}, TypeError, "n_models"),
        ({"n_items": True}, TypeError, "n_items"),
        ({"n_items": -1}, ValueError, "n_items"),
        ({"n_dims": 0}, ValueError, "n_dims"),
        ({"scenarios": 0}, ValueError, "scenarios"),
        ({"n_items": 3, "scenarios": 4}, ValueError, "scenarios must be at most n_items=3"),
        ({"scenarios": "mmlu"}, TypeError, "scenarios"),
        ({"scenarios": {}}, ValueError, "scenarios"),
        ({"scenarios": {1: 5}}, TypeError, "scenarios"),
        ({"scenarios": {"a": 0}}, ValueError, "scenarios.'a'"),
        ({"scenarios": {"a": {}}}, ValueError, "scenarios.'a'"),
        ({"scenarios": {"a": {"b": 1.0}}}, TypeError, "scenarios.'a'..'b'"),
        ({"missing": 1.0}, ValueError, "missing"),
        ({"missing": float("nan")}, ValueError, "missing"),
        ({"missing": "some"}, TypeError, "missing"),
        ({"response": "graded"}, ValueError, "response"),
        ({"random_state": "seed"}, ValueError, "random_state"),
    ],
)
def test_bad_parameters_are_named(parameters, error, message):
    with pytest.raises(error, match=message):
        make_responses(**parameters)
