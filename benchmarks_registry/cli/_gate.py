"""gate: whether one model is worse than another, as an exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from benchmarks_registry.cli import _options, _output
from benchmarks_registry.cli._load import few_models_notes, load
from benchmarks_registry.cli._score import read_answers

if TYPE_CHECKING:
    import pandas as pd

WORSE = 1
HEADERS = {"probability_lower": "probability\nlower"}


@click.command()
@_options.NAME
@click.argument("candidate", type=_options.FILE, metavar="CANDIDATE")
@click.argument("reference", type=_options.FILE, metavar="REFERENCE")
@click.option(
    "--limit", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.95,
    show_default=True,
    help="Worse is a candidate that scores lower with a greater probability than this.",
)  # fmt: skip
@click.option(
    "--complete", is_flag=True, help="Refuse models that did not answer all of the anchors."
)
@_options.reading_options
@_options.output_options()
def gate(
    name: str,
    candidate: str,
    reference: str,
    limit: float,
    complete: bool,
    json_wanted: bool,
    output: str | None,
    **reading: Any,
) -> int:
    """Tell whether CANDIDATE is worse than REFERENCE, by their answers to the same anchors.

    Both are the results of one model, as `sklearn-irt estimate` takes them. The errors of two
    models that were asked the same have much in common, so a difference is known better than
    either score. Only answers to the anchors count here, while `estimate` uses those to other
    items too, so its scores may be others. low and high: the 90 % interval of the difference
    (candidate less reference); probability_lower: that the candidate scores lower.

    Exit status: 0 where it is not worse; 1 where probability_lower of the whole benchmark (the
    last row) is above --limit; 2 for bad input.

    Example: sklearn-irt gate mine.npz output/new output/old --limit 0.95
    """
    sources = {"NAME": name, "CANDIDATE": candidate, "REFERENCE": reference}
    _output.check_files({"--output": output}, sources)
    tiny = load(name)
    sides = {
        side: _of_one_model(tiny, side, path, complete, reading)
        for side, path in (("candidate", candidate), ("reference", reference))
    }
    _output.tell_all(few_models_notes(tiny))
    names = {side: model for side, (model, _) in sides.items()}
    found = tiny._compare(*(answers for _, answers in sides.values()))
    table = found.droplevel(["a", "b"]).rename(columns={"a": "candidate", "b": "reference"})
    probability = float(table["probability_lower"].iloc[-1])
    worse = probability > limit
    facts = {**names, "limit": limit, "verdict": "worse" if worse else "not worse"}
    document = {
        "benchmark": tiny.name, **names, "limit": limit, "coverage": 0.9, "worse": worse,
        "differences": _output.rows_of(table),
    }  # fmt: skip
    _output.show(
        document, table, facts=facts, headers=HEADERS, json_wanted=json_wanted, output=output
    )
    return WORSE if worse else 0


def _of_one_model(
    tiny: Any, side: str, path: str, complete: bool, reading: dict[str, Any]
) -> tuple[str, pd.Series]:
    """The name of the model in some results, and its answers by item.

    Raises
    ------
    ValueError
        Where they are of several models, or hold no answer to an anchor, or not all of them
        though all are asked for.
    """
    from benchmarks_registry.cli._results import coverage, matrix_of

    table = read_answers(tiny, (path,), reading)
    matrix = matrix_of(table)
    if len(matrix) != 1:
        raise ValueError(f"the {side} {path} holds {len(matrix)} models; give the results of one")
    answered = coverage(tiny, table)
    lacking = answered[answered["anchors_answered"] < answered["anchors"]]
    if not answered["anchors_answered"].any():
        raise ValueError(f"the {side} {path} answers none of the anchors of {tiny.name}")
    for row in lacking.itertuples(index=False):
        text = (
            f"the {side} {row.model} answered {row.anchors_answered} of the "
            f"{_output.counted(row.anchors, 'anchor')} of {row.scenario}"
        )
        if complete:
            raise ValueError(f"{text}; leave --complete out to compare all the same")
        _output.tell(f"warning: {text}")
    return str(matrix.index[0]), matrix.iloc[0]
