"""Errors, ranks and coverage of strategies."""

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import kendalltau, rankdata

from sklearn_irt.evaluation._table import ALL, COLUMNS, KEYS, check_results


def summarize(results: pd.DataFrame, by: Sequence[str] = ("strategy", "k")) -> pd.DataFrame:
    """Error, ranks and coverage of every strategy.

    Parameters
    ----------
    results : DataFrame
        Of `compare_strategies`, perhaps several with further columns.
    by : sequence of str, default=("strategy", "k")
        Columns whose values get a row each. Without "scenario" among them only the rows of the
        scenario "all" count.

    Returns
    -------
    DataFrame
        Index `by`; columns mean_error (mean absolute error, the mean over the splits),
        standard_error (of that mean, over the splits; NaN of one), worst (largest error of a
        model), kendall and spearman (rank correlation of the true and the estimated scores within
        a split, mean over the splits), coverage (share of the true scores inside their interval)
        and width (its mean width), in the unit of the responses.

    Raises
    ------
    TypeError
        Where results are no DataFrame.
    ValueError
        Naming the column that is missing, has no value in a row or holds no numbers, or where no
        row is of the scenario "all".

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_irt.evaluation import summarize
    >>> results = pd.DataFrame({
    ...     "strategy": "random/naive", "k": 30, "split": [0, 0, 1, 1], "model": list("abcd"),
    ...     "scenario": "all", "true": [0.5, 0.6, 0.5, 0.8], "estimated": [0.5, 0.7, 0.6, 0.8],
    ...     "std": 0.1, "low": [0.4, 0.6, 0.55, 0.7], "high": [0.6, 0.8, 0.65, 0.9],
    ... })
    >>> summarize(results).round(3).iloc[0].to_dict()
    {'mean_error': 0.05, 'standard_error': 0.0, 'worst': 0.1, 'kendall': 1.0,
     'spearman': 1.0, 'coverage': 0.75, 'width': 0.175}
    """
    by = _read_by(by)
    results = check_results(results, [*COLUMNS, *by], [*KEYS, *by])
    if "scenario" not in by:
        results = results[results["scenario"] == ALL]
    if not len(results):
        raise ValueError('results has no row of the scenario "all"')
    rows = {key: _summary(part) for key, part in results.groupby(by, sort=False, observed=True)}
    index = pd.MultiIndex.from_tuples(rows, names=by) if len(by) > 1 else None
    if index is None:
        index = pd.Index([key[0] for key in rows], name=by[0])
    return pd.DataFrame(list(rows.values()), index)


def _read_by(by: Any) -> list:
    names = list(by) if np.iterable(by) and not isinstance(by, (str, bytes)) else [by]
    if by is None or not (isinstance(by, str) or np.iterable(by)):
        raise ValueError(f"by must be a column of results or a sequence of them, got {by!r}")
    if not all(isinstance(name, Hashable) for name in names):
        raise ValueError(f"by must hold names of columns, got {by!r}")
    if not names:
        raise ValueError("by must name a column at least")
    return list(dict.fromkeys(names))


def _summary(part: pd.DataFrame) -> dict[str, float]:
    error = (part["estimated"] - part["true"]).abs()
    by_split = error.groupby(part["split"]).mean()
    some = part["low"].notna() & part["high"].notna() & part["true"].notna()
    part = part.assign(inside=(part["low"] <= part["true"]) & (part["true"] <= part["high"]))
    ranks = np.array(
        [
            _rank_correlations(found["true"].to_numpy(), found["estimated"].to_numpy())
            for _, found in part.groupby("split")
        ]
    )
    kendall, spearman = (column[~np.isnan(column)] for column in ranks.T)
    return {
        "mean_error": by_split.mean(),
        "standard_error": by_split.std(ddof=1) / np.sqrt(by_split.count()),
        "worst": error.max(),
        "kendall": kendall.mean() if len(kendall) else np.nan,
        "spearman": spearman.mean() if len(spearman) else np.nan,
        "coverage": part.loc[some, "inside"].mean(),
        "width": (part["high"] - part["low"]).mean(),
    }


def _rank_correlations(true: np.ndarray, estimated: np.ndarray) -> tuple[float, float]:
    """Kendall's tau-b and Spearman's rho; NaN where there is nothing to rank."""
    known = ~(np.isnan(true) | np.isnan(estimated))
    true, estimated = true[known], estimated[known]
    if len(true) < 2 or np.ptp(true) == 0 or np.ptp(estimated) == 0:
        return np.nan, np.nan
    spearman = np.corrcoef(rankdata(true), rankdata(estimated))[0, 1]
    return float(kendalltau(true, estimated)[0]), float(spearman)
