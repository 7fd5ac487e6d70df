"""TinyBenchmark, save_benchmark, load_benchmark, list_benchmarks, and the bundled benchmark."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from benchmarks_registry import (
    BenchmarkFileError,
    load_benchmark,
    save_benchmark,
)
from benchmarks_registry._build import build
from benchmarks_registry._format import read_benchmark_file, write_benchmark_file
from benchmarks_registry._registry import BUNDLED_FOLDER
from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses


@pytest.fixture(scope="module")
def data():
    sizes = {"left": {"a": 30, "b": 60}, "right": 80}
    return make_responses(n_models=50, scenarios=sizes, missing=0.05, random_state=3)


@pytest.fixture(scope="module")
def pipe(data):
    labels = data["items"][["scenario", "subscenario"]]
    selector = AnchorSelector(k=15, n_dims=2, scenarios=labels, random_state=0)
    return make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(data.responses[:40])


@pytest.fixture
def saved(pipe, tmp_path):
    return save_benchmark(pipe, tmp_path / "mine.npz", name="mine", source="simulated")


def test_loaded_benchmark_predicts_the_same(pipe, saved, data):
    tiny = load_benchmark(saved)
    answers = data.responses[40:][tiny.anchors()]
    expected = pipe[-1].predict(answers, return_std=True)
    for ours, theirs in zip(
        tiny.estimator.predict(answers, return_std=True), expected, strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    table = pipe[-1].predict_table(answers)
    pd.testing.assert_frame_equal(tiny.estimate(answers), table, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(tiny.estimator.training_models_, data.responses.index[:40])
    np.testing.assert_allclose(
        tiny.estimator.training_responses_, pipe[-1].training_responses_, equal_nan=True
    )


def test_another_process_predicts_the_same(saved, data, tmp_path):
    tiny = load_benchmark(saved)
    answers = data.responses[40:][tiny.anchors()]
    answers.to_pickle(tmp_path / "answers.pkl")
    code = (
        "import sys, pandas as pd; from benchmarks_registry import load_benchmark\n"
        "tiny = load_benchmark(sys.argv[1])\n"
        "answers = pd.read_pickle(sys.argv[2])\n"
        "print(*[x.hex() for x in tiny.estimator.predict(answers)])"
    )
    arguments = [sys.executable, "-c", code, str(saved), str(tmp_path / "answers.pkl")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    theirs = [float.fromhex(word) for word in done.stdout.split()]
    np.testing.assert_allclose(theirs, tiny.estimator.predict(answers), rtol=0, atol=1e-12)


def test_answers_in_every_form(saved, data):
    tiny = load_benchmark(saved)
    row = data.responses.iloc[45][tiny.anchors()]
    by_series = tiny.estimate(row)
    assert list(by_series.index) == ["left", "right", "(all)"]
    pd.testing.assert_frame_equal(tiny.estimate(row.to_dict()), by_series)
    pd.testing.assert_frame_equal(tiny.estimate(row.to_numpy()), by_series)
    pd.testing.assert_frame_equal(tiny.estimate(row.tolist()), by_series)
    shuffled = row.sample(frac=1, random_state=0)
    pd.testing.assert_frame_equal(tiny.estimate(shuffled), by_series)
    several = tiny.estimate(data.responses[45:47][tiny.anchors()[::-1]])
    assert several.index.names == ["model", "scenario"]
    pd.testing.assert_frame_equal(several.loc[data.responses.index[45]], by_series)


def test_partial_answers_are_used_and_counted(saved, data):
    tiny = load_benchmark(saved)
    some = {item: 1.0 for item in tiny.anchors("left")[:4]}
    table = tiny.estimate(some)
    assert table["answered"].tolist() == [4, 0, 4]
    assert np.isfinite(table.loc["right", ["pirt", "gpirt", "std_error"]].astype(float)).all()
    assert np.isnan(table.loc["right", "naive"])
    everything = tiny.estimate(dict.fromkeys(tiny.anchors(), 1.0))
    assert everything.loc["left", "std_error"] < table.loc["left", "std_error"]


def test_bad_answers_are_named(saved):
    tiny = load_benchmark(saved)
    first = tiny.anchors()[0]
    with pytest.raises(ValueError, match=r"left 15, right 15"):
        tiny.estimate(np.ones(29))
    with pytest.raises(ValueError, match="no item 'nonsense'"):
        tiny.estimate({"nonsense": 1})
    with pytest.raises(ValueError, match="no model"):
        tiny.estimate(pd.DataFrame(columns=[first]))
    with pytest.raises(ValueError, match="infinite"):
        tiny.estimate({first: np.inf})
    with pytest.raises(ValueError, match=f"{first!r} more than once"):
        tiny.estimate(pd.Series([1, 0], index=[first, first]))
    with pytest.raises(ValueError, match="'right answer'"):
        tiny.estimate({first: "right answer"})
    with pytest.raises(ValueError, match="response range"):
        tiny.estimate({first: 100})
    with pytest.raises(ValueError, match="no scenario 'middle'"):
        tiny.anchors("middle")
    assert tiny.estimate({first: 1})["answered"].sum() == 2  # still usable


def test_answers_to_other_items_sharpen_the_estimate(saved, data):
    tiny = load_benchmark(saved)
    row = data.responses.iloc[46]
    anchors, everything = tiny.estimate(row[tiny.anchors()]), tiny.estimate(row)
    assert everything["answered"].tolist() == [
        *row.notna().groupby(data["items"]["scenario"].to_numpy()).sum(),
        row.notna().sum(),
    ]
    np.testing.assert_allclose(everything["naive"], anchors["naive"])
    assert (everything["std_error"] < 0.7 * anchors["std_error"]).all()
    asked = row.notna().to_numpy()
    complete = row.where(asked, 1.0)
    tiny.estimator.set_params(estimate="pirt")
    exact = tiny.estimate(complete)
    weights = tiny.estimator.item_weights_ / 2
    assert exact.loc["(all)", "pirt"] == pytest.approx(complete.to_numpy() @ weights, abs=1e-12)
    assert exact.loc["(all)", "std_error"] == pytest.approx(0.0, abs=1e-9)


def test_a_tidy_table_is_read(saved, data):
    tiny = load_benchmark(saved)
    wide = data.responses[45:48][tiny.anchors()]
    tidy = (
        wide.rename_axis("model").reset_index().melt("model", var_name="item", value_name="score")
    )
    pd.testing.assert_frame_equal(tiny.estimate(tidy), tiny.estimate(wide))
    with pytest.raises(ValueError, match="more than once"):
        tiny.estimate(pd.concat([tidy, tidy[:1]]))


def test_another_metric_warns(pipe, tmp_path):
    path = save_benchmark(pipe, tmp_path / "m.npz", name="m", metric="acc_norm")
    tiny = load_benchmark(path)
    with pytest.warns(UserWarning, match="'acc'.*'acc_norm'"):
        tiny.estimate(np.ones(30), metric="acc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny.estimate(np.ones(30), metric="acc_norm")


def test_html_escapes_what_the_file_says(pipe, tmp_path):
    path = save_benchmark(pipe, tmp_path / "m.npz", name="<b>", source="<script>alert(1)</script>")
    page = load_benchmark(path)._repr_html_()
    assert "<script>" not in page and "&lt;script&gt;" in page and "<b>" not in page


def test_items_tell_scenarios_and_anchors(saved, data, pipe):
    tiny = load_benchmark(saved)
    assert tiny.items["item"].tolist() == list(data.responses.columns)
    assert tiny.items["scenario"].tolist() == data["items"]["scenario"].tolist()
    assert tiny.items["subscenario"].fillna("").tolist() == (
        data["items"]["subscenario"].fillna("").tolist()
    )
    np.testing.assert_array_equal(np.flatnonzero(tiny.items["anchor_weight"]), pipe[0].anchors_)
    described = tiny.describe()
    assert described.loc["left", ["items", "anchors"]].tolist() == [90, 15]
    assert "30 anchors of 170 items" in repr(tiny)


def test_fractional_other_range_and_no_names(tmp_path):
    data = make_responses(n_models=30, n_items=60, response="fractional", random_state=0)
    X = 1 + 9 * data.responses.to_numpy()
    estimator = GPIRTEstimator(response_range=(1, 10), random_state=0).fit(X)
    with pytest.raises(ValueError, match="items must be given"):
        save_benchmark(estimator, tmp_path / "b.npz", name="ratings")
    ids = [f"question {i}" for i in range(60)]
    tiny = load_benchmark(save_benchmark(estimator, tmp_path / "b", name="ratings", items=ids))
    X[:, 20:] = np.nan
    np.testing.assert_allclose(tiny.estimator.predict(X), estimator.predict(X), atol=1e-12)
    assert tiny.estimate(X[0]).loc["all", "low"] >= 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "name must be"),
        ({"name": "b", "items": ["x"]}, "items has 1 ids"),
        ({"name": "b", "items": ["x"] * 170}, "'x' more than once"),
        ({"name": "b", "items": pd.DataFrame({"id": ["x"]})}, "no column 'item'"),
        ({"name": "b", "author": "me"}, "unknown information"),
        ({"name": "b", "source": 3}, "source must be a string"),
    ],
)
def test_save_refuses(pipe, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        save_benchmark(pipe, tmp_path / "b.npz", **change)
    assert not list(tmp_path.iterdir())


def test_save_wants_a_fitted_estimator(tmp_path):
    with pytest.raises(ValueError, match="IRTRegressor"):
        save_benchmark(IRTRegressor(), tmp_path / "b.npz", name="b")
    with pytest.raises(ValueError, match="not fitted"):
        save_benchmark(GPIRTEstimator(), tmp_path / "b.npz", name="b")


@pytest.mark.parametrize(
    "damage",
    [
        lambda a, m: a.pop("difficulty"),
        lambda a, m: m.pop("items"),
        lambda a, m: a.update(anchors=a["anchors"] + 1000),
        lambda a, m: a.update(anchors=a["anchors"][::-1].copy()),
        lambda a, m: a.update(difficulty=a["difficulty"][:-1]),
        lambda a, m: a.update(difficulty=a["difficulty"] * np.nan),
        lambda a, m: a.update(ability=a["ability"].astype("U8")),
        lambda a, m: m.update(items=3),
        lambda a, m: m["estimator"].update(estimate="magic"),
        lambda a, m: m["irt"].update(n_dims=-1),
        lambda a, m: m["irt"].pop("abilities"),
        lambda a, m: m.update(gain=0.0),
        lambda a, m: m.update(response_range=[1, 0]),
        lambda a, m: m["items"].__setitem__(1, m["items"][0]),
        lambda a, m: a.update(item_weights=-a["item_weights"]),
        lambda a, m: a.update(anchor_weights=a["anchor_weights"] * 2),
        lambda a, m: a.update(prior_precision=-a["prior_precision"]),
        lambda a, m: a.update(variance=-a["variance"]),
        lambda a, m: m.update(response_range=[0]),
        lambda a, m: m["info"].pop("name"),
    ],
)
def test_inconsistent_content_is_refused(saved, damage):
    arrays, meta = read_benchmark_file(saved)
    meta = meta.copy()
    damage(arrays, meta)
    write_benchmark_file(saved, arrays, meta)
    with pytest.raises(BenchmarkFileError, match=r"mine\.npz"):
        load_benchmark(saved)


def test_bundled_helm_lite():
    tiny = load_benchmark("HELM-Lite")
    assert tiny.estimator.scenarios_ == ("commonsense", "gsm", "math", "med_qa", "mmlu")
    assert [len(tiny.anchors(s)) for s in tiny.estimator.scenarios_] == [100] * 5
    assert len(tiny.items) == 3504
    assert "socialfoundations/benchmark-prediction" in tiny.info["source"]
    assert len(set(tiny.estimator.training_models_)) == 83
    wrong = tiny.estimate(np.zeros(500))["gpirt"]
    right = tiny.estimate(np.ones(500))["gpirt"]
    assert (wrong < 0.35).all() and (right > 0.8).all()


@pytest.mark.slow
def test_build_reproduces_the_bundled_file(real_data, tmp_path):
    made, bundled = (
        read_benchmark_file(build("helm-lite", tmp_path)),
        read_benchmark_file(BUNDLED_FOLDER / "helm-lite.npz"),
    )
    assert made[1]["items"] == bundled[1]["items"]
    assert made[1]["training_models"] == bundled[1]["training_models"]
    np.testing.assert_array_equal(made[0]["anchors"], bundled[0]["anchors"])
    for name in made[0]:
        np.testing.assert_allclose(made[0][name], bundled[0][name], rtol=1e-6, atol=1e-8)
