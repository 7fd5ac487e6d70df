"""build, compare: what the results of models that were run in full teach."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks_registry._names import is_name
from benchmarks_registry.cli import _options, _output
from benchmarks_registry.cli._load import few_models_notes, measuring_note

if TYPE_CHECKING:
    import numpy as np

    from sklearn_irt.logs import ResponseMatrix

METHODS = ["design", "information", "irt", "correctness", "random"]
DUPLICATES = click.option(
    "--duplicates",
    type=click.Choice(["error", "mean", "first", "last"]),
    default="error",
    show_default=True,
    help="Where a model answers an item more than once.",
)
DIMS = 5
N_DIMS = click.option(
    "--n-dims", type=click.IntRange(1), default=DIMS, show_default=True, help="Of the IRT model."
)
SEED = click.option("--seed", type=click.IntRange(0, 2**32 - 1), default=0, show_default=True)


def _jobs(context: click.Context, parameter: click.Parameter, jobs: int | None) -> int | None:
    if jobs == 0:
        raise click.BadParameter("0 is no number of fits; give 1 or more, or -1")
    return jobs


def _bounds(
    context: click.Context, parameter: click.Parameter, bounds: tuple[float, float] | None
) -> tuple[float, float] | None:
    if not bounds:
        return None
    low, high = bounds
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise click.BadParameter(f"LOW must be below HIGH, both finite, got {low:g} {high:g}")
    return bounds


JOBS = click.option(
    "--jobs", type=int, callback=_jobs, help="Fits at the same time; -1: one a core."
)
GROUPS = click.option(
    "groups", "--no-groups", is_flag=True, flag_value=False, default=True,
    help="Every task of lm-evaluation-harness is a scenario, also those of a group.",
)  # fmt: skip
RANGE = click.option(
    "bounds", "--range", nargs=2, type=float, metavar="LOW HIGH", callback=_bounds,
    help="Lowest and highest possible score, if not 0 and 1.",
)  # fmt: skip


def read_matrix(
    results: Sequence[str], reading: dict[str, Any], duplicates: str, n_dims: int
) -> ResponseMatrix:
    """The responses of the models, and on the standard error what is missing in them.

    Raises
    ------
    ValueError
        Where they are too few, for a model or for so many dimensions.
    """
    from benchmarks_registry.cli._results import Reading, chosen_metric_notes, read
    from sklearn_irt.logs import pivot

    how = Reading.of(**reading)
    table = read(results, how)
    matrix = pivot(table, duplicates=duplicates)
    _output.tell_all(chosen_metric_notes(table, how))
    report = matrix.report().splitlines()
    _output.tell_all(f"note: {line}" for line in report if not line.startswith("conflict: "))
    n_models, n_items = matrix.responses.shape
    if n_models < 2:
        models = _output.counted(n_models, "model")
        raise ValueError(f"the results are of {models}; give those of several")
    for number, noun in ((n_models, "model"), (n_items, "item")):
        if n_dims > max(number, DIMS):
            raise ValueError(
                f"--n-dims {n_dims} is more than the {_output.counted(number, noun)} of the results"
            )
    unscored = matrix.responses.isna().to_numpy().all(axis=1)
    if unscored.any():
        model = matrix.responses.index[int(unscored.argmax())]
        raise ValueError(f"the model {model!r} has no score in the results; leave its logs out")
    return matrix


def labels_of(matrix: ResponseMatrix) -> np.ndarray | None:
    """Scenario, or scenario and subscenario, of each item; None where none is known."""
    items = matrix.items
    if items["scenario"].isna().all():
        return None
    for item in items["item"][items["scenario"].isna()]:
        raise ValueError(f"the item {item!r} has no scenario, but others have one")
    if items["subscenario"].isna().all():
        return items["scenario"].to_numpy(dtype=object)
    return items[["scenario", "subscenario"]].to_numpy(dtype=object)


def anchors_asked(values: Sequence[str]) -> Any:
    """The k of AnchorSelector: a number, a share, or one for each scenario."""
    given = _options.by_task(values, "k")
    if given is None:
        return 100
    if isinstance(given, str):
        return _number(given)
    return {scenario: _number(value) for scenario, value in given.items()}


def _number(text: str) -> int | float:
    try:
        number = float(text) if set(text) & set(".e") else int(text)
    except ValueError:
        raise click.BadParameter(f"--k is a number of items or a share, got {text!r}") from None
    if not number > 0 or (isinstance(number, float) and not number <= 1):
        raise click.BadParameter(f"--k is at least 1 item, or a share in (0, 1], got {text!r}")
    return number


def metrics_of(matrix: ResponseMatrix) -> dict[str, str]:
    """The metric of each scenario, with the filter behind a comma where there is one.

    Scenarios whose answers were scored in several ways, or of whose scoring nothing is known, are
    left out.
    """
    import pandas as pd

    sources = matrix.provenance
    found: dict[str, str] = {}
    for scenario, rows in sources.groupby("scenario", sort=False):
        scorings = rows[["metric", "filter"]].drop_duplicates()
        metric, filter = scorings.iloc[0]
        if len(scorings) == 1 and not pd.isna(metric):
            named = "" if pd.isna(filter) or filter == "none" else f",{filter}"
            found[str(scenario)] = f"{metric}{named}"
    return found


@click.command()
@_options.results_argument()
@_options.target_option("The benchmark file.")
@click.option(
    "--k", multiple=True, metavar="[SCENARIO=]K",
    help="Anchors of each scenario: a number or a share; repeatable. Default: 100.",
)  # fmt: skip
@click.option(
    "--method", type=click.Choice(METHODS), default="design", show_default=True,
    help="How the anchors are chosen.",
)  # fmt: skip
@N_DIMS
@click.option(
    "--costs", type=_options.FILE, metavar="FILE|COLUMN",
    help="What items cost: a csv with the columns item and cost, or a column of the results.",
)  # fmt: skip
@_options.budget_option("Of the anchors of a scenario together")
@click.option("--name", metavar="TEXT", help="Of the benchmark; default: that of the file.")
@SEED
@JOBS
@RANGE
@DUPLICATES
@GROUPS
@_options.reading_options
@_options.JSON
def build(
    results: tuple[str, ...],
    output: str,
    k: tuple[str, ...],
    method: str,
    n_dims: int,
    costs: str | None,
    budget: float | None,
    name: str | None,
    seed: int,
    jobs: int | None,
    bounds: tuple[float, float] | None,
    duplicates: str,
    json_wanted: bool,
    **reading: Any,
) -> None:
    """Make a tiny benchmark from models that were run in full.

    RESULTS are the logs of some dozens of models, or a table with a row for each. What is missing
    in them and what was left out is told.

    \b
    Examples: sklearn-irt build lm_eval_output -o mine.npz
              sklearn-irt build scores.csv -o mine.npz --k 50 --costs tokens.csv --budget 20000
    """
    _options.check_budget(budget, costs)
    _output.check_files({"--output": output}, {"RESULTS": results, "--costs": costs})
    wanted = anchors_asked(k)
    called = name if name is not None else Path(output).stem
    if not called.strip():
        raise ValueError("--name is empty")
    import pandas as pd
    from sklearn.pipeline import make_pipeline

    from benchmarks_registry import _task_names, load_benchmark, save_benchmark
    from benchmarks_registry.cli._costs import read_costs
    from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor

    matrix = read_matrix(results, reading, duplicates, n_dims)
    pipe = make_pipeline(
        AnchorSelector(
            wanted,
            method=method,
            costs=read_costs(costs, results, matrix.responses.columns),
            budget=budget,
            irt=IRTRegressor(n_dims, n_jobs=jobs),
            scenarios=labels_of(matrix),
            response_range=bounds,
            random_state=seed,
        ),
        GPIRTEstimator(random_state=seed),
    )
    with _output.working(f"fitting {len(matrix.responses)} models"):
        pipe.fit(matrix.responses)
    metrics = metrics_of(matrix)
    path = save_benchmark(
        pipe,
        output,
        name=called,
        items=matrix.items,
        source=", ".join(matrix.provenance["harness"].unique()),
        description=f"made by sklearn-irt build, method {method}, seed {seed}",
        metric=_task_names.describe_metrics(metrics),
    )
    labels = pd.Series(matrix.items["scenario"]).fillna("all")
    chosen = labels.iloc[pipe[0].anchors_].value_counts()
    table = pd.DataFrame(
        {"items": labels.value_counts(sort=False), "anchors": chosen}
    ).rename_axis("scenario")  # fmt: skip
    table = table.loc[list(pipe[0].scenarios_)].astype(int)
    if metrics:
        table["metric"] = [metrics.get(scenario) for scenario in table.index]
    facts = {"file": str(path), "name": called, "models": len(matrix.responses)}
    document = facts | {
        "scenarios": _output.rows_of(table),
        "missing": _output.rows_of(matrix.missing),
        "dropped": _output.rows_of(matrix.dropped),
        "conflicts": matrix.conflicts,
    }
    _output.show(document, table, facts=facts, json_wanted=json_wanted)
    tiny = load_benchmark(path)
    _output.tell_all(few_models_notes(tiny))
    _output.tell(measuring_note(tiny, str(path)))


@click.command()
@_options.results_argument()
@click.option(
    "--strategy", multiple=True, metavar="ANCHORS/ESTIMATE",
    help='Such as "random/naive" or "design/default"; repeatable. Default: all.',
)  # fmt: skip
@click.option(
    "--k", type=click.IntRange(1), multiple=True, default=(30, 60, 100), show_default=True,
    help="Anchors of each scenario; repeatable.",
)  # fmt: skip
@click.option(
    "--cv", type=click.IntRange(2), default=5, show_default=True,
    help="Random splits; each holds out a quarter of the models, drawn anew.",
)  # fmt: skip
@click.option(
    "full", "--table", type=_options.FILE, metavar="FILE",
    help="Also write every error as csv, for `sklearn-irt report --comparison`.",
)  # fmt: skip
@N_DIMS
@SEED
@JOBS
@RANGE
@DUPLICATES
@GROUPS
@_options.reading_options
@_options.output_options()
def compare(
    results: tuple[str, ...],
    strategy: tuple[str, ...],
    k: tuple[int, ...],
    cv: int,
    full: str | None,
    n_dims: int,
    seed: int,
    jobs: int | None,
    bounds: tuple[float, float] | None,
    duplicates: str,
    json_wanted: bool,
    output: str | None,
    **reading: Any,
) -> None:
    """Measure the strategies on models of yours: repeated random splits, a quarter held out.

    Every split (--cv) draws the models anew; a model may be held out in several. Errors are in
    the unit of the responses, of the mean over the scenarios. Scores are estimated from the answers
    to the anchors only. To compare two models: sklearn-irt gate.

    Example: sklearn-irt compare lm_eval_output --k 30 --k 100
    """
    _output.check_files({"--table": full, "--output": output}, {"RESULTS": results})
    _refuse_benchmarks(results)
    from sklearn_irt.evaluation import compare_strategies, summarize

    matrix = read_matrix(results, reading, duplicates, n_dims)
    with _output.working(f"comparing on {len(matrix.responses)} models"):
        found = compare_strategies(
            matrix.responses,
            strategies=list(strategy) or None,
            k=tuple(k),
            cv=cv,
            scenarios=labels_of(matrix),
            response_range=bounds,
            n_dims=n_dims,
            n_jobs=jobs,
            random_state=seed,
        )
        table = summarize(found)
    if full is not None:
        _output.write_file(full, found.to_csv(index=False))
    _output.show(_output.rows_of(table), table, json_wanted=json_wanted, output=output)


def _refuse_benchmarks(results: Sequence[str]) -> None:
    """Hint at `gate` where a benchmark is given for results."""
    for path in results:
        if path.lower().endswith(".npz") or (not Path(path).exists() and is_name(path)):
            raise ValueError(
                f"{path} is a benchmark, but compare measures strategies on the RESULTS of many "
                f"models; to compare two models: sklearn-irt gate {path} CANDIDATE REFERENCE"
            )
