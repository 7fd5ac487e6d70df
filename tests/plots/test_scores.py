"""Estimated against true scores, and estimates by scenario."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from benchmarks_registry import load_benchmark
from sklearn_irt.plots import EstimatesDisplay, ScoresDisplay

matplotlib.use("Agg")
MODELS, SCENARIOS = ["model a", "model b", "model c"], ["rte", "mrpc", "sst2", "(all)"]
TRUE = np.array([0.2, 0.5, 0.9])
ESTIMATED = np.array([0.3, 0.5, 0.85])


@pytest.fixture(scope="module")
def table():
    """Three models on three scenarios."""
    tiny = load_benchmark("glue")
    asked = tiny.estimator.training_responses_[:3]
    names = tiny.items["item"].iloc[tiny.estimator.anchors_]
    return tiny.estimate(pd.DataFrame(asked, MODELS, names).iloc[:, ::4])


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def segments(bars) -> np.ndarray:
    """Ends of the bars of an error bar container, shape (n, 2 ends, 2 coordinates)."""
    return np.array(bars.lines[2][0].get_segments())


def test_scores_and_their_intervals():
    low, high = ESTIMATED - 0.1, ESTIMATED + [0.05, 0.1, 0.15]
    display = ScoresDisplay.from_scores(TRUE, ESTIMATED, low, high)
    np.testing.assert_array_equal(
        np.column_stack(display.points_.get_data()), np.c_[TRUE, ESTIMATED]
    )
    found = segments(display.bars_)
    np.testing.assert_array_equal(found[:, 0, 0], TRUE)
    np.testing.assert_allclose(found[:, :, 1], np.c_[low, high])
    (text,) = display.ax_.texts
    assert text.get_text() == "mean absolute error 5.0 points"
    assert display.ax_.get_xlabel() == "true score (%)"
    ticks = display.ax_.xaxis.get_major_formatter()
    assert ticks(0.5) in ("50", "50.0")


def test_scores_in_another_unit():
    display = ScoresDisplay.from_scores(10 * TRUE, 10 * ESTIMATED)
    assert display.bars_ is None
    assert display.ax_.get_ylabel() == "estimated score (unit of the responses)"
    shares = ScoresDisplay.from_scores(TRUE, ESTIMATED, response_range=(0, 10))
    assert shares.ax_.get_ylabel() == "estimated score (unit of the responses)"


def test_series_are_matched_by_index():
    true = pd.Series(TRUE, ["a", "b", "c"])
    display = ScoresDisplay.from_scores(true, pd.Series(ESTIMATED, ["a", "b", "c"])[::-1])
    np.testing.assert_array_equal(display.points_.get_ydata(), ESTIMATED)


def test_wrong_scores(message):
    show = ScoresDisplay.from_scores
    assert "both low and high" in message(show, TRUE, ESTIMATED, low=TRUE)
    assert "estimated has shape (2,)" in message(show, TRUE, ESTIMATED[:2])
    assert "true has shape (1, 3)" in message(show, [TRUE], [ESTIMATED])
    assert "low exceeds high at position 1" in message(show, TRUE, ESTIMATED, [0, 1, 0], [1, 0, 1])
    assert "no model with both" in message(show, [np.nan, 1], [1, np.nan])
    other = pd.Series(ESTIMATED, ["a", "b", "d"])
    assert "different models" in message(show, pd.Series(TRUE, ["a", "b", "c"]), other)
    assert not plt.get_fignums()


def test_estimates_of_several_models(table):
    display = EstimatesDisplay.from_table(table)
    assert display.true_ == []
    for number, model in enumerate(MODELS):
        rows = table.loc[model]
        assert list(rows.index) == list(display.estimate.columns)
        x, y = display.points_[number].get_data()
        np.testing.assert_array_equal(x, rows["gpirt"])
        found = segments(display.bars_[number])
        np.testing.assert_allclose(found[:, :, 0], rows[["low", "high"]])
        np.testing.assert_array_equal(found[:, 0, 1], y)
        assert (abs(y - np.arange(4)) < 0.5).all()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == SCENARIOS
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == MODELS


def test_the_estimate_in_the_middle_of_the_intervals_is_drawn(table):
    for name in ("pirt", "naive"):
        half = table["std_error"]
        moved = table.assign(low=table[name] - half, high=table[name] + half)
        display = EstimatesDisplay.from_table(moved)
        np.testing.assert_array_equal(display.estimate.loc["model b"], moved.loc["model b", name])


def test_true_scores_of_every_form(table):
    frame = pd.DataFrame({"mrpc": [0.5, 0.6]}, ["model c", "model a"])
    mapping = {("model c", "mrpc"): 0.5, ("model a", "mrpc"): 0.6}
    for true in (frame, mapping, pd.Series(mapping)):
        display = EstimatesDisplay.from_table(table, true)
        drawn = [line.get_xdata().tolist() for line in display.true_]
        np.testing.assert_array_equal(drawn[0], [np.nan, 0.6, np.nan, np.nan])
        np.testing.assert_array_equal(drawn[1], [np.nan] * 4)
        np.testing.assert_array_equal(drawn[2], [np.nan, 0.5, np.nan, np.nan])
        texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert texts.count("true score") == 1


def test_one_model_of_a_loaded_benchmark():
    tiny = load_benchmark("arc-challenge")
    table = tiny.estimate(dict.fromkeys(tiny.anchors()[:40], 1))
    display = EstimatesDisplay.from_table(table, true=0.8)
    assert display.points_[0].get_xdata().tolist() == table["gpirt"].tolist()
    assert display.true_[0].get_xdata().tolist() == [0.8]
    by_name = EstimatesDisplay.from_table(table, {"arc_challenge": 0.8})
    assert by_name.true_[0].get_xdata().tolist() == [0.8]


def test_many_scenarios_make_a_high_figure():
    index = pd.Index([f"s{i}" for i in range(57)], name="scenario")
    table = pd.DataFrame({"gpirt": 0.5, "low": 0.4, "high": 0.6}, index)
    display = EstimatesDisplay.from_table(table)
    display.figure_.draw_without_rendering()
    boxes = [label.get_window_extent() for label in display.ax_.get_yticklabels()]
    assert all(a.y0 >= b.y1 for a, b in zip(boxes, boxes[1:], strict=False))  # none overlap


def test_wrong_tables(table, message):
    show = EstimatesDisplay.from_table
    assert "low, high and one of" in message(show, table.drop(columns="low"))
    assert "has no row" in message(show, table[:0])
    assert "twice" in message(show, pd.concat([table, table]))
    many = pd.concat({f"m{i}": table.loc["model a"] for i in range(8)})
    assert "8 models, at most 7" in message(show, many)
    assert "true has a score of ('model a', 'x')" in message(
        show, table.loc[["model a"]], {"x": 0.5}
    )
    assert "several models" in message(show, table, {"rte": 0.5})
    assert "12 rows" in message(show, table, 0.5)
    with pytest.raises(TypeError, match="must be a DataFrame, got list"):
        show([1, 2])
    assert not plt.get_fignums()
