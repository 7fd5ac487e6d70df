"""The sections of a report, as the template shows them."""

import hashlib
import platform
from collections.abc import Iterable
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks_registry._benchmark import DESCRIPTION_FIELDS, TinyBenchmark, is_heldout
from benchmarks_registry._report_scores import COVERAGE, PERCENT, Evaluation, Unit, named, unit_of
from benchmarks_registry._storage import _pack
from sklearn_irt import __version__
from sklearn_irt._scenarios import OVERALL

KINDS = {"naive": "naive", "pirt": "p-IRT", "gpirt": "gp-IRT"}
# A relative that is worth a line.
LEAST_WEIGHT = 0.005
# Models whose tables stand open; relatives of one model; runs and files listed.
SHOWN_OPEN, RELATIVES, LISTED = 3, 5, 50
WHOLE_PERCENT = PERCENT._replace(digits=0)


def _interval_words(unit: Unit, row: dict) -> str:
    return f"{unit.score(row['low'])} to {unit.score(row['high'])}"


def headline(tiny: TinyBenchmark, evaluation: Evaluation) -> dict:
    """The result in one sentence."""
    estimate, unit = tiny.estimator.estimate, unit_of(tiny, evaluation.main)
    best = evaluation.rows()[evaluation.models[0], evaluation.main]
    score = unit.score(best[estimate])
    interval = f"{unit.number(best['low'])} to {unit.score(best['high'])}"
    what = "mean win rate" if tiny.estimator.aggregate == "mean_win_rate" else "score"
    known = ""
    if np.isfinite(best["true"]):
        known = f" Its true {what} is {unit.score(best['true'])}."
    if len(evaluation.models) > 1:
        words = (
            f"{evaluation.models[0]} is estimated highest of {len(evaluation.models)} models: "
            f"{what} {score}, 90\u00a0% interval {interval}.{known}"
        )
        return {"figure": None, "words": words}
    words = (
        f"is the {what} of {evaluation.models[0]} on all {len(tiny.items):,} questions, estimated "
        f"by {KINDS[estimate]} from {int(best['answered'])} answers; 90\u00a0% interval: "
        f"{interval}.{known}"
    )
    return {"figure": score, "words": words}


class _Axis:
    """Where a score lies between the ends of an interval column, in percent of its width."""

    def __init__(self, rows: pd.DataFrame, unit: Unit):
        values = rows[["low", "high", "true"]].to_numpy() * unit.factor
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, unit.factor)
        step = 10.0 ** np.floor(np.log10(max(high - low, 1e-9)))
        self.low, self.high = np.floor(low / step) * step, np.ceil(high / step) * step
        if self.high <= self.low:
            self.high = self.low + step
        self.unit = unit
        self.ends = [f"{end:.6g}{unit.sign}".replace("-", "−") for end in (self.low, self.high)]

    def place(self, value: float) -> str | None:
        if not np.isfinite(value):
            return None
        share = (self.unit.factor * value - self.low) / (self.high - self.low)
        return f"{100 * share:.1f}"

    def bar(self, row: dict, estimate: str) -> dict | None:
        if not np.isfinite([row[name] for name in (estimate, "low", "high")]).all():
            return None
        places = {"low": row["low"], "high": row["high"], "point": row[estimate]}
        places["true"] = row["true"]
        return {name: self.place(value) for name, value in places.items()}


def _row(row: dict, unit: Unit, axis: _Axis, estimate: str) -> dict:
    """One line of a table of estimates."""
    figures = [*KINDS, "std_error", "low", "high", "true"]
    bar = axis.bar(row, estimate)
    words = f"{unit.score(row[estimate])}, 90\u00a0% interval {_interval_words(unit, row)}"
    if np.isfinite(row["true"]):
        words += f", true {unit.score(row['true'])}"
    return {
        **{name: unit.number(row[name]) for name in figures},
        "answered": int(row["answered"]),
        "bar": bar,
        "words": words if bar else "no estimate",
    }


def overview(tiny: TinyBenchmark, evaluation: Evaluation) -> dict:
    """The models in the order of their estimates, each against the first and the next one."""
    estimate, main, given = tiny.estimator.estimate, evaluation.main, evaluation.given
    unit, models = unit_of(tiny, main), evaluation.models
    figures = evaluation.rows()
    axis = _Axis(evaluation.table.xs(main, level="scenario"), unit)
    to_first = tiny._compare(given.iloc[[0]], given.iloc[1:], COVERAGE).xs(main, level="scenario")
    to_next = tiny._compare(given.iloc[:-1], given.iloc[1:], COVERAGE).xs(main, level="scenario")
    lower = to_next["probability_lower"].to_numpy()
    unusual, rows, close = evaluation.unusual(), [], []
    for i, model in enumerate(models):
        line = _row(figures[model, main], unit, axis, estimate)
        behind = "–"
        if i:
            difference = to_first.iloc[i - 1]
            low, high = (unit.number(difference[end], signed=True) for end in ("low", "high"))
            behind = f"{unit.number(difference['difference'])} ({low} to {high})"
            if difference["low"] <= 0:
                close.append(model)
        better = WHOLE_PERCENT.score(1 - lower[i]) if i < len(lower) else "–"
        rows.append({**line, "model": model, "score": line[estimate], "behind": behind})
        rows[-1] |= {"better": better, "unusual": model in unusual}
    note = (
        "Models are compared by their answers to the same questions, so a difference is known "
        "better than the two intervals suggest. "
    )
    if close:
        note += f"Not clearly behind {models[0]} (the interval of the difference holds 0): "
        note += f"{named(close)}."
    else:
        note += f"All others are clearly behind {models[0]}: no interval of a difference holds 0."
    caption = (
        f"Scores {unit.words}, highest first. low to high: 90\u00a0% interval, drawn with the "
        f"estimate in it{_dashed(evaluation)}; behind the first: "
        "difference and its 90\u00a0% interval; better than the next: probability that the true "
        "score is the higher one of the two."
    )
    return {"rows": rows, "axis": axis.ends, "note": note, "caption": caption}


def _dashed(evaluation: Evaluation) -> str:
    """What the dashed line of an interval bar is, where there is one."""
    return " and, dashed, the true score" if evaluation.table["true"].notna().any() else ""


def estimates(tiny: TinyBenchmark, evaluation: Evaluation) -> dict:
    estimate, unit = tiny.estimator.estimate, unit_of(tiny)
    scenarios = list(evaluation.table.index.unique("scenario"))
    axis = _Axis(evaluation.table, unit)
    figures, groups = evaluation.rows(), []
    for model in evaluation.models:
        rows = []
        for scenario in scenarios:
            own = unit_of(tiny, scenario)
            row = _row(figures[model, scenario], own, axis, estimate)
            if own != unit:  # a win rate among ratings
                row["bar"] = None
            total = scenario == OVERALL
            rows.append({**row, "scenario": "whole benchmark" if total else scenario})
            rows[-1]["total"] = total
        groups.append({"model": model, "rows": rows})
    aggregate = "the mean of the scenarios"
    if tiny.estimator.aggregate == "mean_win_rate":
        aggregate = "the mean win rate against the training models, in percent"
    whole = f" The whole benchmark is {aggregate}." if OVERALL in scenarios else ""
    return {
        "groups": groups,
        "axis": axis.ends,
        "open": len(evaluation.models) <= SHOWN_OPEN,
        "main": estimate,
        "legend": (
            "naive is the weighted mean of the anchors' answers; p-IRT takes all answers and what "
            "they tell to expect of the questions that were not asked; gp-IRT joins both."
            f"{whole}"
        ),
        "caption": (
            f"Scores {unit.words}. std. error, low and high belong to {KINDS[estimate]}; low to "
            f"high: 90\u00a0% interval, drawn with the estimate in it{_dashed(evaluation)}. –: not "
            "available."
        ),
    }


def relatives(tiny: TinyBenchmark, evaluation: Evaluation) -> dict:
    estimator, unit = tiny.estimator, unit_of(tiny)
    if estimator._relative_share() == 0.0:
        why = "the benchmark holds no training models' answers"
        if len(estimator.training_scores_):
            why = "it is switched off"
        return {"groups": [], "note": f"Whom a model resembles is not told: {why}."}
    kin = estimator.relatives_of(evaluation.given, RELATIVES)
    groups, unlike = [], []
    for model in evaluation.models:
        own = kin.loc[model]
        names = [*own.index[:-1], "none of them"]
        rows = [
            {
                "name": name,
                "weight": WHOLE_PERCENT.score(weight),
                "score": unit.number(score),
            }
            for name, weight, score in zip(names, own["weight"], own["score"], strict=True)
            if weight >= LEAST_WEIGHT or name is names[-1]
        ]
        groups.append({"model": model, "rows": rows})
        if own["weight"].iloc[-1] > 0.5:
            unlike.append(model)
    note = (
        "A model that answers like a known one, odd answers included, is taken to share its score "
        "on the questions that were not asked. "
    )
    if len(evaluation.models) == 1:
        first = kin.loc[evaluation.models[0]].iloc[0]
        name, weight = kin.index[0][1], WHOLE_PERCENT.score(first["weight"])
        none = WHOLE_PERCENT.score(kin["weight"].iloc[-1])
        note += f"The nearest is {name} ({weight}); that it resembles none: {none}."
    elif unlike:
        note += f"Most likely like none of the training models: {named(unlike)}."
    return {
        "groups": groups,
        "note": note,
        "open": len(evaluation.models) <= SHOWN_OPEN,
        "caption": f"By the answers to the anchors; scores on the whole benchmark {unit.words}.",
    }


def strategies(tiny: TinyBenchmark, comparison: pd.DataFrame, summary: pd.DataFrame) -> dict:
    """Which strategy errs how much."""
    unit = unit_of(tiny)
    unit = unit._replace(digits=unit.digits + 1)
    ordered = summary.sort_values(["k", "mean_error"], kind="stable")
    rows = [
        [
            row["strategy"],
            f"{row['k']:g}",
            *(unit.number(row[name]) for name in ("mean_error", "standard_error", "worst")),
            *(_plain(row[name]) for name in ("kendall", "spearman")),
            WHOLE_PERCENT.score(row["coverage"]),
            unit.number(row["width"]),
        ]
        for _, row in ordered.iterrows()
    ]
    columns = ["strategy", "anchors", "mean error", "its std. error", "worst", "Kendall"]
    columns += ["Spearman", "coverage", "width"]
    n_models, n_splits = comparison["model"].nunique(), comparison["split"].nunique()
    best = ordered.drop_duplicates("k")
    winners = [
        f"{row['strategy']} with {row['k']:g} anchors ({unit.number(row['mean_error'])})"
        for _, row in best.iterrows()
    ]
    return {
        "table": _frame(
            f"Errors of the whole benchmark's score {unit.words}; coverage and width are those of "
            "the 90\u00a0% intervals. –: not available.",
            columns,
            rows,
        ),
        "note": (
            f"Measured on {n_models} models that were left out of the training, in {n_splits} "
            f"splits. Least mean error: {named(winners)}."
        ),
    }


def _plain(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}".replace("-", "−") if np.isfinite(value) else "–"


def _frame(
    caption: str, columns: list[str], rows: list[list], text: Iterable[int] = (), label: str = ""
) -> dict:
    """A table of the template's macro `frame`; `text`: columns that are no numbers."""
    return {
        "caption": caption,
        "columns": columns,
        "rows": rows,
        "text": list(text),
        "label": label,
    }


def asked(tiny: TinyBenchmark, evaluation: Evaluation | None) -> dict:
    described = tiny.describe()
    columns = ["scenario", "questions", "asked", "effective"]
    caption = "effective: how many equally weighted answers the anchors' weights are worth"
    recorded = "heldout_mean" in described
    if recorded:
        columns += ["held-out error", "worst"]
        caption += "; held-out error: mean and worst on models left out, in points of 100"
    rows = []
    for name, row in described.iterrows():
        sizes = [f"{int(row['items']):,}", int(row["anchors"]), _plain(row["effective"], 1)]
        errors = [row["heldout_mean"], row["heldout_worst"]] if recorded else []
        rows.append([name, *sizes, *map(_plain, errors)])
    summary = _frame(f"Sizes of the scenarios. {caption}.", columns, rows)
    n_models = len(evaluation.models) if evaluation else 0
    note = "The anchors of each scenario, in the order of an answer array."
    if evaluation is not None and evaluation.others:
        note += f" Besides, {evaluation.others:,} answers to other questions were used."
    return {
        "note": note,
        "table": summary,
        "answers": (None, "answer")[n_models] if n_models < 2 else "mean answer",
        "groups": [_questions(tiny, name, evaluation) for name in tiny.estimator.scenarios_],
    }


def _questions(tiny: TinyBenchmark, scenario: str, evaluation: Evaluation | None) -> dict:
    """The anchors of a scenario."""
    items, asked = tiny.items, tiny._asked
    labels = items["scenario"].to_numpy()[asked] == scenario
    positions = asked[labels]
    parts = items["subscenario"].iloc[positions].tolist() if "subscenario" in items else []
    parts = ["" if pd.isna(part) else str(part) for part in parts]
    order = np.argsort(tiny.estimator.anchors_)
    columns = order[np.searchsorted(tiny.estimator.anchors_, positions, sorter=order)]
    answers = ["–"] * len(positions)
    if evaluation is not None:
        given = pd.DataFrame(evaluation.given.iloc[:, columns]).astype(float)
        answers = [f"{mean:.3g}" if np.isfinite(mean) else "–" for mean in given.mean()]
    percent = PERCENT._replace(digits=2)
    rows = [
        {
            "number": int(number),
            "item": item,
            "part": part,
            "weight": percent.number(weight),
            "difficulty": _plain(difficulty),
            "answer": answer,
        }
        for number, item, part, weight, difficulty, answer in zip(
            np.flatnonzero(labels) + 1,
            items["item"].iloc[positions],
            parts or [""] * len(positions),
            tiny._weights[positions],
            tiny.estimator.irt_.difficulty_[positions],
            answers,
            strict=True,
        )
    ]
    caption = f"{scenario}: weight in the naive estimate in percent; difficulty in the IRT model."
    return {"scenario": scenario, "rows": rows, "parts": any(parts), "caption": caption}


def origin(tiny: TinyBenchmark, file: Path | None) -> list[tuple[str, str]]:
    """Where the benchmark comes from, and what made the page."""
    n_models = len(tiny.estimator.training_models_)
    facts = [("benchmark", str(tiny.name))]
    facts += [(name, str(tiny.info[name])) for name in DESCRIPTION_FIELDS if tiny.info.get(name)]
    facts.append(("training models", f"{n_models}" if n_models else "none kept; as released"))
    heldout = tiny.info.get("heldout")
    if is_heldout(heldout, tiny.estimator.scenarios_):
        mean = np.mean([heldout["mean"][name] for name in tiny.estimator.scenarios_])
        told = f"{mean:.2f} points of 100, the mean over the scenarios"
        if isinstance(heldout.get("share"), float) and "splits" in heldout:
            share = WHOLE_PERCENT.score(heldout["share"])
            told += f", in {heldout['splits']} splits that leave out {share} of the models"
        facts.append(("error on held-out models", told))
    if file is not None:
        facts.append(("file", file.name))
        facts.append(("sha256 of the file", hashlib.sha256(file.read_bytes()).hexdigest()))
    facts.append(("fingerprint", _fingerprint(tiny)))
    packages = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib")
    versions = [f"sklearn_irt {__version__}", f"Python {platform.python_version()}"]
    versions += [f"{name} {installed_version(name)}" for name in packages]
    return [*facts, ("versions", ", ".join(versions))]


def _fingerprint(tiny: TinyBenchmark) -> str:
    """The same for benchmarks with the same items, parameters, anchors and training answers."""
    ids = [str(item) for item in tiny.items["item"]]
    arrays, _ = _pack(tiny.estimator, {}, ids)
    total = hashlib.sha256("\0".join(ids).encode("utf-8", "surrogatepass"))
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        total.update(f"{name}{array.dtype.str}{array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def sources(evaluation: Evaluation | None) -> list[dict]:
    """Tables of the harness runs that the answers come from, and of what was left out."""
    if evaluation is None:
        return []
    tables = []
    if len(evaluation.sources):
        tables.append(_runs(evaluation.sources))
    if len(evaluation.left_out):
        shown = evaluation.left_out.head(LISTED)
        rows = [
            [Path(str(row["file"])).name, _known_text(row["model"]), row["what"], int(row["count"])]
            for _, row in shown.iterrows()
        ]
        more = len(evaluation.left_out) - len(shown)
        caption = "Left out of the answers by the reader of the logs"
        caption += f"; {more} more rows are not shown." if more else "."
        columns = ["file", "model", "what", "count"]
        tables.append(_frame(caption, columns, rows, (1, 2), "What was left out"))
    return tables


def _runs(sources: pd.DataFrame) -> dict:
    """The runs of each model, those made alike in one line."""
    alike = [
        name
        for name in ("model", "harness", "version", "metric", "filter", "shots")
        if sources[name].notna().any()
    ]
    rows = []
    for key, runs in sources.groupby(alike, dropna=False, sort=False):
        dates = sorted(str(value) for value in runs["date"].dropna().unique())
        span = " to ".join(dict.fromkeys([dates[0], dates[-1]])) if dates else "–"
        counts = [int(runs[name].sum()) for name in ("items", "missing")]
        rows.append([*map(_known_text, key), span, runs["file"].nunique(), *counts])
    more = len(rows) - LISTED
    caption = "Where the answers come from, as the logs tell; missing: without a score"
    caption += f"; {more} more rows are not shown." if more > 0 else "."
    columns = [*alike, "date", "files", "answers", "missing"]
    text = range(1, len(alike) + 1)
    return _frame(caption, columns, rows[:LISTED], text, "Where the answers come from")


def _known_text(value: Any) -> str:
    return "–" if value is None or pd.isna(value) else str(value)
