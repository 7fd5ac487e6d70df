"""One HTML page: what was asked, what the answers are worth, and how far to trust them."""

import errno
import os
import warnings
from datetime import date as Date
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks_registry import _report_sections as sections
from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._registry import _known, load_benchmark
from benchmarks_registry._report_cautions import cautions
from benchmarks_registry._report_scores import Evaluation, evaluate, legible
from sklearn_irt import __version__
from sklearn_irt._atomic import replace_atomically

# What the page shows: id of the heading, and name in the navigation.
SECTIONS = {
    "overview": ("ranking", "Ranking"),
    "estimates": ("estimates", "Estimates"),
    "cautions": ("care", "What to be careful about"),
    "relatives": ("relatives", "Relatives"),
    "plots": ("plots", "Plots"),
    "strategies": ("strategies", "Strategies compared"),
    "asked": ("asked", "What was asked"),
    "origin": ("provenance", "Provenance"),
}


def write_report(
    path: str | os.PathLike,
    benchmark: TinyBenchmark | str | os.PathLike,
    answers: Any = None,
    *,
    comparison: pd.DataFrame | None = None,
    true: Any = None,
    title: str | None = None,
    date: str | Date | None = None,
) -> Path:
    """Write one self-contained HTML page about a benchmark, or about models' answers to it.

    It needs no network and no script. The same input and date give the same bytes.

    Parameters
    ----------
    path : path-like
        Written atomically; its folder must exist.
    benchmark : TinyBenchmark, str or path-like
        Or what `load_benchmark` takes: a name or a file.
    answers : array-like, mapping, Series or DataFrame, default=None
        As for `TinyBenchmark.estimate`, of one or several models; a table that a reader of
        `sklearn_irt.logs` returned also tells where the answers come from. None: a page about
        the benchmark alone.
    comparison : DataFrame, default=None
        From `sklearn_irt.evaluation.compare_strategies`.
    true : number, mapping, Series or DataFrame, default=None
        Known full scores in the unit of the responses, to show beside the estimates: one model's
        by scenario, or the number for the whole benchmark; several models' by model, by (model,
        scenario), or a DataFrame with a row per model and a column per scenario.
    title : str, default=None
        Heading of the page.
    date : str or datetime.date, default=None
        When the page was written; None: now, by the clock of this machine.

    Returns
    -------
    Path
        The path that was given.

    Raises
    ------
    ValueError
        Where the benchmark, an item, a model or a scenario is unknown, a true score is no number
        or outside the response range, or the comparison lacks a column or has a wrong cell.
    TypeError
        Where the benchmark or the comparison is of another kind.
    FileNotFoundError, IsADirectoryError
        Where the page cannot be put.
    ImportError
        Without jinja2 and matplotlib, the extra ``cli``.

    Examples
    --------
    >>> import tempfile
    >>> from benchmarks_registry import load_benchmark, write_report
    >>> tiny = load_benchmark("arc-challenge")
    >>> answers = dict.fromkeys(tiny.anchors(), 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/report.html", tiny, answers).read_text("utf-8")
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    path = Path(path)
    _check_target(path)
    template = _template()
    tiny, file = _opened(benchmark)
    if title is not None and not isinstance(title, str):
        raise ValueError(f"title must be a string, got {title!r}")
    if comparison is not None:
        comparison = _read_comparison(comparison)
    if true is not None and answers is None:
        raise ValueError("true are the scores of the models that answered: give answers too")
    evaluation = None if answers is None else evaluate(tiny, answers, true)
    if date is None:
        date = datetime.now().astimezone().isoformat(" ", "minutes")
    with warnings.catch_warnings():
        # Those of the estimate are on the page; the others are about fonts, which browsers have.
        warnings.simplefilter("ignore", UserWarning)
        content = _page(tiny, file, evaluation, comparison, title)
    page = template.render(content, date=str(date), version=__version__)
    replace_atomically(path, page.encode())
    return path


def _check_target(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Give the page a file name in this folder", str(path))
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "Create the folder of this file first", str(path))


def _template() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f'write_report needs {error.name} (pip install "sklearn-irt[cli]")'
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def _opened(benchmark: Any) -> tuple[TinyBenchmark, Path | None]:
    """The benchmark, and its file where there is one."""
    if isinstance(benchmark, TinyBenchmark):
        return benchmark, None
    if not isinstance(benchmark, (str, os.PathLike)):
        raise TypeError(
            "benchmark must be a TinyBenchmark, or the name or file of one, got "
            f"{type(benchmark).__name__}; save_benchmark makes a file of a fitted estimator"
        )
    tiny, name = load_benchmark(benchmark), os.fsdecode(benchmark)
    if os.path.isfile(name):
        return tiny, Path(name)
    known = _known().get(name.lower())
    return tiny, None if known is None else Path(known.path())


def _read_comparison(comparison: Any) -> pd.DataFrame:
    from sklearn_irt.evaluation._table import ALL, check_results

    comparison = check_results(comparison, called="comparison")
    if not (comparison["scenario"] == ALL).any():
        raise ValueError(f"comparison has no row of the scenario {ALL!r}")
    return comparison


def _page(
    tiny: TinyBenchmark,
    file: Path | None,
    evaluation: Evaluation | None,
    comparison: pd.DataFrame | None,
    title: str | None,
) -> dict:
    """All that the template shows."""
    from benchmarks_registry._report_figures import benchmark_figures, comparison_figures

    estimator = tiny.estimator
    models = evaluation.models if evaluation else []
    if title is None:
        about = {0: "The tiny benchmark", 1: f"{models[0] if models else ''} on"}
        title = f"{about.get(len(models), f'{len(models)} models on')} {tiny.name}"
        title = title[:1].upper() + title[1:] if models in ([], ["the model"]) else title
    page = {
        "title": title,
        "subtitle": (
            f"{tiny.name}: {len(tiny.anchors())} questions stand for {len(tiny.items):,} in "
            f"{', '.join(estimator.scenarios_)}"
        ),
        "kind": sections.KINDS[estimator.estimate],
        "known": bool(evaluation is not None and evaluation.table["true"].notna().any()),
        "headline": None if evaluation is None else sections.headline(tiny, evaluation),
        "overview": None if len(models) < 2 else sections.overview(tiny, evaluation),
        "estimates": None if evaluation is None else sections.estimates(tiny, evaluation),
        "cautions": cautions(tiny, evaluation),
        "relatives": None if evaluation is None else sections.relatives(tiny, evaluation),
        "plots": benchmark_figures(tiny, evaluation),
        "strategies": None,
        "asked": sections.asked(tiny, evaluation),
        "origin": sections.origin(tiny, file),
        "provenance": sections.sources(evaluation),
    }
    if comparison is not None:
        from sklearn_irt.evaluation import summarize

        summary = summarize(comparison).reset_index()
        page["strategies"] = sections.strategies(tiny, comparison, summary)
        page["strategies"]["plots"] = comparison_figures(comparison, summary)
    page["sections"] = [
        {"id": id_, "title": name}
        for part, (id_, name) in SECTIONS.items()
        if page[part] is not None
    ]
    return page
