"""Which harness wrote a log; and the public names."""

import ast
import inspect
import json
import pickle
from pathlib import Path

import pytest

from sklearn_irt import logs
from sklearn_irt.logs import left_out, provenance, read_logs
from sklearn_irt.logs._recognise import recognise

FIXTURES = Path(__file__).parent / "fixtures"
OLD_LOG = "pretrained__our-org__first_capitals_text.jsonl"


@pytest.mark.parametrize(
    ("path", "harness"),
    [
        (FIXTURES / "lm_eval", "lm-evaluation-harness"),
        (FIXTURES / "lm_eval_old", "lm-evaluation-harness"),
        (FIXTURES / "lm_eval_old" / OLD_LOG, "lm-evaluation-harness"),
        (FIXTURES / "helm", "HELM"),
        (FIXTURES / "helm" / "asia" / "per_instance_stats.json.gz", "HELM"),
        (FIXTURES / "inspect", "Inspect"),
        (FIXTURES / "inspect_old", "Inspect"),
    ],
)
def test_recorded_logs(path, harness):
    assert recognise(path) == harness


def test_real_logs(shared):
    data = shared / "data"
    assert recognise(data / "lm_eval_samples") == "lm-evaluation-harness"
    assert recognise(data / "alpaca_eval_2" / "results") == "AlpacaEval"
    assert recognise(data / "alpaca_eval_2" / "win_probability.csv.gz") == "table"
    table = read_logs(data / "lm_eval_samples", model="ours")
    assert len(table) == 269


def test_options_are_passed_on():
    table = read_logs(FIXTURES / "lm_eval", filter="strict-match")
    assert len(table) == 19
    with pytest.raises(TypeError, match="scorer"):
        read_logs(FIXTURES / "lm_eval", scorer="x")


def test_several_paths(tmp_path):
    (tmp_path / "scores.csv").write_text("model,q1\nours,1\n")
    table = read_logs(
        [FIXTURES / "helm" / "asia", tmp_path / "scores.csv", FIXTURES / "helm" / "europe"]
    )
    assert provenance(table)["harness"].tolist() == ["HELM", "HELM", "table"]
    with pytest.raises(ValueError, match="no path is given"):
        read_logs([])


def test_tables_beside_logs_do_not_count(tmp_path):
    (tmp_path / "samples_arc_2025-01-31T12-00-00.jsonl").write_text(
        json.dumps({"doc_id": 0, "resps": [], "acc": 1}) + "\n"
    )
    (tmp_path / "summary.csv").write_text("model,q1\nours,1\n")
    table = read_logs(tmp_path, model="ours")
    assert len(table) == 1
    assert left_out(table)["file"].tolist() == [str(tmp_path / "summary.csv")]


def test_unknown_and_mixed_layouts(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(ValueError) as error:
        read_logs(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: no log of HELM, AlpacaEval, Inspect, lm-evaluation-harness, table among "
        f"{tmp_path / 'notes.txt'}"
    )
    with pytest.raises(ValueError, match="logs of several harnesses: HELM .*read one at a time"):
        read_logs(FIXTURES)
    with pytest.raises(FileNotFoundError):
        read_logs(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="the folder is empty"):
        read_logs(tmp_path / "empty")


@pytest.mark.filterwarnings("ignore:.*names the model")
def test_a_pickle_is_not_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("the pickle was executed",)

    for name in ("samples_a.jsonl", "a.csv", "annotations.json", "log.eval", "log.json"):
        path = tmp_path / name
        path.write_bytes(pickle.dumps(Trap()))
        with pytest.raises(ValueError, match=str(path)):
            read_logs(path)
        path.unlink()


# Sections that would only repeat what the summary says.
IGNORED = {"GL01", "GL08", "ES01", "SA01", "SA04", "PR01", "PR02", "PR09", "RT03", "RT05", "SS06"}


@pytest.mark.parametrize("name", logs.__all__)
def test_docstring_follows_numpydoc(name):
    validate = pytest.importorskip("numpydoc.validate").validate
    found = validate(f"sklearn_irt.logs.{name}")["errors"]
    ignored = IGNORED | ({"EX01"} if name == "ResponseMatrix" else set())
    assert [(code, text) for code, text in found if code not in ignored] == []


@pytest.mark.parametrize("name", [name for name in logs.__all__ if name != "ResponseMatrix"])
def test_parameters_and_defaults_are_those_documented(name):
    docscrape = pytest.importorskip("numpydoc.docscrape")
    parameters = inspect.signature(getattr(logs, name)).parameters
    documented = docscrape.FunctionDoc(getattr(logs, name))["Parameters"]
    assert [p.name.lstrip("*") for p in documented] == list(parameters)
    for p in documented:
        if "default=" in p.type:
            stated = ast.literal_eval(p.type.split("default=")[1])
            assert stated == parameters[p.name].default, p.name


def test_public_names():
    assert logs.__all__ == sorted(logs.__all__)
