"""The tidy table that every reader returns, and what travels with it."""

import os
import sys
import warnings
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd

COLUMNS = ["model", "scenario", "subscenario", "item", "score"]
PROVENANCE = [
    "file",
    "harness",
    "version",
    "model",
    "scenario",
    "subscenario",
    "metric",
    "filter",
    "shots",
    "date",
    "items",
    "missing",
]
LEFT_OUT = ["file", "model", "what", "count"]
PACKAGE_FOLDER = os.path.dirname(os.path.abspath(__file__))

R = TypeVar("R", bound="Run")


class Run(NamedTuple):
    """One file of one model's answers to one task."""

    path: Path
    model: str
    task: str
    date: str
    details: Any = None


class TidyTable:
    """Collects answers, provenance and what is left out; `table` makes the DataFrame."""

    def __init__(self) -> None:
        self._blocks: list[tuple[str, str | None, str | None, int]] = []
        self._items: list[str] = []
        self._scores = array("d")
        self._known: dict[str, str] = {}
        self._provenance: list[dict[str, Any]] = []
        self._left_out: list[dict[str, Any]] = []

    def add(
        self,
        model: str,
        scenario: str | None,
        subscenario: str | None,
        items: Sequence[str],
        scores: Sequence[float],
        **provenance: Any,
    ) -> None:
        """Add one model's scores on items of one scenario and subscenario.

        Parameters
        ----------
        model : str
        scenario, subscenario : str or None
        items : sequence of str of length k
        scores : sequence of float of length k
            NaN where there is none.
        **provenance
            file, harness, metric and what else is known.
        """
        self._blocks.append((model, scenario, subscenario, len(items)))
        # Every model answers the same items: one string each.
        self._items.extend(self._known.setdefault(item, item) for item in items)
        self._scores.extend(scores)
        entry = dict.fromkeys(PROVENANCE) | provenance
        entry |= {"model": model, "scenario": scenario, "subscenario": subscenario}
        entry |= {"file": str(entry["file"]), "items": len(items)}
        entry["missing"] = int(np.isnan(np.asarray(scores, dtype=float)).sum())
        self._provenance.append(entry)

    def leave_out(self, file: Any, what: str, count: int = 1, model: str | None = None) -> None:
        """Record what is not in the table: answers (count of them) or a whole file."""
        entry = {"file": str(file), "model": model, "what": what, "count": count}
        self._left_out.append(entry)

    def table(self) -> pd.DataFrame:
        """The answers as a DataFrame with the columns `COLUMNS`."""
        models, scenarios, subscenarios, sizes = zip(*self._blocks, strict=True)
        unknown = None in scenarios
        labels = pd.array(scenarios, dtype="string") if unknown else pd.Series(scenarios)
        table = pd.DataFrame(
            {
                "model": pd.Series(models).repeat(sizes).to_numpy(),
                "scenario": labels.repeat(sizes) if unknown else labels.repeat(sizes).to_numpy(),
                "subscenario": pd.array(subscenarios, dtype="string").repeat(sizes),
                "item": self._items,
                "score": np.asarray(self._scores, dtype=float),
            }
        )
        table.attrs["provenance"] = self._provenance
        table.attrs["left_out"] = self._left_out
        return table


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables one below the other, with the provenance of all."""
    if len(tables) == 1:
        return tables[0]
    bare = []
    for table in tables:
        # pandas compares the attrs of all of them with each other otherwise.
        bare.append(table.copy(deep=False))
        bare[-1].attrs = {}
    table = pd.concat(bare, ignore_index=True)
    for key in ("provenance", "left_out"):
        table.attrs[key] = [entry for each in tables for entry in each.attrs.get(key, [])]
    return table


def provenance(table: pd.DataFrame) -> pd.DataFrame:
    """Where the answers of a table come from.

    Parameters
    ----------
    table : DataFrame
        From one of the readers of `sklearn_irt.logs`.

    Returns
    -------
    DataFrame
        One row per file, or part of one, with the columns file, harness, version (of the
        harness, where its logs tell), model, scenario, subscenario, metric, filter, shots,
        date, items (how many), missing (how many of them without a score), and what else a
        harness tells; None or NaN where unknown.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_irt.logs import provenance, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scores.csv")
    ...     _ = path.write_text("model,q1,q2\\nours,1,0\\n")
    ...     table = read_table(path)
    >>> provenance(table)[["harness", "model", "items"]].values.tolist()
    [['table', 'ours', 2]]
    """
    return _records(table, "provenance", PROVENANCE)


def left_out(table: pd.DataFrame) -> pd.DataFrame:
    """What a reader found and did not put into its table.

    Parameters
    ----------
    table : DataFrame
        From one of the readers of `sklearn_irt.logs`.

    Returns
    -------
    DataFrame
        Columns file, model, what, count (of answers; 1 for a whole file); no rows where nothing
        is left out.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_irt.logs import left_out, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scores.csv")
    ...     _ = path.write_text("model,q1,q2\\nours,1,0\\n")
    ...     table = read_table(path)
    >>> len(left_out(table))
    0
    """
    return _records(table, "left_out", LEFT_OUT)


def _records(table: pd.DataFrame, key: str, columns: list[str]) -> pd.DataFrame:
    entries = table.attrs.get(key, [])
    extra = dict.fromkeys(name for entry in entries for name in entry if name not in columns)
    return pd.DataFrame(entries, columns=[*columns, *extra])


def choose_runs(runs: Sequence[R], latest: bool, tidy: TidyTable) -> list[R]:
    """The last run of every model and task, or the earlier ones too under names of their own.

    Parameters
    ----------
    runs : sequence of Run
    latest : bool
        Whether to take the last one only; the others are recorded as left out.
    tidy : TidyTable

    Returns
    -------
    list of Run
        With latest=False the models of the earlier runs are named "model@date".

    Raises
    ------
    ValueError
        Where two runs of a model and task have the same date, or none.
    """
    by_task: dict[tuple[str, str], list[R]] = {}
    for run in runs:
        by_task.setdefault((run.model, run.task), []).append(run)
    for (model, task), same in by_task.items():
        same.sort(key=lambda run: run.date)
        for one, other in zip(same, same[1:], strict=False):
            if one.date == other.date:
                dates = f"both of {one.date}" if one.date else "neither with a date"
                raise ValueError(
                    f"{other.path}: the task {task!r} of the model {model!r} as in {one.path}, "
                    f"{dates}; give one of the two files"
                )
    last = {same[-1].path for same in by_task.values()}
    if not latest:
        return [
            run if run.path in last else run._replace(model=f"{run.model}@{run.date}")
            for run in runs
        ]
    for same in by_task.values():
        for run in same[:-1]:
            what = f"an earlier run of {run.task}, of {run.date or 'unknown date'}"
            tidy.leave_out(run.path, what, model=run.model)
    return [run for run in runs if run.path in last]


def renamed(names: Iterable[str], model: str | None) -> Callable[[str], str]:
    """What to call each of the models found: as they are, or `model` if there is only one.

    Raises
    ------
    ValueError
        Where one name is given for several models.
    """
    found = sorted(set(names))
    if model is not None and len(found) > 1:
        raise ValueError(
            f"model={model!r} is one name, but there are {len(found)} models: {', '.join(found)}"
        )
    return lambda name: name if model is None else model


def for_task(option: str | Mapping[str, str] | None, task: str) -> str | None:
    """The value of an option that may differ by task."""
    return option.get(task) if isinstance(option, Mapping) else option


def check_tasks(option: Any, name: str, tasks: Iterable[str]) -> None:
    """Refuse a mapping that names a task which is not there."""
    known = set(tasks)
    for task in option if isinstance(option, Mapping) else ():
        if task not in known:
            raise ValueError(f"{name} names {task!r}, but there are only: {sorted(known)}")


def warn(message: str) -> None:
    """Warn at the first line outside this package."""
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE_FOLDER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
