"""compare_strategies and summarize."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import KFold, ShuffleSplit, cross_val_score

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.evaluation import _compare as module
from sklearn_irt.evaluation import compare_strategies, summarize
from sklearn_irt.evaluation._strategies import STRATEGIES
from sklearn_irt.model_selection import HeldOutGroupsSplit, StrongestModelsSplit

COLUMNS = ["strategy", "k", "split", "model", "scenario", "true", "estimated", "std", "low", "high"]
FAST = {"n_dims": 2, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_responses(n_models=40, n_items=80, n_dims=2, random_state=0)


@pytest.fixture(scope="module")
def labels():
    return np.array(["easy"] * 30 + ["hard"] * 50)


@pytest.fixture(scope="module")
def results(data, labels):
    return compare_strategies(data.responses, k=12, cv=2, scenarios=labels, **FAST)


@pytest.fixture
def quick(monkeypatch):
    """Instead of estimates half of the mean of the responses, at once; returns the calls."""
    calls = []

    def measure(train, new, labels, bounds, method, kinds, sizes, n_dims, seed, version, fits):
        calls.append({"n_dims": n_dims, "train": train})
        mean = np.nanmean(new, axis=1) / 2
        index = pd.MultiIndex.from_product([range(len(new)), ["all"]])
        figures = {"estimated": mean, "std": 0.1, "low": mean - 0.1, "high": mean + 0.1}
        table = pd.DataFrame(figures, index)
        return [(f"{method}/{kind}", size, table) for kind in kinds for size in sizes]

    monkeypatch.setattr(module, "measure_method", measure)
    return calls


def test_every_strategy_has_a_row_for_each_model_scenario_split_and_k(results):
    assert list(results.columns) == COLUMNS
    counts = results.groupby(["strategy", "k"], sort=False).size()
    assert counts.index.get_level_values(0).unique().tolist() == list(STRATEGIES)
    assert (counts == 2 * 10 * 3).all()
    assert list(results["scenario"].unique()) == ["easy", "hard", "all"]
    assert not results.isna().any(axis=None)
    assert (results["low"] <= results["estimated"] + 1e-9).all()
    assert (results["estimated"] <= results["high"] + 1e-9).all()


def test_true_scores_are_those_of_the_full_responses(results, data, labels):
    full = data.responses.T.groupby(labels).mean().T
    full["all"] = full.mean(axis=1)
    expected = [full.loc[m, s] for m, s in zip(results["model"], results["scenario"], strict=True)]
    np.testing.assert_allclose(results["true"], expected, atol=1e-12)


def test_the_whole_is_the_mean_of_the_scenarios(results):
    keys = ["strategy", "k", "split", "model"]
    wide = results.pivot(index=keys, columns="scenario", values="estimated")
    np.testing.assert_allclose(wide[["easy", "hard"]].mean(axis=1), wide["all"], atol=1e-9)


def test_what_is_learned_of_the_models_helps(results):
    error = summarize(results).droplevel("k")["mean_error"]
    assert error["design/default"] < error["random/naive"]
    assert error["adaptive/pirt"] < error["random/naive"]


def test_a_strategy_is_what_a_pipeline_by_hand_gives(data):
    train, new = np.arange(30), np.arange(30, 40)
    found = compare_strategies(
        data.responses, strategies=["irt/gpirt"], k=12, cv=[(train, new)], **FAST
    )
    rng = np.random.RandomState(0)
    rng.randint(2**31 - 1)
    seed = int(rng.randint(2**31 - 1, size=1)[0])
    X = data.responses.to_numpy()
    selector = AnchorSelector(
        12, method="irt", irt=IRTRegressor(2, random_state=seed), random_state=seed
    )
    estimator = GPIRTEstimator(relatives=False, mixing="paper", random_state=seed)
    estimator.fit(selector.fit_transform(X[train]))
    expected, std = estimator.predict(X[new][:, selector.anchors_], return_std=True)
    np.testing.assert_allclose(found["estimated"], expected)
    np.testing.assert_allclose(found["std"], std)
    assert found["model"].tolist() == [str(name) for name in data.responses.index[new]]
    assert found["scenario"].unique().tolist() == ["all"]


def test_answers_that_are_not_asked_are_not_seen(data):
    split = [(np.arange(30), np.arange(30, 40))]
    some = ["random/gpirt"]
    found = compare_strategies(data.responses, strategies=some, k=10, cv=split, **FAST)
    strict = data.responses.copy()
    strict.iloc[30:] = 1 - strict.iloc[30:]  # other answers: other scores and other estimates
    other = compare_strategies(strict, strategies=some, k=10, cv=split, **FAST)
    np.testing.assert_allclose(other["true"], 1 - found["true"])
    assert not np.allclose(other["estimated"], found["estimated"])


@pytest.fixture(scope="module")
def plain(data):
    """One strategy, split by split."""
    return compare_strategies(data.responses, strategies=["irt/naive"], k=6, cv=2, **FAST)


@pytest.mark.slow
def test_the_same_whatever_the_number_of_jobs(data, plain):
    some = {"strategies": ["irt/naive"], "k": 6, "cv": 2, "n_jobs": 2} | FAST
    pd.testing.assert_frame_equal(compare_strategies(data.responses, **some), plain)


def test_any_splitter_groups_and_strength(data, quick):
    some = {"strategies": ["random/naive"], "k": 6}
    random = compare_strategies(data.responses, cv=ShuffleSplit(3, test_size=5), **some, **FAST)
    assert random.groupby("split").size().tolist() == [5, 5, 5]
    groups = np.array(["a", "b"] * 20)
    named = compare_strategies(
        data.responses, cv=HeldOutGroupsSplit(["b"]), groups=groups, **some, **FAST
    )
    assert set(named["model"]) == {str(name) for name in data.responses.index[groups == "b"]}
    strong = compare_strategies(data.responses, cv=StrongestModelsSplit(), **some, **FAST)
    assert strong["true"].min() >= data.scores.sort_values().iloc[-12] - 1e-9


def test_models_that_are_the_same_are_on_one_side(data, quick):
    X = data.responses.copy()
    X.iloc[:20] = X.iloc[20:].to_numpy()
    found = compare_strategies(X, strategies=["random/naive"], k=5, cv=4, **FAST)
    assert (found.groupby(["split", "true"]).size() % 2 == 0).all()


def test_what_is_done_is_not_done_again(data, plain, tmp_path, monkeypatch):
    some = {"strategies": ["irt/naive"], "k": 6, "cv": 2, "memory": str(tmp_path)} | FAST

    def stop(n_done, n_splits):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare_strategies(data.responses, callback=stop, **some)
    fits = []
    fit = IRTRegressor._fit_unit
    monkeypatch.setattr(IRTRegressor, "_fit_unit", lambda *a: fits.append(1) or fit(*a))
    resumed = compare_strategies(data.responses, **some)
    assert len(fits) == 1  # of the second split only
    pd.testing.assert_frame_equal(resumed, plain)
    compare_strategies(data.responses, **some)
    assert len(fits) == 1


def test_memory_without_a_seed_warns(data, tmp_path, quick):
    some = {"strategies": ["random/naive"], "k": 5, "cv": 1, "n_dims": 1}
    with pytest.warns(UserWarning, match="integer random_state"):
        compare_strategies(data.responses, memory=str(tmp_path), **some)


def test_progress(data, capsys, quick):
    calls = []
    some = {"strategies": ["random/naive"], "k": 5, "cv": 2, "verbose": 1} | FAST
    compare_strategies(data.responses, callback=lambda *n: calls.append(n), **some)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[0] for line in lines] == [
        "[compare_strategies] split 1/2",
        "[compare_strategies] split 2/2",
    ]
    assert calls == [(1, 2), (2, 2)]


def test_other_units_and_missing_cells(data):
    X = 100 * data.responses.to_numpy(dtype=float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compare_strategies(
            X,
            strategies=["design/default", "adaptive/pirt"],
            k=(0.25, 30),
            cv=1,
            response_range=(0, 100),
            **FAST,
        )
    np.testing.assert_allclose(
        found.groupby("model")["true"].first(),
        pd.Series(np.nanmean(X, axis=1), [f"row_{i}" for i in range(40)])
        .reindex(found["model"].unique())
        .sort_index(),
    )
    assert summarize(found)["mean_error"].between(0.1, 15).all()
    assert set(found["k"]) == {0.25, 30}


def test_dimensions_are_chosen_on_the_training_models(data, quick):
    some = {"strategies": ["random/naive"], "k": 5, "cv": 1, "random_state": 0}
    compare_strategies(data.responses, n_dims=3, **some)
    compare_strategies(data.responses, n_dims=(1, 2), **some)
    assert quick[0]["n_dims"] == 3
    scores = {}
    for n_dims in (1, 2):
        halves = KFold(2, shuffle=True, random_state=0)
        irt = IRTRegressor(n_dims)
        scores[n_dims] = cross_val_score(irt, quick[1]["train"], cv=halves).mean()
    assert quick[1]["n_dims"] == max(scores, key=scores.get)


def test_says_what_is_wrong(data, message, quick):
    X = data.responses

    def compare(**options):
        return message(compare_strategies, X, random_state=0, **options)

    assert "unknown strategy 'best'; known are random/naive" in compare(strategies=["best"])
    assert "strategies is empty" in compare(strategies=[])
    assert "k must be positive" in compare(k=[10, 0])
    assert "k is empty" in compare(k=[])
    assert "cv has no split" in compare(cv=[])
    assert "no scenario may be called 'all'" in compare(scenarios=["all"] * 40 + ["b"] * 40)


@pytest.mark.parametrize(
    ("cv", "words"),
    [
        ("five", "cv must be a number of splits"),
        (0, "cv must be a number of splits"),
        (KFold, "cv must be a number of splits"),
        ([([0], [1, 2])], "split 0 of cv has 1 training models and 2 new ones"),
        ([(range(10), [])], "split 0 of cv has 10 training models and 0 new ones"),
        ([(range(10), range(20, 25)), (range(10), range(5, 12))], "split 1 of cv has model 'm5'"),
        ([(range(10), [11, 12, 12])], "model 'm12' more than once on its new side"),
        ([(range(10), [11, -1])], "the new side of split 0 of cv has row -1, but X has 40 models"),
        ([([0, 1, 40], [11])], "the training side of split 0 of cv has row 40"),
        ([(range(10), [11.0, 12.0])], "must be row numbers (int) or a mask (bool)"),
        ([(range(10), ["m11"])], "must be row numbers (int) or a mask (bool), got ['m11']"),
        ([(range(10), [[11, 12]])], "the new side of split 0 of cv must be a sequence of row"),
        ([(range(10), [[11], [12, 13]])], "the new side of split 0 of cv must be a sequence of"),
        ([(range(10), np.ones(39, bool))], "is a mask of 39 rows, but X has 40 models"),
        ((range(10), range(20, 25)), "a single split is a list too: cv=[(train, new)]"),
        ((np.array([0, 1]), np.array([2, 3])), "split 0 of cv must be a pair (train, new)"),
        (["ab"], "split 0 of cv must be a pair"),
    ],
)
def test_wrong_splits_are_named(data, message, quick, cv, words):
    X = data.responses.set_axis([f"m{i}" for i in range(40)])
    some = {"strategies": ["random/naive"], "k": 5} | FAST
    text = message(compare_strategies, X, cv=cv, **some)
    assert words in text and "cv" in text
    assert not quick


def test_masks_are_rows(data, quick):
    some = {"strategies": ["random/naive"], "k": 5} | FAST
    new = np.arange(40) >= 30
    found = compare_strategies(data.responses, cv=[(~new, new)], **some)
    rows = compare_strategies(data.responses, cv=[(range(30), range(30, 40))], **some)
    pd.testing.assert_frame_equal(found, rows)
    assert len(found) == 10


@pytest.mark.parametrize("k", [(1.0, 1), [1, 30, np.float64(1)], [True], "a", None, [[1], [1, 2]]])
def test_wrong_k(data, message, quick, k):
    text = message(compare_strategies, data.responses, k=k, **FAST)
    assert text.startswith("k ")


def test_one_anchor_or_all_items_alone_are_fine(data, quick):
    some = {"strategies": ["random/naive"], "cv": 1} | FAST
    for k in (1, 1.0, [1, 0.5], np.array([0.5, 1.0]), np.int64(3)):
        found = compare_strategies(data.responses, k=k, **some)
        assert set(found["k"]) == set(np.atleast_1d(k).tolist())


@pytest.mark.parametrize("n_dims", [1.7, 0, -1, [], "a", None, True, [2, 0], [1, 2.0], {}])
def test_wrong_n_dims(data, message, quick, n_dims):
    some = {"strategies": ["random/naive"], "k": 5, "cv": 1}
    text = message(compare_strategies, data.responses, n_dims=n_dims, **some)
    assert text.startswith("n_dims must be a positive integer") and repr(n_dims) in text


def test_nothing_to_compare_is_said_before_any_warning(data, message, quick):
    scaled = 100 * data.responses  # by itself a warning
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nothing = np.full((5, 4), np.nan)
        assert "no observed response" in message(compare_strategies, nothing, memory="x")
        for empty in (np.empty((5, 0)), pd.DataFrame(index=range(5)), [[]] * 5):
            assert "X has no item" in message(compare_strategies, empty, memory="x")
        for wrong in ({"strategies": 5}, {"k": 0}, {"n_dims": 0}, {"cv": "five"}):
            assert next(iter(wrong)) in message(compare_strategies, scaled, **wrong)
    assert "Input X contains infinity" in message(compare_strategies, [[np.inf, 1.0]] * 5)


class TestSummarize:
    def make(self):
        return pd.DataFrame(
            {
                "strategy": "s",
                "k": 10,
                "split": [0, 0, 0, 1, 1, 1],
                "model": list("abcdef"),
                "scenario": "all",
                "true": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
                "estimated": [0.2, 0.1, 0.3, 0.4, 0.5, 0.9],
                "std": 0.05,
                "low": [0.15, 0.0, 0.2, 0.3, 0.4, 0.8],
                "high": [0.25, 0.2, 0.4, 0.5, 0.6, 1.0],
            }
        )

    def test_by_hand(self):
        found = summarize(self.make()).loc["s", 10]
        assert found["mean_error"] == pytest.approx(np.mean([0.2 / 3, 0.1]))
        assert found["standard_error"] == pytest.approx((0.1 - 0.2 / 3) / 2)
        assert found["worst"] == pytest.approx(0.3)
        assert found["kendall"] == pytest.approx((1 / 3 + 1) / 2)
        assert found["spearman"] == pytest.approx((0.5 + 1) / 2)
        assert found["coverage"] == pytest.approx(4 / 6)
        assert found["width"] == pytest.approx(1.1 / 6)

    def test_only_the_whole_counts_unless_asked_for(self, results):
        whole = summarize(results[results["scenario"] == "all"])
        pd.testing.assert_frame_equal(summarize(results), whole)
        parts = summarize(results, by=("strategy", "k", "scenario"))
        assert len(parts) == 3 * len(whole)
        assert summarize(results, by="strategy").index.name == "strategy"

    def test_one_split_and_one_model(self):
        found = summarize(self.make().iloc[:1]).iloc[0]
        assert np.isnan(found["standard_error"])
        assert np.isnan(found["kendall"])
        assert found["mean_error"] == pytest.approx(0.1)

    def test_no_intervals(self):
        found = summarize(self.make().assign(std=np.nan, low=np.nan, high=np.nan)).iloc[0]
        assert np.isnan(found["coverage"])
        assert np.isnan(found["width"])

    def test_says_what_is_wrong(self, message):
        assert "results has no column 'true'" in message(
            summarize, self.make().drop(columns="true")
        )
        assert "by must name" in message(summarize, self.make(), by=())
        assert "no row of the scenario" in message(summarize, self.make().assign(scenario="x"))
        for by in (5, None):
            assert f"by must be a column of results or a sequence of them, got {by}" in message(
                summarize, self.make(), by=by
            )
        assert "by must hold names" in message(summarize, self.make(), by=[["k"]])
        assert "no column 'kind'" in message(summarize, self.make(), by=["k", "kind"])
        with pytest.raises(TypeError, match="results must be the DataFrame .* got dict"):
            summarize({})

    @pytest.mark.parametrize("column", ["strategy", "k", "split", "scenario", "note"])
    def test_rows_without_a_key_are_not_dropped_silently(self, column, message):
        table = self.make().assign(note="x").astype({column: object})
        table.loc[2, column] = None
        text = message(summarize, table, by=("strategy", "k", "note"))
        assert f"no value (NaN) in the column {column!r}, in row 2" in text

    @pytest.mark.parametrize("column", ["k", "true", "estimated", "std", "low", "high"])
    def test_numbers_are_numbers(self, column, message):
        table = self.make().astype({column: object})
        for wrong in ("0.5", True, [1]):
            table.at[3, column] = wrong
            text = message(summarize, table)
            assert f"{wrong!r} in the column {column!r}, in row 3: it must hold numbers" in text
        table.at[3, column] = 10**400
        assert f"too large a number in the column {column!r}" in message(summarize, table)

    @pytest.mark.parametrize("column", ["k", "true", "estimated"])
    def test_infinite_scores(self, column, message):
        table = self.make().astype({"k": float})
        table.loc[1, column] = -np.inf
        assert f"infinite in the column {column!r}, in row 1" in message(summarize, table)

    def test_an_empty_table_and_a_column_twice(self, message):
        assert "results has no rows" in message(summarize, self.make().iloc[:0])
        twice = pd.concat([self.make(), self.make()[["true"]]], axis=1)
        assert "column 'true' more than once" in message(summarize, twice)

    @pytest.mark.parametrize("kind", [object, "Float64"])
    def test_other_numbers_are_as_good(self, kind):
        table = self.make()
        table.loc[0, "low"] = np.nan
        figures = ["true", "estimated", "std", "low", "high"]
        other = table.astype(dict.fromkeys(figures, kind) | {"k": object})
        assert other["low"].isna().sum() == 1
        pd.testing.assert_frame_equal(summarize(other), summarize(table))
        assert summarize(other).index.get_level_values("k").tolist() == [10]
