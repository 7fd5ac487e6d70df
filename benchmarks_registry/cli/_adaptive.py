"""adaptive: one question after the other."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from benchmarks_registry.cli import _options, _output
from benchmarks_registry.cli._load import load

if TYPE_CHECKING:
    from sklearn_irt import AdaptiveSession

MAX_ITEMS = 100
# Below this share of the items the training models' known answers help little in choosing.
FEW_KNOWN = 0.5
SKIPPED, STOPPED = {"nan", "skip", "s"}, {"quit", "q"}


class Stopped(Exception):
    """No more answers: the end of the input, or the user's wish."""


class FromFile:
    """Answers that are in a file."""

    def __init__(self, scores: dict[str, float], stop_at_unknown: bool):
        self._scores, self._stop = scores, stop_at_unknown

    def answer(self, item: str, session: AdaptiveSession) -> float:
        """The score of an item, NaN where the file has none and none will come."""
        if item not in self._scores and self._stop:
            raise Stopped
        return self._scores.get(item, math.nan)


class FromInput:
    """Answers that a person or a program gives on the standard input, a line each."""

    def __init__(self, json_wanted: bool, bounds: Any):
        self._json, self._lines, self._bounds = json_wanted, 0, bounds

    def answer(self, item: str, session: AdaptiveSession) -> float:
        """Ask, and read the score; ask a person again where it is none.

        Raises
        ------
        Stopped
            At the end of the input.
        ValueError
            Where a program gives no number, naming the line.
        """
        while True:
            self._ask(item, session)
            line = sys.stdin.readline()
            self._lines += 1
            text = line.strip().lower().lstrip("\ufeff")
            if not line or text in STOPPED:
                raise Stopped
            if text in SKIPPED:
                return math.nan
            try:
                score = float(text)
            except ValueError:
                wrong = f"{text!r} is no score; give a number, skip or quit"
                if not sys.stdin.isatty():
                    raise ValueError(f"standard input, line {self._lines}: {wrong}") from None
                _output.tell(wrong)
                continue
            low, high, learned = self._bounds
            if low <= score <= high or (learned and math.isfinite(score)):
                return score
            if not sys.stdin.isatty():
                return score  # the session refuses it
            _output.tell(f"{text} is not in [{low:g}, {high:g}]; give another, skip or quit")

    def _ask(self, item: str, session: AdaptiveSession) -> None:
        if self._json:
            _output.write(_output.as_json({"ask": item}, indent=None))
        elif not sys.stdin.isatty():
            _output.write(f"{item}\n")
        else:
            so_far = f"answers: {session.n_asked}"
            if session.n_asked:
                last = session.trace.iloc[-1]
                so_far += f", score {last['estimate']:.4g} \u00b1 {last['std_error']:.2g}"
            print(f"{item}  ({so_far}): ", end="", file=sys.stderr, flush=True)


@click.command()
@_options.NAME
@click.option(
    "--answers", type=_options.FILE, metavar="RESULTS", multiple=True,
    help="Take the answers from there, not from the standard input; repeatable.",
)  # fmt: skip
@click.option(
    "session_path", "--session", type=_options.FILE, metavar="FILE",
    help="Saved there after every answer; taken up again if it is there.",
)  # fmt: skip
@click.option("--scenario", help="Ask for the score of this scenario only.")
@click.option(
    "--max-items", type=click.IntRange(1),
    help=f"Stop after so many answers. Default: {MAX_ITEMS}, or none with another limit.",
)  # fmt: skip
@click.option(
    "--target-std", type=click.FloatRange(0, min_open=True), help="Stop at this standard error."
)
@click.option(
    "--costs", type=_options.FILE, metavar="FILE",
    help="What items cost: a csv with columns item and cost.",
)  # fmt: skip
@_options.budget_option("Of all answers together")
@click.option(
    "--batch", type=click.IntRange(1), default=1, show_default=True,
    help="Choose so many items at a time.",
)  # fmt: skip
@_options.reading_options
@_options.output_options("Write the estimate there, not to the standard output.")
def adaptive(
    name: str,
    answers: tuple[str, ...],
    session_path: str | None,
    scenario: str | None,
    max_items: int | None,
    target_std: float | None,
    costs: str | None,
    budget: float | None,
    batch: int,
    json_wanted: bool,
    output: str | None,
    **reading: Any,
) -> None:
    """Ask one item after the other, each the one that says most about the score.

    Items are asked on the terminal, or written to the standard output one a line where a program
    gives the answers, and the estimate after an empty line; --json has each in an object of its
    own. An answer is a number, "skip" (it cannot be asked) or "quit".

    Best with a benchmark that `build --k 1.0` made: with all items as anchors it knows the
    training models' answers to all of them.

    With --answers they come from results that are there already; items that these lack are never
    asked. With --session as well, it stops at the first that is not there yet and says which:
    run it, and start again.

    \b
    Examples: sklearn-irt adaptive helm-lite --scenario math --max-items 30 --session me.json
              sklearn-irt adaptive mine.npz --answers output/my__model --target-std 0.02
    """
    _options.check_budget(budget, costs)
    _output.check_files(
        {"--session": session_path, "--output": output},
        {"NAME": name, "--answers": answers, "--costs": costs},
    )
    if max_items is None and target_std is None and budget is None:
        max_items = MAX_ITEMS
    tiny = load(name)
    if not json_wanted and (not answers or session_path is not None):
        _output.check_lines(tiny.items["item"])
    session = _begin(tiny, session_path, scenario, costs, budget)
    source: FromFile | FromInput = FromInput(json_wanted, tiny.estimator._bounds)
    if answers:
        source = _from_results(tiny, session, answers, reading, session_path is not None)
    waiting = _go_on(session, source, session_path, max_items, target_std, batch)
    _finish(tiny, session, waiting, isinstance(source, FromInput), json_wanted, output)


def _begin(
    tiny: Any, path: str | None, scenario: str | None, costs: str | None, budget: float | None
) -> AdaptiveSession:
    """A new session, or the saved one where its settings are those asked for."""
    import numpy as np

    from benchmarks_registry.cli._costs import read_costs
    from sklearn_irt import AdaptiveSession

    known = read_costs(costs, (), tiny.items["item"])
    new = AdaptiveSession(tiny, scenario, costs=known, budget=budget)
    if path is None or not Path(path).exists():
        _output.tell_all(few_known_notes(tiny))
        return new
    session = AdaptiveSession.load(path, tiny)
    for option, given, saved in (
        ("scenario", scenario, session.scenario),
        ("budget", budget, session.budget),
    ):
        if given is not None and given != saved:
            raise ValueError(
                f"{path} was begun with --{option} {saved}, not {given}; leave it out or begin "
                "another session"
            )
    if costs is not None:
        same = session._costs is not None and np.allclose(session._costs, new._costs)
        if not same:
            raise ValueError(f"{path} was begun with other --costs; leave them out")
    return session


def few_known_notes(tiny: Any) -> list[str]:
    """A note where the training models' answers are known on few of the items."""
    n_known, n_items = len(tiny.anchors()), len(tiny.items)
    if not len(tiny.estimator.training_models_) or n_known >= FEW_KNOWN * n_items:
        return []
    return [
        f"note: {tiny.name} holds the training models' answers to {n_known} of the {n_items} "
        "items; adaptive asking is best with all (build --k 1.0)"
    ]


def _from_results(
    tiny: Any,
    session: AdaptiveSession,
    answers: Sequence[str],
    reading: dict[str, Any],
    stop_at_unknown: bool,
) -> FromFile:
    """Answers of the one model in RESULTS; what they lack is told at once as not to be asked."""
    from benchmarks_registry.cli._results import Reading, matrix_of, read_for, warn_about_scoring

    table = read_for(tiny, answers, Reading.of(**reading))
    warn_about_scoring(tiny, table)
    matrix = matrix_of(table)
    if len(matrix) > 1:
        raise ValueError(f"--answers are of {len(matrix)} models; give those of one")
    scores = matrix.iloc[0].to_dict()
    if not stop_at_unknown:
        told = {item for item, _ in session.history}
        lacking = [i for i in tiny.items["item"] if i not in scores and i not in told]
        session.tell(lacking, [math.nan] * len(lacking))
    return FromFile(scores, stop_at_unknown)


def _go_on(
    session: AdaptiveSession,
    source: FromFile | FromInput,
    path: str | None,
    max_items: int | None,
    target_std: float | None,
    batch: int,
) -> list[str]:
    """Ask until it is enough; items that wait for an answer where none is there."""
    while not session.done(max_items, target_std):
        left = batch if max_items is None else min(batch, max_items - session.n_asked)
        items = [str(item) for item in session.ask(left)]
        for number, item in enumerate(items):
            try:
                score = source.answer(item, session)
            except Stopped:
                if path is not None:
                    session.save(path)
                return items[number:]
            session.tell([item], [score])
            if path is not None:
                session.save(path)
    return []


def _finish(
    tiny: Any,
    session: AdaptiveSession,
    waiting: list[str],
    from_input: bool,
    json_wanted: bool,
    output: str | None,
) -> None:
    table = session.estimate()
    rows = _output.rows_of(table)
    document = {
        "benchmark": tiny.name,
        "answers": session.n_asked,
        "spent": session.spent,
        "estimate": rows,
        "history": [
            {"item": item, "score": score} for item, score in session.history if score == score
        ],
        "waiting": waiting,
    }
    if waiting and not from_input:
        _output.tell_all([f"note: no answer yet to {item}" for item in waiting])
    if json_wanted and from_input and output is None:
        _output.write(_output.as_json(document, indent=None))
        return
    if from_input and output is None:
        _output.write("\n")  # between the items asked and the estimate
    _output.show(document, table, json_wanted=json_wanted, output=output)
