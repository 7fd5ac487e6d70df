"""What items cost: a csv file, or a column of the results."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from sklearn_irt.logs import _reading, read_table


def costs_from_file(path: str, items: Iterable[str]) -> pd.Series:
    """Costs by item id from a table with the columns item and cost.

    Parameters
    ----------
    path : str
    items : iterable of str
        All items that need a cost.

    Returns
    -------
    Series
        In the order of `items`.

    Raises
    ------
    ValueError
        Naming the line that is wrong, or the item that is unknown or has no cost.
    """
    table = read_table(path, layout="long", columns={"score": "cost"}, model="costs")
    return _matched(table.set_index("item")["score"], items, path)


def costs_from_results(paths: Sequence[str], column: str, items: Iterable[str]) -> pd.Series:
    """Mean costs of the items from a column of long tables.

    Parameters
    ----------
    paths : sequence of str
    column : str
    items : iterable of str

    Returns
    -------
    Series

    Raises
    ------
    ValueError
        Where there is neither such a file nor such a column.
    """
    try:
        table = read_table(paths, layout="long", columns={"score": column})
    except ValueError as error:
        raise ValueError(
            f"--costs {column}: there is no such file, and no column of that name: {error}"
        ) from None
    return _matched(table.groupby("item")["score"].mean(), items, f"the column {column}")


def read_costs(asked: str | None, results: Sequence[str], items: Iterable[str]) -> pd.Series | None:
    """Costs from what --costs says: a file, or a column of the results."""
    if asked is None:
        return None
    if Path(asked).exists() or not results or _looks_like_file(asked):
        return costs_from_file(asked, items)
    return costs_from_results(results, asked, items)


def _looks_like_file(asked: str) -> bool:
    return "/" in asked or _reading.plain_name(Path(asked)).endswith((".csv", ".tsv", ".jsonl"))


def _matched(costs: pd.Series, items: Iterable[str], where: str) -> pd.Series:
    items = list(items)
    known = set(items)
    for item in costs.index:
        if item not in known:
            raise ValueError(f"--costs: {where} names the item {item!r}, which is not among them")
    for item in items:
        if item not in costs.index:
            raise ValueError(f"--costs: {where} has no cost of the item {item!r}")
    return costs.loc[items]
