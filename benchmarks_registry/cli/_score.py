"""estimate, add-models, report: what new results say on a benchmark."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks_registry.cli import _options, _output
from benchmarks_registry.cli._load import few_models_notes, load

if TYPE_CHECKING:
    import pandas as pd

# Rows of a table on the terminal beside which there is room for more words.
MAX_DETAILED = 30
# Smaller standard errors, as shares of the range of scores, are rounding errors.
NO_ERROR = 1e-8


def read_answers(tiny: Any, results: tuple[str, ...], reading: dict[str, Any]) -> pd.DataFrame:
    """Answers on a benchmark, and what is to be said about them."""
    from benchmarks_registry.cli._results import (
        Reading,
        left_out_notes,
        read_for,
        warn_about_scoring,
    )

    table = read_for(tiny, results, Reading.of(**reading))
    warn_about_scoring(tiny, table)
    _output.tell_all(left_out_notes(table))
    return table


@click.command()
@_options.NAME
@_options.results_argument()
@_options.reading_options
@click.option(
    "interval", "--coverage", type=click.FloatRange(0, 1, True, True), default=0.9,
    show_default=True, help="Of the interval from low to high.",
)  # fmt: skip
@_options.output_options()
def estimate(
    name: str,
    results: tuple[str, ...],
    interval: float,
    json_wanted: bool,
    output: str | None,
    **reading: Any,
) -> None:
    """Estimate the full score of one or several models from their answers to the anchors.

    RESULTS need not hold all anchors; answers to other items of the benchmark are used too. The
    figures are in the unit of the responses (shares of 1 where these are right or wrong).

    \b
    Examples: sklearn-irt estimate arc-challenge lm_eval_output/my__model
              sklearn-irt estimate tinyGSM8k output --filter flexible-extract
              sklearn-irt estimate mine.npz answers.csv --json
    """
    _output.check_files({"--output": output}, {"NAME": name, "RESULTS": results})
    from benchmarks_registry.cli._results import coverage, partial_notes
    from sklearn_irt.logs import left_out

    tiny = load(name)
    table = read_answers(tiny, results, reading)
    answered = coverage(tiny, table)
    _output.tell_all(partial_notes(answered))
    _output.tell_all(few_models_notes(tiny))
    with _output.working("estimating"):
        found = tiny.estimate(table, coverage=interval)
    rounding = found["std_error"] < NO_ERROR * tiny.estimator._bounds.width
    found["std_error"] = found["std_error"].mask(rounding, 0.0)
    counts = answered.set_index(["model", "scenario"])
    rows = _output.rows_of(found)
    for row in rows:
        of_model = counts.loc[row["model"]]
        parts = of_model.sum() if row["scenario"] not in of_model.index else None
        row |= (of_model.loc[row["scenario"]] if parts is None else parts).to_dict()
    document = {
        "benchmark": tiny.name,
        "coverage": interval,
        "estimates": rows,
        "left_out": _output.rows_of(left_out(table)),
    }
    _output.show(document, found, json_wanted=json_wanted, output=output)
    if _output.on_terminal(json_wanted, output) and len(rows) <= MAX_DETAILED:
        for model, relatives in dict.fromkeys((row["model"], row["relatives"]) for row in rows):
            _output.tell(f"note: {model} resembles {relatives}")


@click.command("add-models")
@_options.NAME
@_options.results_argument()
@_options.target_option("The new benchmark file.")
@click.option("called", "--name", metavar="TEXT", help="Of the new benchmark; default: as it was.")
@_options.reading_options
@_options.JSON
def add_models(
    name: str,
    results: tuple[str, ...],
    output: str,
    called: str | None,
    json_wanted: bool,
    **reading: Any,
) -> None:
    """Make models that were run in full relatives of the models to come.

    The benchmark is written to a new file; the items and their weights stay as they are.

    Example: sklearn-irt add-models arc-challenge output/our__first -o ours.npz
    """
    _output.check_files({"--output": output}, {"NAME": name, "RESULTS": results})
    import pandas as pd

    from benchmarks_registry import save_benchmark
    from benchmarks_registry.cli._results import matrix_of

    tiny = load(name)
    table = read_answers(tiny, results, reading)
    counts = table[table["score"].notna()].groupby("model")["item"].nunique()
    added = [(model, int(counts.get(model, 0))) for model in table["model"].unique()]
    n_items = len(tiny.items)
    _output.tell_all(
        f"note: {model} answered {count} of the {_output.counted(n_items, 'item')}"
        for model, count in added if count < n_items
    )  # fmt: skip
    tiny.add_models(matrix_of(table))
    path = save_benchmark(tiny, output, name=called or tiny.name)
    facts = {
        "file": str(path),
        "name": called or tiny.name,
        "models": len(tiny.estimator.training_models_),
        "added": [{"model": model, "items_answered": count} for model, count in added],
    }
    table = pd.DataFrame(added, columns=["added", "items_answered"])
    _output.show(facts, table, facts=facts, json_wanted=json_wanted)


@click.command()
@_options.NAME
@_options.results_argument(required=False)
@_options.target_option("The HTML page.")
@click.option("--title", metavar="TEXT", help="Of the page.")
@click.option(
    "--comparison",
    type=_options.FILE,
    metavar="FILE",
    help="Errors that `sklearn-irt compare --table` wrote.",
)
@_options.reading_options
@_options.JSON
def report(
    name: str,
    results: tuple[str, ...],
    output: str,
    title: str | None,
    comparison: str | None,
    json_wanted: bool,
    **reading: Any,
) -> None:
    """Write one HTML page about a benchmark, and the estimates of the models of RESULTS.

    Example: sklearn-irt report mine.npz lm_eval_output/my__model -o page.html
    """
    sources = {"NAME": name, "RESULTS": results, "--comparison": comparison}
    _output.check_files({"--output": output}, sources)
    from benchmarks_registry import write_report
    from benchmarks_registry.cli._results import coverage, partial_notes

    tiny = load(name)
    table = None
    if results:
        table = read_answers(tiny, results, reading)
        _output.tell_all(partial_notes(coverage(tiny, table)))
    errors = None if comparison is None else _comparison(comparison)
    with _output.working("writing the report"):
        path = write_report(output, tiny, table, comparison=errors, title=title)
    facts = {
        "file": str(path),
        "benchmark": tiny.name,
        "models": [] if table is None else list(table["model"].unique()),
    }
    _output.show(facts, facts=facts, json_wanted=json_wanted)


def _comparison(path: str) -> pd.DataFrame:
    """The table that `compare --table` wrote; only a local file is read, gzip's also.

    Raises
    ------
    OSError
        Where there is no such file.
    ValueError
        Where it is damaged, or another table.
    """
    import pandas as pd

    from sklearn_irt.evaluation import summarize
    from sklearn_irt.logs import _reading

    with _reading.open_bytes(Path(path)) as file:
        data = file.read()
    wrong = f"{path}: not a table that `sklearn-irt compare --table` wrote"
    try:
        found = pd.read_csv(io.BytesIO(data))
        summarize(found)
    except Exception as error:  # of pandas and numpy, for whatever a file may hold
        raise ValueError(f"{wrong}: {error or type(error).__name__}") from None
    return found
