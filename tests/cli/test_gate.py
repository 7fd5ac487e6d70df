"""gate: two models on the same anchors, and the exit status that tells which is worse."""

import io
import json
import re
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks_registry import load_benchmark
from benchmarks_registry.cli import _output, main

NAME = "glue"


@pytest.fixture
def cli(capfd):
    """The command in this process: its status, output and messages."""

    def call(*arguments):
        status = main(["gate", *(str(each) for each in arguments)])
        return status, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def tiny():
    return load_benchmark(NAME)


@pytest.fixture(scope="module")
def answers(tiny):
    """Of a strong and a weak training model, by item."""
    estimator = tiny.estimator
    order = np.argsort(estimator.training_scores_.mean(axis=1))
    known = pd.DataFrame(
        estimator.training_responses_[:, tiny._answer_order], columns=tiny.anchors()
    )
    return {"strong": known.iloc[order[-5]], "weak": known.iloc[order[10]]}


@pytest.fixture
def write(tmp_path):
    def call(name, answers):
        path = tmp_path / f"{name}.csv"
        pd.DataFrame([answers], index=[f"our/{name}"]).to_csv(path, index_label="model")
        return path

    return call


def test_the_worse_model_fails(cli, tiny, answers, write):
    strong, weak = (write(name, answers[name]) for name in ("strong", "weak"))
    expected = tiny.compare(answers["weak"], answers["strong"])
    status, out, err = cli(NAME, weak, strong)
    assert (status, err) == (1, "")
    facts, table = out.split("\n\n")
    assert facts.splitlines() == [
        "candidate\tour/weak", "reference\tour/strong", "limit\t0.95", "verdict\tworse",
    ]  # fmt: skip
    found = pd.read_csv(io.StringIO(table), sep="\t", index_col="scenario")
    assert list(found.index) == ["rte", "mrpc", "sst2", "(all)"]
    names = ["difference", "std_error", "low", "high", "probability_lower"]
    assert list(found.columns) == ["candidate", "reference", *names]
    np.testing.assert_allclose(found[names], expected[names], rtol=1e-5, atol=1e-12)
    status, out, _ = cli(NAME, strong, weak, "--json")
    document = json.loads(out)
    assert status == 0 and document["worse"] is False and document["reference"] == "our/weak"
    assert document["differences"][-1]["difference"] == -expected["difference"].iloc[-1]


def test_the_limit_is_of_the_whole_benchmark(cli, tiny, answers, write):
    changed = answers["strong"].copy()
    changed[tiny.anchors("rte")[:4]] = 0
    new, old = write("new", changed), write("old", answers["strong"])
    table = tiny.compare(changed, answers["strong"])
    probability = table["probability_lower"].iloc[-1]
    assert 0.5 < table["probability_lower"].iloc[0] < 0.95 < probability < 1
    assert cli(NAME, new, old)[0] == 1
    assert cli(NAME, new, old, "--limit", probability - 1e-6)[0] == 1
    assert cli(NAME, new, old, "--limit", probability + 1e-6)[0] == 0
    assert cli(NAME, old, old, "--limit", 0.51)[0] == 0  # the same answers


def test_some_of_the_anchors(cli, tiny, answers, write):
    some = answers["strong"].drop(tiny.anchors("mrpc")[:10])
    new, old = write("new", some), write("old", answers["strong"])
    message = "the candidate our/new answered 90 of the 100 anchors of mrpc"
    status, out, err = cli(NAME, new, old)
    assert status == 0 and err == f"sklearn-irt: warning: {message}\n"
    status, out, err = cli(NAME, new, old, "--complete")
    assert (status, out) == (2, "") and f"error: {message}; leave --complete out" in err
    status, _, err = cli(NAME, old, new, "--complete")
    assert status == 2 and "the reference our/new answered 90" in err
    assert cli(NAME, old, old, "--complete")[0] == 0


def test_the_script_of_the_page_stops_where_a_scenario_is_missing(
    answers, tiny, tmp_path, monkeypatch
):
    page = Path(__file__).resolve().parents[2] / "docs" / "own_benchmark.rst"
    (block,) = re.findall(r"\n   import sys\n(?:(?:   .*)?\n)+", page.read_text())
    tables = {}
    script = textwrap.dedent(block).replace('"ours.npz"', f'"{NAME}"')
    monkeypatch.setattr("sklearn_irt.logs.read_lm_eval", tables.__getitem__)

    def status(candidate, released):
        for name, given in (("runs/candidate", candidate), ("runs/released", released)):
            tables[name] = given.rename_axis("item").rename("score").reset_index()
        with pytest.raises(SystemExit) as end:
            exec(script, {})
        return end.value.code

    strong, weak = answers["strong"], answers["weak"]
    assert (status(strong, weak), status(weak, strong)) == (0, 1)
    # All items of two scenarios, more than there are anchors, and none of the third.
    scenarios = tiny.items.set_index("item")["scenario"]
    some = pd.Series(1.0, scenarios.index[scenarios != "rte"])
    assert len(some) > len(tiny.anchors())
    assert (status(some, strong), status(strong, some)) == (2, 2)
    unscored = strong.copy()
    unscored.iloc[0] = np.nan
    assert status(unscored, strong) == 2


def test_bad_input(cli, tiny, answers, write, tmp_path):
    good = write("good", answers["strong"])
    both = tmp_path / "both.csv"
    pd.DataFrame(answers).T.to_csv(both, index_label="model")
    others = tiny.items["item"][~tiny.items["item"].isin(tiny.anchors())]
    off = write("off", dict.fromkeys(others, 1))
    for arguments, problem in (
        ((both, good), "the candidate"),
        ((good, both), "holds 2 models; give the results of one"),
        ((off, good), "answers none of the anchors of glue"),
        ((good, tmp_path / "no"), "there is no such file or folder"),
        ((good, good, "--limit", 1), "--limit"),
        ((good,), "Missing argument 'REFERENCE'"),
    ):
        status, out, err = cli(NAME, *arguments)
        assert (status, out) == (2, "") and problem in err.splitlines()[-1]
        assert err.splitlines()[-1].startswith("sklearn-irt: error: ")
    assert cli("gleu", good, good)[0] == 2


def test_the_table_fits_on_a_terminal(cli, answers, write, monkeypatch):
    monkeypatch.setattr(_output, "on_terminal", lambda wanted, path: not wanted and path is None)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    new, old = write("new", answers["weak"]), write("old", answers["strong"])
    status, out, err = cli(NAME, new, old)
    assert status == 1 and max(map(len, out.splitlines())) <= 80
    for word in ("(all)", "difference", "std_error", "probability", "worse"):
        assert word in out
    assert "note: no room for reference;" in err
