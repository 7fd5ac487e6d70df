"""How the command behaves in a terminal and in a pipe."""

import io
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest

import benchmarks_registry
from benchmarks_registry import load_benchmark
from benchmarks_registry.cli import _app, _browse, _output, main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(_app.commands.commands)


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main([str(each) for each in arguments])
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def terminal(monkeypatch):
    """The standard output is a terminal, 100 columns wide."""
    monkeypatch.setattr(_output, "on_terminal", lambda wanted, path: not wanted and path is None)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")


def environment(**others):
    return os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"} | others


def test_all_commands_are_there_and_explain_themselves(cli):
    assert COMMANDS == [
        "adaptive", "add-models", "anchors", "build", "compare", "estimate", "fetch", "gate",
        "list", "report", "show",
    ]  # fmt: skip
    status, out, err = cli()
    assert status == 0 and err == "" and all(f"  {name} " in out for name in COMMANDS)
    for name in COMMANDS:
        status, out, err = cli(name, "--help")
        assert status == 0 and err == ""
        assert f"sklearn-irt {name} " in " ".join(out.split("Example")[1].split()) + " "
        assert ("[RESULTS...]" in out) is (name == "report")
        options = _app.commands.commands[name].params
        assert "--json" in out
        for option in options:
            if isinstance(option, click.Option):
                assert option.help or option.name == "seed", (name, option.name)


def test_version(cli):
    import sklearn_irt

    assert cli("--version")[:2] == (0, f"sklearn-irt, version {sklearn_irt.__version__}\n")


def test_list_is_data_in_a_pipe(cli):
    status, out, err = cli("list")
    assert status == 0 and err == ""
    table = pd.read_csv(io.StringIO(out), sep="\t", index_col="name")
    assert table.loc["helm-lite", "anchors"] == 500
    status, out, _ = cli("list", "--json")
    found = {row["name"]: row for row in json.loads(out)}
    assert found["tinyMMLU"]["anchors"] is None and found["glue"]["items"] == 1557


def test_show_and_fetch(cli):
    status, out, _ = cli("show", "GLUE", "--json")
    found = json.loads(out)
    assert status == 0 and found["name"] == "glue" and found["metric"] == "accuracy"
    assert [row["scenario"] for row in found["scenarios"]] == ["rte", "mrpc", "sst2"]
    status, out, _ = cli("show", "glue")
    facts, table = out.split("\n\n")
    assert "licence\tMIT" in facts and table.splitlines()[1].startswith("rte\t277\t100\t")
    status, out, err = cli("fetch", "glue", "--json")
    assert status == 0 and err == "" and Path(json.loads(out)["file"]).name == "glue.npz"


def test_anchors(cli, tmp_path):
    asked = load_benchmark("helm-lite").anchors("math")
    status, out, _ = cli("anchors", "helm-lite", "--scenario", "math")
    assert status == 0 and out.splitlines() == asked
    assert cli("anchors", "helm-lite", "--scenario", "math", "-o", tmp_path / "ids")[:2] == (0, "")
    assert (tmp_path / "ids").read_text().splitlines() == asked
    _, out, _ = cli("anchors", "helm-lite", "--scenario", "math", "--format", "json")
    found = json.loads(out)["anchors"]
    assert [row["item"] for row in found] == asked
    assert sum(row["weight"] for row in found) == pytest.approx(1)
    _, out, _ = cli("anchors", "arc-challenge", "--format", "lm-eval")
    ids = [f"arc_challenge/{i:05d}" for i in json.loads(out)["arc_challenge"]]
    assert ids == sorted(load_benchmark("arc-challenge").anchors())


def test_markup_and_escapes_in_names_are_text(cli, terminal, tmp_path, monkeypatch):
    anchors = load_benchmark("arc-challenge").anchors()
    names = ["[red]our[/red]", "their\x1b[31m"]
    frame = pd.DataFrame(1.0, index=names, columns=anchors)
    frame.to_csv(tmp_path / "answers.csv", index_label="model")
    status, out, err = cli("estimate", "arc-challenge", tmp_path / "answers.csv")
    assert status == 0, err
    assert "[red]our[/red]" in out and "their\\x1b[31m" in out and "\x1b[31m" not in out
    assert "\x1b[1m" in out and "resembles" in err
    monkeypatch.delenv("FORCE_COLOR")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in cli("estimate", "arc-challenge", tmp_path / "answers.csv")[1]


def test_a_narrow_terminal_shows_what_matters(cli, terminal, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = cli("list")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
    assert status == 0 and max(map(len, lines)) <= 80
    assert "helm-lite" in out and "no room for scenarios, source, licence" in err


def test_an_unusual_column_that_says_nothing_may_go(cli, terminal, tmp_path, monkeypatch):
    tiny = load_benchmark("arc-challenge")
    names = ["our-organisation/checkpoint-of-november", "b"]
    answers = np.array(tiny.estimator.training_responses_[[0, 5]])[:, tiny._answer_order]
    frame = pd.DataFrame(answers, index=names, columns=tiny.anchors())
    frame.to_csv(tmp_path / "answers.csv", index_label="model")

    def drawn(width):
        monkeypatch.setenv("COLUMNS", str(width))
        status, out, err = cli("estimate", "arc-challenge", tmp_path / "answers.csv")
        lines = re.sub(r"\x1b\[[0-9;]*m", "", out).splitlines()
        assert status == 0 and max(map(len, lines)) <= width
        return "\n".join(lines), err

    assert "unusual" in drawn(200)[0]
    assert "unusual" in drawn(140)[0] and "note: no room for relatives;" in drawn(140)[1]
    text, err = drawn(130)
    assert "unusual" not in text and "naive" in text and names[0] in text
    assert "note: no room for unusual, relatives;" in err
    frame[:] = 1 - answers  # hard questions right, easy ones wrong
    frame.to_csv(tmp_path / "answers.csv", index_label="model")
    text, err = drawn(130)
    assert "unusual" in text and "note: no room for naive, relatives;" in err


def test_names_are_wrapped_between_words(terminal, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    cells = ["a model of ours", "anothermodel", "of somebody else entirely"]
    frame = pd.DataFrame({"model": cells, "about": ["some", "words here", "x"], "score": 0.123456})
    _output.draw(frame, {}, {"score": "score\n(of 1)"})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 40 and "(of 1)" in lines[1]
    words = set(" ".join(lines).split())
    assert {"anothermodel", "somebody", "entirely", "0.123"} <= words
    monkeypatch.setenv("COLUMNS", "30")
    frame = pd.DataFrame({"model": ["org/Llama-3.1-8B-Instruct"], "score": [0.1], "low": [0.2]})
    _output.draw(frame, {}, {})
    lines = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()
    assert max(map(len, lines)) <= 30 and [line.split()[0] for line in lines[2:]] == [
        "org/Llama-", "3.1-8B-", "Instruct",
    ]  # fmt: skip


def test_units_are_above_the_columns_of_a_terminal(cli, terminal):
    for command in (["list"], ["show", "glue"]):
        assert "(of 100)" in cli(*command)[1]
    assert (
        "(0 to 1)" in cli("show", "glue")[1] and "(of 100)" not in cli("show", "glue", "--json")[1]
    )


def test_a_csv_file_has_commas(cli, tmp_path):
    for name, separator in (("x.csv", ","), ("x.CSV", ","), ("x.tsv", "\t"), ("x", "\t")):
        assert cli("list", "-o", tmp_path / name)[:2] == (0, "")
        table = pd.read_csv(tmp_path / name, sep=separator, index_col="name")
        assert table.loc["helm-lite", "scenarios"] == "commonsense, gsm, math, med_qa, mmlu"
    assert cli("show", "glue", "-o", tmp_path / "x.csv")[0] == 0
    facts, table = (tmp_path / "x.csv").read_text().split("\n\n")
    assert "licence,MIT" in facts and table.startswith("scenario,items,anchors,")


HEAVY = ("sklearn", "pandas", "numpy", "scipy", "sklearn_irt")


@pytest.mark.parametrize("given", ["--help", "estimate --help", "--version", "completion"])
def test_help_imports_nothing_heavy(given):
    others = {}
    if given == "completion":
        others = {"COMP_WORDS": "sklearn-irt show hel", "COMP_CWORD": "2"}
        others["_SKLEARN_IRT_COMPLETE"] = "bash_complete"
    code = (
        "import sys\n"
        "from benchmarks_registry.cli import main\n"
        "try:\n"
        f"    main({given.split()})\n"
        "finally:\n"
        f"    print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
        env=environment(**others),
    )  # fmt: skip
    assert done.stderr == "" and done.stdout.splitlines()[-1] == "[]"
    assert {"completion": "plain,helm-lite", "--version": "version"}.get(
        given, "--help"
    ) in done.stdout


def test_interrupted_while_importing(monkeypatch):
    class Interrupting:
        def find_spec(self, name, path=None, target=None):
            if name.startswith("benchmarks_registry.cli._app"):
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "benchmarks_registry.cli._app")
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    assert main(["list"]) == 130


def test_fetch_without_a_network(cli, tmp_path, monkeypatch):
    import pooch

    from sklearn_irt.datasets import _files

    monkeypatch.setattr(_files, "BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(_files, "RETRIES", 0)
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    level = pooch.get_logger().level
    status, out, err = cli("fetch", "tinyMMLU")
    assert (status, out) == (2, "") and err.count("\n") == 1 and len(err) < 600
    place = tmp_path / "tinyBenchmarks" / "tinyBenchmarks.pkl"
    assert "tinyMMLU cannot be downloaded (" in err and f"elsewhere, save it as {place} (or" in err
    assert pooch.get_logger().level == level


def test_warnings_are_one_line_each(cli, monkeypatch):
    def warn(name):
        for _ in range(2):
            warnings.warn("first line\n  second [red]line", UserWarning, stacklevel=1)
        return load_benchmark(name)

    monkeypatch.setattr(_browse, "load", warn)
    status, out, err = cli("anchors", "glue")
    assert status == 0 and len(out.splitlines()) == 300
    assert err == "sklearn-irt: warning: first line second [red]line\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (KeyError("mmlu"), "mmlu"),
        (OSError(28, "No space left on device", "out.npz"), "out.npz: No space left on device"),
        (ImportError("needs pyarrow"), "needs pyarrow"),
        (UnicodeDecodeError("utf-8", b"\xe4", 0, 1, "bad"), "'utf-8' codec can't decode"),
        (ValueError(""), "ValueError"),
        (ValueError("several filters, give filter= one of"), "give --filter one of"),
        (ValueError("so: give response_range=(low, high)"), "give --range LOW HIGH"),
        (
            ValueError("ratings? e.g. response_range=(1, 7)"),
            "ratings? e.g. --range 1 7\n",
        ),
        (ValueError("with NaN, or give response_range"), "or give --range\n"),
        (
            ValueError("are clipped to it; give response_range at fit"),
            "to it; give --range to sklearn-irt build\n",
        ),
    ],
)
def test_errors_of_the_library(cli, monkeypatch, error, message):
    def fail(name):
        raise error

    monkeypatch.setattr(_browse, "load", fail)
    status, out, err = cli("anchors", "glue")
    assert (status, out) == (2, "") and message in err and err.count("\n") == 1


def test_a_fault_of_ours_is_not_hidden(monkeypatch):
    monkeypatch.setattr(_browse, "load", lambda name: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["anchors", "glue"])


def test_interrupted(cli, monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    target = tmp_path / "out.tsv"
    target.write_text("as it was")
    monkeypatch.setattr(os, "fsync", interrupt)
    status, out, err = cli("list", "-o", target)
    assert (status, out, err.strip()) == (130, "", "sklearn-irt: interrupted")
    assert target.read_text() == "as it was" and os.listdir(tmp_path) == ["out.tsv"]


@pytest.mark.skipif(os.name == "nt", reason="no SIGPIPE")
def test_nobody_reads_the_output():
    command = f"{sys.executable} -m benchmarks_registry.cli anchors helm-lite --format json"
    # Closing the pipe before anything is written.
    done = subprocess.run(
        ["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, env=environment(), timeout=300,
    )  # fmt: skip
    assert done.stderr == b"" and done.stdout == b"141\n"


def test_a_broken_pipe_is_no_error(cli, monkeypatch):
    def broken(*_, **__):
        raise BrokenPipeError

    monkeypatch.setattr(_output, "encoded", broken)
    monkeypatch.setattr(_app, "_close_stdout", lambda: None)
    assert cli("list") == (141, "", "")


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_the_extra(package, cli, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    status, out, err = cli("list")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1 and 'pip install "sklearn-irt[cli]"' in err


def test_completion_of_names(monkeypatch, tmp_path):
    from click.shell_completion import ShellComplete

    def completed(*arguments):
        *before, typed = arguments
        shell = ShellComplete(_app.commands, {}, "sklearn-irt", "_SKLEARN_IRT_COMPLETE")
        return [(item.value, item.type) for item in shell.get_completions(before, typed)]

    assert completed("show", "hel") == [("helm-lite", "plain")]
    assert ("tinyMMLU", "plain") in completed("estimate", "tinymm")
    assert completed("show", "./mine") == [("./mine", "file")]
    assert ("estimate", "plain") in completed("est")
    assert ("lm-eval", "plain") in completed("anchors", "glue", "--format", "")


@pytest.mark.slow
def test_the_completion_script():
    done = subprocess.run(
        [sys.executable, "-c", "from benchmarks_registry.cli import main; main()"],
        capture_output=True, timeout=300,
        env=environment(_SKLEARN_IRT_COMPLETE="zsh_source"),
    )  # fmt: skip
    assert done.returncode == 0 and b"_SKLEARN_IRT_COMPLETE=zsh_complete" in done.stdout


def test_add_models(cli, tmp_path):
    tiny = load_benchmark("arc-challenge")
    items = tiny.items["item"].tolist()
    frame = pd.DataFrame([[1.0, 0.0] * 586, [0.0, 1.0] * 586], index=["a", "b"], columns=items)
    frame.iloc[1, :5] = float("nan")
    frame.to_csv(tmp_path / "ours.csv", index_label="model")
    target = tmp_path / "ours.npz"
    status, out, err = cli("add-models", "arc-challenge", tmp_path / "ours.csv", "-o", target)
    assert status == 0 and "note: b answered 1167 of the 1172 items" in err
    new = load_benchmark(target)
    assert len(new.estimator.training_models_) == 214 and new.name == "arc-challenge"
    assert new.anchors() == tiny.anchors()
    answers = frame.loc["a", new.anchors()].to_dict()
    assert "a 100%" in new.estimate(answers)["relatives"].iloc[0]
    status, out, _ = cli(
        "add-models", target, tmp_path / "ours.csv", "-o", target, "--name", "x", "--json"
    )
    assert status == 2  # the names are taken
    assert len(load_benchmark(target).estimator.training_models_) == 214


def test_report_hands_over_what_was_read(cli, tmp_path, monkeypatch):
    calls = []

    def write(path, benchmark, answers=None, *, comparison=None, true=None, title=None):
        calls.append((path, benchmark.name, answers, comparison, title))
        return Path(path)

    monkeypatch.setattr(benchmarks_registry, "write_report", write, raising=False)
    anchors = load_benchmark("arc-challenge").anchors()
    pd.DataFrame(1.0, index=["our"], columns=anchors).to_csv(tmp_path / "a.csv")
    (tmp_path / "errors.csv").write_text(
        "strategy,k,split,model,scenario,true,estimated,std,low,high\nirt/gpirt,30,0,a,all,1,1,,,\n"
    )
    page = tmp_path / "page.html"
    status, out, err = cli(
        "report", "arc-challenge", tmp_path / "a.csv", "-o", page, "--title", "T",
        "--comparison", tmp_path / "errors.csv", "--json",
    )  # fmt: skip
    assert status == 0, err
    assert json.loads(out) == {"file": str(page), "benchmark": "arc-challenge", "models": ["our"]}
    path, name, answers, comparison, title = calls[0]
    assert (path, name, title) == (str(page), "arc-challenge", "T")
    assert answers["item"].tolist() == anchors and comparison["k"].tolist() == [30]
    assert cli("report", "arc-challenge", "-o", page)[0] == 0 and calls[1][2] is None
    status, _, err = cli("report", "arc-challenge", "-o", page, "--comparison", tmp_path / "a.csv")
    assert status == 2 and "not a table that `sklearn-irt compare --table` wrote" in err


def test_json_has_null_for_what_is_not_a_number():
    values = {"a": float("nan"), "b": [float("inf"), pd.NA, None, True], 3: {"c": "\udc80"}}
    text = _output.as_json(values, indent=None)
    assert json.loads(_output.encoded(text)) == {
        "a": None, "b": [None, None, None, True], "3": {"c": "\udc80"},
    }  # fmt: skip


def test_names_of_the_registry_are_those_of_the_table():
    from benchmarks_registry import _task_names
    from benchmarks_registry._release import RELEASED

    known = {
        *RELEASED,
        *(path.stem for path in benchmarks_registry._registry.BUNDLED_FOLDER.iterdir()),
    }
    assert set(_task_names.TINY) | set(_task_names.HARNESSES) <= known


def test_metrics_are_written_and_read():
    from benchmarks_registry._task_names import describe_metrics, recorded_metrics

    for metrics in (
        {"a": "acc", "b": "acc"},
        {"a": "acc", "b": "exact_match,strict-match"},
        {"a": "acc"},
    ):
        assert recorded_metrics(describe_metrics(metrics), metrics) == metrics
    assert recorded_metrics("that of each scenario", ["a"]) == {}
    assert describe_metrics({}) == ""
