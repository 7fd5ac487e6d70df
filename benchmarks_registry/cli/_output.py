"""What the commands print: tables on a terminal, plain data otherwise, notes beside them."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pandas as pd

MAX_NOTES = 12
# Columns that a narrow terminal can do without, the first one first; --json has them.
SPARE = [
    "licence", "source", "relatives", "unusual", "mixing", "effective", "naive", "pirt",
    "scenarios", "reference", "candidate",
]  # fmt: skip
GAP = 3  # between two columns
# Where a name is broken: between words, or, if these do not fit, between the parts of a word.
WORDS, PARTS = re.compile(r"(?<=\s)"), re.compile(r"(?<=[-/_\s])")


class NobodyReads(Exception):
    """The reader of the standard output has gone."""


def check_lines(items: Iterable[str]) -> None:
    """Refuse ids that would be others where each is a line.

    Raises
    ------
    ValueError
        Naming the first.
    """
    for item in items:
        if plain(item) != item:
            raise ValueError(
                f"the item {item!r} cannot be written as a line, because of its line breaks, outer "
                "spaces or unprintable characters; --json can write it"
            )


def counted(number: int, noun: str) -> str:
    """A number and what is counted, in the plural unless it is one."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def plain(text: Any) -> str:
    """A text in one line, without characters that a terminal would obey."""
    line = " ".join(part.strip() for part in str(text).splitlines())
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)


def tell(text: str) -> None:
    """One line on the standard error."""
    with contextlib.suppress(BrokenPipeError):
        line = f"sklearn-irt: {plain(text)}"
        encoding = getattr(sys.stderr, "encoding", None) or "utf-8"
        print(line.encode(encoding, "backslashreplace").decode(encoding), file=sys.stderr)


def tell_all(texts: Iterable[str]) -> None:
    """The first few of many notes, and how many more there are."""
    texts = list(texts)
    for text in texts[:MAX_NOTES]:
        tell(text)
    if len(texts) > MAX_NOTES:
        tell(f"... and {len(texts) - MAX_NOTES} more such lines; --json has all")


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show on a terminal that something takes its time."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(plain(what), total=None)
        yield


def check_files(
    targets: Mapping[str, str | None], sources: Mapping[str, str | Sequence[str] | None]
) -> None:
    """Refuse files that cannot be written, or that are also read or written under another name.

    Parameters
    ----------
    targets : mapping of str to str or None
        Paths to write, by what the command calls them; those that are None are not asked for.
    sources : mapping of str to str, sequence of str or None
        Paths to read likewise.

    Raises
    ------
    OSError
        As `check_target`.
    ValueError
        Naming the two that are the same file.
    """
    written = [(name, path) for name, path in targets.items() if path is not None]
    for _, path in written:
        check_target(path)
    read = [
        (name, path)
        for name, paths in sources.items()
        for path in ([paths] if isinstance(paths, str) else paths or ())
    ]
    for number, (name, path) in enumerate(written):
        for other, there in (*written[:number], *((n, p) for n, p in read if os.path.exists(p))):
            if _same_file(path, there):
                raise ValueError(f"{other} and {name} are the same file: {path}")
            if _is_log_in(path, there):
                raise ValueError(f"{name} is one of the files that are read of {there}: {path}")


def _same_file(path: str, other: str) -> bool:
    if os.path.realpath(path) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(path, other)  # where the case of letters does not count
    except (OSError, ValueError):
        return False


def _is_log_in(path: str, folder: str) -> bool:
    """Whether a file is among the results that a folder holds."""
    inside = os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), ""))
    if not (inside and os.path.isfile(path)):
        return False
    from sklearn_irt.logs._recognise import recognise

    try:
        return recognise(path) == recognise(folder)
    except (ValueError, OSError):
        return False


def check_target(path: str | os.PathLike[str] | None) -> None:
    """Refuse a file that cannot be written, before anything is computed.

    Raises
    ------
    OSError
        Naming the folder that does not exist or the file that cannot be replaced.
    """
    if path is None:
        return
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path}: there is something other than a file of this name")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {target.parent} does not exist")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        raise PermissionError(f"{path}: the folder {target.parent} is not writable")


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """A table as JSON has it: one object a row, null where a value is missing."""
    if frame.index.names != [None]:
        frame = frame.reset_index()
    return [{str(key): bare(value) for key, value in row.items()} for row in _records(frame)]


def _records(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    return frame.astype(object).to_dict("records")


def bare(value: Any) -> Any:
    """A value as JSON has it; null for NaN and what is not finite."""
    import numpy as np
    import pandas as pd

    if isinstance(value, Mapping):
        return {str(key): bare(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [bare(each) for each in value]
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return str(value)


def as_json(document: Any, indent: int | None = 2) -> str:
    """A document as JSON text."""
    return json.dumps(bare(document), ensure_ascii=False, allow_nan=False, indent=indent) + "\n"


def as_text(frame: pd.DataFrame, separator: str = "\t") -> str:
    """A table with tabs or commas between its columns, empty cells for missing values."""
    rows = rows_of(frame)
    names = list(rows[0]) if rows else [str(name) for name in frame.columns]
    cells = [[plain(name) for name in names]]
    cells += [[_cell(row[name], ".6g") for name in names] for row in rows]
    return _joined(cells, separator)


def _joined(rows: Iterable[Sequence[str]], separator: str) -> str:
    """Cells as lines; only commas need quotes, for no cell holds a tab."""
    if separator == "\t":
        return "".join("\t".join(row) + "\n" for row in rows)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _cell(value: Any, form: str) -> str:
    if value is None:
        return ""
    return format(value, form) if isinstance(value, float) else plain(value)


def show(
    document: Any,
    frame: pd.DataFrame | None = None,
    *,
    facts: Mapping[str, Any] | None = None,
    text: str = "",
    headers: Mapping[str, str] | None = None,
    json_wanted: bool = False,
    output: str | None = None,
) -> None:
    """Print a result, or write it to a file.

    Parameters
    ----------
    document : object
        What --json prints.
    frame : DataFrame, default=None
        A table: drawn on a terminal, tab-separated elsewhere, with commas in a file *.csv.
    facts : mapping, default=None
        Names and values above the table; lists among them are for JSON only.
    text : str, default=""
        Lines in place of both.
    headers : mapping, default=None
        What a terminal shows above a column, where it is not the column's name.
    json_wanted : bool
    output : str, default=None
        Written atomically, as it would be printed to a pipe, or with commas (*.csv).
    """
    if on_terminal(json_wanted, output) and not text:
        draw(frame, facts or {}, headers or {})
        return
    if json_wanted:
        data = as_json(document)
    else:
        separator = "," if output is not None and output.lower().endswith(".csv") else "\t"
        table = "" if frame is None else as_text(frame, separator)
        parts = [_lines(facts or {}, separator), table]
        data = text or "\n".join(filter(None, parts))
    if output is None:
        write(data)
    else:
        write_file(output, data)


def on_terminal(json_wanted: bool, output: str | None) -> bool:
    """Whether a person reads the result at once."""
    return output is None and not json_wanted and sys.stdout.isatty()


def _lines(facts: Mapping[str, Any], separator: str) -> str:
    """A name and a value in each line."""
    told = ((name, bare(value)) for name, value in facts.items() if not isinstance(value, list))
    return _joined([(name, _cell(value, ".6g")) for name, value in told], separator)


def encoded(data: str) -> bytes:
    """UTF-8; names of files that are not become escapes, which JSON knows too."""
    return data.encode("utf-8", "backslashreplace")


def write_file(path: str, data: str) -> None:
    """Data to a file, whole or not at all."""
    from sklearn_irt._atomic import replace_atomically

    replace_atomically(Path(path), encoded(data))


def write(data: str) -> None:
    """Data to the standard output, at once.

    Raises
    ------
    NobodyReads
        Where nobody reads them any more.
    """
    # Not every stand-in for the standard output takes bytes.
    target = getattr(sys.stdout, "buffer", None)
    try:
        if target is None:
            sys.stdout.write(data)
        else:
            target.write(encoded(data))
        sys.stdout.flush()
    except BrokenPipeError:
        raise NobodyReads from None


def draw(frame: pd.DataFrame | None, facts: Mapping[str, Any], headers: Mapping[str, str]) -> None:
    """Facts and a table on the terminal; what stands in them is never taken for markup."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    if facts:
        grid = Table.grid(padding=(0, 2))
        for name, value in facts.items():
            if not isinstance(value, list):
                grid.add_row(Text(name, style="bold"), Text(_cell(bare(value), ".6g")))
        console.print(grid)
    if frame is None:
        return
    columns = _columns(frame, headers)
    names = _fitting(columns, console.width)
    widths = _narrowed({name: columns[name] for name in names}, console.width)
    table = Table(header_style="bold", show_edge=False)
    for name in names:
        align = "right" if columns[name].number else "left"
        table.add_column(
            Text(columns[name].header), justify=align, overflow="fold",
            no_wrap=columns[name].number, width=widths.get(name),
        )  # fmt: skip
    for cells in zip(*(columns[name].cells for name in names), strict=True):
        lines = [_wrapped(cell, widths.get(name)) for name, cell in zip(names, cells, strict=True)]
        table.add_row(*map(Text, lines))
    if facts:
        console.print()
    console.print(table)
    hidden = [name for name in columns if name not in names]
    if hidden:
        tell(f"note: no room for {', '.join(hidden)}; --json has all")


class _Column(NamedTuple):
    """A column as a terminal shows it."""

    header: str
    number: bool
    cells: list[str]
    needed: bool  # whatever room there is

    def width(self) -> int:
        """Of the longest line."""
        return max(map(len, (*self.header.split("\n"), *self.cells)))

    def narrowest(self, breaks: re.Pattern[str]) -> int:
        """Of the longest piece between two breaks; numbers are not wrapped."""
        pieces = [piece for cell in (self.header, *self.cells) for piece in breaks.split(cell)]
        return self.width() if self.number else max(len(piece.rstrip()) for piece in pieces)


def _columns(frame: pd.DataFrame, headers: Mapping[str, str]) -> dict[str, _Column]:
    """The columns of a table, their cells as texts."""
    rows = rows_of(frame)
    names = list(rows[0]) if rows else [str(name) for name in frame.columns]
    found = {}
    for name in names:
        values = [row[name] for row in rows]
        numbers = [value for value in values if isinstance(value, (int, float))]
        form = ".3f" if max(map(abs, numbers), default=0.0) < 10.0 else ".2f"
        number = len(numbers) == sum(value is not None for value in values)
        needed = name not in SPARE or (name == "unusual" and any(values))
        header = headers.get(name, plain(name))
        found[name] = _Column(header, number, [_cell(value, form) for value in values], needed)
    return found


def _fitting(columns: Mapping[str, _Column], width: int) -> list[str]:
    """The columns that a terminal has room for; those that it can do without go first."""
    widths = {name: GAP + column.width() for name, column in columns.items()}
    names = list(columns)
    for spare in SPARE:
        if sum(widths[name] for name in names) <= width:
            break
        if spare in names and not columns[spare].needed:
            names.remove(spare)
    return names


def _narrowed(columns: Mapping[str, _Column], width: int) -> dict[str, int]:
    """Widths of columns whose names have to be wrapped; none where all fit, or no breaks help."""
    room = width - GAP * len(columns)
    for breaks in (WORDS, PARTS):
        widths = {name: column.width() for name, column in columns.items()}
        least = {name: column.narrowest(breaks) for name, column in columns.items()}
        if sum(widths.values()) <= room:
            return {}
        if sum(least.values()) <= room:
            while sum(widths.values()) > room:
                wide = (name for name in widths if widths[name] > least[name])
                widths[max(wide, key=widths.__getitem__)] -= 1
            return {name: size for name, size in widths.items() if not columns[name].number}
    return {}


def _wrapped(cell: str, width: int | None) -> str:
    """A cell in lines of a width, where a word of it is longer."""
    if width is None or max(map(len, cell.split()), default=0) <= width:
        return cell
    lines = [""]
    for piece in PARTS.split(cell):
        if lines[-1] and len(lines[-1] + piece.rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)
