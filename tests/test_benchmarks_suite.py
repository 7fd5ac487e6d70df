"""The benchmarks of asv_benchmarks run, at tiny size; with peers where these are installed."""

import importlib
import itertools
import json
import pkgutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("time_", "peakmem_", "track_")
ROOMS = ("abilities", "adaptive", "anchors", "estimator", "fit", "registry", "versus")


@pytest.fixture(scope="module")
def suite():
    """The modules of the suite by name, imported at tiny size."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SKLEARN_IRT_ASV_SIZE", "tiny")
        patch.syspath_prepend(str(ROOT))
        package = importlib.import_module("asv_benchmarks")
        names = [module.name for module in pkgutil.iter_modules(package.__path__)]
        yield {name: importlib.import_module(f"asv_benchmarks.{name}") for name in names}
    for name in [name for name in sys.modules if name.partition(".")[0] == "asv_benchmarks"]:
        del sys.modules[name]


def classes_of(module):
    """What asv finds: classes with methods of the kinds it knows."""
    for found in vars(module).values():
        if isinstance(found, type) and found.__module__ == module.__name__:
            methods = [name for name in vars(found) if name.startswith(KINDS)]
            if methods:
                yield found, methods


def test_every_room_is_tested(suite):
    assert {name for name, module in suite.items() if any(classes_of(module))} == set(ROOMS)


@pytest.mark.parametrize("room", ROOMS)
# What peers warn of is not ours.
@pytest.mark.filterwarnings("ignore")
def test_benchmarks_run(suite, room):
    ran, skipped = 0, []
    for kind, methods in classes_of(suite[room]):
        cache = (kind().setup_cache(),) if hasattr(kind, "setup_cache") else ()
        for values in itertools.product(*getattr(kind, "params", ())):
            benchmark = kind()
            try:
                benchmark.setup(*cache, *values)
            except NotImplementedError as reason:  # as asv does
                skipped.append(str(reason))
                continue
            for name in methods:
                value = getattr(benchmark, name)(*cache, *values)
                assert not name.startswith("track_") or isinstance(value, int | float)
            if hasattr(benchmark, "teardown"):
                benchmark.teardown(*values)
            ran += 1
    if not ran:
        pytest.skip("; ".join(skipped))
    for reason in skipped:
        assert "not installed" in reason or "SKLEARN_IRT_SHARED" in reason


@pytest.mark.filterwarnings("ignore")
def test_ratios_fill_the_table(suite, tmp_path, monkeypatch, capsys):
    ratios = suite["ratios"]
    name = "estimate / published function"
    monkeypatch.setattr(ratios, "COMPARISONS", [name, "fit / absent"])
    monkeypatch.setitem(
        suite["comparisons"].COMPARISONS,
        "fit / absent",
        lambda: suite["peers"].require("ab_sent", "x"),
    )
    page = tmp_path / "page.rst"
    page.write_text("Before\n\n.. begin ratios\n\nold\n\n.. end ratios\n\nAfter\n")
    assert ratios.main(["--page", str(page), "--json", str(tmp_path / "all.json")]) == 0
    text = page.read_text()
    assert "old" not in text and text.startswith("Before") and text.endswith("After\n")
    assert f"{name}  20 answers, 200 items" in text and "x is not installed" in text
    found = json.loads((tmp_path / "all.json").read_text())
    assert found[name]["ratio"] > 0 and len(found[name]["ours"]) == len(found[name]["peer"]) > 1
    assert name in capsys.readouterr().out


def test_grid_prints_its_seconds(suite, capsys):
    assert suite["ratios"].main(["--grid", "--jobs", "1"]) == 0
    assert capsys.readouterr().out.endswith(" s, n_jobs=1\n")


def test_pipelines_print_their_seconds(suite, capsys):
    assert suite["ratios"].main(["--pipeline"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.rpartition(": ")[0] for line in lines] == [
        f"20 x {n_items}, d=1, {method}" for n_items in (70, 143) for method in ("irt", "design")
    ]


def test_ratio_is_the_median_of_pairs(suite):
    comparison = suite["comparisons"].Comparison("1 x 1", [1.0, 2.0, 1.0], [3.0, 2.0, 9.0])
    assert comparison.ratio == 3.0 and comparison.likelihood_gain != comparison.likelihood_gain
    assert suite["ratios"].row(comparison)[1:5] == ("1", "3", "3", "1 to 9")


def test_page_has_the_markers():
    lines = (ROOT / "docs" / "speed.rst").read_text().splitlines()
    assert lines.count(".. begin ratios") == lines.count(".. end ratios") == 1
