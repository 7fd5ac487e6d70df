"""Tables of experiments in reStructuredText, and their places on a page."""

from pathlib import Path

import pandas as pd

from sklearn_irt.evaluation import summarize


def rst_table(table: pd.DataFrame) -> str:
    """A simple table; the index is the first column."""
    head = [table.index.name or "", *map(str, table.columns)]
    rows = [
        [str(name), *map(str, row)] for name, row in zip(table.index, table.values, strict=True)
    ]
    # A cell of a simple table's first column must not be empty.
    rows = [[cell or "\\" for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    rule = "  ".join("=" * width for width in widths)
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in [head, *rows]
    ]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule, ""])


def _points(value: float) -> str:
    return "" if pd.isna(value) else f"{100 * value:.2f}"


def _share(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.2f}"


def errors_table(title: str, results: pd.DataFrame) -> str:
    """Errors by number of anchors, and the other figures at the largest number."""
    found = summarize(results)
    sizes = list(dict.fromkeys(found.index.get_level_values("k")))
    last = found.xs(sizes[-1], level="k")
    columns = {}
    for k in sizes:
        part = found.xs(k, level="k")
        columns[str(k)] = part["mean_error"].map(_points)
    columns["±"] = last["standard_error"].map(_points)
    columns["worst"] = last["worst"].map(_points)
    columns["Kendall"] = last["kendall"].map(_share)
    columns["coverage"] = last["coverage"].map(_share)
    columns["width"] = last["width"].map(_points)
    table = pd.DataFrame(columns).rename_axis("strategy")
    return f"{title}\n\n{rst_table(table)}"


def scenarios_table(title: str, results: pd.DataFrame) -> str:
    """Errors on every scenario at the largest number of anchors."""
    k = results["k"].max()
    parts = results[(results["k"] == k) & (results["scenario"] != "all")]
    if parts["scenario"].nunique() < 2:
        return ""
    found = summarize(parts, by=("strategy", "scenario"))["mean_error"]
    names = list(dict.fromkeys(parts["scenario"]))
    table = found.unstack("scenario")[names].loc[list(dict.fromkeys(parts["strategy"]))]
    text = rst_table(table.map(_points).rename_axis("strategy"))
    return f"{title}, every scenario at {k}\n\n{text}"


def axis_table(results: pd.DataFrame) -> str:
    """Errors along each axis; the case of the results is "axis=value"."""
    axis = results["case"].str.split("=", expand=True)
    results = results.assign(axis=axis[0], value=axis[1])
    found = []
    for (benchmark, name), part in results.groupby(["benchmark", "axis"], sort=False):
        errors = summarize(part, by=("strategy", "value"))["mean_error"]
        order = list(dict.fromkeys(part["value"]))
        table = errors.unstack("value")[order].loc[list(dict.fromkeys(part["strategy"]))]
        text = rst_table(table.map(_points).rename_axis(name))
        found.append(f"{benchmark}, {part['k'].iloc[0]} anchors, by {name}\n\n{text}")
    return "\n".join(found)


def replace_tables(page: Path, name: str, text: str) -> None:
    """Put a text between the markers of an experiment on a page."""
    begin, end = f".. begin {name}\n", f".. end {name}\n"
    lines = page.read_text(encoding="utf-8")
    if lines.count(begin) != 1 or lines.count(end) != 1:
        raise ValueError(f"{page} must have the lines {begin.strip()!r} and {end.strip()!r} once")
    before, rest = lines.split(begin)
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
