"""The group of all commands, and how a run ends: its exit status, one line for what is wrong."""

import contextlib
import os
import re
import runpy
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

import click

from benchmarks_registry.cli import _adaptive, _browse, _gate, _output, _score, _train

BAD_INPUT, INTERRUPTED, NOBODY_READS = 2, 130, 141
TOO_LARGE = {
    MemoryError: "the memory does not suffice",
    OverflowError: "a number is too large",
    RecursionError: "something is nested too deeply",
}
# Parameters in the library's messages, where they are options here.
PARAMETERS = re.compile(
    r"\b(give|with) (metric|filter|model|task|rename|scorer|annotator|duplicates|groups)"
    r"(?:=False|=)"
)
OPTIONS = {"scorer": "metric", "annotator": "metric", "groups": "no-groups"}
RANGE = re.compile(
    r"(\bgive|\btaken as|e\.g\.) response_range(?:=\(([\w.+-]+), ([\w.+-]+)\))?( at fit)?"
)


def _tell_version(context: click.Context, parameter: click.Parameter, wanted: bool) -> None:
    """The library's version, for which it is not imported."""
    if not wanted or context.resilient_parsing:
        return
    (folder,) = find_spec("sklearn_irt").submodule_search_locations
    version = runpy.run_path(os.path.join(folder, "_version.py"))["__version__"]
    click.echo(f"sklearn-irt, version {version}")
    context.exit()


class Commands(click.Group):
    """A group that leaves broken pipes and files cut off to `run`; click has an end of its own."""

    def make_context(self, *args: Any, **others: Any) -> click.Context:
        """Read the arguments; a help text is shown meanwhile."""
        try:
            return super().make_context(*args, **others)
        except BrokenPipeError:
            raise _output.NobodyReads from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _output.NobodyReads from None
        except EOFError as error:
            why = str(error) or "there is nothing more to read"
            raise ValueError(f"a file ends too early: {why}") from error


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_tell_version,
    help="Show the version and exit.",
)  # fmt: skip
@click.pass_context
def commands(context: click.Context) -> None:
    """A language model's benchmark score from a hundred questions, with an error bar.

    NAME is a benchmark of `sklearn-irt list`, or a file that `sklearn-irt build` wrote. RESULTS
    are logs of an evaluation harness (a file or a folder), or a csv, tsv, jsonl or parquet table.

    \b
    sklearn-irt build lm_eval_output -o mine.npz      # from the models that were run in full
    sklearn-irt anchors mine.npz --format lm-eval     # what to ask the next one
    sklearn-irt estimate mine.npz new_model_output    # its score
    sklearn-irt gate mine.npz new old                 # is the new one worse?
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (
    *(_browse.list_, _browse.show, _browse.fetch, _browse.anchors),
    *(_score.estimate, _train.build, _score.add_models),
    *(_gate.gate, _adaptive.adaptive, _train.compare, _score.report),
):
    commands.add_command(command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; bad input ends it with one line.

    Parameters
    ----------
    arguments : sequence of str, default=None
        None: those of the process.

    Returns
    -------
    int
    """
    with open_streams(), one_line_warnings():
        try:
            args = None if arguments is None else list(arguments)
            status = commands.main(args=args, prog_name="sklearn-irt", standalone_mode=False)
            sys.stdout.flush()
            return status if isinstance(status, int) else 0
        except (KeyboardInterrupt, click.exceptions.Abort):
            _output.tell("interrupted")
            return INTERRUPTED
        except (BrokenPipeError, _output.NobodyReads):
            _close_stdout()
            return NOBODY_READS
        except click.UsageError as error:
            context = error.ctx
            hint = f"; see {context.command_path} --help" if context else ""
            message = error.format_message().rstrip(".") + hint
        except click.ClickException as error:
            message = error.format_message()
        except (ValueError, KeyError, OSError, ImportError) as error:
            message = describe(error)
        except tuple(TOO_LARGE) as error:
            what = next(words for kind, words in TOO_LARGE.items() if isinstance(error, kind))
            message = f"{what}: {describe(error)}"
        _output.tell(f"error: {in_options(message) or 'unknown'}")
        return BAD_INPUT


def describe(error: Exception) -> str:
    """What an exception says, without the number of an operating system's error."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, KeyError) and len(error.args) == 1:
        return str(error.args[0])
    return str(error) or type(error).__name__


def in_options(message: str) -> str:
    """The library's words with its parameters as options."""

    def option(found: re.Match[str]) -> str:
        return f"{found[1]} --{OPTIONS.get(found[2], found[2])} "

    def bounds(found: re.Match[str]) -> str:
        before, low, high, at_fit = found.groups()
        values = ""
        if low is not None:
            values = " LOW HIGH" if (low, high) == ("low", "high") else f" {low} {high}"
        # Where a fitted range is too narrow, the command at hand has no such option.
        return f"{before} --range{values}{' to sklearn-irt build' if at_fit else ''}"

    message = RANGE.sub(bounds, message)
    return PARAMETERS.sub(option, message).replace("  ", " ").rstrip()


@contextlib.contextmanager
def open_streams() -> Iterator[None]:
    """Have every standard stream; one that was closed reads and writes nothing."""
    with ExitStack() as opened:
        for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
            if getattr(sys, name) is None:
                stream = opened.enter_context(open(os.devnull, mode, encoding="utf-8"))
                opened.callback(setattr, sys, name, None)
                setattr(sys, name, stream)
        yield


@contextlib.contextmanager
def one_line_warnings() -> Iterator[None]:
    """Show every warning once, as one line."""
    shown = set()

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        text = in_options(str(message))
        if text not in shown:
            shown.add(text)
            _output.tell(f"warning: {text}")

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = show
        yield


def _close_stdout() -> None:
    """Keep the interpreter from flushing to the broken pipe when it ends."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
