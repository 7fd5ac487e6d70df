"""The lower bound by iteration."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from benchmarks_registry import load_benchmark
from sklearn_irt import AnchorSelector, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import LowerBoundDisplay

matplotlib.use("Agg")
DATA = make_responses(n_models=30, n_items=60, scenarios=2, random_state=0)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_one_fit():
    irt = IRTRegressor(n_dims=1).fit(DATA.responses)
    (line,) = LowerBoundDisplay.from_estimator(irt).lines_
    np.testing.assert_array_equal(line.get_ydata(), irt.lower_bounds_)
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, irt.n_iter_ + 1))


def test_a_fit_for_each_scenario():
    selector = AnchorSelector(k=5, n_dims=1, scenarios=DATA["items"]["scenario"], random_state=0)
    selector.fit(DATA.responses)
    display = LowerBoundDisplay.from_estimator(selector)
    for line, bounds in zip(display.lines_, selector.irt_.lower_bounds_, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), bounds)
    legend = display.ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["scenario_0", "scenario_1"]


def test_many_fits_have_no_legend():
    display = LowerBoundDisplay([np.arange(3.0)] * 9, [f"s{i}" for i in range(9)]).plot()
    assert len(display.lines_) == 9 and display.ax_.get_legend() is None


def test_none_are_kept(message):
    for source in (
        load_benchmark("arc-challenge"),
        AnchorSelector(k=5, method="random").fit(DATA.responses),
    ):
        assert "keeps no lower bounds" in message(LowerBoundDisplay.from_estimator, source)
    with pytest.raises(NotFittedError):
        LowerBoundDisplay.from_estimator(IRTRegressor())
