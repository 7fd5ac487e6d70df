"""Run folders of HELM: recorded ones and broken ones."""

import gzip
import json
import shutil
from pathlib import Path

import pytest

from sklearn_irt.logs import left_out, pivot, provenance, read_helm

RECORDED = Path(__file__).parent / "fixtures" / "helm"


def entry(instance, trial=0, split="test", perturbation=None, **metrics):
    name = {"split": split} if split else {}
    stats = [
        {"name": {"name": metric, **name}, "count": 1, "sum": value, "mean": value}
        for metric, value in metrics.items()
    ]
    found = {"instance_id": instance, "train_trial_index": trial, "stats": stats}
    return found | ({"perturbation": perturbation} if perturbation else {})


@pytest.fixture
def run(tmp_path):
    """Writes a run folder and returns its path."""

    def write(name, entries, file="per_instance_stats.json", **others):
        folder = tmp_path / "runs" / "v1" / name
        folder.mkdir(parents=True, exist_ok=True)
        for each, content in {file: entries, **others}.items():
            each = each if each.endswith(".json") else f"{each}.json"
            (folder / each).write_text(json.dumps(content))
        return folder

    return write


def test_recorded_runs():
    table = read_helm(RECORDED)
    assert table[["model", "scenario", "subscenario", "item", "score"]].values.tolist() == [
        ["simple/model1", "capitals", "asia", "capitals/asia/id1", 1.0],
        ["simple/model1", "capitals", "asia", "capitals/asia/id4", 0.0],
        ["simple/model1", "capitals", "europe", "capitals/europe/id1", 1.0],
        ["simple/model1", "capitals", "europe", "capitals/europe/id4", 0.0],
        ["simple/model1", "capitals", "europe", "capitals/europe/id6", 1.0],
    ]
    origin = provenance(table)
    assert set(origin["harness"]) == {"HELM"} and set(origin["metric"]) == {"exact_match"}
    assert origin["shots"].tolist() == [1, 1]
    dropped = left_out(table)[["what", "count"]].values.tolist()
    assert dropped == [
        ["instances of the split valid", 1],
        ["answers to perturbed instances", 4],
        ["answers of the train trial 1", 4],
        ["instances of the split valid", 1],
    ]


def test_other_split_and_trial(message):
    table = read_helm(RECORDED / "europe", split="valid", trial=1)
    assert table["item"].tolist() == ["capitals/europe/id2"]
    said = message(read_helm, RECORDED / "europe", split="train")
    assert said.endswith("no instance of the split 'train'; there are ['test', 'valid']")
    said = message(read_helm, RECORDED / "europe", trial=2)
    assert said.endswith("of the train trial 2; there are the trials [0, 1]")


def test_positions_count_over_the_subscenarios():
    table = read_helm(RECORDED, ids="position")
    assert table["item"].tolist() == [f"capitals/{i:05d}" for i in range(5)]


def test_display_predictions(tmp_path):
    folder = tmp_path / "europe"
    shutil.copytree(RECORDED / "europe", folder)
    (folder / "per_instance_stats.json.gz").unlink()
    expected = read_helm(RECORDED / "europe")
    assert read_helm(folder).equals(expected)
    assert read_helm(folder / "display_predictions.json").equals(expected)


def test_name_of_the_run_alone(run):
    run("math:subject=algebra,level=1,use_official_examples=False,model=openai_gpt-4_x",
        [entry("id1", math_equiv_chain_of_thought=1.0, exact_match=0.0)])  # fmt: skip
    run("gsm:model=openai_gpt-4_x,stop=none", [entry("id1", final_number_exact_match=1.0)])
    folder = run("commonsense:dataset=openbookqa,method=multiple_choice_joint,model=openai_gpt-4_x",
                 [entry("id1", exact_match=1.0)])  # fmt: skip
    table = read_helm(folder.parent)
    assert table[["model", "subscenario", "item", "score"]].fillna("").values.tolist() == [
        ["openai/gpt-4_x", "openbookqa", "commonsense/openbookqa/id1", 1.0],
        ["openai/gpt-4_x", "", "gsm/id1", 1.0],
        ["openai/gpt-4_x", "algebra,1", "math/algebra,1/id1", 1.0],
    ]
    assert provenance(table)["suite"].tolist() == ["v1"] * 3
    metrics = ["exact_match", "final_number_exact_match", "math_equiv_chain_of_thought"]
    assert provenance(table)["metric"].tolist() == metrics


def test_model_by_the_scenario_state(run):
    state = {"adapter_spec": {"model": "org/x", "max_train_instances": 5}}
    folder = run("gsm", [entry("id1", exact_match=1)], scenario_state=state)
    table = read_helm(folder)
    assert table["model"].tolist() == ["org/x"] and provenance(table)["shots"].tolist() == [5]


def test_a_name_without_colon(run):
    table = read_helm(run("gsm,stop=x,model=a_b", [entry("id1", exact_match=1)]))
    assert table[["model", "item"]].values.tolist() == [["a/b", "gsm/id1"]]


@pytest.mark.parametrize(
    ("scenario", "metrics", "expected"),
    [
        ("med_qa", {"exact_match": 0, "quasi_exact_match": 1}, "quasi_exact_match"),
        ("mmlu", {"exact_match": 0, "quasi_exact_match": 1}, "exact_match"),
        ("narrative_qa", {"exact_match": 0, "f1_score": 0.5}, "f1_score"),
        ("ours", {"num_bytes": 5, "quasi_exact_match": 1}, "quasi_exact_match"),
        ("ours", {"taste": 1}, "taste"),
    ],
)
def test_main_metric(run, scenario, metrics, expected):
    table = read_helm(run(f"{scenario}:model=a_b", [entry("id1", **metrics)]))
    assert provenance(table)["metric"].item() == expected
    assert table["score"].item() == metrics[expected]


def test_metric_asked_for(run, message):
    folder = run("gsm:model=a_b", [entry("id1", speed=2.0, taste=1.0)])
    path = folder / "per_instance_stats.json"
    assert read_helm(folder, metric="taste")["score"].tolist() == [1.0]
    assert read_helm(folder, metric={"gsm": "speed"})["score"].tolist() == [2.0]
    assert message(read_helm, folder) == (
        f"{path}, entry 1: no metric known as a score, give metric=; there are ['speed', 'taste']"
    )
    assert message(read_helm, folder, metric="f1") == (
        f"{path}, entry 1: no metric 'f1'; there are ['speed', 'taste']"
    )
    assert message(read_helm, folder, metric={"x": "f1"}) == (
        "metric names 'x', but there are only: ['gsm']"
    )


def test_splits_by_instances_file(run):
    instances = [
        {"id": "id1", "split": "valid"},
        {"id": "id2", "split": "test"},
        {"id": "id2", "split": "train", "perturbation": {"name": "x"}},
    ]
    folder = run(
        "gsm:model=a_b",
        [
            {"instance_id": "id1", "train_trial_index": 0, "stats": {"exact_match": 1.0}},
            {"instance_id": "id2", "train_trial_index": 0, "stats": {"exact_match": 0.0}},
        ],
        file="display_predictions.json",
        instances=instances,
    )
    assert read_helm(folder)["item"].tolist() == ["gsm/id2"]


def test_only_valid_instances(run, message):
    folder = run(
        "natural_qa:mode=closedbook,model=a_b", [entry("id1", split="valid", f1_score=0.5)]
    )
    assert read_helm(folder)["score"].tolist() == [0.5]
    folder = run("gsm:model=a_c", [entry("id1", split="train", f1_score=0.5)])
    assert message(read_helm, folder).endswith(
        "no instance of the split test or valid; there are ['train']"
    )


def test_stats_on_perturbed_instances_are_not_taken(run):
    each = entry("id1", exact_match=1.0)
    worst = {"name": "exact_match", "perturbation": {"name": "robustness"}}
    each["stats"].append({"name": worst, "count": 1, "mean": 0.0})
    assert read_helm(run("gsm:model=a_b", [each]))["score"].tolist() == [1.0]


def test_missing_scores(run):
    empty = {"name": {"name": "exact_match"}, "count": 0, "sum": 0}
    whole = {"name": {"name": "exact_match"}, "count": 2, "sum": 1}
    folder = run(
        "gsm:model=a_b",
        [{"instance_id": "id1", "stats": [empty]}, {"instance_id": "id2", "stats": [whole]}],
    )
    table = read_helm(folder)
    assert table["score"].isna().tolist() == [True, False] and table["score"][1] == 0.5
    assert "0 absent and 1 unscored" in pivot(table).report()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (
            [entry("id1", exact_match=1), entry("id1", exact_match=1)],
            "entry 2: the instance 'id1' a second time",
        ),
        (
            [entry("id1", exact_match=1), entry("id2", f1_score=1)],
            "entry 2: no metric 'exact_match'; there are ['f1_score']",
        ),
        (
            [entry("id1", exact_match="x")],
            "entry 1: the metric 'exact_match' is 'x', which is not a finite number",
        ),
        (
            [{"instance_id": "id1", "train_trial_index": "0"}],
            "entry 1: train_trial_index is '0', not a whole number",
        ),
        ([{"stats": []}], "entry 1: no instance_id; the entry has ['stats']"),
        ([{"instance_id": "id1", "stats": [{}]}], "entry 1: a metric without a name"),
        ([{"instance_id": "id1"}], "entry 1: a metric without a name"),
        ([3], "entry 1: expected a JSON object, got a number"),
    ],
)
def test_bad_entries(run, entries, said, message):
    folder = run("gsm:model=a_b", entries)
    assert message(read_helm, folder) == f"{folder / 'per_instance_stats.json'}, {said}"


def test_bad_files(run, tmp_path, message):
    folder = run("gsm:model=a_b", [entry("id1", exact_match=1)])
    path = folder / "per_instance_stats.json"
    text = path.read_text()
    path.write_text(text[:-20])
    assert message(read_helm, folder).startswith(f"{path}, line 1: not JSON: ")
    path.write_text("{}")
    assert message(read_helm, folder) == f"{path}: expected a JSON list, got an object"
    path.write_text("")
    assert message(read_helm, folder) == f"{path}: the file is empty"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.replace(",", ",\r\n").encode()))
    assert len(read_helm(folder)) == 1
    (folder / "run_spec.json").write_text("[]")
    assert message(read_helm, folder) == f"{folder / 'run_spec.json'}: expected a JSON object"
    (tmp_path / "empty").mkdir()
    assert message(read_helm, tmp_path / "empty") == f"{tmp_path / 'empty'}: the folder is empty"


def test_runs_without_scores_are_reported(run, message):
    folder = run("gsm:model=a_b", {}, file="run_spec.json")
    assert message(read_helm, folder).startswith("no scored run of HELM among ")
    run("mmlu:subject=anatomy,model=a_b", [entry("id1", exact_match=1)])
    dropped = left_out(read_helm(folder.parent))
    assert dropped["file"].tolist() == [str(folder)]
    assert dropped["what"].str.startswith("a run without scores").all()


def test_a_run_without_model(run, message):
    folder = run("gsm", [entry("id1", exact_match=1)])
    assert message(read_helm, folder) == (
        f"{folder}: neither the name of the run nor a run_spec.json tells a model"
    )


def test_the_same_instances_twice(run, message):
    one = run("mmlu:subject=anatomy,method=a,model=a_b", [entry("id1", exact_match=1)])
    two = run("mmlu:subject=anatomy,method=b,model=a_b", [entry("id1", exact_match=1)])
    assert message(read_helm, one.parent) == (
        f"{two}: the model 'a/b' on the same instances as {one}; read the runs of one suite and "
        "one method at a time"
    )


def test_positions_need_the_same_instances(run, message):
    name = "mmlu:subject={},model={}".format
    folder = run(name("a", "o_x"), [entry("id1", exact_match=1), entry("id2", exact_match=1)])
    run(name("b", "o_x"), [entry("id1", exact_match=1)])
    run(name("a", "o_y"), [entry("id1", exact_match=1), entry("id2", exact_match=0)])
    assert message(read_helm, folder.parent, ids="position") == (
        "ids=\"position\" counts over all of mmlu, but the model 'o/y' has no run of 'b'; take "
        'ids="instance"'
    )
    run(name("b", "o_y"), [entry("id1", exact_match=1)])
    table = read_helm(folder.parent, ids="position")
    expected = ["mmlu/00000", "mmlu/00001", "mmlu/00002"]
    assert pivot(table).responses.columns.tolist() == expected
    run(name("b", "o_y"), [entry("id7", exact_match=1)])
    assert "needs the same instances in every run" in message(
        read_helm, folder.parent, ids="position"
    )
    assert message(read_helm, folder, ids="x").startswith("ids must be")


def test_one_name(run, message):
    folder = run("gsm:model=a_b", [entry("id1", exact_match=1)])
    assert read_helm(folder, model="ours")["model"].tolist() == ["ours"]
    run("gsm:model=a_c", [entry("id1", exact_match=1)])
    assert message(read_helm, folder.parent, model="ours") == (
        "model='ours' is one name, but there are 2 models: a/b, a/c"
    )
