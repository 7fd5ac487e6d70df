"""All plots: they are legible, draw where they are told and leave matplotlib as it was."""

import importlib
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import sklearn_irt
from sklearn_irt import plots
from sklearn_irt.plots._style import (
    COLOURS,
    DASHES,
    MARKERS,
    read_unit,
    shorten,
    strategy_styles,
    style,
)

matplotlib.use("Agg")
ROWS = pd.MultiIndex.from_product([["random/naive", "irt/gpirt"], [30, 60]])
LONG = "an-organisation/a-model-with-a-very-long-name-7b-instruct-v0.3"
SCENARIOS = ["maths", "a scenario with a name far too long for an axis", "(all)"]


def grid(start: float) -> pd.DataFrame:
    return pd.DataFrame(start + 0.1 * np.eye(3)[:2], [LONG, "other"], SCENARIOS)


def displays() -> dict:
    """One of each, from arrays."""
    k_index = ROWS.set_names(["strategy", "k"])
    relatives = pd.Index([LONG, " = ".join([LONG] * 3), "(none)"], name="relative")
    return {
        "curves": plots.ItemCurvesDisplay(
            np.linspace(-3, 3, 5), np.linspace(0, 1, 20).reshape(4, 5), [LONG, "b", "$x$", "_c"]
        ),
        "map": plots.ItemMapDisplay(
            np.ones(6), np.arange(6.0), np.array([0, 2]), np.array([0.4, 0.6])
        ),
        "wright": plots.WrightMapDisplay(
            np.arange(5.0), np.arange(9.0), axis_name="ability along the mean discrimination"
        ),
        "scores": plots.ScoresDisplay(np.array([0.2, 0.4]), np.array([0.3, 0.4])),
        "estimates": plots.EstimatesDisplay(grid(0.5), grid(0.4), grid(0.6), true=grid(0.45)),
        "strategies": plots.StrategiesDisplay(
            pd.DataFrame({"mean_error": 0.03, "standard_error": 0.01}, k_index)
        ),
        "errors": plots.ModelErrorsDisplay(
            pd.DataFrame({"strategy": "irt/gpirt", "k": 30, "true": [0.2, 0.7], "error": 0.02})
        ),
        "coverage": plots.CoverageDisplay(
            pd.DataFrame({"coverage": 0.85, "n_models": 20}, k_index), nominal=0.9
        ),
        "session": plots.SessionDisplay(np.linspace(0.4, 0.5, 9), np.full(9, 0.1), true=0.5),
        "bounds": plots.LowerBoundDisplay([np.arange(5.0), np.arange(3.0)], ["maths", LONG]),
        "relatives": plots.RelativesDisplay(
            pd.DataFrame({"weight": [0.99, 0.002, 0.008], "score": [0.5, 0.4, np.nan]}, relatives)
        ),
    }


@pytest.fixture(params=sorted(displays()))
def display(request):
    yield displays()[request.param]
    plt.close("all")


def test_every_display_is_tested_here():
    assert {type(display).__name__ for display in displays().values()} == set(plots.__all__)


def test_it_is_legible_at_600_pixels(display):
    display.plot()
    figure = display.figure_
    assert figure.get_size_inches()[0] == 6.0
    figure.set_dpi(100)
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(matplotlib.text.Text) if text.get_text().strip()]
    assert min(text.get_fontsize() for text in texts) >= 8
    # Nothing is cut at the edges of the figure.
    box, whole = figure.get_tightbbox(), figure.bbox_inches
    assert box.x0 >= -0.01 and box.y0 >= -0.01
    assert box.x1 <= whole.x1 + 0.01 and box.y1 <= whole.y1 + 0.01
    assert display.ax_.get_xlabel()
    assert display.ax_.get_ylabel() or display.ax_.get_yticklabels()


def test_it_draws_on_given_axes_and_leaves_the_settings_alone(display, monkeypatch):
    monkeypatch.setattr(plt, "show", lambda: pytest.fail("shown"))
    figure, (ax, other) = plt.subplots(1, 2)
    before = matplotlib.rcParams.copy()
    assert display.plot(ax) is display
    assert display.ax_ is ax and display.figure_ is figure
    assert ax.has_data() and not other.has_data()
    assert plt.get_fignums() == [figure.number]
    assert matplotlib.rcParams == before


def test_without_matplotlib_the_extra_is_named(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    with pytest.raises(ImportError, match=r'pip install "sklearn-irt\[plot\]"'):
        display.plot()


def test_the_import_needs_no_matplotlib(monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] == "matplotlib":
            monkeypatch.setitem(sys.modules, name, None)
        elif name.startswith("sklearn_irt.plots"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sklearn_irt, "plots", plots)  # what the import below changes
    again = importlib.import_module("sklearn_irt.plots")
    assert again is not plots and again.__all__ == plots.__all__


def test_series_are_told_apart_without_colour():
    looks = [style(number) for number in range(12)]
    assert len({(look["marker"], look["linestyle"]) for look in looks}) == 12
    assert len({tuple(look.values()) for look in looks}) == 12
    assert len(set(COLOURS)) == len(COLOURS) and len(set(MARKERS)) == len(MARKERS)


def test_a_strategy_looks_the_same_in_any_company():
    alone = strategy_styles(["irt/gpirt"])["irt/gpirt"]
    together = strategy_styles(["mine", "random/naive", "irt/gpirt", "irt/naive"])
    assert together["irt/gpirt"] == alone
    assert together["irt/naive"]["color"] == alone["color"]
    assert together["irt/naive"]["linestyle"] != alone["linestyle"]
    assert together["mine"]["color"] != alone["color"]
    assert all(look["linestyle"] in DASHES for look in together.values())


def test_names_are_shortened_in_the_middle():
    assert shorten("short") == "short"
    assert len(shorten(LONG)) == 28
    assert shorten(LONG).startswith("an-org") and shorten(LONG).endswith("instruct-v0.3")
    assert shorten("a\n b") == "a b"


def test_names_are_no_formulas_and_stay_in_legends():
    assert shorten("$5 and $6") == r"\$5 and \$6"
    assert not shorten("_hidden").startswith("_")


def test_percent_where_scores_are_shares():
    assert read_unit(None, [0.0, 1.0, np.nan]).percent
    assert not read_unit(None, [0.0, 1.2]).percent
    assert not read_unit((0, 10), [0.5]).percent
    assert read_unit((0, 1), [0.5]).label("score") == "score (%)"
    assert read_unit((0, 1)).error_label("error") == "error (percentage points)"
    assert read_unit((0, 10)).label("score") == "score (unit of the responses)"
    assert read_unit((0, 1)).text(0.123) == "12.3"


@pytest.mark.parametrize("wrong", [(1, 0), "ab", 3, (0, np.inf), (0, 1, 2)])
def test_a_wrong_range_is_refused(wrong, message):
    assert "response_range must be a pair of numbers" in message(read_unit, wrong, [0.5])
