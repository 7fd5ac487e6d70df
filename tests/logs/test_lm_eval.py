"""Sample logs of lm-evaluation-harness: recorded ones, real ones, broken ones."""

import gzip
import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

from sklearn_irt.logs import left_out, pivot, provenance, read_lm_eval

FIXTURES = Path(__file__).parent / "fixtures"
NEW, OLD = FIXTURES / "lm_eval", FIXTURES / "lm_eval_old"
TINY = ["tinyMMLU", "tinyArc", "tinyHellaswag", "tinyGSM8k", "tinyTruthfulQA", "tinyWinogrande"]


def line(doc_id, **values):
    return json.dumps(
        {"doc_id": doc_id, "doc": {}, "resps": [["x"]], "filtered_resps": ["x"]} | values
    )


@pytest.fixture
def log(tmp_path):
    """Writes a sample log and returns its path."""

    def write(*lines, task="arc", folder="our__model", date="2025-01-31T12-00-00.5"):
        path = tmp_path / folder / f"samples_{task}_{date}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{each}\n" for each in lines))
        return path

    return write


def test_folder_with_models_and_dates():
    table = read_lm_eval(NEW, filter="strict-match")
    assert table.columns.tolist() == ["model", "scenario", "subscenario", "item", "score"]
    sizes = table.groupby(["model", "scenario"], sort=False).size().to_dict()
    assert sizes == {
        ("our-org/first", "capitals"): 7,  # the later run of capitals_choice has three documents
        ("our-org/first", "capitals_text"): 4,
        ("our-org/second", "capitals"): 4,
        ("our-org/second", "capitals_text"): 4,
    }
    origin = provenance(table)
    assert set(origin["harness"]) == {"lm-evaluation-harness"} and set(origin["version"]) == {
        "0.4.13"
    }
    assert origin["metric"].tolist() == [
        "acc_norm",
        "acc",
        "exact_match",
        "acc_norm",
        "exact_match",
    ]
    assert origin["shots"].tolist() == [0, 1, 0, 0, 0]
    assert origin["date"][0] == "2026-11-29T22-43-13.331733"
    dropped = left_out(table)
    assert dropped["what"].tolist() == [
        "an earlier run of capitals_choice, of 2026-11-29T22-40-12.154618",
        "answers by the filter 'flexible-extract'",
        "answers by the filter 'flexible-extract'",
    ]
    assert dropped["count"].tolist() == [1, 4, 4]


def test_scores_are_those_of_the_results_file():
    table = read_lm_eval(
        NEW, filter="strict-match", metric={"capitals_choice": "acc"}, latest=False
    )
    means = (
        table.assign(task=table["item"].str.split("/").str[0])
        .groupby(["model", "task"])["score"]
        .mean()
    )
    for folder, date in (
        ("our-org__first", "2026-11-29T22-40-12.154618"),
        ("our-org__first", "2026-11-29T22-43-13.331733"),
        ("our-org__second", "2026-11-29T22-41-51.771203"),
    ):
        results = json.loads((NEW / folder / f"results_{date}.json").read_text())
        for task in results["configs"]:
            earlier = task == "capitals_choice" and "T22-40-12" in date
            model = results["model_name"] + (f"@{date}" if earlier else "")
            metric = "exact_match,strict-match" if task == "capitals_text" else "acc,none"
            assert means[model, task] == pytest.approx(results["results"][task][metric])


def test_groups():
    table = read_lm_eval(NEW, filter="strict-match")
    choice = table[table["item"].str.startswith("capitals_choice/")]
    assert set(choice["scenario"]) == {"capitals"} and set(choice["subscenario"]) == {"choice"}
    table = read_lm_eval(NEW, filter="strict-match", groups=False)
    assert set(table["scenario"]) == {"capitals_choice", "capitals_hard", "capitals_text"}
    assert table["subscenario"].isna().all()


def test_the_outermost_group_scored_by_one_metric_is_the_scenario(log):
    path = log(line(0, acc=1.0), task="mmlu_anatomy")
    results = {
        "results": {},
        "configs": {"mmlu_anatomy": {}},
        "model_name": "m",
        "groups": {
            "mmlu_stem": {"acc,none": 1, "acc_stderr,none": 0, "alias": "x"},
            "mmlu": {"acc,none": 1, "acc_stderr,none": 0},
            "leaderboard": {"acc,none": 1, "exact_match,none": 1},
        },
        "group_subtasks": {
            "leaderboard": ["mmlu"],
            "mmlu": ["mmlu_stem"],
            "mmlu_stem": ["mmlu_anatomy"],
        },
    }
    (path.parent / "results_2025-01-31T12-00-00.5.json").write_text(json.dumps(results))
    table = read_lm_eval(path)
    assert table[["scenario", "subscenario", "item"]].values.tolist() == [
        ["mmlu", "anatomy", "mmlu_anatomy/00000"]
    ]


@pytest.mark.parametrize("source", [NEW, OLD])
@pytest.mark.parametrize(("name", "right"), [("strict-match", 0), ("flexible-extract", 2)])
def test_one_answer_per_item_by_the_filter_asked_for(source, name, right):
    table = read_lm_eval(source, filter=name)
    text = table[
        table["item"].str.startswith("capitals_text/") & (table["model"] == "our-org/first")
    ]
    assert text["item"].tolist() == [f"capitals_text/{i:05d}" for i in range(4)]
    assert text["score"].tolist() == [float(i == right) for i in range(4)]


@pytest.mark.parametrize("source", [NEW, OLD])
def test_filters_are_listed(source, message):
    listed = "give filter= one of ['strict-match', 'flexible-extract']"
    said = message(read_lm_eval, source)
    assert said.endswith(f"every document is logged once for each of several filters, {listed}")
    said = message(read_lm_eval, source, filter={"capitals_text": "strict"})
    assert said.endswith("no filter 'strict'; there are ['strict-match', 'flexible-extract']")


def test_a_filter_that_is_not_there(log, message):
    path = log(line(0, acc=1.0, filter="remove_whitespace"))
    assert message(read_lm_eval, path, filter="strict-match") == (
        f"{path}: no filter 'strict-match'; there are ['remove_whitespace']"
    )


def test_documents_without_an_answer_by_the_filter_are_reported(log):
    path = log(
        line(0, acc=1.0, filter="a"), line(1, acc=1.0, filter="a"), line(0, acc=1.0, filter="b")
    )
    table = read_lm_eval(path, filter="b")
    assert table["item"].tolist() == ["arc/00000"]
    assert left_out(table)[["what", "count"]].values.tolist() == [
        ["answers by the filter 'a'", 2],
        ["documents that have no answer by the filter 'b'", 1],
    ]


def test_old_layout():
    table = read_lm_eval(OLD, filter="strict-match")
    assert set(table["model"]) == {"our-org/first"}
    assert table["item"].tolist()[:4] == [f"capitals_choice/{i:05d}" for i in range(4)]
    assert table["score"].tolist()[:4] == [1.0, 1.0, 0.0, 1.0]


def test_old_layout_without_results(tmp_path, message):
    name = "pretrained__our-org__first_capitals_choice.jsonl"
    path = Path(shutil.copy(OLD / name, tmp_path / name))
    assert message(read_lm_eval, path) == (
        f"{path}: the name of the file does not tell the task, and no results file beside it does; "
        "give task="
    )
    table = read_lm_eval(path, task="capitals_choice", model="ours")
    assert set(table["model"]) == {"ours"} and len(table) == 4


def test_two_filters_that_nothing_names(tmp_path, message):
    name = "pretrained__our-org__first_capitals_text.jsonl"
    path = Path(shutil.copy(OLD / name, tmp_path / name))
    assert message(read_lm_eval, path, task="capitals_text", model="ours") == (
        f"{path}, entry 5: doc_id 0 a second time, after {path}, entry 1; does the file hold two "
        "models or runs, or answers by filters that it does not name?"
    )


def test_all_runs():
    table = read_lm_eval(NEW, filter="strict-match", latest=False)
    assert table["model"].unique().tolist() == [
        "our-org/first@2026-11-29T22-40-12.154618",
        "our-org/first",
        "our-org/second",
    ]
    last = table[~table["model"].str.contains("@")].reset_index(drop=True)
    assert last.equals(read_lm_eval(NEW, filter="strict-match"))
    assert not pivot(table).dropped["what"].str.contains("earlier").any()


def test_two_files_of_one_date(log, message):
    first, second = log(line(0, acc=1)), log(line(0, acc=0), folder="other/our__model")
    assert message(read_lm_eval, [first, second]) == (
        f"{second}: the task 'arc' of the model 'our/model' as in {first}, both of "
        "2025-01-31T12-00-00.5; give one of the two files"
    )


def test_real_logs(shared):
    folder = shared / "data" / "lm_eval_samples"
    table = read_lm_eval(folder, model="EleutherAI/pythia-14m")
    sizes = table.groupby("scenario").size().to_dict()
    assert sizes == {"metabench_truthfulqa_secondary": 136, "metabench_winogrande_permute": 133}
    assert table["item"].is_unique and set(table["score"]) == {0.0, 1.0}
    assert provenance(table)["metric"].tolist() == ["acc", "acc"]
    for path in folder.iterdir():
        lines = [json.loads(each) for each in path.read_text().splitlines()]
        with pytest.warns(UserWarning, match="is called 'lm_eval_samples' after the folder"):
            each = read_lm_eval(path)
        assert each["score"].tolist() == [one["acc"] for one in lines]


@pytest.mark.parametrize("task", TINY)
def test_tiny_benchmarks(log, task):
    path = log(*(line(i, acc_norm=i % 2) for i in range(100)), task=task)
    table = read_lm_eval(path)
    assert table["item"].tolist() == [f"{task}/{i:05d}" for i in range(100)]
    assert set(table["scenario"]) == {task}


def test_ids_are_those_of_the_bundled_benchmarks(log):
    from benchmarks_registry import load_benchmark

    tiny = load_benchmark("arc-challenge")
    path = log(*(line(i, acc=0, acc_norm=1) for i in range(1172)), task="arc_challenge")
    table = read_lm_eval(path)
    assert table["item"].tolist() == tiny.items["item"].tolist()
    figures = tiny.estimate(table, metric=provenance(table)["metric"].item())
    assert figures["answered"].tolist() == [1172]


def test_rename(log, message):
    path = log(
        line(7, prompt_level_strict_acc=True, inst_level_strict_acc=[True]),
        task="leaderboard_ifeval",
    )
    table = read_lm_eval(path, rename={"leaderboard_ifeval": "ifeval"})
    assert table[["scenario", "item"]].values.tolist() == [["ifeval", "ifeval/00007"]]
    assert message(read_lm_eval, path, rename={"ifeval": "x"}) == (
        "rename names 'ifeval', but there are only: ['leaderboard_ifeval']"
    )


def test_metrics(log, message):
    path = log(line(0, acc=0, acc_norm=1.0, metrics=["acc", "acc_norm"], speed=3))
    assert read_lm_eval(path)["score"].tolist() == [1.0]
    assert read_lm_eval(path, metric="acc")["score"].tolist() == [0.0]
    assert message(read_lm_eval, path, metric="f1") == (
        f"{path}, line 1: no metric 'f1'; there are ['acc', 'acc_norm']"
    )
    path = log(line(0, bleu_max=3.0, rouge1_max=4.0))
    assert message(read_lm_eval, path) == (
        f"{path}, line 1: several metrics, give metric= one of ['bleu_max', 'rouge1_max']"
    )


def test_lower_is_better(log):
    path = log(line(0, word_perplexity=31.5))
    higher = {"arc": {"word_perplexity": False}}
    results = {"results": {}, "configs": {"arc": {}}, "higher_is_better": higher}
    (path.parent / "results_2025-01-31T12-00-00.5.json").write_text(json.dumps(results))
    with pytest.warns(UserWarning, match="of the metric 'word_perplexity' lower values are better"):
        read_lm_eval(path)


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ("pretrained=a/b,dtype=float16", "a/b"),
        ("base_url=http://x,model=gpt-x", "gpt-x"),
        ({"pretrained": "a/b"}, "a/b"),
        ("", "our/model"),
    ],
)
def test_model_by_the_arguments_or_the_folder(log, arguments, model):
    path = log(line(0, acc=1))
    results = {"results": {}, "configs": {"arc": {}}, "config": {"model_args": arguments}}
    (path.parent / "results_2025-01-31T12-00-00.5.json").write_text(json.dumps(results))
    assert read_lm_eval(path)["model"].tolist() == [model]


def test_results_of_several_models(log, message):
    path = log(line(0, acc=1))
    for model in "ab":
        results = {"results": {}, "configs": {"arc": {}}, "model_name": model}
        (path.parent / f"results_{model}.json").write_text(json.dumps(results))
    said = message(read_lm_eval, path)
    assert said == (
        f"{path}: the results files beside it are of several models (a, b) and none has its date; "
        "give model="
    )
    path = path.rename(path.with_name("samples_arc_2025-02-01T12-00-00.jsonl"))
    assert read_lm_eval(path, model="our/model")["model"].tolist() == ["our/model"]


def test_results_of_another_run_tell_the_model_only(log):
    path = log(line(0, acc=1), folder="plain")
    content = {"results": {}, "configs": {"arc": {}}, "model_name": "m", "n-shot": {"arc": 5}}
    results = path.parent / "results_2025-02-01T12-00-00.json"
    results.write_text(json.dumps(content))
    table = read_lm_eval(path)
    assert table["model"].tolist() == ["m"] and provenance(table)["shots"].tolist() == [None]
    results.rename(path.parent / "results_2025-01-31T12-00-00.5.json")
    assert provenance(read_lm_eval(path))["shots"].tolist() == [5]


@pytest.mark.parametrize("value", [None, 3, "x", [1], {"g": None}, {"g": 3}, {"g": ["arc", None]}])
@pytest.mark.parametrize(
    "key", ["groups", "group_subtasks", "n-shot", "higher_is_better", "configs"]
)
def test_odd_results_files_do_no_harm(log, key, value):
    path = log(line(0, acc=1))
    content = {"results": {"arc": {}}, "configs": {}, "groups": {"g": {"acc,none": 1}}} | {
        key: value
    }
    (path.parent / "results_2025-01-31T12-00-00.5.json").write_text(json.dumps(content))
    assert read_lm_eval(path)["item"].tolist() == ["arc/00000"]


def test_a_log_without_date(log):
    path = log(line(0, acc=1))
    path = path.rename(path.with_name("samples_arc.jsonl"))
    table = read_lm_eval(path)
    assert table["item"].tolist() == ["arc/00000"]
    assert provenance(table)["date"].tolist() == [None]


def test_broken_results_file(log, message):
    path = log(line(0, acc=1))
    results = path.parent / "results_2025-01-31T12-00-00.5.json"
    results.write_text('{"results": {')
    assert message(read_lm_eval, path).startswith(f"{results}, line 1: not JSON: ")
    results.rename(path.parent / "notes.json")
    assert read_lm_eval(path)["model"].tolist() == ["our/model"]


def test_one_name_for_several_models(message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_lm_eval(NEW / "our-org__first", filter="strict-match", model="mine")
    assert set(table["model"]) == {"mine"}
    assert message(read_lm_eval, NEW, filter="strict-match", model="mine") == (
        "model='mine' is one name, but there are 2 models: our-org/first, our-org/second"
    )


def test_nan_and_null_scores_are_kept_and_reported(log):
    path = log(line(0, acc=1.0), line(1, acc=float("nan")), line(2, acc=None))
    table = read_lm_eval(path)
    np.testing.assert_array_equal(table["score"], [1.0, np.nan, np.nan])
    assert provenance(table)["missing"].tolist() == [2]
    assert "missing: our/model in arc: 0 absent and 2 unscored of 3 items" in pivot(table).report()


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([line(0, acc=1), line(1, acc=1)[:-9]], "line 2: not JSON: *; is the file cut off?"),
        ([line(0, acc=1), line(1)], "line 2: no metric 'acc'; the line has ['doc', *]"),
        ([line(0, acc="yes")], "line 1: no metric that is a number; the line has ['acc', *]"),
        ([line(0, metrics=["bypass"], bypass=999)], "line 1: no metric that is a number; *]"),
        ([line(0, acc=1), line(1, acc="yes")], "line 2: the metric 'acc' is 'yes', which *"),
        (
            [line(0, acc=float("inf"))],
            "line 1: the metric 'acc' is inf, which is not a finite number",
        ),
        (
            [line(0, acc=1), line(1, acc=1), line(0, acc=0)],
            "line 3: doc_id 0 a second time, after *",
        ),
        (['{"doc": 1, "resps": [], "acc": 1}'], "line 1: no doc_id; the line has ['acc', *]"),
        (["hello"], "line 1: not JSON: *"),
    ],
)
def test_bad_lines(log, lines, said, message):
    path = log(*lines)
    start, _, end = said.partition("*")
    found = message(read_lm_eval, path)
    assert found.startswith(f"{path}, {start}") and found.endswith(end), found


def test_empty_file_and_folder(log, tmp_path, message):
    path = log()
    assert message(read_lm_eval, path) == f"{path}: the file is empty"
    (tmp_path / "empty").mkdir()
    assert message(read_lm_eval, tmp_path / "empty") == f"{tmp_path / 'empty'}: the folder is empty"
    with pytest.raises(FileNotFoundError):
        read_lm_eval(tmp_path / "absent")


def test_no_sample_log(tmp_path, message):
    (tmp_path / "notes.txt").write_text("hello")
    assert message(read_lm_eval, tmp_path) == (
        f"no sample log of lm-evaluation-harness among {tmp_path / 'notes.txt'}: expected "
        "samples_<task>_<date>.jsonl, as written with --log_samples"
    )


def test_gzip_crlf_and_byte_order_mark(log):
    path = log(line(0, acc=1), line(1, acc=0))
    expected = read_lm_eval(path)
    text = path.read_text()
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert read_lm_eval(path).equals(expected)
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert read_lm_eval(packed).equals(expected)


def test_other_files_are_reported(log):
    path = log(line(0, acc=1))
    (path.parent / "other.jsonl").write_text('{"a": 1}\n')
    table = read_lm_eval(path.parent)
    assert left_out(table)["what"].tolist() == [
        "a file that is no sample log of lm-evaluation-harness"
    ]
