"""Item tables and benchmark scores, the parts every data set shares."""

from collections.abc import Mapping

import numpy as np
import pandas as pd


def item_table(layout: Mapping[str, int | Mapping[str, int]]) -> pd.DataFrame:
    """Name the items of a benchmark.

    Parameters
    ----------
    layout : mapping
        Scenario to its number of items, or to ``{subscenario: number of items}``.

    Returns
    -------
    DataFrame of shape (m, 3)
        Columns ``item`` ("scenario/00012", the position within the scenario),
        ``scenario`` and ``subscenario`` (NA where the scenario has none).
    """
    items: list[str] = []
    scenarios: list[str] = []
    subscenarios: list[str | None] = []
    for scenario, size in layout.items():
        if isinstance(size, Mapping):
            names = [name for name, count in size.items() for _ in range(count)]
        else:
            names = [None] * size
        items.extend(f"{scenario}/{position:05d}" for position in range(len(names)))
        scenarios.extend([scenario] * len(names))
        subscenarios.extend(names)
    return pd.DataFrame(
        {
            "item": items,
            "scenario": scenarios,
            "subscenario": pd.array(subscenarios, dtype="string"),
        }
    )


def benchmark_scores(responses: np.ndarray, items: pd.DataFrame) -> np.ndarray:
    """Score every model on the whole benchmark.

    Parameters
    ----------
    responses : ndarray of shape (n, m)
        NaN cells are left out of the means.
    items : DataFrame of shape (m, 3)
        As returned by `item_table`.

    Returns
    -------
    ndarray of shape (n,)
        Mean over the scenarios of the mean over their subscenarios of the item mean; NaN for a
        model without any response in one of them.
    """
    columns: dict[str, dict[str | None, list[int]]] = {}
    labels = zip(items["scenario"], items["subscenario"], strict=True)
    for position, (scenario, subscenario) in enumerate(labels):
        key = None if pd.isna(subscenario) else subscenario
        columns.setdefault(scenario, {}).setdefault(key, []).append(position)
    scenario_means = [
        np.mean([_row_means(responses, positions) for positions in groups.values()], axis=0)
        for groups in columns.values()
    ]
    return np.mean(scenario_means, axis=0)


def _row_means(responses: np.ndarray, positions: list[int]) -> np.ndarray:
    first, last = positions[0], positions[-1]
    # A slice is a view; items of one group usually stand side by side.
    contiguous = last - first + 1 == len(positions)
    block = responses[:, first : last + 1] if contiguous else responses[:, positions]
    observed = ~np.isnan(block)
    counts = observed.sum(axis=1)
    totals = np.sum(block, axis=1, where=observed)
    return np.divide(totals, counts, out=np.full(len(block), np.nan), where=counts > 0)
