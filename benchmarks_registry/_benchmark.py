"""TinyBenchmark: a benchmark's anchors, its fitted estimator, and where they come from."""

import html
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from sklearn_irt import GPIRTEstimator
from sklearn_irt._responses import (
    as_numbers,
    describe_cell,
    model_names,
    refuse_outside,
    to_unit,
)

DESCRIPTION_FIELDS = ("source", "licence", "citation", "description", "metric")
KEPT_FIELDS = {*DESCRIPTION_FIELDS, "heldout"}
# With fewer training models intervals rest on few errors.
FEW_MODELS = 20


class TinyBenchmark:
    """A tiny version of a benchmark: which items to ask, and what the answers are worth.

    Made by `load_benchmark`.

    Parameters
    ----------
    estimator : GPIRTEstimator
        Fitted.
    items : DataFrame
        One row per item of the benchmark: item (id), scenario, subscenario.
    info : dict
        name, and where known source, licence, citation, description, metric, heldout.
    answer_order : ndarray of shape (n_anchors,), int, default=None
        Which of the estimator's anchors each entry of an answer array is about; None: in order.

    Attributes
    ----------
    name : str
    estimator : GPIRTEstimator
    items : DataFrame
        Also tells the anchors and their weights, and the items' difficulty.
    info : dict

    Examples
    --------
    >>> from benchmarks_registry import load_benchmark
    >>> tiny = load_benchmark("helm-lite")
    >>> answers = dict.fromkeys(tiny.anchors("gsm"), 1)
    >>> int(tiny.estimate(answers).loc["gsm", "answered"])
    100
    """

    def __init__(
        self,
        estimator: GPIRTEstimator,
        items: pd.DataFrame,
        info: dict,
        answer_order: np.ndarray | None = None,
    ):
        self.name = info["name"]
        self.estimator = estimator
        self.info = info
        self.items = items
        self._position = {item: i for i, item in enumerate(items["item"])}
        if answer_order is None:
            answer_order = np.arange(len(estimator.anchors_))
        self._answer_order = answer_order
        self._asked = estimator.anchors_[answer_order]
        self._anchor_ids = items["item"].iloc[self._asked].tolist()
        self._weights = np.zeros(len(items))
        self._weights[estimator.anchors_] = estimator.weights_

    def anchors(self, scenario: str | None = None) -> list[str]:
        """Ids of the items to ask, in the order of an answer array.

        Parameters
        ----------
        scenario : str, optional
            Only those of this scenario.

        Returns
        -------
        list of str
        """
        if scenario is None:
            return list(self._anchor_ids)
        known = self.estimator.scenarios_
        if scenario not in known:
            raise ValueError(
                f"{self.name} has no scenario {scenario!r}; its scenarios are {list(known)}"
            )
        labels = self.items["scenario"].to_numpy()[self._asked]
        return [
            item for item, label in zip(self._anchor_ids, labels, strict=True) if label == scenario
        ]

    def estimate(
        self, answers: Any, coverage: float = 0.9, metric: str | None = None
    ) -> pd.DataFrame:
        """Estimate the full benchmark score of one or several models.

        Parameters
        ----------
        answers : array-like, mapping, Series or DataFrame
            One model: scores in the order of `anchors()`, or {item id: score}, or a Series
            indexed by item id. Several: an array of shape (n_models, n_anchors), a DataFrame
            with item ids as columns, or a tidy one with the columns item, score and model. NaN,
            or an item left out by its id, is "not asked". Answers to items that are not anchors
            sharpen p-IRT.
        coverage : float, default=0.9
            Of the interval.
        metric : str, default=None
            What the answers were scored by; warns where the benchmark's responses were scored
            by another one.

        Returns
        -------
        DataFrame
            Index scenario (one model) or (model, scenario), "(all)" for the whole benchmark;
            columns answered (how many answers were used), naive (the weighted mean of the anchors'
            answers), pirt, gpirt, std_error, low, high, unusual (whether the answers are unlike
            those of any known model, see `GPIRTEstimator.predict_table`; not in files that lack its
            limits) and relatives.

        Raises
        ------
        ValueError
            Where there is no answer, an id is unknown or twice, the number of answers is wrong,
            or one is outside the response range; says what was expected.
        """
        if metric is not None and self.info.get("metric", metric) != metric:
            warnings.warn(
                f"the answers are scored by {metric!r}, but {self.name} was made from responses "
                f"scored by {self.info['metric']!r}",
                UserWarning,
                stacklevel=2,
            )
        single, given = self._read(answers)
        positions = self._asked
        if isinstance(given, pd.DataFrame):
            positions = np.array([self._position[item] for item in given.columns], dtype=int)
        order = np.argsort(positions)
        values, positions = self._values(given)[:, order], positions[order]
        models = None if single else model_names(given, len(given))
        return self.estimator._table(values, positions, self._weights[positions], models, coverage)

    def compare(self, answers_a: Any, answers_b: Any, coverage: float = 0.9) -> pd.DataFrame:
        """Compare two models on the anchors.

        Parameters
        ----------
        answers_a, answers_b : array-like, mapping, Series or DataFrame
            As for `estimate`; answers to items that are not anchors are left out.
        coverage : float, default=0.9
            Of the interval.

        Returns
        -------
        DataFrame
            As `GPIRTEstimator.compare`.

        Raises
        ------
        ValueError
            As `estimate`.

        Warns
        -----
        UserWarning
            Where a model did not answer all anchors; says how many.
        """
        both = self._both_on_anchors(answers_a, answers_b)
        n_anchors = len(self._anchor_ids)
        partial = []
        for side, given in zip(("answers_a", "answers_b"), both, strict=True):
            counts = given.notna().sum(axis=1)
            some = counts[counts < n_anchors]
            if len(some):
                more = f" (the model {some.index[0]!r}" if len(given) > 1 else ""
                more += f" and {len(some) - 1} more" if len(some) > 1 else ""
                partial.append(f"{side} hold {some.iloc[0]}{more}{')' if more else ''}")
        if partial:
            warnings.warn(
                f"not all of the {n_anchors} anchors of {self.name} are answered: "
                f"{', '.join(partial)}; the others are predicted",
                UserWarning,
                stacklevel=2,
            )
        return self.estimator.compare(*both, coverage=coverage)

    def _compare(self, answers_a: Any, answers_b: Any, coverage: float = 0.9) -> pd.DataFrame:
        """`compare`, silent where some of the anchors were answered only."""
        both = self._both_on_anchors(answers_a, answers_b)
        return self.estimator.compare(*both, coverage=coverage)

    def _both_on_anchors(self, *answers: Any) -> list[pd.DataFrame]:
        both = [self._on_anchors(one) for one in answers]
        for given in both:
            self._numbers(given)  # else the estimator names its own parameters
        return both

    def _on_anchors(self, answers: Any) -> pd.DataFrame:
        """Answers in the order of the estimator's anchors, a row per model."""
        single, given = self._read(answers)
        if not isinstance(given, pd.DataFrame):
            given = pd.DataFrame(given, columns=self._anchor_ids)
        names = self.items["item"].iloc[self.estimator.anchors_]
        given = given.reindex(columns=names)
        return given.set_axis(["answers"], axis=0) if single else given

    def add_models(self, responses: Any, names: Any = None) -> "TinyBenchmark":
        """Make further models relatives of the models to come; `save_benchmark` keeps them.

        Parameters
        ----------
        responses : array-like of shape (n_models, n_items), or DataFrame with item ids as columns
            Full or partial responses, NaN where not asked.
        names : array-like of shape (n_models,) of str, default=None
            None: the DataFrame's index.

        Returns
        -------
        TinyBenchmark
            Itself.
        """
        if getattr(responses, "ndim", None) == 2:
            self._refuse_outside(np.asarray(as_numbers(responses), dtype=float), responses)
        self.estimator.add_models(responses, names)
        return self

    def _read(self, answers: Any) -> tuple[bool, pd.DataFrame | np.ndarray]:
        """Whether the answers are one model's, and they: by item id, or in order of `anchors()`."""
        by_id = isinstance(answers, (Mapping, pd.Series, pd.DataFrame))
        single, given = self._by_id(answers) if by_id else self._in_order(answers)
        if not given.shape[1]:
            raise ValueError(
                f"answers are empty: give scores of items of {self.name}, NaN for what was not "
                f"asked; ids look like {self._anchor_ids[0]!r}"
            )
        if not len(given):
            raise ValueError("answers hold no model")
        return single, given

    def _by_id(self, answers: Any) -> tuple[bool, pd.DataFrame]:
        """Whether the answers are one model's, and the answers with item ids as columns."""
        single = isinstance(answers, (Mapping, pd.Series))
        if isinstance(answers, pd.DataFrame):
            frame = answers
            tidy = {"item", "score"} <= set(answers.columns)
            if tidy and not {"item", "score"} <= self._position.keys():
                frame = self._from_tidy(answers)
        elif isinstance(answers, pd.Series):
            frame = pd.DataFrame([answers.tolist()], columns=answers.index)
        else:
            frame = pd.DataFrame([list(answers.values())], columns=list(answers), dtype=object)
        if not set(frame.columns) <= self._position.keys():
            frame = frame.set_axis([str(item) for item in frame.columns], axis=1)
        if not frame.columns.is_unique:
            twice = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"answers hold the item {twice!r} more than once")
        for item in frame.columns:
            if item not in self._position:
                raise ValueError(
                    f"{self.name} has no item {item!r}; ids look like {self._anchor_ids[0]!r}"
                )
        return single, frame

    def _from_tidy(self, table: pd.DataFrame) -> pd.DataFrame:
        """A row per model from a table with the columns item, score, and perhaps model."""
        if "model" not in table:
            table = table.assign(model="model")
        twice = table.duplicated(["model", "item"])
        if twice.any():
            row = table[twice].iloc[0]
            raise ValueError(
                f"answers hold the item {row['item']!r} of the model {row['model']!r} more than "
                "once"
            )
        return table.pivot(index="model", columns="item", values="score")

    def _in_order(self, answers: Any) -> tuple[bool, np.ndarray]:
        """Whether the answers are one model's, and the answers in the order of `anchors()`."""
        try:
            array = np.asarray(as_numbers(answers), dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"answers must be numbers in the order of anchors(), or {{item id: score}}: {error}"
            ) from None
        if array.ndim not in (1, 2) or array.shape[-1] != len(self._anchor_ids):
            expected = ", ".join(f"{s} {len(self.anchors(s))}" for s in self.estimator.scenarios_)
            raise ValueError(
                f"answers have shape {array.shape}, but {self.name} asks "
                f"{len(self._anchor_ids)} items of a model ({expected})"
            )
        return array.ndim == 1, np.atleast_2d(array)

    def _values(self, given: pd.DataFrame | np.ndarray) -> np.ndarray:
        """Answers on the scale of [0, 1]."""
        return to_unit(self._numbers(given), self.estimator._bounds, given)

    def _numbers(self, given: pd.DataFrame | np.ndarray) -> np.ndarray:
        """Answers as finite numbers in the benchmark's range, or NaN."""
        values = np.asarray(as_numbers(given), dtype=float)
        infinite = np.isinf(values)
        if infinite.any():
            row, column = np.argwhere(infinite)[0]
            raise ValueError(f"answers are infinite at {describe_cell(given, row, column)}")
        self._refuse_outside(values, given)
        return values

    def _refuse_outside(self, values: np.ndarray, given: Any) -> None:
        """Say that the range, unlike that of an estimator to be fitted, stands in the file."""
        bounds = self.estimator._bounds
        if not bounds.learned:
            advice = f" that the file of {self.name} sets; mark what was not asked with NaN"
            refuse_outside(values, bounds, given, advice)

    def describe(self) -> pd.DataFrame:
        """Size of each scenario, its anchors, and the errors measured on held-out models.

        Returns
        -------
        DataFrame
            Index scenario; columns items, anchors, effective (sample size of the weights),
            mixing, and where recorded heldout_mean and heldout_worst (points of 100).
        """
        estimator = self.estimator
        labels = self.items["scenario"].to_numpy()
        weights = pd.Series(estimator.weights_)
        chosen = labels[estimator.anchors_]
        effective = weights.groupby(chosen).sum() ** 2 / (weights**2).groupby(chosen).sum()
        names = list(estimator.scenarios_)
        table = pd.DataFrame(
            {
                "items": pd.Series(labels).value_counts().reindex(names),
                "anchors": pd.Series(chosen).value_counts().reindex(names),
                "effective": effective.reindex(names).round(1),
                "mixing": pd.Series(estimator.mixing_, names).round(3),
            }
        ).rename_axis("scenario")
        heldout = self.info.get("heldout")
        if is_heldout(heldout, names):
            for figure in ("mean", "worst"):
                table[f"heldout_{figure}"] = pd.Series(heldout[figure]).reindex(names)
        return table

    def __repr__(self) -> str:
        estimator = self.estimator
        scenarios = ", ".join(estimator.scenarios_)
        n_models = len(estimator.training_models_)
        trained = f"trained on {n_models} models" if n_models else "parameters as released"
        return (
            f"<TinyBenchmark {self.name}: {len(self._anchor_ids)} anchors of {len(self.items)} "
            f"items in {scenarios}; {trained}>"
        )

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<dt>{html.escape(field)}</dt><dd>{html.escape(str(self.info[field]))}</dd>"
            for field in DESCRIPTION_FIELDS
            if self.info.get(field)
        )
        table = self.describe().to_html()
        return f"<p>{html.escape(repr(self)[1:-1])}</p>{table}<dl>{facts}</dl>"


def is_heldout(heldout: Any, scenarios: Any) -> bool:
    """Whether errors on held-out models are recorded as they should be."""
    return isinstance(heldout, dict) and all(
        isinstance(heldout.get(figure), dict)
        and set(heldout[figure]) == set(scenarios)
        and all(isinstance(v, (int, float)) for v in heldout[figure].values())
        for figure in ("mean", "worst")
    )
