"""estimate, anchors: logs of lm-evaluation-harness and others reach the registry's benchmarks."""

import dataclasses
import importlib.util
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from benchmarks_registry import _release, load_benchmark
from benchmarks_registry.cli import main
from sklearn_irt.datasets import _files
from sklearn_irt.logs import read_alpaca_eval

TINY = {
    "tinyArc": "acc_norm",
    "tinyHellaswag": "acc_norm",
    "tinyMMLU": "acc_norm",
    "tinyTruthfulQA": "acc",
    "tinyWinogrande": "acc_norm",
    "tinyGSM8k": "exact_match",
}
MUSR = {
    "murder_mysteries": (0, 250),
    "object_placements": (250, 256),
    "team_allocation": (506, 250),
}


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def log(tmp_path):
    """Writes a sample log of {document: score} and returns its folder."""

    def write(task, scores, metric="acc_norm", model="our/model", filters=("none",), **others):
        folder = tmp_path / "out" / model.replace("/", "__")
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            {"doc_id": document, "doc": {}, "resps": [], "filter": name, metric: score} | others
            for name in filters
            for document, score in scores.items()
        ]
        path = folder / f"samples_{task}_2025-01-31T12-00-00.5.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return write


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A file of the structure of the authors' release, in the cache."""
    path = Path(__file__).parents[1] / "registry" / "test_release.py"
    spec = importlib.util.spec_from_file_location("registry_release_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = pickle.dumps(module.make_release())
    pinned = dataclasses.replace(_release.RELEASE, sha256=_files.digest(data))
    monkeypatch.setattr(_release, "RELEASE", pinned)
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(tmp_path / "home"))
    (tmp_path / "home" / "tinyBenchmarks").mkdir(parents=True)
    (tmp_path / "home" / "tinyBenchmarks" / "tinyBenchmarks.pkl").write_bytes(data)


def rows(out):
    return json.loads(out)["estimates"]


def figures(row):
    return [row[name] for name in ("naive", "pirt", "gpirt", "std_error", "low", "high")]


def write_tiny(log, scores):
    """Logs of all tiny tasks, their documents in any order."""
    for task, values in scores.items():
        shuffled = np.random.default_rng(7).permutation(100).tolist()
        filters = ("strict-match", "flexible-extract") if task == "tinyGSM8k" else ("none",)
        folder = log(task, {i: values[i] for i in shuffled}, TINY[task], filters=filters)
    return folder


def test_tiny_tasks_are_the_anchors_in_order(released, cli, log):
    rng = np.random.default_rng(0)
    scores = {task: rng.integers(0, 2, 100).astype(float).tolist() for task in TINY}
    folder = write_tiny(log, scores)
    for task in TINY:
        status, out, err = cli("estimate", task, folder, "--json")
        assert status == 0, err
        assert "warning" not in err
        (row,) = rows(out)
        expected = load_benchmark(task).estimate(scores[task]).iloc[0]
        np.testing.assert_allclose(figures(row), figures(expected), rtol=1e-12)
        assert row["anchors_answered"] == 100
    status, out, err = cli("estimate", "tinyBenchmarks", folder, "--json")
    assert status == 0 and "warning" not in err
    order = ["TruthfulQA", "GSM8k", "Winogrande", "Arc", "Hellaswag", "MMLU"]
    answers = sum((scores[f"tiny{name}"] for name in order), [])
    expected = load_benchmark("tinyBenchmarks").estimate(answers)
    for row, (_, other) in zip(rows(out), expected.iterrows(), strict=True):
        np.testing.assert_allclose(figures(row), figures(other), rtol=1e-12)


def test_tiny_tasks_are_named_for_the_harness(released, cli):
    status, out, _ = cli("anchors", "tinymmlu", "--format", "lm-eval")
    assert status == 0 and json.loads(out) == {"tinyMMLU": list(range(100))}
    status, out, _ = cli("anchors", "tinyBenchmarks", "--format", "lm-eval")
    assert json.loads(out) == dict.fromkeys(
        ["tinyTruthfulQA", "tinyGSM8k", "tinyWinogrande", "tinyArc", "tinyHellaswag", "tinyMMLU"],
        list(range(100)),
    )
    status, _, err = cli("anchors", "tinyHelmLite", "--format", "lm-eval")
    assert status == 2 and "a benchmark of HELM" in err


def test_other_commands_take_released_benchmarks(released, cli, log, tmp_path):
    status, out, err = cli("fetch", "tinyBenchmarks/tinyAI2_arc", "--json")
    assert status == 0 and err == ""
    facts = json.loads(out)
    assert facts["name"] == "tinyArc" and Path(facts["file"]).is_file()
    folder = log("tinyArc", {i: i % 2 for i in range(100)})
    status, out, err = cli("adaptive", "tinyArc", "--answers", folder, "--max-items", 3, "--json")
    assert status == 0, err
    found = json.loads(out)
    assert found["answers"] == 3
    assert {row["item"] for row in found["history"]} <= set(load_benchmark("tinyArc").anchors())
    target = tmp_path / "x.npz"
    status, _, err = cli("add-models", "tinyArc", folder, "-o", target, "--name", "ours")
    assert status == 0 and "our/model answered 100 of the 1172 items" in err
    status, out, err = cli("estimate", target, folder, "--json")
    assert status == 0 and rows(out)[0]["anchors_answered"] == 100
    assert json.loads(cli("anchors", target, "--format", "lm-eval")[1])["tinyArc"][-1] == 99


def test_the_filter_of_a_tiny_task(released, cli, log):
    scores = dict.fromkeys(range(100), 1)
    folder = log("tinyGSM8k", scores, "exact_match", filters=("flexible-extract",))
    status, _, err = cli("estimate", "tinyGSM8k", folder)
    assert status == 2
    assert "no filter 'strict-match'; there are ['flexible-extract']" in err
    status, out, err = cli("estimate", "tinyGSM8k", folder, "--filter", "flexible-extract")
    assert status == 0 and "\t100\t" in out
    assert "made from responses scored by the filter 'strict-match'" in err


def test_a_tiny_task_has_no_further_documents(released, cli, log):
    folder = log("tinyArc", dict.fromkeys(range(101), 1))
    status, out, err = cli("estimate", "tinyArc", folder)
    assert status == 2 and out == ""
    assert err.startswith(
        "sklearn-irt: error: tinyArc has no item 'tinyArc/00100', which the model"
    )


def test_a_benchmark_of_the_same_name_is_another(released, cli, log, tmp_path):
    from benchmarks_registry import save_benchmark

    save_benchmark(load_benchmark("arc-challenge"), tmp_path / "x.npz", name="tinyArc")
    folder = log("tinyArc", dict.fromkeys(range(100), 1))
    status, _, err = cli("estimate", tmp_path / "x.npz", folder)
    assert status == 2 and "there is no log of a task of tinyArc (arc_challenge)" in err


def test_leaderboard_tasks_are_columns_of_open_llm_v2(cli, log):
    tiny = load_benchmark("open-llm-v2")
    status, out, _ = cli("anchors", "open-llm-v2", "--format", "lm-eval")
    documents = json.loads(out)
    assert status == 0 and list(documents)[0] == "leaderboard_ifeval"
    assert sum(map(len, documents.values())) == 200
    labels = tiny.items.set_index("item")["subscenario"]
    rng = np.random.default_rng(1)
    answers = {}
    for task, asked in documents.items():
        scores = {document: int(rng.integers(2)) for document in asked}
        metric = "prompt_level_strict_acc" if task == "leaderboard_ifeval" else "acc_norm"
        folder = log(task, scores, metric, inst_level_strict_acc=[True])
        part = task.removeprefix("leaderboard_musr_")
        first, size = MUSR.get(part, (0, 541))
        scenario = "musr" if part in MUSR else "ifeval"
        for document, score in scores.items():
            item = f"{scenario}/{first + document:05d}"
            assert 0 <= document < size
            assert scenario == "ifeval" or labels[item] == part
            answers[item] = score
    assert sorted(answers) == sorted(tiny.anchors())
    status, out, err = cli("estimate", "open-llm-v2", folder, "--json")
    assert status == 0 and "warning" not in err
    for row, (_, other) in zip(rows(out), tiny.estimate(answers).iterrows(), strict=True):
        np.testing.assert_allclose(figures(row), figures(other), rtol=1e-12)


def test_two_names_of_one_item(cli, log, tmp_path):
    scores = dict.fromkeys(range(5), 1)
    for task in ("ifeval", "leaderboard_ifeval"):
        folder = log(task, scores, "prompt_level_strict_acc")
    for command in (
        ["estimate", "open-llm-v2", folder],
        ["add-models", "open-llm-v2", folder, "-o", tmp_path / "x.npz"],
        ["adaptive", "open-llm-v2", "--answers", folder],
    ):
        status, out, err = cli(*command)
        assert (status, out) == (2, "")
        assert "'ifeval/00000'" in err and "more than once" in err
    options = ("--rename", "leaderboard_ifeval=ifevil")
    status, _, err = cli("estimate", "open-llm-v2", folder, *options)
    assert status == 2 and "open-llm-v2 has no task 'ifevil', only ifeval" in err


def test_other_tasks_in_the_folder_are_left_out(cli, log):
    log("mmlu_anatomy", dict.fromkeys(range(5), 1), "acc")
    log("gsm8k", dict.fromkeys(range(5), 1), "exact_match", filters=("a", "b"))  # is not read
    folder = log("arc_challenge", dict.fromkeys(range(1172), 1))
    status, out, err = cli("estimate", "arc-challenge", folder, "--json")
    assert status == 0
    assert rows(out)[0]["answered"] == 1172
    assert rows(out)[0]["gpirt"] == pytest.approx(1, abs=1e-12)
    assert "logs of mmlu_anatomy, which arc-challenge has not (1)" in err
    assert {row["what"].split(",")[0] for row in json.loads(out)["left_out"]} == {
        "logs of mmlu_anatomy",
        "logs of gsm8k",
    }


def test_no_task_of_the_benchmark_is_there(cli, log):
    folder = log("my_arc", dict.fromkeys(range(50), 1))
    status, out, err = cli("estimate", "arc-challenge", folder)
    assert status == 2 and out == ""
    assert "no log of a task of arc-challenge (arc_challenge)" in err and "only of my_arc" in err
    status, out, err = cli(
        "estimate", "arc-challenge", folder, "--rename", "my_arc=arc_challenge", "--json"
    )
    assert status == 0 and rows(out)[0]["answered"] == 50
    status, _, err = cli("estimate", "arc-challenge", folder, "--rename", "arc=arc_challenge")
    assert status == 2 and "--rename names 'arc', but there are only: ['my_arc']" in err


def test_partial_answers_of_several_models(cli, log):
    asked = [int(item.split("/")[1]) for item in load_benchmark("arc-challenge").anchors()]
    log("arc_challenge", dict.fromkeys(asked, 1), model="our/first")
    log("arc_challenge", dict.fromkeys(asked[:30], 0) | {asked[30]: None}, model="our/[b]second")
    folder = log("arc_challenge", {0: 1}, model="our/third").parent
    status, out, err = cli("estimate", "arc-challenge", folder, "--json")
    assert status == 0
    found = {row["model"]: row for row in rows(out)}
    assert [row["anchors_answered"] for row in found.values()] == [30, 100, 0]
    assert found["our/third"]["answered"] == 1 and found["our/third"]["naive"] is None
    assert found["our/[b]second"]["gpirt"] < found["our/first"]["gpirt"]
    notes = [line for line in err.splitlines() if "of the 100 anchors" in line]
    assert notes == [
        "sklearn-irt: note: our/[b]second answered 30 of the 100 anchors of arc_challenge",
        "sklearn-irt: note: our/third answered 0 of the 100 anchors of arc_challenge",
    ]


def test_the_metric_is_the_benchmarks(cli, log):
    scores = dict.fromkeys(range(400), 1)
    folder = log("arc_challenge", scores, acc=0)
    status, out, err = cli("estimate", "arc-challenge", folder, "--json")
    assert status == 0 and rows(out)[0]["gpirt"] > 0.9 and "scored by" not in err
    status, out, err = cli("estimate", "arc-challenge", folder, "--json", "--metric", "acc")
    assert status == 0 and rows(out)[0]["gpirt"] < 0.1
    assert (
        "sklearn-irt: warning: the answers to arc_challenge are scored by 'acc', but arc-challenge "
        "was made from responses scored by 'acc_norm'"
    ) in err
    folder = log("arc_challenge", scores, "acc")
    status, out, err = cli("estimate", "arc-challenge", folder)
    assert (status, out) == (2, "") and "no metric 'acc_norm'; there are ['acc']" in err
    status, _, err = cli("estimate", "arc-challenge", folder, "--metric", "arc_easy=acc")
    assert status == 2 and "names 'arc_easy'" in err


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "jsonl", "parquet"])
def test_tables(cli, tmp_path, ending):
    import pandas as pd

    anchors = load_benchmark("glue").anchors()
    wide = pd.DataFrame([np.arange(300) % 2], index=["our/model"], columns=anchors).astype(float)
    path = tmp_path / f"scores.{ending}"
    if ending == "parquet":
        pytest.importorskip("pyarrow")
        wide.rename_axis("model").reset_index().to_parquet(path)
    elif ending == "jsonl":
        wide.rename_axis("model").reset_index().to_json(path, orient="records", lines=True)
    else:
        wide.to_csv(path, index_label="model", sep="\t" if ending == "tsv" else ",")
    status, out, err = cli("estimate", "glue", path, "--json")
    assert status == 0 and err == ""
    assert [row["answered"] for row in rows(out)] == [100, 100, 100, 300]
    assert {row["model"] for row in rows(out)} == {"our/model"}


def test_glue_takes_the_harness_tasks(cli, log):
    scores = dict.fromkeys(range(277), 1)
    folder = log("rte", scores, "acc")
    status, out, err = cli("estimate", "glue", folder, "--json")
    assert status == 0 and "scored by" not in err
    assert [row["answered"] for row in rows(out)] == [277, 0, 0, 277]


def write_helm(folder, scenario, scores):
    run = folder / "runs" / "v1" / f"{scenario}:model=our_model"
    run.mkdir(parents=True)
    stats = [
        {"instance_id": f"id{i}", "train_trial_index": 0,
         "stats": [{"name": {"name": "exact_match_indicator", "split": "test"}, "count": 1,
                    "sum": score, "mean": score}]}
        for i, score in scores.items()
    ]  # fmt: skip
    (run / "per_instance_stats.json").write_text(json.dumps(stats))
    return folder / "runs"


def test_helm_names_instances_by_their_place_among_all(cli, tmp_path):
    scores = {7 * i: i % 2 for i in range(1000)}
    status, out, err = cli("estimate", "helm-lite", write_helm(tmp_path / "a", "gsm", scores))
    assert status == 0 and "\tgsm\t1000\t" in out and "scored by" not in err
    part = dict(list(scores.items())[:100])
    status, _, err = cli("estimate", "helm-lite", write_helm(tmp_path / "b", "gsm", part))
    assert status == 2 and "have 100 of the 1000 instances of gsm" in err


def test_real_judgements_of_alpaca_eval(real_data, cli):
    folder = real_data / "alpaca_eval_2" / "results"
    status, out, err = cli("estimate", "alpaca-eval-2", folder, "--json")
    assert status == 0 and "warning" not in err, err
    found = {row["model"]: row for row in rows(out)}
    assert min(row["anchors_answered"] for row in found.values()) >= 99
    assert all(row["answered"] >= 803 for row in found.values())
    truth = read_alpaca_eval(folder).groupby("model")["score"].mean()
    assert set(found) == set(truth.index)
    for model, row in found.items():
        assert row["gpirt"] == pytest.approx(truth[model], abs=1e-3)
    status, _, err = cli("estimate", "alpaca-eval-2", folder, "--filter", "acc")
    assert status == 2 and "--filter is not for results of this kind (AlpacaEval)" in err
    annotator = "weighted_alpaca_eval_gpt4_turbo"
    assert cli("estimate", "alpaca-eval-2", folder, "--metric", annotator)[0] == 0
    status, _, err = cli("estimate", "alpaca-eval-2", folder, "--model", "one")
    assert status == 2 and "2 models" in err


def test_real_logs_of_the_harness(real_data, cli, tmp_path):
    """On a benchmark made from simulated models on as many items."""
    from sklearn_irt.datasets import make_responses

    tasks = {"metabench_truthfulqa_secondary": "acc", "metabench_winogrande_permute": "acc"}
    logs = real_data / "lm_eval_samples"
    sizes = {
        task: sum(1 for _ in next(logs.glob(f"*{task}*")).open(encoding="utf-8")) for task in tasks
    }
    names = [f"{task}/{i:05d}" for task, size in sizes.items() for i in range(size)]
    data = make_responses(n_models=20, n_items=len(names), random_state=0).responses
    data.set_axis(names, axis=1).to_csv(tmp_path / "scores.csv", index_label="model")
    target = tmp_path / "mine.npz"
    status, _, err = cli("build", tmp_path / "scores.csv", "-o", target, "--k", 20, "--n-dims", 1)
    assert status == 0, err
    status, out, err = cli("estimate", target, logs, "--model", "real", "--json")
    assert status == 0, err
    assert [row["answered"] for row in rows(out)] == [*sizes.values(), sum(sizes.values())]
    assert rows(out)[0]["model"] == "real"
