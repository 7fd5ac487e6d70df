"""What plots read from fitted objects."""

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from benchmarks_registry import load_benchmark
from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import ItemCurvesDisplay, ItemMapDisplay, WrightMapDisplay
from sklearn_irt.plots._source import (
    ability_line,
    mean_discrimination,
    read_direction,
    read_source,
)

matplotlib.use("Agg")
DATA = make_responses(n_models=30, n_items=60, scenarios=2, random_state=0)
LABELS = DATA["items"]["scenario"]


@pytest.fixture(scope="module")
def pipe():
    selector = AnchorSelector(k=8, n_dims=1, scenarios=LABELS, random_state=0)
    return make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(DATA.responses)


def test_every_fitted_object_is_read(pipe):
    names = DATA.responses.columns
    for source in (pipe, pipe[0], pipe[1]):
        found = read_source(source)
        assert found.irt is pipe[0].irt_
        np.testing.assert_array_equal(found.items, names)
        np.testing.assert_array_equal(found.anchors, pipe[0].anchors_)
        np.testing.assert_array_equal(found.weights, pipe[0].weights_)
    irt = read_source(pipe[0].irt_)
    assert irt.items is None and irt.anchors.size == 0
    assert irt.item_name(3) == "item 3" and read_source(pipe).item_name(3) == names[3]


def test_a_search_is_read_by_its_best():
    search = GridSearchCV(IRTRegressor(), {"n_dims": [1]}, cv=2).fit(DATA.responses)
    assert read_source(search).irt is search.best_estimator_


def test_a_loaded_benchmark_is_read():
    tiny = load_benchmark("arc-challenge")
    found = read_source(tiny)
    assert found.irt is tiny.estimator.irt_
    assert found.position(tiny.items["item"][7]) == 7
    anchors = [found.item_name(position) for position in found.anchors]
    assert sorted(anchors) == sorted(tiny.anchors())


@pytest.mark.parametrize("display", [ItemCurvesDisplay, ItemMapDisplay, WrightMapDisplay])
@pytest.mark.parametrize(
    "source", [IRTRegressor(), GPIRTEstimator(), make_pipeline(AnchorSelector(), GPIRTEstimator())]
)
def test_unfitted(display, source):
    with pytest.raises(NotFittedError):
        display.from_estimator(source)


@pytest.mark.parametrize("source", [Ridge(), None, make_pipeline(Ridge())])
def test_others_are_refused(source):
    with pytest.raises(TypeError, match="a plot needs a loaded benchmark, .*, got "):
        read_source(source)


def test_a_selector_without_irt_model(message):
    selector = AnchorSelector(k=5, method="random").fit(DATA.responses)
    text = message(read_source, selector)
    assert "method='random'" in text and "GPIRTEstimator" in text


def test_positions(pipe, message):
    found = read_source(pipe)
    assert found.position(3) == 3 and found.position(np.int64(3)) == 3
    assert found.position(found.items[5]) == 5
    assert "positions are 0 to 59" in message(found.position, 60)
    assert "no item 'x'; names look like" in message(found.position, "x")
    assert "no item names" in message(read_source(pipe[0].irt_).position, "x")


def test_scenarios(pipe, message):
    found = read_source(pipe)
    np.testing.assert_array_equal(found.in_scenario("scenario_1"), LABELS == "scenario_1")
    assert found.in_scenario(None).all()
    assert "no scenario 'x'" in message(found.in_scenario, "x")


def test_mean_discrimination_weighs_the_items_as_the_score_does(pipe):
    found = read_source(pipe)
    own = found.in_scenario("scenario_0")
    expected = found.irt.discrimination_[own].mean(axis=0)  # no subscenarios: all weigh the same
    np.testing.assert_allclose(mean_discrimination(found, own), expected)


def test_direction(pipe, message):
    found = read_source(pipe)
    everything = found.in_scenario(None)
    whole = read_direction(found, everything, None)
    assert read_direction(found, everything, 1).tolist() == [0.0, whole[1]]
    for wrong in (2, -1, 0.5, True):
        assert "dimension must be an integer from 0 to 1" in message(
            read_direction, found, everything, wrong
        )


def test_discriminations_that_cancel_out(pipe, message):
    irt = IRTRegressor(n_dims=1).fit(DATA.responses)
    irt.discrimination_ = np.where(np.arange(60) % 2, 1.0, -1.0)[:, None]
    found = read_source(irt)
    assert "cancel out" in message(read_direction, found, found.in_scenario(None), None)


def test_the_line_is_the_expected_ability_given_its_part_along_the_direction(pipe):
    found = read_source(pipe)
    direction = read_direction(found, found.in_scenario(None), None)
    line = ability_line(found, direction, np.array([0.0, 1.0, -2.0]))
    covariance = np.linalg.inv(found.irt.prior_precision_)
    assert abs(covariance[0, 1]) > 0.1  # correlated scenarios: not just the direction itself
    spread = np.sqrt(direction @ covariance @ direction)
    np.testing.assert_allclose(line @ direction, spread * np.array([0.0, 1.0, -2.0]), atol=1e-12)
    # The regression of abilities drawn from the prior on their part along the direction.
    drawn = np.random.default_rng(0).multivariate_normal(np.zeros(2), covariance, 200_000)
    along = drawn @ direction
    slope = along @ drawn / (along @ along) * spread
    np.testing.assert_allclose(line[1], slope, atol=0.01)
