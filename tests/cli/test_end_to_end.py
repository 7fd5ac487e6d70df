"""From a folder of lm-evaluation-harness logs to a tiny benchmark and a new model's score."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks_registry import load_benchmark
from benchmarks_registry.cli import main
from sklearn_irt.datasets import make_responses

TASKS = {"logic_puzzles": "acc_norm", "word_sums": "exact_match"}
N_ITEMS = 300
DATE = "2025-03-0{}T12-00-00.{:06d}"
ROOT = Path(__file__).resolve().parents[2]


def write_run(folder, model, scores, date, documents=None):
    """One model's sample logs and results file, as the harness lays them out.

    `scores` has an array for each task; of `documents` a list for each task, or all.
    """
    folder = folder / model.replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    results = {}
    for task, values in scores.items():
        metric = TASKS[task]
        asked = range(len(values)) if documents is None else documents[task]
        lines = [
            {
                "doc_id": document,
                "doc": {"question": f"question {document} of {task}?"},
                "target": "yes",
                "arguments": {"gen_args_0": {"arg_0": "..."}},
                "resps": [["yes"]],
                "filtered_resps": ["yes"],
                "filter": "none",
                "metrics": [metric],
                "doc_hash": f"{document:064x}",
                metric: float(values[document]),
            }
            for document in asked
        ]
        path = folder / f"samples_{task}_{date}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        score = float(np.mean([values[document] for document in asked]))
        results[task] = {"alias": task, f"{metric},none": score}
    content = {
        "results": results,
        "group_subtasks": {task: [] for task in scores},
        "configs": {task: {"task": task} for task in scores},
        "n-shot": dict.fromkeys(scores, 0),
        "higher_is_better": {task: {TASKS[task]: True} for task in scores},
        "model_name": model,
        "lm_eval_version": "0.4.9",
    }
    (folder / f"results_{date}.json").write_text(json.dumps(content), encoding="utf-8")


def by_task(row):
    values = row.to_numpy()
    return {task: values[i * N_ITEMS : (i + 1) * N_ITEMS] for i, task in enumerate(TASKS)}


@pytest.fixture(scope="module")
def past(tmp_path_factory):
    """Logs of 30 models, and the responses of all 31."""
    data = make_responses(n_models=31, n_items=2 * N_ITEMS, random_state=1).responses
    folder = tmp_path_factory.mktemp("lm_eval") / "out"
    for number, (_, row) in enumerate(data.iloc[:30].iterrows()):
        write_run(folder, f"org-{number % 5}/model-{number}", by_task(row), DATE.format(1, number))
    return folder, data


def run(*arguments, cwd=None, **options):
    """The command in a process of its own, as in a terminal whose output is piped."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks_registry.cli", *map(str, arguments)],
        capture_output=True, cwd=cwd, env=environment, timeout=300, **options,
    )  # fmt: skip
    after = os.times()
    done.cpu = sum(after[2:4]) - sum(before[2:4])
    return done


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


def test_from_logs_to_a_new_models_score(past, cli, tmp_path):
    folder, data = past
    build = run("build", folder, "-o", tmp_path / "mine.npz", "--k", 50, "--json")
    assert build.returncode == 0, build.stderr
    made = json.loads(build.stdout)
    assert made["models"] == 30 and made["missing"] == made["dropped"] == []
    assert made["scenarios"] == [
        {"scenario": task, "items": N_ITEMS, "anchors": 50, "metric": TASKS[task]} for task in TASKS
    ]
    told = build.stderr.decode().splitlines()
    assert told[0] == (
        "sklearn-irt: note: 30 models x 600 items, scenarios: 2; 0 of 18000 responses missing"
    )

    ask = run("anchors", "mine.npz", "--format", "lm-eval", cwd=tmp_path)
    documents = json.loads(ask.stdout)
    assert {task: len(found) for task, found in documents.items()} == dict.fromkeys(TASKS, 50)
    ids = cli("anchors", tmp_path / "mine.npz")[1].splitlines()
    assert ids == [f"{task}/{i:05d}" for task in TASKS for i in documents[task]]

    answers = by_task(data.iloc[30])
    write_run(tmp_path / "new", "lab/[red]next", answers, DATE.format(2, 0), documents)
    scores = run("estimate", tmp_path / "mine.npz", tmp_path / "new", "--json")
    assert scores.returncode == 0 and scores.stderr == b"", scores.stderr
    rows = {row["scenario"]: row for row in json.loads(scores.stdout)["estimates"]}
    assert list(rows) == [*TASKS, "(all)"]
    for task, row in rows.items():
        truth = data.iloc[30].mean() if task == "(all)" else answers[task].mean()
        assert row["model"] == "lab/[red]next"
        assert row["answered"] == row["anchors_answered"] == row["anchors"]
        assert abs(row["gpirt"] - truth) < 0.1 and row["low"] < truth < row["high"]

    done = [build, ask, scores]
    done.append(run("report", "mine.npz", "new", "-o", "page.html", cwd=tmp_path))
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "lab/[red]next" in text
    for each in done:
        assert each.cpu < 20, each.args  # seconds; 4 to 8 on a busy machine


@pytest.mark.slow
def test_a_table_gives_the_same_benchmark(past, cli, tmp_path):
    folder, data = past
    wide = data.iloc[:30].set_axis(
        [f"{task}/{i:05d}" for task in TASKS for i in range(N_ITEMS)], axis=1
    )
    wide.to_csv(tmp_path / "scores.csv", index_label="model")
    options = ("--k", 20, "--method", "random", "--seed", 3)
    for source, name in ((tmp_path / "scores.csv", "table.npz"), (folder, "logs.npz")):
        assert cli("build", source, "-o", tmp_path / name, *options)[0] == 0
    one, two = (load_benchmark(tmp_path / name) for name in ("table.npz", "logs.npz"))
    assert one.anchors() == two.anchors() and one.name == "table"
    assert "metric" not in one.info or not one.info["metric"]
    assert two.info["metric"] == "logic_puzzles: acc_norm; word_sums: exact_match"
    assert two.info["source"] == "lm-evaluation-harness"


@pytest.mark.slow
def test_what_is_missing_and_dropped_is_told(past, cli, tmp_path):
    folder, data = past
    for number in range(4):
        row = by_task(data.iloc[number])
        part = {task: range(N_ITEMS - 10 * number) for task in TASKS}
        write_run(tmp_path / "out", f"our/m{number}", row, DATE.format(1, 0), part)
    write_run(tmp_path / "out", "our/m0", by_task(data.iloc[5]), DATE.format(2, 0))
    target = tmp_path / "mine.npz"
    status, out, told = cli("build", tmp_path / "out", "-o", target, "--k", 10, "--n-dims", 1)
    assert status == 0, told
    assert "missing: our/m3 in word_sums: 30 absent and 0 unscored of 300 items" in told
    assert "an earlier run of logic_puzzles, of 2025-03-01T12-00-00.000000" in told
    assert out.startswith(f"file\t{target}\nname\tmine\nmodels\t4\n")


@pytest.mark.slow
def test_the_commands_of_the_documentation(past, cli, tmp_path, monkeypatch):
    """Every line in a console block, in order; its folders hold the simulated logs."""
    folder, data = past
    monkeypatch.chdir(tmp_path)
    answers = by_task(data.iloc[30])
    shutil.copytree(folder, "lm_eval_output")
    write_run(tmp_path / "new_in_full", "lab/next", answers, DATE.format(3, 0))
    write_run(tmp_path / "old", "lab/last", by_task(data.iloc[3]), DATE.format(1, 0))
    text = (ROOT / "docs" / "command_line.rst").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines() if line.startswith("   $ ")]
    commands = [line.removeprefix("$ sklearn-irt ") for line in lines[1:]]
    assert len(commands) == 8
    for command in commands:
        status, _, err = cli(*command.split())
        assert status in ((0, 1) if command.startswith("gate") else (0,)), (command, err)
        if command.startswith("anchors"):
            documents = json.loads(Path("ask.json").read_text())
            write_run(tmp_path / "new", "lab/next", answers, DATE.format(2, 0), documents)
    assert "lab/next" in load_benchmark("mine2.npz").estimator.training_models_
