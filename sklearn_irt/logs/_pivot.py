"""From the tidy table to the matrix of responses."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from sklearn_irt.logs import _reading, _tidy

# How answers were made and scored: mixed within a scenario, scores are not comparable.
COMPARED = ("metric", "filter", "shots", "annotator", "baseline", "split")
MISSING = ["model", "scenario", "items", "unscored", "absent"]


@dataclass(frozen=True, eq=False)
class ResponseMatrix:
    """Responses of models to items, and what is not in them.

    Made by `pivot`.

    Attributes
    ----------
    responses : DataFrame of shape (n_models, n_items)
        Index model, columns item ids; NaN where there is no score.
    items : DataFrame of shape (n_items, 3)
        Columns item, scenario, subscenario, in the order of the columns of `responses`.
    missing : DataFrame
        A row per model and scenario with missing responses: of how many items, how many are
        unscored (logged, without a score) and how many absent.
    dropped : DataFrame
        Columns file, model, what, count: what the readers left out, and answers merged here.
    provenance : DataFrame
        As returned by `sklearn_irt.logs.provenance`.
    conflicts : list of str
        Scenarios whose answers were scored or asked in more than one way.
    """

    responses: pd.DataFrame
    items: pd.DataFrame
    missing: pd.DataFrame
    dropped: pd.DataFrame
    provenance: pd.DataFrame = field(repr=False)
    conflicts: list[str]

    def report(self) -> str:
        """Tell in words what is there, what is missing, and what was dropped.

        Returns
        -------
        str
        """
        n_models, n_items = self.responses.shape
        gaps = int(self.responses.isna().to_numpy().sum())
        scenarios = self.items["scenario"].nunique(dropna=False)
        lines = [
            f"{n_models} model{'s' * (n_models != 1)} x {n_items} item{'s' * (n_items != 1)}, "
            f"scenarios: {scenarios}; "
            f"{gaps} of {n_models * n_items} responses missing"
        ]
        lines += [f"conflict: {conflict}" for conflict in self.conflicts]
        for row in self.missing.itertuples(index=False):
            lines.append(
                f"missing: {row.model} in {row.scenario}: {row.absent} absent and {row.unscored} "
                f"unscored of {row.items} items"
            )
        for row in self.dropped.itertuples(index=False):
            lines.append(f"left out: {row.file}: {row.what} ({row.count})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<ResponseMatrix: {self.report().splitlines()[0]}>"


def pivot(
    table: pd.DataFrame | Sequence[pd.DataFrame], *, duplicates: str = "error"
) -> ResponseMatrix:
    """Make the matrix of responses from the answers of several models.

    Parameters
    ----------
    table : DataFrame or sequence of DataFrame
        From the readers; or any with the columns model, item, score, and where known scenario
        and subscenario.
    duplicates : {"error", "mean", "first", "last"}, default="error"
        What to do where a model answers an item more than once. What is merged is counted in
        `dropped`.

    Returns
    -------
    ResponseMatrix
        Models in the order of the table; items by scenario and subscenario, in that order too.
        No model, item or answer is dropped without a row in its `dropped`.

    Raises
    ------
    ValueError
        Where a column is missing, a model or item has no name, a score is not a finite number
        or NaN, an answer is there twice, or an item has two scenarios; names the first one.

    Warns
    -----
    UserWarning
        Where answers to the items of a scenario were scored by different metrics, or asked
        with different shots.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn_irt.logs import pivot
    >>> table = pd.DataFrame({
    ...     "model": ["a", "a", "b"], "item": ["arc/0", "arc/1", "arc/0"], "score": [1, 0, 1],
    ...     "scenario": "arc",
    ... })
    >>> result = pivot(table)
    >>> result.responses.loc["b"].tolist()
    [1.0, nan]
    >>> print(result.report())
    2 models x 2 items, scenarios: 1; 1 of 4 responses missing
    missing: b in arc: 1 absent and 0 unscored of 2 items
    """
    if duplicates not in ("error", "mean", "first", "last"):
        raise ValueError(
            f'duplicates must be "error", "mean", "first" or "last", got {duplicates!r}'
        )
    tables = [table] if isinstance(table, pd.DataFrame) else list(table)
    if not tables or not sum(len(each) for each in tables):
        raise ValueError("the table has no answers")
    whole = _tidy.joined([_complete(each) for each in tables])
    scores = _scores(whole)
    rows, models = pd.factorize(whole["model"])
    columns, items = pd.factorize(whole["item"])
    item_table = _item_table(whole, columns, items)
    order, place = _by_label(item_table)
    items, item_table, columns = items[order], item_table.iloc[order], place[columns]
    item_table = item_table.reset_index(drop=True)
    n_models, n_items = len(models), len(items)
    cells = rows.astype(np.int64) * n_items + columns
    merged = []
    first_seen = pd.Series(cells).duplicated().to_numpy()
    if first_seen.any():
        at = int(np.flatnonzero(first_seen)[0])
        if duplicates == "error":
            raise ValueError(
                f"the model {models[rows[at]]!r} answers the item {items[columns[at]]!r} more "
                'than once; give duplicates="mean", "first" or "last"'
            )
        counts = pd.Series(models[rows[first_seen]]).value_counts(sort=False)
        for model, count in counts.items():
            what = f"answers to an item answered before (duplicates={duplicates!r})"
            merged.append({"file": "", "model": model, "what": what, "count": int(count)})
    values = np.full(n_models * n_items, np.nan)
    if duplicates == "mean":
        means = pd.Series(scores).groupby(cells).mean()
        values[means.index.to_numpy()] = means.to_numpy()
    else:
        # Of several values for a cell NumPy keeps the last.
        step = -1 if duplicates == "first" else 1
        values[cells[::step]] = scores[::step]
    logged = np.zeros(n_models * n_items, dtype=bool)
    logged[cells] = True
    shape = (n_models, n_items)
    missing = _missing(values.reshape(shape), logged.reshape(shape), models, item_table)
    dropped = _tidy.left_out(whole)
    if merged:
        dropped = pd.DataFrame([*dropped.to_dict("records"), *merged], columns=dropped.columns)
    sources = _tidy.provenance(whole)
    conflicts = _conflicts(sources)
    for conflict in conflicts:
        _tidy.warn(conflict)
    return ResponseMatrix(
        pd.DataFrame(
            values.reshape(shape),
            index=pd.Index(models, name="model"),
            columns=pd.Index(items, name="item"),
        ),
        item_table,
        missing,
        dropped,
        sources,
        conflicts,
    )


def _complete(table: pd.DataFrame) -> pd.DataFrame:
    """The five columns of a table, labels NA where it has none."""
    for column in ("model", "item", "score"):
        if column not in table:
            raise ValueError(
                f"the table has no column {column!r}; there are {_reading.few(table.columns)}; "
                "pivot takes a row per answer, a matrix of models x items needs none"
            )
    for column in ("model", "item"):
        nameless = table[column].isna().to_numpy()
        if nameless.any():
            raise ValueError(f"row {int(np.flatnonzero(nameless)[0])} of the table has no {column}")
    unknown = pd.array([None] * len(table), dtype="string")
    complete = table.assign(
        **{name: unknown for name in ("scenario", "subscenario") if name not in table}
    )[_tidy.COLUMNS]
    complete.attrs = dict(table.attrs)
    return complete


def _scores(table: pd.DataFrame) -> np.ndarray:
    """Scores as floats, NaN where there is none."""
    scores = pd.to_numeric(table["score"], errors="coerce").to_numpy(float, na_value=np.nan)
    wrong = np.isinf(scores) | (np.isnan(scores) & table["score"].notna().to_numpy())
    if wrong.any():
        row = table.iloc[int(np.flatnonzero(wrong)[0])]
        raise ValueError(
            f"the score of the model {row['model']!r} on the item {row['item']!r} is "
            f"{row['score']!r}, which is not a finite number"
        )
    return scores


def _item_table(table: pd.DataFrame, columns: np.ndarray, items: pd.Index) -> pd.DataFrame:
    """Labels of the items, in the order of their first answer."""
    first = np.full(len(items), -1)
    first[columns[::-1]] = np.arange(len(columns))[::-1]
    found = pd.DataFrame({"item": items})
    for name in ("scenario", "subscenario"):
        codes, labels = pd.factorize(table[name])
        other = codes != codes[first[columns]]
        if other.any():
            at = int(np.flatnonzero(other)[0])
            one, two = (
                "none" if codes[i] < 0 else repr(labels[codes[i]]) for i in (first[columns[at]], at)
            )
            raise ValueError(
                f"the item {items[columns[at]]!r} has the {name} {one} and {two}; read all logs "
                "at once, or with groups=False or the same scenario="
            )
        known = np.append(np.asarray(labels, dtype=object), None)[codes[first]]
        plain = name == "scenario" and (codes >= 0).all()
        found[name] = list(known) if plain else pd.array(known, dtype="string")
    return found


def _by_label(items: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Order of the items by scenario and subscenario, and the place of each in it."""
    codes = [pd.factorize(items[name])[0] for name in ("subscenario", "scenario")]
    order = np.lexsort((np.arange(len(items)), *codes))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return order, place


def _missing(
    values: np.ndarray, logged: np.ndarray, models: pd.Index, items: pd.DataFrame
) -> pd.DataFrame:
    """Missing responses of every model, by scenario."""
    codes, scenarios = pd.factorize(items["scenario"], use_na_sentinel=False)
    rows = []
    for code, scenario in enumerate(scenarios):
        of_scenario = codes == code
        absent = (~logged[:, of_scenario]).sum(axis=1)
        without = np.isnan(values[:, of_scenario]).sum(axis=1)
        for i in np.flatnonzero(without):
            counts = int(of_scenario.sum()), int(without[i] - absent[i]), int(absent[i])
            rows.append((models[i], scenario, *counts))
    return pd.DataFrame(rows, columns=MISSING)


def _conflicts(sources: pd.DataFrame) -> list[str]:
    """What differs in how the answers to a scenario's items came about."""
    found = []
    keys = sources["scenario"].astype(object).where(sources["scenario"].notna(), None)
    parts = sources["subscenario"].astype(object).where(sources["subscenario"].notna(), None)
    for (scenario, part), rows in sources.groupby([keys, parts], dropna=False, sort=False):
        for column in COMPARED:
            if column not in rows:
                continue
            known = rows[rows[column].notna()]
            values = list(dict.fromkeys(known[column]))
            if len(values) > 1:
                by = [f"{v!r} ({known['model'][known[column] == v].iloc[0]})" for v in values]
                name = scenario if pd.isna(part) else f"{scenario}, {part}"
                found.append(
                    f"the answers to {name} differ in {column}: {_reading.few(by)}; they may not "
                    "be comparable"
                )
    return found
