"""Options that several commands share."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from benchmarks_registry._names import RELEASED, known_files

F = TypeVar("F", bound=Callable[..., Any])


class BenchmarkName(click.ParamType):
    """A name of the registry, or the path of a file."""

    name = "name"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Names that begin with what is typed; files where none does."""
        known = [entry.name for entry in known_files().values()]
        names = [n for n in (*known, *RELEASED) if n.lower().startswith(incomplete.lower())]
        return [CompletionItem(n) for n in names] or [CompletionItem(incomplete, type="file")]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The text, which must not be empty."""
        return value if value else self.fail("it is empty", param, ctx)


class FilePath(click.Path):
    """A path; an empty one, which would be the working folder, is refused."""

    def __init__(self) -> None:
        super().__init__(path_type=str)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path as a text."""
        return super().convert(value, param, ctx) if value else self.fail("it is empty", param, ctx)


class Number(click.ParamType):
    """A finite number above zero."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        number = click.FLOAT.convert(value, param, ctx)
        if not 0.0 < number < math.inf:
            self.fail(f"{value} is not a positive, finite number", param, ctx)
        return number


FILE = FilePath()
NAME = click.argument("name", type=BenchmarkName(), metavar="NAME")


def budget_option(text: str) -> Callable[[F], F]:
    """--budget, whatever is bought."""
    return click.option("--budget", type=Number(), help=f"{text}; needs --costs.")


def check_budget(budget: float | None, costs: str | None) -> None:
    """Refuse a budget where nothing has a price.

    Raises
    ------
    click.UsageError
        Where --costs is missing.
    """
    if budget is not None and costs is None:
        raise click.UsageError("--budget needs --costs", click.get_current_context(silent=True))


def results_argument(required: bool = True) -> Callable[[F], F]:
    """RESULTS: one or several files or folders."""
    shown = "RESULTS..." if required else "[RESULTS...]"
    return click.argument("results", nargs=-1, required=required, type=FILE, metavar=shown)


def output_options(text: str = "Write there, not to the standard output.") -> Callable[[F], F]:
    """--json and --output."""
    text += " A table has commas in a file *.csv, tabs in others."

    def add(command: F) -> F:
        command = click.option("-o", "--output", type=FILE, metavar="FILE", help=text)(command)
        return JSON(command)

    return add


JSON = click.option("json_wanted", "--json", is_flag=True, help="Print JSON.")


def target_option(text: str) -> Callable[[F], F]:
    """--output where it is the result itself, which must be named."""
    return click.option("-o", "--output", type=FILE, metavar="FILE", required=True, help=text)


def reading_options(command: F) -> F:
    """How RESULTS are read."""
    for option in (
        click.option("--task", help="Name of the task, for an old log that does not tell it."),
        click.option(
            "--rename",
            multiple=True,
            metavar="OLD=NEW",
            help="Another name for a task; repeatable.",
        ),
        click.option("--model", metavar="NAME", help="Name of the model, where there is one only."),
        click.option(
            "--filter",
            multiple=True,
            metavar="[TASK=]FILTER",
            help="Whose answers to take where lm-evaluation-harness logged several filters.",
        ),
        click.option(
            "--metric",
            multiple=True,
            metavar="[TASK=]METRIC",
            help="Which score to take, for all tasks or (repeatable) for one; the scorer of "
            "Inspect, the annotator of AlpacaEval.",
        ),
    ):
        command = option(command)
    return command


def by_task(values: Sequence[str], name: str) -> str | dict[str, str] | None:
    """One value for all tasks, or one for each; None where nothing is given.

    Raises
    ------
    click.BadParameter
        Where a task has two values, or there are values with and without a task.
    """
    if not values:
        return None
    pairs = [value.partition("=") for value in values]
    if len(pairs) == 1 and not pairs[0][1]:
        return values[0]
    found: dict[str, str] = {}
    for task, equals, value in pairs:
        if not (equals and task and value):
            raise click.BadParameter(f"--{name} is one value, or several TASK={name.upper()}")
        if task in found:
            raise click.BadParameter(f"--{name} names {task!r} twice")
        found[task] = value
    return found


def renames(values: Sequence[str]) -> dict[str, str] | None:
    """New names by old ones."""
    found = by_task(values, "rename")
    if isinstance(found, str):
        raise click.BadParameter(f"--rename is OLD=NEW, got {found!r}")
    return found
