"""build and compare: options, costs, and what the library is asked for."""

import json
import sys
import types

import numpy as np
import pandas as pd
import pytest

from benchmarks_registry import load_benchmark
from benchmarks_registry.cli import main
from sklearn_irt.datasets import make_responses


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def data():
    return make_responses(
        n_models=14, scenarios={"arc": 30, "mmlu": {"law": 20, "art": 10}}, random_state=0
    )


@pytest.fixture
def scores(data, tmp_path):
    """A long table with costs."""
    labels = data["items"].set_index("item")
    table = data.responses.rename_axis("model").melt(
        ignore_index=False, var_name="item", value_name="score"
    )
    table = table.reset_index()
    for name in ("scenario", "subscenario"):
        table[name] = table["item"].map(labels[name])
    places = table["item"].map({item: i for i, item in enumerate(data.responses.columns)})
    table["tokens"] = 10.0 + places % 7
    path = tmp_path / "scores.csv"
    table.to_csv(path, index=False)
    return path


@pytest.fixture
def build(cli, tmp_path):
    """Builds quickly; returns the status, output, messages and the path."""

    def call(source, *options):
        target = tmp_path / "mine.npz"
        return *cli("build", source, "-o", target, "--n-dims", 1, *options), target

    return call


def test_k_for_each_scenario_and_subscenarios(build, scores):
    status, out, err, path = build(scores, "--k", "arc=8", "--k", "mmlu=0.5", "--json", "--jobs", 1)
    assert status == 0, err
    assert json.loads(out)["scenarios"] == [
        {"scenario": "arc", "items": 30, "anchors": 8},
        {"scenario": "mmlu", "items": 30, "anchors": 15},
    ]
    tiny = load_benchmark(path)
    assert tiny.items["subscenario"].nunique() == 2 and tiny.name == "mine"
    assert tiny.estimator.irt_.n_dims == 1
    assert tiny.info["source"] == "table"


@pytest.mark.slow
def test_the_seed_and_the_method_count(build, scores):
    found = {}
    for options in (("--seed", 1), ("--seed", 1, "--jobs", 2), ("--seed", 2)):
        status, _, err, path = build(scores, "--k", 5, "--method", "random", *options)
        assert status == 0, err
        found[options] = load_benchmark(path).anchors()
    first, second, third = found.values()
    assert first == second != third


def test_costs_from_a_file_or_a_column(build, data, scores, tmp_path):
    items = data.responses.columns
    costs = pd.DataFrame({"item": items, "cost": np.arange(60) % 7 + 10.0})
    costs.sample(frac=1, random_state=0).to_csv(tmp_path / "costs.csv", index=False)
    anchors = []
    for given in (tmp_path / "costs.csv", "tokens"):
        status, _, err, path = build(scores, "--costs", given, "--budget", 60, "--name", "cheap")
        assert status == 0, err
        tiny = load_benchmark(path)
        anchors.append(tiny.anchors())
        spent = costs.set_index("item")["cost"][tiny.anchors("arc")].sum()
        assert 40 < spent <= 60 and tiny.name == "cheap"
    assert anchors[0] == anchors[1]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"arc/00003": -1}, "costs has -1 for item 'arc/00003'"),
        ({"arc/00003": np.nan}, "costs has nan for item 'arc/00003'"),
        ({"arc/00003": np.inf}, "not a finite number"),
        ({"arc/00099": 1}, "names the item 'arc/00099', which is not among them"),
        ({"arc/00003": None}, "has no cost of the item"),
        ({}, "budget=5 is below the cheapest item, which costs 10"),
    ],
)
def test_costs_that_are_wrong(build, data, scores, tmp_path, change, problem):
    renamed = {item: f"arc/{i:05d}" for i, item in enumerate(data.responses.columns[:10])}
    text = scores.read_text()
    for old, new in renamed.items():
        text = text.replace(f"{old},", f"{new},")
    scores.write_text(text)
    items = [renamed.get(item, item) for item in data.responses.columns]
    costs = dict.fromkeys(items, 10.0) | {k: v for k, v in change.items() if v is not None}
    for item in [item for item, value in change.items() if value is None]:
        del costs[item]
    pd.Series(costs, name="cost").rename_axis("item").to_csv(tmp_path / "costs.csv")
    status, out, err, path = build(scores, "--costs", tmp_path / "costs.csv", "--budget", 5)
    assert (status, out) == (2, "") and problem in err.splitlines()[-1]
    assert not path.exists()


def test_options_that_are_wrong(build, cli, scores, tmp_path):
    for options, problem in (
        (("--budget", 5), "--budget needs --costs"),
        (("--costs", "price"), "--costs price: there is no such file, and no column of that name"),
        (("--costs", "no.csv"), "no.csv: there is no such file"),
        (("--k", "0"), "--k is at least 1 item"),
        (("--k", "1.5"), "--k is at least 1 item, or a share"),
        (("--k", "many"), "--k is a number of items or a share, got 'many'"),
        (("--k", "arc=3"), "k has no entry for the scenario 'mmlu'"),
        (("--k", "arc=3", "--k", "arc=4"), "names 'arc' twice"),
        (("--method", "best"), "'best'"),
        (("--seed", "-1"), "-1"),
        (("--range", "0", "0.5"), "0.5"),
        (("--name", " "), "--name is empty"),
        (("--metric", "acc"), "--metric is not for results of this kind (table)"),
        (("--filter", "x"), "--filter is not for results of this kind (table)"),
    ):
        status, out, err, path = build(scores, *options)
        assert (status, out) == (2, "") and problem in err.splitlines()[-1], (options, err)
        assert not path.exists()


def test_results_that_are_wrong(build, data, scores, tmp_path):
    text = scores.read_text()
    path = tmp_path / "other.csv"
    data.responses.iloc[:1].to_csv(path, index_label="model")
    assert "of 1 model; give those of several" in build(path)[2]
    data.responses.assign(**{}).mul([1] * 13 + [np.nan], axis=0).to_csv(path, index_label="model")
    status, _, err, target = build(path)
    assert status == 2 and "the model 'model_0013' has no score in the results" in err
    first = text.splitlines()[1]
    path.write_text(text + first + "\n")
    status, _, err, target = build(path)
    assert status == 2 and "a second time, after line 2" in err
    twice = tmp_path / "twice"
    twice.mkdir()
    assert not target.exists()


def test_percentages(build, data, scores, tmp_path):
    path = tmp_path / "percent.csv"
    (100 * data.responses).to_csv(path, index_label="model")
    status, _, err, target = build(path, "--range", 0, 100, "--k", 5)
    assert status == 0 and "warning: response_range" not in err
    assert load_benchmark(target).estimator._bounds == (0.0, 100.0, False)


def test_the_filter_is_kept_with_the_benchmark(build, cli, data, tmp_path):
    for number in range(14):
        folder = tmp_path / "out" / f"our__m{number}"
        folder.mkdir(parents=True)
        values = data.responses.iloc[number]
        lines = [
            {"doc_id": i, "resps": [], "filter": name, "exact_match": float(value), "f1": 0.5}
            for name in ("strict", "flexible")
            for i, value in enumerate(values)
        ]
        path = folder / "samples_sums_2025-01-31T12-00-00.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    status, _, err, target = build(tmp_path / "out", "--k", 5)
    assert status == 2 and "give --filter one of ['strict', 'flexible']" in err
    status, _, err, target = build(tmp_path / "out", "--k", 5, "--filter", "strict")
    assert status == 0, err
    assert "left out" in err and "more such lines" in err  # the other filter's answers
    assert "note: sums: exact_match is taken of the metrics exact_match, f1; --metric takes" in err
    assert load_benchmark(target).info["metric"] == "exact_match,strict"
    status, out, err = cli("estimate", target, tmp_path / "out" / "our__m3", "--json")
    assert status == 0 and "scored by" not in err
    assert json.loads(out)["estimates"][0]["gpirt"] == pytest.approx(data.responses.iloc[3].mean())
    asked = ("--k", 5, "--filter", "strict", "--metric", "sums=f1")
    assert "is taken of the metrics" not in build(tmp_path / "out", *asked)[2]
    assert build(tmp_path / "out", "--k", 5, "--filter", "strict")[0] == 0
    options = ("--filter", "flexible", "--metric", "f1")
    status, _, err = cli("estimate", target, tmp_path / "out" / "our__m3", *options)
    assert status == 0 and "made from responses scored by 'exact_match'" in err


def test_groups_may_be_told_apart(build, data, tmp_path):
    """Where some results files do not tell the group, an item would be in two scenarios."""
    tasks = {"mmlu_law": range(20), "mmlu_art": range(20, 30)}
    for number in range(14):
        folder = tmp_path / "out" / f"our__m{number}"
        folder.mkdir(parents=True)
        for task, places in tasks.items():
            lines = [
                {"doc_id": i, "resps": [], "acc": float(data.responses.iloc[number, place])}
                for i, place in enumerate(places)
            ]
            path = folder / f"samples_{task}_2025-01-31T12-00-00.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        content = {"results": {}, "configs": {}, "groups": {"mmlu": {"acc,none": 0.5}}}
        content["group_subtasks"] = {"mmlu": list(tasks)}
        (folder / "results_2025-01-31T12-00-00.json").write_text(json.dumps(content))
    status, out, err, target = build(tmp_path / "out", "--k", 5, "--json")
    assert status == 0, err
    assert json.loads(out)["scenarios"] == [
        {"scenario": "mmlu", "items": 30, "anchors": 5, "metric": "acc"}
    ]
    assert load_benchmark(target).info["metric"] == "acc"
    status, out, err, target = build(tmp_path / "out", "--k", 5, "--json", "--no-groups")
    assert [row["items"] for row in json.loads(out)["scenarios"]] == [10, 20]


def test_what_build_leaves_to_be_done_is_told(build, cli, scores):
    status, out, err, path = build(scores, "--k", "arc=8", "--k", "mmlu=5", "--name", "ours")
    assert status == 0 and "metric" not in out
    *_, few, measure = err.splitlines()
    assert "ours was trained on 14 models only; with fewer than 20 the intervals rest on" in few
    assert measure.endswith(
        "sklearn-irt compare RESULTS --k 5 --k 8 --table errors.csv; then sklearn-irt report "
        f"{path} --comparison errors.csv -o page.html"
    )
    status, out, err = cli("show", path, "--json")
    lines = err.splitlines()
    assert status == 0 and "fewer than 20" in lines[0] and lines[2] == measure and len(lines) == 3
    assert "no errors on held-out models are recorded" in lines[1]
    rows = json.loads(out)["scenarios"]
    assert all(0 < row["std_error"] < 0.3 and "heldout_mean" not in row for row in rows)
    status, out, err = cli("estimate", path, scores, "--json")
    assert status == 0 and "fewer than 20" in err
    # Complete runs: no rounding errors are shown as standard errors.
    assert {row["std_error"] for row in json.loads(out)["estimates"]} == {0.0}


@pytest.fixture
def evaluation(monkeypatch):
    """In place of sklearn_irt.evaluation: what it is called with."""
    calls = {}

    def compare_strategies(X, y=None, **options):
        calls.update(options, X=X)
        return pd.DataFrame(
            {"strategy": ["irt/gpirt"], "k": [3], "split": [0], "model": ["a"], "scenario": ["all"],
             "true": [0.5], "estimated": [0.4], "std": [np.nan], "low": [np.nan], "high": [np.nan]}
        )  # fmt: skip

    def summarize(results, by=("strategy", "k")):
        index = results.groupby(list(by))
        return index[["true"]].mean().rename(columns={"true": "mean_error"}).assign(worst=np.nan)

    module = types.ModuleType("sklearn_irt.evaluation")
    module.compare_strategies, module.summarize = compare_strategies, summarize
    monkeypatch.setitem(sys.modules, "sklearn_irt.evaluation", module)
    return calls


def test_compare(cli, evaluation, scores, data, tmp_path):
    status, out, err = cli(
        "compare", scores, "--k", 3, "--k", 5, "--cv", 2, "--seed", 4, "--n-dims", 1,
        "--strategy", "irt/gpirt", "--table", tmp_path / "errors.csv",
    )  # fmt: skip
    assert status == 0, err
    assert out == "strategy\tk\tmean_error\tworst\nirt/gpirt\t3\t0.5\t\n"
    responses = evaluation.pop("X")
    assert responses.shape == (14, 60)
    labels = evaluation.pop("scenarios")
    assert labels.shape == (60, 2) and set(labels[:, 0]) == {"arc", "mmlu"}
    assert evaluation == {
        "strategies": ["irt/gpirt"], "k": (3, 5), "cv": 2, "response_range": None, "n_dims": 1,
        "n_jobs": None, "random_state": 4,
    }  # fmt: skip
    assert pd.read_csv(tmp_path / "errors.csv")["estimated"].tolist() == [0.4]
    for name in ("glue", "tinymmlu", tmp_path / "mine.npz"):
        status, out, err = cli("compare", name, "a", "b")
        hint = f"to compare two models: sklearn-irt gate {name} CANDIDATE REFERENCE"
        assert (status, out) == (2, "") and hint in err and err.count("\n") == 1
    status, out, _ = cli("compare", scores, "--json")
    assert json.loads(out) == [{"strategy": "irt/gpirt", "k": 3, "mean_error": 0.5, "worst": None}]
    assert evaluation["strategies"] is None and evaluation["k"] == (30, 60, 100)


def test_the_hint_at_the_range_is_an_option(build, data, tmp_path):
    path = tmp_path / "other.csv"
    (100 * data.responses).to_csv(path, index_label="model")
    status, _, err, _ = build(path)
    (warning,) = [line for line in err.splitlines() if "outside [0, 1]" in line]
    assert status == 0 and warning.endswith(
        "is taken as --range (percentages? Then give --range 0 100)"
    )
    assert "response_range" not in err
    status, _, err, _ = build(path, "--range", 0, 0.5)
    assert status == 2 and err.endswith("or give --range\n")
