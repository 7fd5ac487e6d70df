"""Responses that come in chunks of rows: stored once, so that a fit can read them many times."""

import contextlib
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt._responses import as_numbers


@contextlib.contextmanager
def stored_chunks(chunks: Iterator[Any]) -> Iterator[tuple[np.memmap, pd.DataFrame | None]]:
    """Write chunks of rows into a temporary file, which is gone when the context ends.

    Parameters
    ----------
    chunks : iterator of array-like of shape (n_rows, n_items)
        Arrays or DataFrames, each of as many rows as it likes; one is in memory at a time.

    Yields
    ------
    memmap of shape (n_models, n_items)
        Numbers of one or two bytes and float64 as they came in the first chunk, others as float32.
    DataFrame or None
        The first chunk without its rows, where it has column names.

    Raises
    ------
    TypeError, ValueError
        Naming the chunk that is not a matrix of numbers with the items of the first.
    """
    with tempfile.TemporaryFile(prefix="sklearn_irt-") as file:
        n_models, n_items, dtype, header = 0, 0, None, None
        for at, chunk in enumerate(chunks):
            chunk = as_numbers(chunk)
            block = np.asarray(chunk)
            if block.dtype.kind not in "fiub":
                raise TypeError(
                    f"chunk {at} of X must hold numbers (NaN for not asked), but its dtype is "
                    f"{block.dtype}"
                )
            if block.ndim != 2:
                raise ValueError(
                    f"chunk {at} of X has shape {block.shape}; it must have one row per model and "
                    "one column per item"
                )
            if dtype is None:
                n_items = block.shape[1]
                narrow = block.dtype.itemsize <= 2 or block.dtype == np.float64
                dtype = block.dtype if narrow else np.dtype(np.float32)
                header = chunk.iloc[:0] if isinstance(chunk, pd.DataFrame) else None
            _refuse_other(at, chunk, block, n_items, dtype, header)
            block.astype(dtype, order="C", copy=False).tofile(file)
            n_models += len(block)
        if dtype is None:
            raise ValueError("X is an iterator that gave no chunk; was it read before?")
        if n_models * n_items == 0:  # no file of no size can be mapped
            yield np.empty((n_models, n_items), dtype).view(np.memmap), header
            return
        file.flush()
        yield np.memmap(file, dtype, "r", shape=(n_models, n_items)), header


def _refuse_other(at, chunk, block, n_items, dtype, header):
    """Raise where a chunk differs from the first in its items, or holds what the file cannot."""
    if block.shape[1] != n_items:
        raise ValueError(
            f"chunk {at} of X has {block.shape[1]} columns (items), but the first has {n_items}"
        )
    if header is not None and isinstance(chunk, pd.DataFrame):
        other = np.flatnonzero(np.asarray(chunk.columns != header.columns))
        if len(other):
            raise ValueError(
                f"column {other[0]} of chunk {at} of X is {chunk.columns[other[0]]!r}, but of "
                f"the first chunk {header.columns[other[0]]!r}; give all chunks the same items"
            )
    if not np.can_cast(block.dtype, dtype, "same_kind" if dtype.kind == "f" else "safe"):
        raise ValueError(
            f"chunk {at} of X has dtype {block.dtype}, which {dtype}, that of the first, cannot "
            "hold; give all chunks one dtype"
        )
