"""Responses that come in chunks of rows: stored once, so that a fit can read them many times."""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._responses import as_numbers


@contextlib.contextmanager
def stored_chunks(chunks: Iterator[Any]) -> Iterator[tuple[np.memmap, Any]]:
    """Write chunks of rows into a temporary file, which is gone when the context ends.

    Parameters
    ----------
    chunks : iterator of array-like of shape (n_rows, n_items)
        Arrays or DataFrames, each of as many rows as it likes; one is in memory at a time.

    Yields
    ------
    cells : memmap of shape (n_models, n_items)
        Integers of one or two bytes, bool and float64 as they came in the first chunk, others as
        float32.
    named : memmap or DataFrame
        The same cells, with the column names of the first chunk that has some.

    Raises
    ------
    TypeError, ValueError
        Naming the chunk that is not a matrix of numbers with the items of the others.
    OSError
        Where the folder of temporary files is full.
    """
    with tempfile.TemporaryFile(prefix="sklearn_irt-") as file:
        at, n_models, n_items, dtype, names = 0, 0, 0, None, None
        for chunk in chunks:  # not of `enumerate`, which keeps one while it waits for the next
            block, columns = _read(chunk, at)
            if dtype is None:
                n_items, dtype = block.shape[1], _stored_type(block.dtype)
            _refuse_other(block, at, n_items, dtype)
            if columns is not None:
                names = columns if names is None else names
                _refuse_renamed(columns, at, names)
            _append(file, block.astype(dtype, order="C", copy=False), at)
            n_models += len(block)
            at += 1
            del chunk, block  # not in memory while the next one is made
        if dtype is None:
            raise ValueError("X is an iterator that gave no chunk; was it read before?")
        file.flush()
        shape = (n_models, n_items)
        if n_models * n_items:
            cells = np.memmap(file, dtype, "r", shape=shape)
        else:  # no file of no size can be mapped
            cells = np.empty(shape, dtype).view(np.memmap)
        yield cells, cells if names is None else pd.DataFrame(cells, columns=names, copy=False)


def _read(chunk: Any, at: int) -> tuple[np.ndarray, pd.Index | None]:
    """A chunk as a matrix of numbers, and its column names."""
    try:
        if isinstance(chunk, Iterator):
            raise TypeError("an iterator where a matrix must be")
        chunk = as_numbers(chunk)
        if isinstance(chunk, pd.DataFrame):
            numbered = isinstance(chunk.columns, pd.RangeIndex)
            dtype = np.result_type(*chunk.dtypes.unique()) if chunk.shape[1] else float
            return chunk.to_numpy(dtype), None if numbered else chunk.columns
        block = np.asarray(chunk)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"chunk {at} of X: {error}") from None
    if block.dtype.kind not in "fiub":
        raise TypeError(
            f"chunk {at} of X must hold numbers (NaN for not asked), but its dtype is {block.dtype}"
        )
    if block.ndim != 2:
        raise ValueError(
            f"chunk {at} of X has shape {block.shape}; it must have one row per model and one "
            "column per item"
        )
    return block, None


def _stored_type(dtype: np.dtype) -> np.dtype:
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize < 8 else np.float64)
    return dtype if dtype.itemsize <= 2 else np.dtype(np.float32)


def _refuse_other(block: np.ndarray, at: int, n_items: int, dtype: np.dtype) -> None:
    """Raise where a chunk has other items than the first, or what the file cannot hold."""
    if block.shape[1] != n_items:
        raise ValueError(
            f"chunk {at} of X has {block.shape[1]} columns (items), but the first has {n_items}"
        )
    if not np.can_cast(block.dtype, dtype, "same_kind" if dtype.kind == "f" else "safe"):
        raise ValueError(
            f"chunk {at} of X has dtype {block.dtype}, which {dtype}, that of the first, cannot "
            "hold; give all chunks one dtype"
        )


def _refuse_renamed(columns: pd.Index, at: int, names: pd.Index) -> None:
    for position, (own, name) in enumerate(zip(columns, names, strict=True)):
        if own != name:
            raise ValueError(
                f"column {position} of chunk {at} of X is {own!r}, but {name!r} in those before; "
                "give all chunks the same items in the same order"
            )


def _append(file: Any, block: np.ndarray, at: int) -> None:
    try:
        block.tofile(file)
    except OSError as error:
        raise OSError(
            f"chunk {at} of X could not be stored in the folder of temporary files, "
            f"{tempfile.gettempdir()} ({error}); the environment's TMPDIR may name another"
        ) from error
