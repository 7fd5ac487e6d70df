"""Bad input: one line that says why, exit status 2, and nothing written."""

import gzip
import json
import os

import pytest

from benchmarks_registry.cli import main


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def refused(cli):
    """The one line that says why."""

    def call(*arguments):
        status, out, err = cli(*arguments)
        assert (status, out) == (2, ""), err
        last = err.splitlines()[-1]
        assert last.startswith("sklearn-irt: error: ") and err.count("error: ") == 1, err
        assert "Traceback" not in err
        return last.removeprefix("sklearn-irt: error: ")

    return call


def line(document, score=1.0, **others):
    return json.dumps({"doc_id": document, "resps": [], "acc_norm": score} | others)


@pytest.fixture
def log(tmp_path):
    """A log of arc_challenge with these bytes."""

    def write(*lines, end="\n", encoding="utf-8"):
        path = tmp_path / "our__model" / "samples_arc_challenge_2025-01-31T12-00-00.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(end.join([*lines, ""]).encode(encoding))
        return path

    return write


def test_missing_and_empty(refused, tmp_path):
    assert refused("estimate", "arc-challenge", tmp_path / "no") == (
        f"{tmp_path / 'no'}: there is no such file or folder"
    )
    (tmp_path / "empty").mkdir()
    assert "the folder is empty" in refused("estimate", "arc-challenge", tmp_path / "empty")
    (tmp_path / "nothing.csv").write_text("")
    assert "the file is empty" in refused("estimate", "arc-challenge", tmp_path / "nothing.csv")
    (tmp_path / "notes.txt").write_text("hello")
    assert "no log of HELM, AlpacaEval" in refused("estimate", "glue", tmp_path / "notes.txt")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("arc-chalenge", "arc-challenge"), ("tinyMMLUU", "tinyMMLU"), ("helmlite", "helm-lite")],
)
def test_unknown_benchmarks_suggest_near_names(refused, typed, meant):
    for command in (["show"], ["anchors"], ["fetch"], ["adaptive"]):
        assert f"did you mean {meant!r}?" in refused(*command, typed)


def test_a_file_that_is_no_benchmark(refused, tmp_path):
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no benchmark")
    assert str(tmp_path / "broken.npz") in refused("show", tmp_path / "broken.npz")
    assert "no-such.npz" in refused("anchors", tmp_path / "no-such.npz")


def test_logs_that_are_cut_or_mixed(refused, log):
    path = log(line(0), line(1)[:-4])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert "line 2: not JSON" in refused("estimate", "arc-challenge", path)
    assert "is the file cut off?" in refused("estimate", "arc-challenge", path)
    path = log(line(0), line(1), line(0, 0.0))
    assert "doc_id 0 a second time" in refused("estimate", "arc-challenge", path)
    path = log(*(line(i) for i in range(3)), *(line(i) for i in range(3)))
    assert "does the file hold two models or runs" in refused("estimate", "arc-challenge", path)
    path = log(json.dumps({"doc_id": 0, "resps": []}))
    assert "no metric 'acc_norm'" in refused("estimate", "arc-challenge", path).replace(
        "no metric that is a number", "no metric 'acc_norm'"
    )
    path = log(line(0), line(1, f1=2), json.dumps({"doc_id": 2, "resps": [], "f1": 1}))
    assert "line 3: no metric 'acc_norm'" in refused("estimate", "arc-challenge", path)
    path = log(line(0, "yes"))
    assert "line 1" in refused("estimate", "arc-challenge", path)
    path = log(line("\u00e4"), encoding="latin-1")
    path.write_bytes(b'{"doc_id": 0, "resps": ["\xe4"], "acc_norm": 1}\n')
    assert "line 1: not UTF-8 text" in refused("estimate", "arc-challenge", path)


def test_an_item_that_the_benchmark_lacks(refused, log, tmp_path):
    path = log(line(0), line(1172))
    assert refused("estimate", "arc-challenge", path).startswith(
        "arc-challenge has no item 'arc_challenge/01172', which the model 'our/model' answers"
    )
    (tmp_path / "answers.csv").write_text("model,q1,q2\nours,1,0\n")
    assert "has no item 'q1'" in refused("estimate", "arc-challenge", tmp_path / "answers.csv")


def test_tables_with_mistakes(refused, tmp_path):
    path = tmp_path / "answers.csv"
    for text, problem in (
        ("item,score\nrte/00000,1\nrte/00000,0\n", "line 3: the model 'answers' on the item"),
        ("model,item,score\na,rte/00000,1\na,rte/00000,0\n", "a second time, after line 2"),
        ("model,rte/00000\nours,high\n", "line 2: item 'rte/00000' is 'high'"),
        ("model,rte/00000,rte/00000\nours,1,1\n", "stands there twice"),
        (
            "model,rte/00000\nours,7\n",
            "response range [0, 1] that the file of glue sets",
        ),
        ("model,rte/00000\nours,inf\n", "not a finite number"),
    ):
        path.write_text(text)
        assert problem in refused("estimate", "glue", path)


def test_scores_that_are_nan_are_not_asked(cli, log):
    path = log(line(22), line(24, float("nan")), line(59, None))
    status, out, err = cli("estimate", "arc-challenge", path, "--json")
    assert status == 0
    assert json.loads(out)["estimates"][0]["answered"] == 1
    assert "answered 1 of the 100 anchors" in err


def test_line_ends_marks_and_gzip(cli, log):
    lines = [line(document) for document in range(100)]
    expected = cli("estimate", "arc-challenge", log(*lines))[:2]
    assert expected[0] == 0
    assert cli("estimate", "arc-challenge", log(*lines, end="\r\n"))[:2] == expected
    assert cli("estimate", "arc-challenge", log(*lines, encoding="utf-8-sig"))[:2] == expected
    path = log(*lines)
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    assert cli("estimate", "arc-challenge", path.parent)[:2] == expected


def test_places_that_cannot_be_written(refused, log, tmp_path, monkeypatch):
    path = log(*(line(i) for i in range(50)))
    away = tmp_path / "no" / "out.json"
    for command in (
        ["estimate", "arc-challenge", path, "-o", away],
        ["list", "-o", away],
        ["build", path, "-o", away],
        ["add-models", "arc-challenge", path, "-o", away],
        ["report", "arc-challenge", "-o", away],
        ["adaptive", "arc-challenge", "--answers", path, "--session", away],
        ["compare", path, "--table", away],
    ):
        assert "the folder" in refused(*command) and not away.parent.exists()
    assert "other than a file" in refused("list", "-o", tmp_path)
    assert "other than a file" in refused("list", "-o", os.devnull)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert "is not writable" in refused("list", "-o", tmp_path / "out.json")


def test_usage_errors_are_one_line(refused):
    assert refused("nope") == "No such command 'nope'; see sklearn-irt --help"
    assert "Missing argument 'NAME'" in refused("show")
    assert "see sklearn-irt estimate --help" in refused("estimate", "glue")
    assert "No such option" in refused("list", "--colour")
    assert "'yaml'" in refused("anchors", "glue", "--format", "yaml")
    assert "--metric is one value, or several TASK=METRIC" in refused(
        "estimate", "glue", "x", "--metric", "a", "--metric", "b"
    )
    assert "--rename is OLD=NEW" in refused("estimate", "glue", "x", "--rename", "a")
    assert "names 'a' twice" in refused(
        "estimate", "glue", "x", "--filter", "a=b", "--filter", "a=c"
    )
    assert "has no scenario 'sst3'" in refused("anchors", "glue", "--scenario", "sst3")
    assert "Missing option" in refused("build", "x")


def test_an_error_in_several_lines_is_one(refused, tmp_path):
    path = tmp_path / "a\nb\x1b[31m.csv"
    assert refused("estimate", "glue", path).endswith(
        "a b\\x1b[31m.csv: there is no such file or folder"
    )
