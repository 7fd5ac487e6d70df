"""Coverage of the intervals of a comparison."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from sklearn_irt.plots import CoverageDisplay

matplotlib.use("Agg")
STRATEGIES = ("random/naive", "random/gpirt", "irt/gpirt")


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    """As `compare_strategies` gives, with right intervals."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        [(s, k, m, "all") for s in STRATEGIES for k in (30, 100) for m in range(20)],
        columns=["strategy", "k", "model", "scenario"],
    )
    true = rng.uniform(0.2, 0.8, len(table))
    std = 0.3 / np.sqrt(table["k"])
    estimated = true + std * rng.standard_normal(len(table))
    low, high = estimated - 1.645 * std, estimated + 1.645 * std
    return table.assign(true=true, estimated=estimated, std=std, low=low, high=high)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def part(results, strategy, k) -> pd.DataFrame:
    return results[(results["strategy"] == strategy) & (results["k"] == k)]


def test_coverage_by_k(results):
    display = CoverageDisplay.from_results(results)
    for strategy in STRATEGIES:
        found = []
        for k in (30, 100):
            rows = part(results, strategy, k)
            found.append(rows["true"].between(rows["low"], rows["high"]).mean())
        x, y = display.lines_[strategy].get_data()
        assert x.tolist() == [30, 100] and y.tolist() == found
    band = display.band_.get_paths()[0].vertices[:, 1]
    half = 1.6449 * np.sqrt(0.9 * 0.1 / 20)
    assert [band.min(), band.max()] == pytest.approx([0.9 - half, 1.0], abs=1e-4)  # cut at 1
    assert "coverage of 90% intervals" in display.ax_.get_ylabel()


def test_coverage_by_level(results):
    display = CoverageDisplay.from_results(results, by="level", strategies="irt/gpirt", k=30)
    rows = part(results, "irt/gpirt", 30)
    levels, found = display.lines_["irt/gpirt"].get_data()
    assert levels[0] == 0.1 and levels[-1] == 0.95 and len(levels) == 10
    for level, coverage in zip(levels, found, strict=True):
        low, high = norm.interval(level, rows["estimated"], rows["std"])
        assert coverage == rows["true"].between(low, high).mean()
    assert set(CoverageDisplay.from_results(results, by="level").lines_) == set(STRATEGIES)


def test_strategies_without_intervals(results, message):
    bare = results.copy()
    bare.loc[bare["strategy"] == "random/naive", ["std", "low", "high"]] = np.nan
    for by in ("k", "level"):
        assert list(CoverageDisplay.from_results(bare, by=by).lines_) == list(STRATEGIES[1:])
    show = CoverageDisplay.from_results
    assert "'random/naive' has no figures" in message(show, bare, strategies=["random/naive"])
    assert "they are NaN" in message(show, bare.assign(low=np.nan))


def test_a_single_k_has_the_strategies_side_by_side(results):
    display = CoverageDisplay.from_results(results[results["k"] == 30])
    x = [display.lines_[strategy].get_xdata()[0] for strategy in STRATEGIES]
    np.testing.assert_allclose(x, 30 + np.array([-1, 0, 1]) / 3)
    band = display.band_.get_paths()[0].vertices
    assert [band[:, 0].min(), band[:, 0].max()] == [29.5, 30.5]


def test_wrong_settings(results, message):
    show = CoverageDisplay.from_results
    assert 'by must be "k" or "level"' in message(show, results, by="strategy")
    assert "coverage must be" in message(show, results, nominal=90)
