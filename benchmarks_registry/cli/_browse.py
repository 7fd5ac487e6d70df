"""list, show, fetch, anchors: what there is and what to ask."""

import click
import pandas as pd

from benchmarks_registry import TinyBenchmark, _registry, _release, _task_names
from benchmarks_registry import list_benchmarks as list_all
from benchmarks_registry import load_benchmark as load
from benchmarks_registry._benchmark import DESCRIPTION_FIELDS
from benchmarks_registry.cli import _options, _output
from sklearn_irt.datasets._files import get_data_home


@click.command("list")
@_options.output_options()
def list_(json_wanted: bool, output: str | None) -> None:
    """List the benchmarks that can be named.

    Bundled ones work offline; those of kind "download" are the authors' release, fetched once.

    Example: sklearn-irt list
    """
    _output.check_target(output)
    table = list_all()
    _output.show(_output.rows_of(table), table, json_wanted=json_wanted, output=output)


def about(tiny: TinyBenchmark) -> dict:
    """What is known of a benchmark, but its figures."""
    estimator = tiny.estimator
    return {
        "name": tiny.name,
        "items": len(tiny.items),
        "anchors": len(tiny.anchors()),
        "models": len(estimator.training_models_),
        "range": [estimator._bounds.low, estimator._bounds.high],
        **{field: tiny.info[field] for field in DESCRIPTION_FIELDS if tiny.info.get(field)},
    }


@click.command()
@_options.NAME
@_options.output_options()
def show(name: str, json_wanted: bool, output: str | None) -> None:
    """Show a benchmark: sizes, errors on held-out models, source, licence, citation.

    Example: sklearn-irt show helm-lite
    """
    _output.check_target(output)
    tiny = load(name)
    table, facts = tiny.describe(), about(tiny)
    document = facts | {"scenarios": _output.rows_of(table)}
    _output.show(document, table, facts=facts, json_wanted=json_wanted, output=output)


@click.command()
@_options.NAME
@_options.output_options()
def fetch(name: str, json_wanted: bool, output: str | None) -> None:
    """Download one of the authors' released benchmarks, verify it and keep it.

    Others need no download; their file is named.

    Example: sklearn-irt fetch tinyMMLU
    """
    _output.check_target(output)
    with _output.working(f"fetching {name}"):
        tiny = load(name)
    facts = {"name": tiny.name, "anchors": len(tiny.anchors()), "file": _file_of(name, tiny)}
    _output.show(facts, facts=facts, json_wanted=json_wanted, output=output)


def _file_of(name: str, tiny: TinyBenchmark) -> str:
    known = _registry._known()
    if name.lower() in known:
        return str(known[name.lower()].path())
    if _release.canonical_name(name) == tiny.name:
        return str(_release.converted_path(tiny.name, get_data_home(None)))
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
    _output.check_target(output)
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
    text = "".join(f"{_output.plain(item)}\n" for item in asked)
    _output.show(document, text=text, json_wanted=json_wanted or form == "json", output=output)
