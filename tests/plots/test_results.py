"""Plots of a comparison of strategies."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from sklearn_irt.plots import CoverageDisplay, ModelErrorsDisplay, StrategiesDisplay

matplotlib.use("Agg")
STRATEGIES = ("random/naive", "random/gpirt", "irt/gpirt")
SHOWS = (
    StrategiesDisplay.from_results,
    ModelErrorsDisplay.from_results,
    CoverageDisplay.from_results,
)


@pytest.fixture(scope="module")
def results() -> pd.DataFrame:
    """As `compare_strategies` gives, with errors that shrink with k and by strategy."""
    rng = np.random.default_rng(0)
    rows = []
    for number, strategy in enumerate(STRATEGIES):
        for k in (30, 100):
            for scenario in ("all", "maths"):
                true = rng.uniform(0.2, 0.8, 20)
                std = np.full(20, 0.3 / np.sqrt(k) / (1 + number))
                estimated = true + std * rng.standard_normal(20)
                rows.append(
                    pd.DataFrame(
                        {
                            "strategy": strategy,
                            "k": k,
                            "split": np.arange(20) % 4,
                            "model": [f"m{i}" for i in range(20)],
                            "scenario": scenario,
                            "true": true,
                            "estimated": estimated,
                            "std": std,
                            "low": estimated - 1.645 * std,
                            "high": estimated + 1.645 * std,
                        }
                    )
                )
    return pd.concat(rows, ignore_index=True)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def part(results, strategy, k, scenario="all") -> pd.DataFrame:
    keep = (results["strategy"] == strategy) & (results["k"] == k)
    return results[keep & (results["scenario"] == scenario)]


def test_mean_errors_and_standard_errors_over_the_splits(results):
    display = StrategiesDisplay.from_results(results)
    assert list(display.lines_) == list(STRATEGIES)
    for strategy in STRATEGIES:
        x, y = display.lines_[strategy].get_data()
        assert x.tolist() == [30, 100]
        band = display.bands_[strategy].get_paths()[0].vertices
        for k, mean in zip(x, y, strict=True):
            rows = part(results, strategy, k)
            by_split = abs(rows["estimated"] - rows["true"]).groupby(rows["split"]).mean()
            assert mean == pytest.approx(by_split.mean())
            error = by_split.std(ddof=1) / 2  # of four splits
            ends = band[band[:, 0] == k][:, 1]
            assert ends.min() == pytest.approx(mean - error)
            assert ends.max() == pytest.approx(mean + error)
    assert display.ax_.get_ylabel() == "mean absolute error (percentage points)"
    assert display.ax_.get_xticks().tolist() == [30, 100]


def test_one_split_has_the_standard_error_over_the_models(results):
    for one in (results.assign(split=0), results.drop(columns="split")):
        display = StrategiesDisplay.from_results(one)
        rows = part(one, "irt/gpirt", 30)
        error = abs(rows["estimated"] - rows["true"])
        found = display.table.loc[("irt/gpirt", 30)]
        assert found["mean_error"] == pytest.approx(error.mean())
        assert found["standard_error"] == pytest.approx(error.std(ddof=1) / np.sqrt(20))


def test_one_model_has_a_line_without_a_band(results):
    rows = results[results["model"] == "m3"]
    display = StrategiesDisplay.from_results(rows)
    assert display.table["standard_error"].isna().all()
    assert np.isfinite(display.lines_["irt/gpirt"].get_ydata()).all()


def test_scenario_and_strategies(results):
    display = StrategiesDisplay.from_results(results, strategies=["irt/gpirt"], scenario="maths")
    rows = part(results, "irt/gpirt", 100, "maths")
    assert list(display.lines_) == ["irt/gpirt"]
    expected = abs(rows["estimated"] - rows["true"]).mean()  # splits of the same size
    assert display.lines_["irt/gpirt"].get_ydata()[1] == pytest.approx(expected)


def test_scores_in_another_unit(results):
    scaled = results.assign(**{c: 10 * results[c] for c in ("true", "estimated")})
    assert "unit of the responses" in StrategiesDisplay.from_results(scaled).ax_.get_ylabel()
    shares = StrategiesDisplay.from_results(results, response_range=(0, 10))
    assert "unit of the responses" in shares.ax_.get_ylabel()


def test_errors_of_the_best_strategy_at_the_largest_k(results):
    display = ModelErrorsDisplay.from_results(results)
    assert list(display.points_) == ["irt/gpirt"]  # a third of the others' standard error
    rows = part(results, "irt/gpirt", 100)
    x, y = display.points_["irt/gpirt"].get_data()
    np.testing.assert_array_equal(x, rows["true"])
    np.testing.assert_allclose(y, abs(rows["estimated"] - rows["true"]))
    (text,) = display.ax_.get_legend().get_texts()
    assert text.get_text() == f"irt/gpirt, k=100: mean {100 * y.mean():.1f}"


def test_errors_of_given_strategies(results, message):
    display = ModelErrorsDisplay.from_results(results, strategies=STRATEGIES[:2], k=30)
    assert list(display.points_) == list(STRATEGIES[:2])
    rows = part(results, "random/naive", 30)
    np.testing.assert_array_equal(display.points_["random/naive"].get_xdata(), rows["true"])
    many = pd.concat([results.assign(strategy=f"s{i}") for i in range(5)])
    names = [f"s{i}" for i in range(5)]
    text = message(ModelErrorsDisplay.from_results, many, strategies=names)
    assert "5 of them, at most 4" in text


def test_the_largest_k_is_one_that_all_strategies_have(results, message):
    short = results[(results["strategy"] != "irt/gpirt") | (results["k"] == 30)]
    display = ModelErrorsDisplay.from_results(short, strategies=["random/naive", "irt/gpirt"])
    assert set(display.table["k"]) == {30}
    apart = short[(short["strategy"] == "irt/gpirt") | (short["k"] == 100)]
    assert "share: give k" in message(ModelErrorsDisplay.from_results, apart)


def test_categories_without_rows_are_not_drawn(results):
    some = results.assign(strategy=results["strategy"].astype("category"))
    some = some[some["strategy"] != "irt/gpirt"]
    for display in (SHOWS[0](some), SHOWS[2](some), SHOWS[2](some, by="level")):
        assert list(display.lines_) == list(STRATEGIES[:2])
    assert list(ModelErrorsDisplay.from_results(some).points_) == ["random/gpirt"]


@pytest.mark.parametrize("show", SHOWS)
def test_wrong_results(show, results, message):
    assert "no column 'estimated'" in message(show, results.drop(columns="estimated"))
    assert "compare_strategies" in message(show, results.drop(columns="k"))
    assert "the scenario 'x'; it has ['all', 'maths']" in message(show, results, scenario="x")
    assert "the strategy 'x'; it has" in message(show, results, strategies=["x"])
    with pytest.raises(TypeError, match="results must be the DataFrame .* got dict"):
        show({})
    assert "results has no rows" in message(show, results.iloc[:0])
    for column in ("strategy", "k", "split", "scenario"):
        bare = results.astype({column: object})
        bare.iloc[3, bare.columns.get_loc(column)] = None
        assert f"(NaN) in the column {column!r}, in row 3" in message(show, bare)
    for column in ("k", "true", "estimated", "std", "low", "high"):
        text = message(show, results.assign(**{column: results[column].astype(str)}))
        assert f"in the column {column!r}, in row 0: it must hold numbers" in text
    assert not plt.get_fignums()


def test_wrong_settings(results, message):
    assert "k 7; it has [30, 100]" in message(ModelErrorsDisplay.from_results, results, k=7)


def test_a_single_k_has_the_strategies_side_by_side(results):
    display = StrategiesDisplay.from_results(results[results["k"] == 30])
    x = [display.lines_[strategy].get_xdata()[0] for strategy in STRATEGIES]
    np.testing.assert_allclose(x, 30 + np.array([-1, 0, 1]) / 3)
    rows = display.table.loc[("irt/gpirt", 30)]
    band = display.bands_["irt/gpirt"].get_paths()[0].vertices
    assert np.ptp(band[:, 0]) == pytest.approx(0.8 / 3)
    assert np.ptp(band[:, 1]) == pytest.approx(2 * rows["standard_error"])
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == ["30"]
