"""list, show, fetch, anchors: what there is and what to ask."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING

import click

from benchmarks_registry._names import canonical_name, known_files
from benchmarks_registry.cli import _options, _output
from benchmarks_registry.cli._load import few_models_notes, load, measuring_note

if TYPE_CHECKING:
    from benchmarks_registry import TinyBenchmark

# Where shares and points of 100 stand in one table.
HEADERS = {
    "error": "error\n(of 100)",
    "heldout_mean": "heldout_mean\n(of 100)",
    "heldout_worst": "heldout_worst\n(of 100)",
}


@click.command("list")
@_options.output_options()
def list_(json_wanted: bool, output: str | None) -> None:
    """List the benchmarks that can be named.

    Bundled ones work offline; those of kind "download" are the authors' release, fetched once.
    error: mean over the scenarios on held-out models, in points of 100.

    Example: sklearn-irt list
    """
    _output.check_target(output)
    from benchmarks_registry import list_benchmarks

    table = list_benchmarks()
    rows = _output.rows_of(table)
    _output.show(rows, table, headers=HEADERS, json_wanted=json_wanted, output=output)


def about(tiny: TinyBenchmark) -> dict:
    """What is known of a benchmark, but its figures."""
    from benchmarks_registry._benchmark import DESCRIPTION_FIELDS

    estimator = tiny.estimator
    return {
        "name": tiny.name,
        "items": len(tiny.items),
        "anchors": len(tiny.anchors()),
        "models": len(estimator.training_models_),
        "range": [estimator._bounds.low, estimator._bounds.high],
        **{field: tiny.info[field] for field in DESCRIPTION_FIELDS if tiny.info.get(field)},
    }


def typical_errors(tiny: TinyBenchmark) -> list[float] | None:
    """Median standard error of each scenario, for models like the training models.

    None where no training models' answers are known.
    """
    import numpy as np

    # Taken for new models: as relatives of themselves they would have no error.
    strangers = copy.copy(tiny.estimator)
    strangers.relatives = False
    answers = np.array(strangers.training_responses_)
    if not len(answers):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = strangers._estimates_at(answers, strangers.anchors_, strangers.weights_)
    stds = strangers._bounds.width * found.stds[strangers.estimate]
    return np.median(stds, axis=0).tolist()


@click.command()
@_options.NAME
@_options.output_options()
def show(name: str, json_wanted: bool, output: str | None) -> None:
    """Show a benchmark: sizes, typical standard errors, source, licence, citation.

    std_error is the median over models like the training models, but relatives of none, in the
    unit of the responses; heldout_mean and heldout_worst, where recorded, are errors measured on
    held-out models, in points of 100.

    Example: sklearn-irt show helm-lite
    """
    _output.check_files({"--output": output}, {"NAME": name})
    tiny = load(name)
    table, facts = tiny.describe(), about(tiny)
    typical = typical_errors(tiny)
    if typical is not None:
        table["std_error"] = typical
    low, high = facts["range"]
    headers = HEADERS | {"std_error": f"std_error\n({low:g} to {high:g})"}
    document = facts | {"scenarios": _output.rows_of(table)}
    _output.show(
        document, table, facts=facts, headers=headers, json_wanted=json_wanted, output=output
    )
    _output.tell_all(few_models_notes(tiny))
    if "heldout_mean" not in table:
        _output.tell("note: no errors on held-out models are recorded in it")
        _output.tell(measuring_note(tiny, name))


@click.command()
@_options.NAME
@_options.output_options()
def fetch(name: str, json_wanted: bool, output: str | None) -> None:
    """Download one of the authors' released benchmarks, verify it and keep it.

    Others need no download; their file is named.

    Example: sklearn-irt fetch tinyMMLU
    """
    _output.check_files({"--output": output}, {"NAME": name})
    with _output.working(f"fetching {name}"):
        tiny = load(name)
    facts = {"name": tiny.name, "anchors": len(tiny.anchors()), "file": _file_of(name, tiny)}
    _output.show(facts, facts=facts, json_wanted=json_wanted, output=output)


def _file_of(name: str, tiny: TinyBenchmark) -> str:
    from benchmarks_registry._release import converted_path
    from sklearn_irt.datasets._files import get_data_home

    known = known_files()
    if name.lower() in known:
        return str(known[name.lower()].path())
    if canonical_name(name) == tiny.name:
        return str(converted_path(tiny.name, get_data_home(None)))
    return name


@click.command()
@_options.NAME
@click.option("--scenario", help="Only those of this scenario.")
@click.option(
    "form",
    "--format",
    type=click.Choice(["ids", "json", "lm-eval"]),
    default="ids",
    show_default=True,
    help="One id a line; JSON with weights; or the documents of each task of "
    "lm-evaluation-harness.",
)
@_options.output_options()
def anchors(
    name: str, scenario: str | None, form: str, json_wanted: bool, output: str | None
) -> None:
    """Name the items to ask a new model.

    \b
    Examples: sklearn-irt anchors arc-challenge
              lm_eval ... --samples "$(sklearn-irt anchors mine.npz --format lm-eval)"
    """
    _output.check_files({"--output": output}, {"NAME": name})
    import pandas as pd

    from benchmarks_registry import _task_names

    tiny = load(name)
    asked = tiny.anchors(scenario)
    if form == "lm-eval":
        documents = _task_names.documents_of(tiny, asked)
        text = _output.as_json(documents, indent=None)
        _output.show(documents, text=text, json_wanted=json_wanted, output=output)
        return
    weights = pd.Series(tiny._weights, tiny.items["item"])[asked]
    labels = tiny.items.set_index("item")["scenario"][asked]
    document = {
        "benchmark": tiny.name,
        "anchors": [
            {"item": item, "scenario": label, "weight": weight}
            for item, label, weight in zip(asked, labels, weights, strict=True)
        ],
    }
    as_json = json_wanted or form == "json"
    if not as_json:
        _output.check_lines(asked)
    text = "".join(f"{item}\n" for item in asked)
    _output.show(document, text=text, json_wanted=as_json, output=output)
