"""AlpacaEval 2.0: the table of win probabilities, cached or derived from the annotations."""

import csv
import io
import itertools
import json
import math
import os
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import numpy as np

from sklearn_irt.datasets import _files
from sklearn_irt.datasets._alpaca_digests import HEADER_SHA256, ROW_SHA256

SOURCE = "tatsu-lab/alpaca_eval"
COMMIT = "cd543a149df89434d8a54582c0151c0b945c3d20"
ANNOTATIONS = "results/{model}/weighted_alpaca_eval_gpt4_turbo/annotations.json"
# The instructions stand in the order of this model's file.
REFERENCE_MODEL = "gpt4_1106_preview"
DECIMALS = 6
MAX_TIES = 10
COMPRESSED = _files.PublicFile(
    "alpaca_eval_2/win_probability.csv.gz",
    "bb6113de40ec1a44bed9f84a4b96f54dde73369425db80f6963c05ac459dd631",
)
PLAIN = _files.PublicFile(
    "alpaca_eval_2/win_probability.csv",
    "bcaa6118c30ab4d74508012f487080a6a358631d5002d8ade21bf7a3a311544d",
)


def load_table(home: Path, download_if_missing: bool) -> tuple[list[str], list[str], np.ndarray]:
    """Load the table of win probabilities.

    Parameters
    ----------
    home : Path
        The cache.
    download_if_missing : bool
        Whether to derive the table from downloads if the cache lacks it.

    Returns
    -------
    models : list of str of length n
        Names of the models.
    items : list of str of length m
        Ids of the instructions.
    values : ndarray of shape (n, m)
        Win probabilities in [0, 1]; NaN where the judge gave none.

    Raises
    ------
    DatasetUnavailableError
        If the table cannot be had.
    """
    rows = list(csv.reader(io.StringIO(_table_bytes(home, download_if_missing).decode())))
    values = np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows[1:]])
    return [row[0] for row in rows[1:]], rows[0][1:], values


def _table_bytes(home: Path, download_if_missing: bool) -> bytes:
    compressed = _files.read_cached(COMPRESSED, home)
    if compressed is not None:
        return zlib.decompress(compressed, wbits=31)
    plain = _files.read_cached(PLAIN, home)
    if plain is not None:
        return plain
    if not download_if_missing:
        raise _unavailable(home, "the cache does not hold it and download_if_missing=False")
    try:
        table = derive_table(home)
    except (OSError, ValueError) as error:
        raise _unavailable(home, f"deriving it from the annotations failed: {error}") from error
    target = home / PLAIN.name
    try:
        with _files.temporary_folder(target) as folder:
            (folder / "file").write_bytes(table)
            _files.publish(folder / "file", target)
    except OSError as error:
        warnings.warn(f"{target} could not be written: {error}", UserWarning, stacklevel=4)
    return table


def _unavailable(home: Path, problem: str) -> OSError:
    error = _files.unavailable(COMPRESSED, home, f"AlpacaEval 2.0: {problem}")
    source = f"{_files.BASE_URL}/{SOURCE}/{COMMIT}/{ANNOTATIONS}"
    return type(error)(
        f"{error} It is derived from the {len(ROW_SHA256)} files {source}. Its uncompressed form, "
        f"{PLAIN.name} with sha256 {PLAIN.sha256}, is accepted too."
    )


def derive_table(home: Path) -> bytes:
    """Derive the table from the annotation files, each from the cache or downloaded.

    Parameters
    ----------
    home : Path
        The cache; `alpaca_eval_2/results/` in it may hold annotation files.

    Returns
    -------
    bytes
        The table as CSV, with the pinned hash.

    Raises
    ------
    OSError
        If an annotation file cannot be downloaded.
    ValueError
        If one does not give the pinned row.
    """
    reference = None
    for annotations in _annotations(home, REFERENCE_MODEL):
        reference = parse_annotations(annotations)
        header = ",".join(["model", *item_ids(reference)]) + "\n"
        if _files.digest(header.encode()) == HEADER_SHA256:
            break
    else:
        raise ValueError(f"the instructions of {REFERENCE_MODEL} are not the pinned ones")
    order = [instruction for instruction, _, _ in reference]
    lines = [header]
    for model, sha256 in ROW_SHA256.items():
        for annotations in _annotations(home, model):
            line = table_row(model, parse_annotations(annotations), order, sha256)
            if line is not None:
                lines.append(line)
                break
        else:
            raise ValueError(f"the annotations of {model} do not give the pinned row {sha256}")
    table = "".join(lines).encode()
    if _files.digest(table) != PLAIN.sha256:
        raise ValueError(f"the table derived has another sha256 than the pinned {PLAIN.sha256}")
    return table


def _annotations(home: Path, model: str) -> Iterator[bytes]:
    """Yield the annotation file in the cache, if there is one, then the published one."""
    name = ANNOTATIONS.format(model=model)
    path = home / "alpaca_eval_2" / name
    if path.is_file() and os.path.getsize(path) <= _files.MAX_BYTES:
        yield path.read_bytes()
    yield _files.fetch_unpinned(f"{_files.BASE_URL}/{SOURCE}/{COMMIT}/{quote(name)}")


def parse_annotations(data: bytes) -> list[tuple[str, str, float]]:
    """Read the judge's annotations of one model.

    Parameters
    ----------
    data : bytes
        The file `annotations.json`.

    Returns
    -------
    list of (instruction, data set, win probability)
        In the file's order; the win probability is `preference` - 1, NaN where it is null.

    Raises
    ------
    ValueError
        If the file is not such a list, or has an instruction twice.
    """
    entries = json.loads(data)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("annotations are not a list of objects")
    rows = []
    for entry in entries:
        instruction, dataset = entry.get("instruction"), entry.get("dataset")
        preference = entry.get("preference")
        if not isinstance(instruction, str) or not isinstance(dataset, str):
            raise ValueError("an annotation lacks its instruction or its data set")
        if not isinstance(preference, int | float | None):
            raise ValueError(f"the preference {preference!r} is not a number")
        value = math.nan if preference is None else preference - 1.0
        rows.append((instruction, dataset, value))
    if len({instruction for instruction, _, _ in rows}) < len(rows):
        raise ValueError("an instruction is annotated twice")
    return rows


def item_ids(reference: Sequence[tuple[str, str, float]]) -> list[str]:
    """Name the instructions "data set/position in the reference model's whole file"."""
    return [f"{dataset}/{position:03d}" for position, (_, dataset, _) in enumerate(reference)]


def table_row(
    model: str,
    annotations: Sequence[tuple[str, str, float]],
    order: Sequence[str],
    sha256: str,
) -> str | None:
    """Write one model's line of the table: its win probabilities, rounded to six decimals.

    Parameters
    ----------
    model : str
        Name of the model.
    annotations : sequence of (instruction, data set, win probability)
        As returned by `parse_annotations`.
    order : sequence of str
        The instructions in the order of the columns.
    sha256 : str
        Hash of the line.

    Returns
    -------
    str or None
        The line with that hash; None if the annotations do not give it.
    """
    values = {instruction: value for instruction, _, value in annotations}
    row = [values.get(instruction, math.nan) for instruction in order]
    cells = ["" if math.isnan(value) else _rounded(value) for value in row]
    # Which way a tie is rounded depends on the program that wrote the table: try both.
    ties = [i for i, value in enumerate(row) if _is_tie(value)][:MAX_TIES]
    options = [[cells[i], *_neighbours(row[i], cells[i])] for i in ties]
    for choice in itertools.product(*options):
        for i, cell in zip(ties, choice, strict=True):
            cells[i] = cell
        line = ",".join([model, *cells]) + "\n"
        if _files.digest(line.encode()) == sha256:
            return line
    return None


def _rounded(value: float) -> str:
    # Adding zero turns -0.0 into 0.0.
    return repr(round(value, DECIMALS) + 0.0)


def _is_tie(value: float) -> bool:
    if not math.isfinite(value):
        return False
    # Preferences are written with ten decimals.
    return abs(value * 10**DECIMALS % 1 - 0.5) < 5e-5


def _neighbours(value: float, cell: str) -> list[str]:
    half = 0.5 * 10**-DECIMALS
    return sorted({_rounded(value - half), _rounded(value + half)} - {cell})
