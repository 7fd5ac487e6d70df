"""Logs of Inspect: recorded ones, and ones made here."""

import importlib.util
import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sklearn_irt.logs import left_out, pivot, provenance, read_inspect

FIXTURES = Path(__file__).parent / "fixtures"
OLD, NEW = FIXTURES / "inspect_old", FIXTURES / "inspect"
READS_ZSTANDARD = sys.version_info >= (3, 14) or importlib.util.find_spec("zstandard")
needs_zstandard = pytest.mark.skipif(not READS_ZSTANDARD, reason="needs zstandard")
SCORERS = {"capitals_twice": "includes"}
GRADES = {"fr": 1.0, "it": 0.0, "es": 0.5, "de": 0.0}


def sample(name, value="C", epoch=1, scorer="match", **others):
    return {"id": name, "epoch": epoch, "scores": {scorer: {"value": value}}} | others


def content(*samples, status="success", created="2025-01-31T12:00:00+00:00", **spec):
    spec = {"task": "ours", "task_id": "x", "model": "our/model", "created": created} | spec
    return {"version": 2, "status": status, "eval": spec, "samples": list(samples)}


@pytest.fixture
def log(tmp_path):
    """Writes a log as .json and returns its path."""

    def write(*samples, name="log.json", **others):
        path = tmp_path / name
        path.write_text(json.dumps(content(*samples, **others)))
        return path

    return write


def archive(path, members, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, member in members.items():
            file.writestr(name, json.dumps(member))
    return path


def scores(table, task):
    rows = table[table["scenario"] == task]
    return {
        item.split("/")[1]: score for item, score in zip(rows["item"], rows["score"], strict=True)
    }


@pytest.mark.parametrize("folder", [OLD, pytest.param(NEW, marks=needs_zstandard)])
def test_recorded_logs(folder):
    table = read_inspect(
        [path for path in folder.iterdir() if path.suffix == ".eval"], scorer=SCORERS
    )
    assert set(table["model"]) == {"mockllm/model"}
    assert scores(table, "capitals") == {"fr": 1, "it": 0, "es": 1, "de": 1}
    assert scores(table, "capitals_partial") == GRADES
    assert scores(table, "capitals_twice") == {"fr": 1, "it": 0, "es": 1, "de": 1}
    origin = provenance(table).set_index("scenario")
    assert set(origin["version"]) == {"0.3.100" if folder == OLD else "0.3.285"}
    assert origin["metric"].to_dict() == {
        "capitals": "includes",
        "capitals_partial": "partial",
        "capitals_twice": "includes",
    }
    assert origin["epochs"].to_dict() == {"capitals": 1, "capitals_partial": 1, "capitals_twice": 2}


@needs_zstandard
def test_the_last_of_two_runs():
    table = read_inspect(NEW, scorer=SCORERS)
    assert scores(table, "capitals") == {"fr": 1, "it": 0}  # the later one has --limit 2
    assert left_out(table)["what"].tolist() == [
        "an earlier run of capitals, of 2026-11-29T22:38:11+00:00"
    ]
    table = read_inspect(NEW, scorer=SCORERS, latest=False)
    earlier = table[table["model"] == "mockllm/model@2026-11-29T22:38:11+00:00"]
    assert scores(earlier, "capitals") == {"fr": 1, "it": 0, "es": 1, "de": 1}
    assert len(table) == 14 and len(left_out(table)) == 0


def test_recorded_json_log():
    path = next(NEW.glob("*.json"))
    table = read_inspect(path)
    assert scores(table, "capitals") == {"fr": 1, "it": 0}
    assert provenance(table)["version"].item() == "0.3.285"


def test_without_zstandard(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    if sys.version_info >= (3, 14):
        pytest.skip("this Python reads Zstandard")
    path = next(NEW.glob("*.eval"))
    with pytest.raises(ImportError) as error:
        read_inspect(path)
    assert str(error.value).startswith(
        f'{path} is compressed with Zstandard: install the package zstandard (pip install "sklearn'
    )


@needs_zstandard
def test_damaged_zstandard(tmp_path, message):
    path = tmp_path / "log.eval"
    data = bytearray(next(NEW.glob("*capitals-partial*")).read_bytes())
    with zipfile.ZipFile(next(NEW.glob("*capitals-partial*"))) as whole:
        info = whole.getinfo("summaries.json")
    for i in range(60, 80):
        data[info.header_offset + i] ^= 255
    path.write_bytes(data)
    said = message(read_inspect, path)
    assert said.startswith(f"{path}") and "summaries.json is damaged" in said


def test_scorers(message):
    path = next(OLD.glob("*twice*"))
    listed = "['includes', 'length']"
    assert message(read_inspect, path) == f"{path}: several scorers, give scorer= one of {listed}"
    said = message(read_inspect, path, scorer="x")
    assert said == f"{path}: no scorer 'x'; there are {listed}"
    assert message(read_inspect, path, scorer={"x": "length"}) == (
        "scorer names 'x', but there are only: ['capitals_twice']"
    )
    table = read_inspect(path, scorer="length")
    assert scores(table, "capitals_twice")["fr"] == pytest.approx(0.05)


def test_epochs(log, message):
    path = log(sample("a", "C", 1), sample("b", "C", 1), sample("a", "I", 2), sample("b", None, 2))
    table = read_inspect(path)
    assert scores(table, "ours") == {"a": 0.5, "b": 1.0}
    assert left_out(table)[["what", "count"]].values.tolist() == [
        ["epochs without a score, of samples that have one in others", 1]
    ]
    assert message(read_inspect, path, epochs="error") == (
        f'{path}: samples were asked up to 2 times; take epochs="mean"'
    )
    assert message(read_inspect, path, epochs="max").startswith("epochs must be")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("C", 1),
        ("I", 0),
        ("P", 0.5),
        ("N", 0),
        (True, 1),
        (0.25, 0.25),
        (7, 7),
        ("0.5", 0.5),
        ("yes", 1),
        ("No", 0),
        ("TRUE", 1),
        (None, np.nan),
        (float("nan"), np.nan),
    ],
)
def test_values(log, value, expected):
    table = read_inspect(log(sample("a", value)))
    np.testing.assert_array_equal(table["score"], [expected])


def test_several_values_of_a_scorer(log, message):
    path = log(sample("a", {"fluent": 1, "right": "I"}))
    assert message(read_inspect, path) == (
        f"{path}: several scorers, give scorer= one of ['match:fluent', 'match:right']"
    )
    assert read_inspect(path, scorer="match:right")["score"].tolist() == [0.0]


def test_failed_samples_are_missing(log):
    path = log(sample("a"), {"id": "b", "epoch": 1, "error": "boom"}, {"id": 3, "scores": {}})
    table = read_inspect(path)
    np.testing.assert_array_equal(table["score"], [1.0, np.nan, np.nan])
    assert table["item"].tolist() == ["ours/a", "ours/b", "ours/3"]
    assert pivot(table).missing.values.tolist() == [["our/model", "ours", 3, 2, 0]]


def test_unfinished_log(log, tmp_path):
    with pytest.warns(UserWarning, match=r"did not end well \(status 'cancelled'\); its 1 samples"):
        assert len(read_inspect(log(sample("a"), status="cancelled"))) == 1
    start = {key: content()[key] for key in ("version", "eval")}
    journal = {"_journal/start.json": start} | {
        f"_journal/summaries/{i}.json": [sample(name, value)]
        for i, (name, value) in enumerate(
            [("a", "I"), ("b", "C"), ("a", "C")] + [("c", "C")] * 8, 1
        )
    }
    path = archive(tmp_path / "log.eval", journal)
    with pytest.warns(UserWarning, match="status 'started'"):
        table = read_inspect(path)
    assert scores(table, "ours") == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("summaries", [{}, [1], "x"])
def test_summaries_that_are_none(tmp_path, summaries, message):
    header = {key: content()[key] for key in ("version", "status", "eval")}
    path = tmp_path / "log.eval"
    archive(path, {"header.json": header, "summaries.json": summaries})
    assert message(read_inspect, path) == f"{path}, summaries.json: expected a list of objects"


def test_archive_without_summaries(tmp_path):
    header = {key: content()[key] for key in ("version", "status", "eval")}
    members = {"header.json": header} | {
        f"samples/{name}_epoch_1.json": sample(name, value) for name, value in GRADES.items()
    }
    table = read_inspect(archive(tmp_path / "log.eval", members))
    assert scores(table, "ours") == GRADES


def test_latest_by_the_clock_of_the_world(log):
    log(sample("a", "C"), name="a.json", created="2025-01-31T12:00:00+02:00")
    path = log(sample("a", "I"), name="b.json", created="2025-01-31T11:00:00Z")
    assert read_inspect(path.parent)["score"].tolist() == [0.0]


def test_rename_and_model(log):
    table = read_inspect(log(sample("a")), rename={"ours": "theirs"}, model="me")
    assert table[["model", "scenario", "item"]].values.tolist() == [["me", "theirs", "theirs/a"]]


@pytest.mark.parametrize(
    ("samples", "said"),
    [
        ([sample("a"), sample("a")], ", sample 2: the sample 'a' a second time in epoch 1"),
        (
            [sample("a", "X")],
            ", sample 1: the score by 'match' is 'X', which is neither a number nor one of "
            "C, I, P, N, yes, no, true, false",
        ),
        (
            [sample("a", [1, 2])],
            ", sample 1: the score by 'match' is [1, 2], which is not a finite number",
        ),
        (
            [sample("a", float("inf"))],
            ", sample 1: the score by 'match' is inf, which is not a finite number",
        ),
        ([{"scores": {}}], ", sample 1: no id"),
        ([sample("a", epoch=[1])], ", sample 1: epoch is [1], not a whole number"),
        ([{"id": 1, "scores": [1]}], ", sample 1: scores are not an object"),
        ([{"id": 1}], ": no sample has a score; the log's status is 'success'"),
        ([], ": the log has no samples; its status is 'success'"),
    ],
)
def test_bad_samples(log, samples, said, message):
    path = log(*samples)
    assert message(read_inspect, path) == f"{path}{said}"


def test_bad_files(tmp_path, message):
    path = tmp_path / "log.eval"
    whole = next(OLD.glob("*partial*")).read_bytes()
    for data in (b"", b"hello", whole[:-200]):
        path.write_bytes(data)
        assert message(read_inspect, path).startswith(f"{path}: not a zip archive")
    archive(path, {"other.json": {}})
    said = message(read_inspect, path)
    assert said == f"{path}: no log of Inspect: the archive has no header.json"
    path.unlink()
    path = tmp_path / "log.json"
    path.write_text('{"version": 2, "status": "success", "eval": {')
    assert message(read_inspect, path).startswith(f"{path}, line 1: not JSON: ")
    path.write_text("{}")
    said = message(read_inspect, path)
    assert said == f"{path}: no log of Inspect: it does not name its task and model"
    path.rename(tmp_path / "notes.txt")
    assert message(read_inspect, tmp_path).startswith("no log of Inspect among ")


def test_damaged_member(tmp_path, message):
    whole = next(OLD.glob("*partial*"))
    data = bytearray(whole.read_bytes())
    with zipfile.ZipFile(whole) as file:
        info = file.getinfo("summaries.json")
    for i in range(60, 80):
        data[info.header_offset + i] ^= 255
    path = tmp_path / "log.eval"
    path.write_bytes(data)
    said = message(read_inspect, path)
    assert said.startswith(f"{path}: summaries.json is damaged: ")


def test_other_files_are_reported(log):
    path = log(sample("a"))
    (path.parent / "other.json").write_text("{}")
    dropped = left_out(read_inspect(path.parent))
    assert dropped["what"].tolist() == ["a file that is no log of Inspect"]
