"""The Wright map."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from benchmarks_registry import load_benchmark
from sklearn_irt import IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import WrightMapDisplay

matplotlib.use("Agg")
DATA = make_responses(n_models=30, n_items=60, n_dims=2, random_state=0)


@pytest.fixture(scope="module")
def irt():
    return IRTRegressor(n_dims=2).fit(DATA.responses)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_ability_is_the_logit_on_a_mean_item(irt):
    display = WrightMapDisplay.from_estimator(irt)
    logits = irt.ability_ @ irt.discrimination_.T  # of items of difficulty zero
    np.testing.assert_allclose(display.ability, logits.mean(axis=1))
    np.testing.assert_array_equal(display.difficulty, irt.difficulty_)
    assert np.corrcoef(display.ability, DATA.scores)[0, 1] > 0.9
    assert "along the mean discrimination" in display.ax_.get_ylabel()


def test_part_of_one_dimension(irt):
    parts = [WrightMapDisplay.from_estimator(irt, dimension=j).ability for j in range(2)]
    np.testing.assert_allclose(sum(parts), WrightMapDisplay.from_estimator(irt).ability)
    np.testing.assert_allclose(parts[1], irt.ability_[:, 1] * irt.discrimination_[:, 1].mean())


def test_bars_are_shares_on_one_scale(irt):
    display = WrightMapDisplay.from_estimator(irt)
    for bars, values, side in (
        (display.model_bars_, display.ability, -1),
        (display.item_bars_, display.difficulty, 1),
    ):
        widths = side * np.array([bar.get_width() for bar in bars])
        np.testing.assert_allclose(widths * len(values), np.histogram(values, display.edges_)[0])
        assert widths.sum() == pytest.approx(1.0)
        bottoms = [bar.get_y() for bar in bars]
        np.testing.assert_allclose(bottoms, display.edges_[:-1])
    labels = [text.get_text() for text in display.ax_.texts]
    assert labels == ["30 models", "60 items"]


def test_scenario_of_a_loaded_benchmark():
    tiny = load_benchmark("helm-lite")
    irt, own = tiny.estimator.irt_, (tiny.items["scenario"] == "gsm").to_numpy()
    display = WrightMapDisplay.from_estimator(tiny, scenario="gsm")
    np.testing.assert_array_equal(display.difficulty, irt.difficulty_[own])
    expected = irt.ability_ @ irt.discrimination_[own].mean(axis=0)  # no subscenarios
    np.testing.assert_allclose(display.ability, expected, rtol=1e-5)


def test_a_benchmark_without_models(message):
    bare = IRTRegressor(n_dims=2).fit(DATA.responses)
    bare.ability_ = bare.ability_[:0]
    assert "holds no models'" in message(WrightMapDisplay.from_estimator, bare)
