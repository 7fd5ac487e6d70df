"""Reader of plain tables: csv, tsv, jsonl, parquet; wide or long."""

import csv
import math
import sys
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sklearn_irt.logs import _reading, _tidy

HARNESS = "table"
ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
FIELDS = ("model", "item", "score", "scenario", "subscenario")
# What programs write for a cell without a value.
NO_VALUE = {"", "nan", "na", "n/a", "<na>", "null", "none"}
TRUTH = {"true", "false"}
# What pandas calls a column without a name that it has read.
UNNAMED = {"", "Unnamed: 0"}
SEPARATORS = ",;\t|"
# A header may hold a column for each of many thousands of items.
csv.field_size_limit(2**27)

Row = tuple[int, list[Any]]
Labels = tuple[str | None, str | None]
Model = tuple[str, Collection[str], Sequence[float], Sequence[Labels]]


def read_table(
    path: _reading.PathLike | Iterable[_reading.PathLike],
    *,
    layout: str | None = None,
    columns: Mapping[str, str] | None = None,
    model: str | None = None,
    scenario: str | None = None,
) -> pd.DataFrame:
    """Read responses from plain tables.

    Parameters
    ----------
    path : path or iterable of paths
        Files .csv, .tsv, .jsonl (each also as .gz) or .parquet (needs pyarrow), or folders with
        them.
    layout : {"wide", "long"}, default=None
        "long": a row per answer, with the columns item and score, and where there are model,
        scenario and subscenario. "wide": a row per model; its name in the column (or index of a
        parquet file) "model", else in the first one; an item in each other one. None: long where
        the table has the columns item and score.
    columns : {field: column}, default=None
        What the columns of a long table are called, for example ``{"model": "llm"}``.
    model : str, default=None
        Name of the model, for long tables without one. None: the name of the file.
    scenario : str, default=None
        Of all items, for tables that tell none. None: what precedes the first "/" of the item
        ids, if all of a file have one; else NA.

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario, subscenario, item, score; NaN scores where a cell is empty.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ImportError
        Where a parquet file is to be read without pyarrow.
    ValueError
        Naming file and line of what is wrong: a score that is not a number, an answer or a
        model or an item twice, a row of another length than the header, a wide table whose
        models have no column (its first one is not called model and holds numbers only).

    See Also
    --------
    pivot : The way back to a wide table.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_irt.logs import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "scores.csv")
    ...     _ = path.write_text("model,arc/q1,arc/q2\\nours,1,\\ntheirs,0,0.5\\n")
    ...     table = read_table(path)
    >>> table[["model", "scenario", "item", "score"]].values.tolist()
    [['ours', 'arc', 'arc/q1', 1.0], ['ours', 'arc', 'arc/q2', nan],
     ['theirs', 'arc', 'arc/q1', 0.0], ['theirs', 'arc', 'arc/q2', 0.5]]
    """
    if layout not in (None, "wide", "long"):
        raise ValueError(f'layout must be "wide" or "long", got {layout!r}')
    for field in columns or {}:
        if field not in FIELDS:
            raise ValueError(f"columns names the field {field!r}; there are {list(FIELDS)}")
    tidy = _tidy.TidyTable()
    files = _reading.list_files(path)
    tables = [each for each in files if is_table(each)]
    if not tables:
        raise ValueError(
            f"no table among {_reading.few(files)}: expected {', '.join(ENDINGS)} (or .gz)"
        )
    known = set(tables)
    for each in files:
        if each not in known:
            tidy.leave_out(each, "a file that is no table")
    read: dict[str, list[tuple[Path, Collection[str]]]] = {}
    for each in tables:
        table = _Table(each, layout, dict(columns or {}), model, scenario)
        for name, items, scores, labels in table.models():
            for other, before in read.setdefault(name, []):
                both = next((item for item in items if item in before), None)
                if both is not None:
                    raise ValueError(
                        f"{each}: the model {name!r} on the item {both!r} a second time, after "
                        f"{other}"
                    )
            read[name].append((each, items))
            _add(tidy, each, name, items, scores, labels)
    return tidy.table()


def is_table(path: Path) -> bool:
    """Whether a file is a table, by its name."""
    return _reading.plain_name(path).endswith(ENDINGS)


def _add(
    tidy: _tidy.TidyTable,
    path: Path,
    model: str,
    items: Collection[str],
    scores: Sequence[float],
    labels: Iterable[Labels],
) -> None:
    """Put one model's answers into the table, by scenario and subscenario."""
    kinds = set(labels)
    if len(kinds) == 1:
        tidy.add(model, *kinds.pop(), list(items), scores, file=path, harness=HARNESS)
        return
    blocks: dict[Labels, tuple[list[str], list[float]]] = {}
    for item, score, label in zip(items, scores, labels, strict=True):
        block = blocks.setdefault(label, ([], []))
        block[0].append(item)
        block[1].append(score)
    for label, block in blocks.items():
        tidy.add(model, *label, *block, file=path, harness=HARNESS)


def _is_separated(path: Path) -> bool:
    return _reading.plain_name(path).endswith((".csv", ".tsv"))


class _Answers:
    """One model's answers in a long table."""

    def __init__(self) -> None:
        self.lines: dict[str, int] = {}
        self.scores = array("d")
        self.labels: list[Labels] = []


class _Table:
    """One file."""

    def __init__(
        self,
        path: Path,
        layout: str | None,
        columns: dict[str, str],
        model: str | None,
        scenario: str | None,
    ):
        self.path, self.model, self.scenario = path, model, scenario
        self.unit, self.header, self.rows = _open_table(path)
        self.top = f"{path}, line 1" if _is_separated(path) else str(path)
        if len(set(self.header)) < len(self.header):
            twice = next(name for name in self.header if self.header.count(name) > 1)
            raise ValueError(f"{self.top}: the column {twice!r} stands there twice")
        self.names = {field: columns.get(field, field) for field in FIELDS}
        for name in columns.values():
            if name not in self.header:
                raise ValueError(
                    f"{self.top}: no column {name!r}; there are {_reading.few(self.header)}"
                )
        self.at = {f: self.header.index(n) for f, n in self.names.items() if n in self.header}
        long = {"item", "score"} <= self.at.keys()
        self.layout = layout or ("long" if long else "wide")
        if self.layout == "long" and not long:
            raise ValueError(
                f"{self.top}: a long table needs the columns item and score; there are "
                f"{_reading.few(self.header)}{self._other_separator()}"
            )

    def models(self) -> Iterator[Model]:
        """Name, items, scores and labels of every model of the file.

        Raises
        ------
        ValueError
            Where there is none.
        """
        empty = True
        for model in self._long() if self.layout == "long" else self._wide():
            empty = False
            yield model
        if empty:
            raise ValueError(f"{self.path}: the table has no row below its header")

    def _where(self, number: int) -> str:
        return f"{self.path}, {self.unit} {number}"

    def _long(self) -> Iterator[Model]:
        models: dict[str, _Answers] = {}
        known: dict[Labels, Labels] = {}
        name = self.model or _stem(self.path)
        for number, row in self.rows:
            model = name
            if "model" in self.at and self.model is None:
                model = self._name(row, "model", number)
            item = self._name(row, "item", number)
            answers = models.get(model)
            if answers is None:
                answers = models[model] = _Answers()
            if item in answers.lines:
                raise ValueError(
                    f"{self._where(number)}: the model {model!r} on the item {item!r} a second "
                    f"time, after {self.unit} {answers.lines[item]}"
                )
            answers.lines[item] = number
            score = row[self.at["score"]]
            answers.scores.append(_number(score, self._where, number, "the score"))
            labels = self._label(row, "scenario"), self._label(row, "subscenario")
            answers.labels.append(known.setdefault(labels, labels))
        told = "scenario" in self.at
        everything = [item for answers in models.values() for item in answers.lines]
        prefixed = not told and _all_prefixed(everything)
        for model, answers in models.items():
            items = answers.lines.keys()
            labels = answers.labels
            if not told:
                guessed = self._scenarios(items, prefixed)
                labels = [(one, sub) for one, (_, sub) in zip(guessed, labels, strict=True)]
            yield model, items, answers.scores, labels

    def _other_separator(self) -> str:
        """A hint where a file of separated cells has one column."""
        if not _is_separated(self.path) or len(self.header) != 1:
            return ""
        found = [sign for sign in SEPARATORS if sign in self.header[0]]
        if not found:
            return ""
        return (
            f"; the cells seem to be separated by {found[0]!r}, but in a .csv file they are by "
            "',', in a .tsv file by tabs"
        )

    def _wanted_of_long(self) -> str:
        """A hint where a wide table looks like a long one with other names."""
        others = {"item", "score", "scenario", "subscenario"} & {*self.header}
        if not others and len(self.header) > len(FIELDS):
            return ""
        return (
            "; the table is read as a wide one, for a long one (a row per answer) it needs the "
            f"columns item and score; there are {_reading.few(self.header)}"
        )

    def _wide(self) -> Iterator[Model]:
        key = self.at.get("model", 0)
        items = {item: i for i, item in enumerate(self.header) if i != key}
        if not items:
            raise ValueError(
                f"{self.top}: a wide table needs a column for each item{self._other_separator()}"
            )
        if "" in items:
            raise ValueError(f"{self.top}: the column {items[''] + 1} has no name")
        labels = [(one, None) for one in self._scenarios(items, _all_prefixed(items))]
        models: dict[str, int] = {}
        # The first column may be an item where neither its name nor its cells tell of models.
        doubtful = "model" not in self.at and self.header[key] not in UNNAMED
        for number, row in self.rows:
            model = _text(row[key])
            doubtful = doubtful and _is_score(model)
            if not model:
                hint = self._without_models() if doubtful and models else ""
                raise ValueError(f"{self._where(number)}: no model in the column {key + 1}{hint}")
            if model in models:
                hint = self._without_models() if doubtful else self._wanted_of_long()
                raise ValueError(
                    f"{self._where(number)}: the model {model!r} a second time, after "
                    f"{self.unit} {models[model]}{hint}"
                )
            models[model] = number
            cells = [*row[:key], *row[key + 1 :]]
            yield model, items.keys(), self._numbers(cells, items, number), labels
        if doubtful and models:
            raise ValueError(f"{self.top}: the models have no names{self._without_models()}")

    def _without_models(self) -> str:
        """A hint where the column that is read as the models' names may be an item."""
        return (
            f"; there is no column model, and the first one, {self.header[0]!r}, holds numbers "
            "only: call it model if these are names of models, else add a column model"
        )

    def _numbers(self, cells: list[Any], items: Iterable[str], number: int) -> Sequence[float]:
        try:
            scores = array("d", map(float, cells))
        except (TypeError, ValueError):
            scores = None
        if scores is None or any(map(math.isinf, scores)):
            # Cell by cell: empty ones, and what is wrong.
            return [
                _number(cell, self._where, number, f"item {item!r}", self._wanted_of_long)
                for cell, item in zip(cells, items, strict=True)
            ]
        return scores

    def _scenarios(self, items: Iterable[str], prefixed: bool) -> list[str | None]:
        if self.scenario is None and prefixed:
            return [sys.intern(item.split("/", 1)[0]) for item in items]
        return [self.scenario for _ in items]

    def _name(self, row: list[Any], field: str, number: int) -> str:
        name = _text(row[self.at[field]])
        if not name:
            raise ValueError(f"{self._where(number)}: the column {self.names[field]!r} is empty")
        return name

    def _label(self, row: list[Any], field: str) -> str | None:
        return (_text(row[self.at[field]]) or None) if field in self.at else None


def _all_prefixed(items: Iterable[str]) -> bool:
    return all("/" in item for item in items)


def _stem(path: Path) -> str:
    return _reading.plain_name(path).rsplit(".", 1)[0]


def _text(cell: Any) -> str:
    """A cell as a name, "" where it is empty."""
    if cell is None or isinstance(cell, float) and math.isnan(cell) or cell is pd.NA:
        return ""
    return str(cell).strip()


def _is_score(text: str) -> bool:
    """Whether a cell may be a score, or none."""
    try:
        _parsed(text)
    except ValueError:
        return False
    return True


def _parsed(text: str) -> float:
    """The number that a cell's text stands for, NaN where it has no value."""
    lower = text.lower()
    if lower in NO_VALUE:
        return math.nan
    return float(lower == "true") if lower in TRUTH else float(text)


def _number(
    cell: Any, where: Callable[[int], str], number: int, name: str, hint: Callable[[], str] = str
) -> float:
    if isinstance(cell, str):
        try:
            cell = _parsed(cell.strip())
        except ValueError:
            raise ValueError(
                f"{where(number)}: {name} is {cell!r}, which is not a number{hint()}"
            ) from None
        if not math.isinf(cell):
            return cell
    return _reading.as_score(None if cell is pd.NA else cell, where(number), name)


def _open_table(path: Path) -> tuple[str, list[str], Iterator[Row]]:
    """What rows are counted by, header, and numbered rows of a file, read one by one."""
    name = _reading.plain_name(path)
    if name.endswith(".parquet"):
        return "row", *_parquet(path)
    if name.endswith(".jsonl"):
        return "line", *_json_lines(path)
    rows = _separated(path, "\t" if name.endswith(".tsv") else ",")
    _, header = next(rows, (0, None))
    if header is None:
        raise ValueError(f"{path}: the file is empty")
    return "line", [cell.strip() for cell in header], _of_length(path, rows, len(header))


def _separated(path: Path, delimiter: str) -> Iterator[Row]:
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for at, line in _reading.read_lines(path, blank=True):
            number = at
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise ValueError(f"{path}, line {number}: {error}; is the file cut off?") from None
        if row is None:
            return
        if row:
            yield number, row


def _of_length(path: Path, rows: Iterator[Row], length: int) -> Iterator[Row]:
    for number, row in rows:
        if len(row) != length:
            cut = "; is the file cut off?" if next(rows, None) is None and len(row) < length else ""
            raise ValueError(
                f"{path}, line {number}: {len(row)} cells, but the header has {length}{cut}"
            )
        yield number, row


def _json_lines(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Rows of JSON objects; the columns are the keys of all of them."""
    header = dict.fromkeys(key for _, record in _reading.read_records(path) for key in record)

    def rows() -> Iterator[Row]:
        for _, number, record in _reading.numbered_records(path):
            yield number, [record.get(key) for key in header]

    return list(header), rows()


def _parquet(path: Path) -> tuple[list[str], Iterator[Row]]:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            f'{path}: reading parquet needs pyarrow (pip install "sklearn-irt[logs]")'
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{path}: not a parquet file: {error}") from None
    header = [str(name) for name in file.schema_arrow.names]
    # pandas stores an index without a name as its last column.
    if "__index_level_0__" in header and "model" not in header:
        header[header.index("__index_level_0__")] = "model"

    def rows() -> Iterator[Row]:
        number = 0
        for batch in file.iter_batches(batch_size=4096):
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                number += 1
                yield number, list(row)

    return header, rows()
