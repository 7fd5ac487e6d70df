"""Item curves and the item map."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.special import expit

from benchmarks_registry import load_benchmark
from sklearn_irt import AnchorSelector, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import ItemCurvesDisplay, ItemMapDisplay

matplotlib.use("Agg")
DATA = make_responses(n_models=30, n_items=60, scenarios=2, n_dims=2, random_state=0)


@pytest.fixture(scope="module")
def irt():
    return IRTRegressor(n_dims=1).fit(DATA.responses)


@pytest.fixture(scope="module")
def wide():
    return IRTRegressor(n_dims=2, response_range=(0, 10)).fit(10 * DATA.responses)


@pytest.fixture(scope="module")
def selector():
    labels = DATA["items"]["scenario"]
    return AnchorSelector(k=8, n_dims=2, scenarios=labels, random_state=0).fit(DATA.responses)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_curves_of_one_dimension_are_the_models_probabilities(irt):
    items = [3, "scenario_0/00007", 40]
    display = ItemCurvesDisplay.from_estimator(irt, items)
    positions = [3, list(DATA.responses.columns).index("scenario_0/00007"), 40]
    turn = np.sign(irt.discrimination_.mean())
    for line, position in zip(display.lines_, positions, strict=True):
        x, y = line.get_data()
        expected = expit(turn * irt.discrimination_[position, 0] * x - irt.difficulty_[position])
        np.testing.assert_allclose(y, expected)
    assert x[0] == -3 and x[-1] == 3
    assert display.items == [DATA.responses.columns[position] for position in positions]
    assert display.ax_.get_xlabel() == "ability (standard deviations)"
    assert display.ax_.get_ylabel() == "expected response (0 wrong, 1 right)"


def test_curves_along_the_mean_discrimination_in_the_unit_of_the_responses(wide):
    display = ItemCurvesDisplay.from_estimator(wide, [5])
    mean = wide.discrimination_.mean(axis=0)
    ability = np.outer(display.position, mean / np.linalg.norm(mean))  # a standard normal prior
    expected = 10 * expit(ability @ wide.discrimination_[5] - wide.difficulty_[5])
    np.testing.assert_allclose(display.lines_[0].get_ydata(), expected)
    assert "mean discrimination" in display.ax_.get_xlabel()
    assert "unit of the responses" in display.ax_.get_ylabel()
    assert display.ax_.get_ylim()[1] > 10


def test_curves_along_a_dimension(wide):
    display = ItemCurvesDisplay.from_estimator(wide, [5], dimension=1)
    slope = wide.discrimination_[5, 1]
    expected = 10 * expit(slope * display.position - wide.difficulty_[5])
    np.testing.assert_allclose(display.expected[0], expected)
    assert "dimension 1" in display.ax_.get_xlabel()


def test_by_default_some_items_from_easy_to_hard(selector):
    display = ItemCurvesDisplay.from_estimator(selector)
    names = DATA.responses.columns
    difficulty = selector.irt_.difficulty_[[names.get_loc(name) for name in display.items]]
    assert len(difficulty) == 6 and (np.diff(difficulty) > 0).all()
    ranks = (selector.irt_.difficulty_[:, None] < difficulty).mean(axis=0)
    np.testing.assert_allclose(ranks, np.linspace(0.1, 0.9, 6), atol=0.02)
    own = ItemCurvesDisplay.from_estimator(selector, scenario="scenario_1")
    assert all(name.startswith("scenario_1") for name in own.items)


def test_one_item_may_be_given_bare(irt):
    assert len(ItemCurvesDisplay.from_estimator(irt, 4).lines_) == 1
    assert ItemCurvesDisplay.from_estimator(irt, "scenario_0/00002").items == ["scenario_0/00002"]


def test_too_many_curves_or_none(irt, message):
    text = message(ItemCurvesDisplay.from_estimator, irt, range(40))
    assert "40 items" in text and "1 to 12 curves" in text
    assert "0 items" in message(ItemCurvesDisplay.from_estimator, irt, [])
    assert len(ItemCurvesDisplay.from_estimator(irt, range(12)).lines_) == 12
    assert plt.get_fignums() == [1]  # a refused plot leaves no figure


def test_map_draws_reckases_parameters(selector):
    display = ItemMapDisplay.from_estimator(selector)
    irt = selector.irt_
    length = np.sqrt((irt.discrimination_**2).sum(axis=1))
    points = np.column_stack([length, irt.difficulty_ / length])
    rest = np.setdiff1d(np.arange(60), selector.anchors_)
    np.testing.assert_allclose(display.items_.get_offsets(), points[rest])
    drawn = np.concatenate([part.get_offsets() for part in display.anchors_])
    np.testing.assert_allclose(drawn, points[selector.anchors_])  # the scenarios in order


def test_areas_of_anchors_are_in_proportion_to_their_weights(selector):
    display = ItemMapDisplay.from_estimator(selector)
    areas = np.concatenate([part.get_sizes() for part in display.anchors_])
    assert selector.weights_.min() > 4.0 / 120.0 * selector.weights_.max()  # none is enlarged
    np.testing.assert_allclose(areas, 120 * selector.weights_ / selector.weights_.max())


def test_map_of_one_scenario(selector):
    display = ItemMapDisplay.from_estimator(selector, scenario="scenario_1")
    own = selector.anchors_[selector.anchors_ >= 30]
    assert len(display.difficulty) == 30
    np.testing.assert_array_equal(display.anchors, own - 30)
    (anchors,) = display.anchors_
    assert len(anchors.get_offsets()) == 8


def test_map_without_anchors(irt):
    display = ItemMapDisplay.from_estimator(irt)
    assert display.anchors_ == [] and display.ax_.get_legend() is None
    assert len(display.items_.get_offsets()) == 60


def test_map_of_a_loaded_benchmark_tells_the_scenarios_apart():
    display = ItemMapDisplay.from_estimator(load_benchmark("helm-lite"))
    assert len(display.anchors_) == 5
    assert [len(part.get_offsets()) for part in display.anchors_] == [100] * 5
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["no anchor", "commonsense", "gsm", "math", "med_qa", "mmlu"]


def test_items_far_away_or_without_discrimination_do_not_spoil_the_map():
    none = np.empty(0, dtype=int)
    with np.errstate(divide="ignore", invalid="ignore"):
        difficulty = np.array([1.0, 90.0, -3.0, 0.0]) / np.array([1.0, 1.0, 0.0, 0.0])
    display = ItemMapDisplay(np.array([1.0, 1.0, 0.0, 0.0]), difficulty, none, none).plot()
    drawn = np.asarray(display.items_.get_offsets())[:, 1]
    np.testing.assert_array_equal(drawn, [1.0, 8.0, -8.0, np.nan])
    assert display.difficulty[1] == 90.0
