"""The table of a comparison, and whether a given table is one."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = [
    "strategy",
    "k",
    "split",
    "model",
    "scenario",
    "true",
    "estimated",
    "std",
    "low",
    "high",
]
# Without a value in these a row belongs nowhere.
KEYS = ("strategy", "k", "split", "scenario")
NUMBERS = ("k", "true", "estimated", "std", "low", "high")
FINITE = ("k", "true", "estimated")
# The row of the whole benchmark in the results.
ALL = "all"


def check_results(
    results: Any,
    needed: Sequence[Any] = COLUMNS,
    keys: Sequence[Any] = KEYS,
    called: str = "results",
) -> pd.DataFrame:
    """Refuse what is no table of a comparison.

    Parameters
    ----------
    results : DataFrame
        As `compare_strategies` returns.
    needed : sequence
        Columns that must be there.
    keys : sequence
        Columns without a missing value, where they are there.
    called : str
        What the caller calls the table, for messages.

    Returns
    -------
    DataFrame
        The same rows, with numbers of other kinds (objects, nullable columns) as plain ones.

    Raises
    ------
    TypeError
        Where it is no DataFrame.
    ValueError
        Naming the column that is missing, is there twice, or has a cell that it must not have.
    """
    if not isinstance(results, pd.DataFrame):
        raise TypeError(
            f"{called} must be the DataFrame of compare_strategies, got {type(results).__name__}"
        )
    for name in needed:
        if name not in results.columns:
            raise ValueError(
                f"{called} has no column {name!r}, it has {list(results.columns)}: give the table "
                f"of compare_strategies, with the columns {', '.join(COLUMNS)}"
            )
    if not len(results):
        raise ValueError(f"{called} has no rows: give the table of compare_strategies")
    there = [name for name in dict.fromkeys([*needed, *keys, *NUMBERS]) if name in results.columns]
    for name in there:
        if isinstance(results[name], pd.DataFrame):
            raise ValueError(f"{called} has the column {name!r} more than once")
    for name in keys:
        missing = results[name].isna().to_numpy() if name in there else np.zeros(1, dtype=bool)
        if missing.any():
            raise ValueError(
                f"{called} has no value (NaN) in the column {name!r}, in row {np.argmax(missing)}: "
                "fill it, or drop the row"
            )
    plain = {n: _numbers(results[n], n, called) for n in NUMBERS if n in there}
    return results.assign(**plain)


def _numbers(column: pd.Series, name: str, called: str) -> np.ndarray:
    """The cells as integers or floats, NaN where there is none."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iuf":
        values = column.to_numpy()
    else:
        cells = [
            np.nan if missing else cell for cell, missing in zip(column, column.isna(), strict=True)
        ]
        for row, cell in enumerate(cells):
            if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, Real):
                raise ValueError(
                    f"{called} has {cell!r} in the column {name!r}, in row {row}: it must hold "
                    "numbers"
                )
        whole = all(isinstance(cell, Integral) for cell in cells)
        try:
            values = np.array(cells, dtype=np.int64 if whole else float)
        except OverflowError:
            raise ValueError(f"{called} has too large a number in the column {name!r}") from None
    if name in FINITE and np.isinf(values).any():
        row = np.argmax(np.isinf(values))
        raise ValueError(f"{called} is infinite in the column {name!r}, in row {row}")
    return values
