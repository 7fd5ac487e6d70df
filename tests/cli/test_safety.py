"""Files that would be lost, closed streams, and limits: each is told in a line."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from benchmarks_registry import load_benchmark
from benchmarks_registry._registry import BUNDLED_FOLDER
from benchmarks_registry.cli import _app, _browse, _output, _score, main
from sklearn_irt.datasets import make_responses

ROOT = Path(__file__).resolve().parents[2]
ERRORS = "strategy,k,split,model,scenario,true,estimated,std,low,high\n"
ROW = "irt/gpirt,30,0,a,all,1,1,,,\n"


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def refused(cli):
    """The only line: why."""

    def call(*arguments):
        status, out, err = cli(*arguments)
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("sklearn-irt: error: ")
        return err.strip().removeprefix("sklearn-irt: error: ")

    return call


@pytest.fixture
def mine(tmp_path):
    """A benchmark of one's own."""
    return Path(shutil.copy(BUNDLED_FOLDER / "glue.npz", tmp_path / "mine.npz"))


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("model,rte/00000,rte/00001\nours,1,0\n")
    return path


def contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_two_outputs_in_one_file(refused, mine, answers, tmp_path):
    before = contents(tmp_path)
    for command, options in (
        (["adaptive", mine, "--answers", answers], ["--session", "--output"]),
        (["compare", answers], ["--table", "--output"]),
    ):
        same = refused(*command, options[0], tmp_path / "x", "-o", tmp_path / "no" / ".." / "x")
        assert "the folder" in same or same.startswith(" and ".join(options))
        same = refused(*command, options[0], tmp_path / "x", "-o", tmp_path / "." / "x")
        assert same.startswith(f"{options[0]} and {options[1]} are the same file: ")
    assert contents(tmp_path) == before


def test_outputs_never_replace_what_is_read(refused, mine, answers, tmp_path, monkeypatch):
    link = tmp_path / "link.csv"
    link.symlink_to(answers)
    folder = tmp_path / "results"
    folder.mkdir()
    table = Path(shutil.copy(answers, folder / "a.csv"))
    before = contents(tmp_path)
    for name in ("_browse", "_gate", "_adaptive", "_score"):
        monkeypatch.setattr(f"benchmarks_registry.cli.{name}.load", None)  # nothing is read
    for command, one, other in (
        (["estimate", mine, answers, "-o", answers], "RESULTS", "--output"),
        (["estimate", mine, answers, "-o", link], "RESULTS", "--output"),
        (["estimate", mine, link, "-o", answers], "RESULTS", "--output"),
        (["report", mine, answers, "-o", answers], "RESULTS", "--output"),
        (["report", mine, "-o", mine], "NAME", "--output"),
        (["report", mine, "--comparison", answers, "-o", answers], "--comparison", "--output"),
        (["add-models", mine, answers, "-o", mine], "NAME", "--output"),
        (["anchors", mine, "-o", mine], "NAME", "--output"),
        (["show", mine, "-o", mine], "NAME", "--output"),
        (["fetch", mine, "-o", mine], "NAME", "--output"),
        (["gate", mine, answers, table, "-o", table], "REFERENCE", "--output"),
        (["gate", mine, answers, table, "-o", answers], "CANDIDATE", "--output"),
        (["build", table, answers, "-o", answers], "RESULTS", "--output"),
        (["build", table, "--costs", answers, "-o", answers], "--costs", "--output"),
        (["compare", answers, "--table", answers], "RESULTS", "--table"),
        (["adaptive", mine, "--answers", answers, "-o", answers], "--answers", "--output"),
        (["adaptive", mine, "--session", mine], "NAME", "--session"),
    ):
        assert refused(*command).startswith(f"{one} and {other} are the same file: "), command
    assert "--output is one of the files that are read of" in refused(
        "estimate", mine, folder, "-o", table
    )
    assert contents(tmp_path) == before


def test_a_name_is_no_file(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli("anchors", "glue", "-o", "glue")[0] == 0


@pytest.mark.parametrize("name", ["errors.csv", "errors.csv.gz"])
def test_comparison_as_it_is_or_packed(tmp_path, name):
    path = tmp_path / name
    data = (ERRORS + ROW).encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert _score._comparison(str(path))["k"].tolist() == [30]


def test_comparisons_that_are_none(refused, tmp_path, monkeypatch):
    monkeypatch.setattr(_score, "load", lambda name: None)
    monkeypatch.chdir(tmp_path)
    whole = gzip.compress((ERRORS + ROW * 50).encode())
    for name, data in (
        ("cut.csv.gz", whole[: len(whole) // 2]),
        ("bad.zip", b"PK\x03\x04 nothing"),
        ("bad.csv.xz", b"\xfd7zXZ\x00 nothing"),
        ("bytes.csv", b"\xff\xfe\x00\x80"),
        ("empty.csv", b""),
        ("ragged.csv", b"a,b\n1,2,3,4\n5,6\n7,8,9,10,11\n"),
        ("text.csv", (ERRORS + ROW.replace("1,1", "1,high")).encode()),
        ("true.csv", (ERRORS + ROW.replace("1,1", "one,1")).encode()),
        ("keys.csv", (ERRORS + ROW.replace("30,0", "30,")).encode()),
        ("none.csv", ERRORS.encode()),
        ("columns.csv", b"a,b\n1,2\n"),
    ):
        (tmp_path / name).write_bytes(data)
        why = refused("report", "glue", "--comparison", name, "-o", "page.html")
        assert why.startswith(f"{name}: "), why
    assert "damaged or cut off" in refused(
        "report", "glue", "--comparison", "cut.csv.gz", "-o", "page.html"
    )
    url = "http://localhost:9/errors.csv"
    why = refused("report", "glue", "--comparison", url, "-o", "page.html")
    assert why == f"{Path(url)}: No such file or directory"
    assert not (tmp_path / "page.html").exists()


def test_an_early_end_is_no_interruption(cli, monkeypatch):
    def ends(name):
        raise EOFError("no data left")

    monkeypatch.setattr(_browse, "load", ends)
    status, out, err = cli("anchors", "glue")
    assert (status, out) == (2, "")
    assert err == "sklearn-irt: error: a file ends too early: no data left\n"


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_stream_that_is_closed(monkeypatch, name, tmp_path, answers):
    monkeypatch.setattr(sys, name, None)
    assert main(["anchors", "glue"]) == 0
    assert main(["--help"]) == 0
    assert main(["anchors", "glue", "-o", str(tmp_path / "ids")]) == 0
    assert main(["anchors", "no-such"]) == 2
    assert getattr(sys, name) is None and (tmp_path / "ids").read_text().count("\n") == 300


def test_closed_input_of_adaptive(cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    status, out, _ = cli("adaptive", "glue", "--json")
    assert status == 0 and json.loads(out.splitlines()[-1])["answers"] == 0


@pytest.mark.skipif(os.name == "nt", reason="a shell's redirections")
def test_closed_by_the_shell():
    command = f"{sys.executable} -m benchmarks_registry.cli --version"
    done = subprocess.run(
        ["bash", "-c", f"{command} >&- <&- 2>&-; echo $?"], capture_output=True, timeout=300,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"0\n", b"")


def test_too_large_is_one_line(refused, monkeypatch):
    class ArrayMemoryError(MemoryError):
        """As numpy's."""

    for error, words in (
        (ArrayMemoryError("Unable to allocate 1 TiB"), "memory does not suffice: Unable to"),
        (MemoryError(), "memory does not suffice: MemoryError"),
        (OverflowError("too big"), "a number is too large: too big"),
        (RecursionError("depth"), "nested too deeply: depth"),
    ):

        def fail(name, error=error):
            raise error

        monkeypatch.setattr(_browse, "load", fail)
        assert words in refused("anchors", "glue")


@pytest.fixture
def scores(tmp_path):
    data = make_responses(n_models=8, n_items=12, random_state=0).responses
    data.to_csv(tmp_path / "scores.csv", index_label="model")
    return tmp_path / "scores.csv"


@pytest.mark.parametrize("command", ["build", "compare"])
def test_dimensions_are_bounded(cli, scores, command, tmp_path):
    for n_dims, than in ((100_000, "8 models"), (9, "8 models")):
        status, _, err = cli(command, scores, "--n-dims", n_dims, "-o", tmp_path / "x.npz")
        assert status == 2 and f"--n-dims {n_dims} is more than the {than} of the results" in err
    pd.read_csv(scores).iloc[:, :4].to_csv(scores, index=False)
    status, _, err = cli(command, scores, "--n-dims", 8, "-o", tmp_path / "x.npz")
    assert status == 2 and "--n-dims 8 is more than the 3 items of the results" in err
    assert not (tmp_path / "x.npz").exists()


def test_nobody_reads_the_help(monkeypatch):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(_app, "_close_stdout", lambda: None)
    monkeypatch.setattr(sys, "stdout", Broken())
    assert main(["--help"]) == main(["list", "--help"]) == main(["--version"]) == 141


def test_another_exit_is_not_hidden(monkeypatch):
    monkeypatch.setattr(_browse, "load", lambda name: sys.exit(3))
    with pytest.raises(SystemExit):
        main(["anchors", "glue"])


def test_an_item_without_a_task_is_named(cli, answers):
    answers.write_text("model,typo,rte/00001\na,1,0\nb,0,1\nc,1,1\n")
    _, _, err = cli("estimate", "glue", answers)
    assert "note: left out: answers to 'typo', which glue has not (3)\n" in err
    answers.write_text("model,typo,x,arc/1,rte/00001\na,1,0,1,1\n")
    _, _, err = cli("estimate", "glue", answers)
    assert "answers to 'typo' and 1 more, which glue has not (2)\n" in err
    assert "answers to items of arc, which glue has not (1)\n" in err


class Odd:
    """A benchmark whose ids are not those that it was made with."""

    def __init__(self, old, new):
        self._tiny, self._old, self._new = load_benchmark("glue"), old, new

    def __getattr__(self, name):
        return getattr(self._tiny, name)

    def anchors(self, scenario=None):
        return [self._new if i == self._old else i for i in self._tiny.anchors(scenario)]

    @property
    def items(self):
        return self._tiny.items.replace({"item": {self._old: self._new}})


@pytest.mark.parametrize("item", ["a\nb", " a", "a\x1b[1m"])
def test_ids_that_are_no_lines(refused, cli, monkeypatch, item, answers):
    odd = Odd(load_benchmark("glue").anchors()[3], item)
    monkeypatch.setattr(_browse, "load", lambda name: odd)
    assert f"the item {item!r} cannot be written as a line" in (
        refused("anchors", "glue").replace("\\\\", "\\")
    )
    status, out, _ = cli("anchors", "glue", "--json")
    assert status == 0 and json.loads(out)["anchors"][3]["item"] == item
    monkeypatch.setattr("benchmarks_registry.cli._adaptive.load", lambda name: odd)
    assert "cannot be written as a line" in refused("adaptive", "glue")


def test_empty_paths(refused, mine, answers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for command in (
        ["estimate", mine, ""],
        ["estimate", mine, answers, ""],
        ["estimate", "", answers],
        ["estimate", mine, answers, "-o", ""],
        ["report", mine, "", "-o", "page.html"],
        ["report", mine, "--comparison", "", "-o", "page.html"],
        ["build", "", "-o", "x.npz"],
        ["build", answers, "--costs", "", "-o", "x.npz"],
        ["compare", ""],
        ["gate", mine, "", answers],
        ["adaptive", mine, "--answers", ""],
    ):
        assert ": it is empty; see sklearn-irt" in refused(*command)


def test_numbers_are_checked_before_anything_is_read(refused, tmp_path):
    nowhere, target = tmp_path / "nowhere", ["-o", tmp_path / "x.npz"]
    for command in (["build", nowhere, *target], ["compare", nowhere]):
        for low, high in ((1, 0), (0, 0), (0, "nan"), ("-inf", 1)):
            why = refused(*command, "--range", low, high)
            assert "'--range': LOW must be below HIGH, both finite" in why
        assert "'--jobs': 0 is no number of fits" in refused(*command, "--jobs", 0)
    for command in (["build", nowhere, *target], ["adaptive", nowhere]):
        assert "--budget needs --costs" in refused(*command, "--budget", 3)
        for budget in ("nan", "0", "-1", "inf"):
            why = refused(*command, "--budget", budget, "--costs", nowhere)
            assert f"'--budget': {budget} is not a positive, finite number" in why


def test_one_and_many(cli, tmp_path):
    assert _output.counted(1, "model") == "1 model" and _output.counted(0, "item") == "0 items"
    path = tmp_path / "a.csv"
    path.write_text("model,q\nours,1\n")
    status, _, err = cli("build", path, "-o", tmp_path / "x.npz")
    assert status == 2 and "note: 1 model x 1 item, " in err
    assert "the results are of 1 model; give" in err
