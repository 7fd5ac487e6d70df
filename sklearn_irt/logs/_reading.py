"""Reading files line by line or as JSON, with errors that name file and line."""

import contextlib
import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
SNIFFED_BYTES = 65536
SHOWN_NAMES = 5

PathLike = str | os.PathLike[str]


def list_files(path: PathLike | Iterable[PathLike]) -> list[Path]:
    """Files at a path, or at each of several: itself, or all below a folder, sorted.

    Raises
    ------
    FileNotFoundError
        Where there is nothing.
    ValueError
        Where a folder holds no file, or no path is given.
    """
    if isinstance(path, (str, os.PathLike)):
        return _files_at(Path(path))
    found: dict[Path, None] = {}
    for each in path:
        found.update(dict.fromkeys(_files_at(Path(each))))
    if not found:
        raise ValueError("no path is given")
    return list(found)


def _files_at(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: there is no such file or folder")
    files = []
    for folder, subfolders, names in os.walk(path):
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        files += [Path(folder, name) for name in sorted(names) if not name.startswith(".")]
    if not files:
        raise ValueError(f"{path}: the folder is empty")
    return files


def plain_name(path: Path) -> str:
    """Name of a file without the ending that says that it is compressed."""
    return path.name[:-3] if path.name.endswith(".gz") else path.name


def few(names: Iterable[Any]) -> str:
    """The first few names, and how many more there are."""
    names = [str(name) for name in names]
    more = len(names) - SHOWN_NAMES
    return ", ".join(names[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


@contextlib.contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed if it is gzip's whatever its name; errors name the file."""
    with open(path, "rb") as file:
        packed = file.read(2) == GZIP_MAGIC
        file.seek(0)
        try:
            yield gzip.GzipFile(fileobj=file) if packed else file  # type: ignore[misc]
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: the gzip data are damaged or cut off: {error}") from error


def head(path: Path) -> str:
    """The first characters of a file, to recognise it by; "" where they are no text."""
    try:
        with open_bytes(path) as file:
            return file.read(SNIFFED_BYTES).decode("utf-8-sig", errors="ignore")
    except ValueError:
        return ""


def read_lines(path: Path, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the number and text of every line, one at a time; blank ones if asked for.

    Raises
    ------
    ValueError
        Naming the line that is not UTF-8.
    """
    with open_bytes(path) as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{path}, line {number}: not UTF-8 text: {error}") from None
            if blank or line.strip():
                yield number, line


def read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where it stands ("file, line 3") and content of every JSON object of a file.

    Lines are read one by one. A file that is one JSON list is read as a whole; its objects stand
    at "file, entry 3".

    Raises
    ------
    ValueError
        Naming the file and line of what is not a JSON object.
    """
    for unit, number, record in numbered_records(path):
        yield f"{path}, {unit} {number}", record


def numbered_records(path: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield "line" or "entry", its number, and content, as `read_records`."""
    lines = read_lines(path)
    current = next(lines, None)
    if current is None:
        raise ValueError(f"{path}: the file is empty")
    if current[1].lstrip().startswith("["):
        lines.close()
        for number, (_, entry) in enumerate(read_entries(path), 1):
            yield "entry", number, entry
        return
    while current is not None:
        number, line = current
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            cut = "; is the file cut off?" if next(lines, None) is None else ""
            raise ValueError(f"{path}, line {number}: not JSON: {error}{cut}") from None
        if not isinstance(record, dict):
            raise ValueError(f"{path}, line {number}: expected a JSON object, got {_kind(record)}")
        yield "line", number, record
        current = next(lines, None)


def read_json(path: Path) -> Any:
    """Content of a JSON file.

    Raises
    ------
    ValueError
        Naming file and line, where it is empty or not JSON.
    """
    with open_bytes(path) as file:
        return parse_json(file.read(), str(path))


def parse_json(data: bytes, name: str) -> Any:
    """Content of a JSON document; `name` is what errors call it."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{name}, line {line}: not UTF-8 text: {error}") from None
    if not text.strip():
        raise ValueError(f"{name}: the file is empty")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        cut = "; is the file cut off?" if error.pos >= len(text.rstrip()) - 1 else ""
        if "Unterminated" in error.msg:
            cut = "; is the file cut off?"
        raise ValueError(
            f"{name}, line {error.lineno}: not JSON: {error.msg} (column {error.colno}){cut}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: not JSON: {error}") from None


def read_entries(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where it stands ("file, entry 3") and content of every object of a JSON list."""
    entries = read_json(path)
    if not isinstance(entries, list):
        raise ValueError(f"{path}: expected a JSON list, got {_kind(entries)}")
    if not entries:
        raise ValueError(f"{path}: the list is empty")
    for number, entry in enumerate(entries, 1):
        where = f"{path}, entry {number}"
        if not isinstance(entry, dict):
            raise ValueError(f"{where}: expected a JSON object, got {_kind(entry)}")
        yield where, entry


def _kind(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")


def as_score(value: Any, where: str, name: str) -> float:
    """A number, NaN for null.

    Raises
    ------
    ValueError
        Where it is anything else, or infinite.
    """
    if value is None:
        return math.nan
    try:
        score = float(value) if isinstance(value, (bool, int, float)) else math.inf
    except OverflowError:
        score = math.inf
    if math.isinf(score):
        raise ValueError(f"{where}: {name} is {value!r}, which is not a finite number")
    return score


def one_of(names: Sequence[str], asked: str | None, preferred: Sequence[str]) -> str | None:
    """The name asked for, or the only one, or the first preferred one; None if there is none."""
    if asked is not None:
        return asked if asked in names else None
    if len(names) == 1:
        return names[0]
    return next((name for name in preferred if name in names), None)
