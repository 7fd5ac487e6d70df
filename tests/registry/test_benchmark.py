"""TinyBenchmark, save_benchmark, load_benchmark, list_benchmarks, and the bundled benchmark."""

import pickle
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


@pytest.mark.slow
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


@pytest.mark.parametrize(
    "empty",
    [
        {},
        pd.Series(dtype=float),
        pd.DataFrame(index=["a"]),
        pd.DataFrame(columns=["item", "score"]),
    ],
    ids=["mapping", "series", "wide", "tidy"],
)
def test_no_answers_at_all_are_refused(saved, empty):
    tiny = load_benchmark(saved)
    ones = dict.fromkeys(tiny.anchors(), 1)
    message = f"answers are empty: give scores of items of mine.*{tiny.anchors()[0]!r}"
    for call in (
        lambda: tiny.estimate(empty),
        lambda: tiny.compare(empty, ones),
        lambda: tiny.compare(ones, empty),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    unknown = tiny.estimate(dict.fromkeys(tiny.anchors(), np.nan))
    assert unknown["answered"].eq(0).all() and np.isfinite(unknown["gpirt"]).all()


def test_a_score_outside_the_range_of_the_file(saved):
    tiny = load_benchmark(saved)
    first, ones = tiny.anchors()[0], dict.fromkeys(tiny.anchors(), 1)
    bad = ones | {first: 7}
    full = pd.DataFrame(1.0, index=["new"], columns=tiny.items["item"])
    full.loc["new", first] = 7
    for call in (
        lambda: tiny.estimate(bad),
        lambda: tiny.compare(ones, bad),
        lambda: tiny.add_models(full),
    ):
        with pytest.raises(ValueError, match=rf"response 7 at .*{first}.* range \[0, 1\]") as error:
            call()
        assert "the file of mine" in str(error.value)
        assert "response_range" not in str(error.value)


def test_compare_warns_of_anchors_without_an_answer(saved, data):
    tiny = load_benchmark(saved)
    ones, zeros = (dict.fromkeys(tiny.anchors(), value) for value in (1.0, 0.0))
    left = {item: ones[item] for item in tiny.anchors("left")}
    others = dict.fromkeys(tiny.items["item"], 1.0)
    several = pd.DataFrame([ones, left, left], index=["a", "b", "c"])
    for one, two, said in (
        (left, zeros, "answers_a hold 15;"),
        (zeros, left | {tiny.anchors("right")[0]: None}, "answers_b hold 15;"),
        (left, left, "answers_a hold 15, answers_b hold 15;"),
        (zeros, several, r"answers_b hold 15 \(the model 'b' and 1 more\);"),
    ):
        with pytest.warns(
            UserWarning, match=f"not all of the 30 anchors of mine.*: {said}"
        ) as seen:
            tiny.compare(one, two)
        assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tiny.compare(zeros, others)


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
        lambda a, m: m.update(gain=-1.0),
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
        read_benchmark_file(build("arc-challenge", tmp_path)),
        read_benchmark_file(BUNDLED_FOLDER / "arc-challenge.npz"),
    )
    assert made[1]["items"] == bundled[1]["items"]
    assert made[1]["training_models"] == bundled[1]["training_models"]
    np.testing.assert_array_equal(made[0]["anchors"], bundled[0]["anchors"])
    for name in made[0]:
        np.testing.assert_allclose(made[0][name], bundled[0][name], rtol=1e-6, atol=1e-8)


NEW_ARRAYS = [
    "training_noise",
    "usual_bias",
    "dispersion",
    "calibration",
    "pairing",
    "appropriateness_limits",
]


@pytest.mark.parametrize("estimate", ["naive", "pirt", "gpirt"])
@pytest.mark.parametrize(
    "settings",
    [
        {"relatives": False, "mixing": "paper"},
        {"relatives": "auto", "mixing": "robust"},
        {"relatives": 0.3, "mixing": 0.5},
    ],
    ids=["paper", "default", "numbers"],
)
@pytest.mark.filterwarnings("ignore:not all of the")
def test_everything_that_was_learned_is_kept(pipe, tmp_path, data, estimate, settings):
    fitted = pickle.loads(pickle.dumps(pipe[-1])).set_params(estimate=estimate, **settings)
    tiny = load_benchmark(save_benchmark(fitted, tmp_path / "b.npz", name="b"))
    for name in ("estimate", "mixing", "relatives", "ability"):
        assert getattr(tiny.estimator, name) == getattr(fitted, name)
    answers = data.responses[40:][tiny.anchors()]
    table = fitted.predict_table(answers)
    pd.testing.assert_frame_equal(tiny.estimate(answers), table, rtol=0, atol=1e-7)
    relatives = [t.estimator if t is tiny else t for t in (tiny, fitted)]
    if settings["relatives"]:
        ours, theirs = (e.relatives_of(answers) for e in relatives)
        pd.testing.assert_frame_equal(ours, theirs, rtol=0, atol=1e-9)
    compared = fitted.compare(answers, answers[::-1])
    pd.testing.assert_frame_equal(tiny.compare(answers, answers[::-1]), compared, rtol=0, atol=1e-6)
    for name in (*NEW_ARRAYS[1:], "share"):
        np.testing.assert_array_equal(
            getattr(tiny.estimator, f"{name}_"), getattr(fitted, f"{name}_")
        )
    noise = tiny.estimator.training_noise_, fitted.training_noise_
    np.testing.assert_allclose(*noise, rtol=1e-6)
    # What was loaded is written as it is.
    again = load_benchmark(save_benchmark(tiny, tmp_path / "c.npz", name="b"))
    pd.testing.assert_frame_equal(again.estimate(answers), tiny.estimate(answers))


@pytest.mark.filterwarnings("ignore:not all of the")
def test_a_file_from_before_relatives_has_them_off(saved, pipe, data):
    arrays, meta = read_benchmark_file(saved)
    for name in NEW_ARRAYS:
        del arrays[name]
    meta = {key: value for key, value in meta.items() if key != "share"}
    del meta["estimator"]["relatives"]
    meta["estimator"]["mixing"] = "paper"
    write_benchmark_file(saved, arrays, meta)
    tiny = load_benchmark(saved)
    assert tiny.estimator.relatives is False and tiny.estimator.share_ == 0.0
    answers = data.responses[40:][tiny.anchors()]
    table = tiny.estimate(answers)
    assert (table["relatives"] == "off").all()
    assert "unusual" not in table
    paper = pickle.loads(pickle.dumps(pipe[-1])).set_params(relatives=False, mixing="paper")
    expected = paper.predict_table(answers)
    figures = ["answered", "naive", "pirt", "gpirt"]
    pd.testing.assert_frame_equal(table[figures], expected[figures], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="relatives are off: relatives=False"):
        tiny.estimator.relatives_of(answers)
    assert np.isfinite(tiny.compare(answers, answers[::-1])).all(axis=None)


def test_limits_that_do_not_ascend_are_refused(saved):
    arrays, meta = read_benchmark_file(saved)
    arrays["appropriateness_limits"] = arrays["appropriateness_limits"][::-1].copy()
    write_benchmark_file(saved, arrays, meta)
    with pytest.raises(BenchmarkFileError, match="appropriateness_limits do not ascend"):
        load_benchmark(saved)


def test_a_file_without_training_models_has_no_relatives(saved, data):
    arrays, meta = read_benchmark_file(saved)
    for name in ("ability", "training_scores", "training_responses", "training_noise"):
        arrays[name] = arrays[name][:0]
    meta["training_models"] = []
    write_benchmark_file(saved, arrays, meta)
    tiny = load_benchmark(saved)
    answers = data.responses[40:][tiny.anchors()]
    table = tiny.estimate(answers)
    assert (table["relatives"] == "off: no training answers").all()
    assert np.isfinite(table.drop(columns="relatives")).all(axis=None)
    with pytest.raises(ValueError, match="holds no training models"):
        tiny.estimator.relatives_of(answers)


def test_models_that_were_added_are_saved(saved, data, tmp_path):
    tiny = load_benchmark(saved)
    ours = data.responses[40:42].rename(index=lambda name: f"our {name}")
    ours.iloc[1, ::2] = np.nan
    assert tiny.add_models(ours) is tiny
    assert list(tiny.estimator.training_models_[-2:]) == list(ours.index)
    again = load_benchmark(save_benchmark(tiny, tmp_path / "more.npz", name="mine"))
    assert "trained on 42 models" in repr(again)
    near = ours[again.anchors()].iloc[[0]].fillna(1.0)
    table = again.estimate(near)
    pd.testing.assert_frame_equal(table, tiny.estimate(near), rtol=0, atol=1e-7)
    assert ours.index[0] in table["relatives"].iloc[0]
    np.testing.assert_array_equal(
        again.estimator.training_responses_, tiny.estimator.training_responses_
    )
    with pytest.raises(ValueError, match="training model's name already"):
        again.add_models(ours)
    with pytest.raises(ValueError, match="the benchmark has 170 items"):
        again.add_models(np.ones((1, 30)), ["other"])
    with pytest.raises(ValueError, match="outside the response range"):
        again.add_models(np.full((1, 170), 3.0), ["other"])
    assert len(again.estimator.training_models_) == 42


@pytest.mark.filterwarnings("ignore:not all of the")
def test_compare_reads_answers_in_every_form(saved, data):
    tiny = load_benchmark(saved)
    a, b = (data.responses.iloc[row][tiny.anchors()] for row in (45, 46))
    expected = tiny.estimator.compare(
        a.to_numpy()[None, np.argsort(tiny._answer_order)],
        b.to_numpy()[None, np.argsort(tiny._answer_order)],
    )
    for form in (lambda x: x, dict, list, np.array, lambda x: x.sample(frac=1, random_state=0)):
        table = tiny.compare(form(a), form(b))
        np.testing.assert_allclose(table, expected, atol=1e-12)
        assert table.index.get_level_values("scenario").tolist() == ["left", "right", "(all)"]
    everything = tiny.compare(data.responses.iloc[45], data.responses.iloc[46])
    np.testing.assert_allclose(everything, expected, atol=1e-12)  # other items are left out
    many = data.responses[45:48][tiny.anchors()]
    table = tiny.compare(a, many)
    assert table.index.get_level_values("b").unique().tolist() == list(many.index)
    np.testing.assert_allclose(table["difference"].iloc[:3], 0.0, atol=1e-12)
