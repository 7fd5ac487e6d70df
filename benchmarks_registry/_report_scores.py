"""Models' answers and what they are worth, as a report needs them."""

import re
import warnings
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks_registry._benchmark import TinyBenchmark
from sklearn_irt._responses import ROUNDING
from sklearn_irt._scenarios import OVERALL
from sklearn_irt.logs import left_out, provenance

COVERAGE = 0.9
# Names in one sentence.
NAMED = 8
# Control characters, halves of surrogate pairs and the like, which neither HTML nor SVG can hold.
_NOT_TEXT = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]"
)


class Unit(NamedTuple):
    """How scores are written: in percent where they lie in [0, 1]."""

    factor: float
    digits: int
    sign: str
    words: str

    def number(self, value: float, signed: bool = False) -> str:
        if not np.isfinite(value):
            return "–"
        text = f"{self.factor * value:{'+' if signed else ''}.{self.digits}f}"
        return text.replace("-", "−")

    def score(self, value: float) -> str:
        return self.number(value) + (self.sign if np.isfinite(value) else "")


PERCENT = Unit(100.0, 1, "\u00a0%", "in percent")


def unit_of(tiny: TinyBenchmark, scenario: str | None = None) -> Unit:
    """Of a scenario's scores; of the whole benchmark's for `OVERALL`."""
    estimator = tiny.estimator
    low, width = estimator._bounds.low, estimator._bounds.width
    if (low, width) == (0.0, 1.0) or (
        scenario == OVERALL and estimator.aggregate == "mean_win_rate"
    ):
        return PERCENT
    digits = max(0, 2 - int(np.floor(np.log10(width))))
    return Unit(1.0, digits, "", f"from {low:g} to {low + width:g}")


class Evaluation(NamedTuple):
    """Models' answers and what they are worth."""

    table: pd.DataFrame  # index (model, scenario), models in the order of their estimates
    given: pd.DataFrame  # answers to the anchors in the same order, columns as the estimator's
    models: list[str]
    main: str  # the row of the whole benchmark
    warnings: list[str]
    others: int  # items answered that are no anchors
    sources: pd.DataFrame
    left_out: pd.DataFrame

    def rows(self) -> dict[tuple[str, str], dict]:
        """Every figure by (model, scenario)."""
        return self.table.to_dict("index")

    def unusual(self) -> list[str]:
        """Models whose answers the table calls unusual, where it tells."""
        if "unusual" not in self.table:
            return []
        flags = self.table["unusual"].eq(True).to_numpy()
        return list(dict.fromkeys(model for model, _ in self.table.index[flags]))


def _estimated(tiny: TinyBenchmark, answers: Any) -> tuple[pd.DataFrame, list[str]]:
    """The table of `estimate`, and its warnings in words; others are passed on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table = tiny.estimate(answers, coverage=COVERAGE)
    told = []
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            told.append(str(warning.message))
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return table, list(dict.fromkeys(told))


def evaluate(tiny: TinyBenchmark, answers: Any, true: Any) -> Evaluation:
    """Estimate the models' scores, and order the models by them.

    Parameters
    ----------
    tiny : TinyBenchmark
    answers : as for `TinyBenchmark.estimate`
    true : as for `write_report`

    Returns
    -------
    Evaluation
    """
    table, told = _estimated(tiny, answers)
    given = tiny._on_anchors(answers)
    if table.index.nlevels == 1:
        name = answers.name if isinstance(answers, pd.Series) else None
        table = pd.concat({"the model" if name is None else str(name): table}, names=["model"])
    table.index = table.index.map(lambda row: (legible(row[0]), row[1])).set_names(
        table.index.names
    )
    models = table.index.get_level_values("model")[:: len(table) // len(given)]
    if not models.is_unique:
        twice = models[models.duplicated()][0]
        raise ValueError(f"answers hold the model {twice!r} more than once; rename one of them")
    main = table.index[-1][1]
    score = table[tiny.estimator.estimate].xs(main, level="scenario").to_numpy()
    order = np.argsort(-score, kind="stable")  # NaN last
    table["true"] = np.nan
    if true is not None:
        mean_is_main = main == OVERALL and tiny.estimator.aggregate == "mean"
        table["true"] = _true_scores(true, table, main, mean_is_main)
        _refuse_outside(table["true"], tiny)
    table = table.loc[list(models[order])]
    asked = table["answered"].xs(main, level="scenario").sum()
    is_table = isinstance(answers, pd.DataFrame)
    nothing = pd.DataFrame()
    return Evaluation(
        table,
        given.iloc[order].set_axis(models[order], axis=0),
        list(models[order]),
        main,
        told,
        int(asked - given.notna().to_numpy().sum()),
        provenance(answers) if is_table else nothing,
        left_out(answers) if is_table else nothing,
    )


def _true_scores(true: Any, table: pd.DataFrame, main: str, mean_is_main: bool) -> pd.Series:
    """Known scores of the rows of the table, NaN where unknown; means of scenarios are filled."""
    models, scenarios = (list(table.index.unique(level)) for level in ("model", "scenario"))
    if isinstance(true, (pd.DataFrame, pd.Series)):
        for names in true.axes:
            if not names.is_unique:
                raise ValueError(f"true has {names[names.duplicated()][0]!r} more than once")
    if isinstance(true, pd.DataFrame):
        flat = {(m, s): row[s] for m, row in true.iterrows() for s in true.columns}
    elif isinstance(true, (Mapping, pd.Series)):
        flat = {key: value for key, value in true.items()}
    elif isinstance(true, str) or not np.iterable(true):
        flat = {main: true}
    else:
        raise ValueError(
            "true must be a number, or a mapping, Series or DataFrame that names models or "
            f"scenarios, got {type(true).__name__}"
        )
    if len(models) == 1 and set(flat) <= set(scenarios):
        flat = {(models[0], scenario): value for scenario, value in flat.items()}
    pairs = {key if isinstance(key, tuple) else (key, main): v for key, v in flat.items()}
    flat = {}
    for key, value in pairs.items():
        pair = (legible(str(key[0])), *key[1:]) if key else key
        if len(pair) != 2 or pair not in table.index:
            raise ValueError(
                f"true has {key!r}, but the models are {named(models)} and the scenarios "
                f"{scenarios}"
            )
        flat[pair] = _true_score(value, key)
    scores = pd.Series([flat.get(pair, np.nan) for pair in table.index], table.index, dtype=float)
    if mean_is_main:
        parts = scores.drop(main, level="scenario").unstack("scenario")
        means = parts.mean(axis=1, skipna=False)
        for model in models:
            if np.isnan(scores[model, main]):
                scores[model, main] = means[model]
    return scores


def _true_score(value: Any, key: tuple) -> float:
    """A number; NaN where there is none."""
    if value is None or value is pd.NA:
        return np.nan
    value = value.item() if getattr(value, "ndim", None) == 0 else value  # numpy's as Python's
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            value = np.inf
    what = f"got {value!r} for {key[0]!r}, {key[1]!r}"
    raise ValueError(f"true must be numbers, scores in the unit of the responses: {what}")


def _refuse_outside(true: pd.Series, tiny: TinyBenchmark) -> None:
    """Refuse true scores that no model can have."""
    bounds, win_rate = tiny.estimator._bounds, tiny.estimator.aggregate == "mean_win_rate"
    for (model, scenario), score in true.items():
        low, high = (0.0, 1.0) if win_rate and scenario == OVERALL else bounds[:2]
        slack = ROUNDING * (high - low)
        if score < low - slack or score > high + slack:
            raise ValueError(
                f"true has the score {score:g} for {model!r}, {scenario!r}, outside the range "
                f"[{low:g}, {high:g}]: give it in the unit of the responses"
            )


def named(names: Iterable[Any], most: int = NAMED) -> str:
    """Names in one sentence, the first of them where there are many."""
    names = [str(name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def legible(value: Any) -> Any:
    """A text without characters that a page cannot hold; markup and numbers as they are."""
    return _NOT_TEXT.sub("\ufffd", value) if type(value) is str else value
