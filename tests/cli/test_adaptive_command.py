"""adaptive: items asked on the terminal or of a program, and sessions that go on."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

from benchmarks_registry import load_benchmark
from benchmarks_registry.cli import main
from sklearn_irt import AdaptiveSession
from sklearn_irt.datasets import make_responses

NAME = "arc-challenge"
FEW_KNOWN = (
    "note: arc-challenge holds the training models' answers to 100 of the 1172 items; adaptive "
    "asking is best with all (build --k 1.0)"
)


@pytest.fixture
def cli(capfd, monkeypatch):
    """The command in this process: its status, output and messages."""

    def call(*arguments, typed="", terminal=False):
        text = io.StringIO(typed)
        text.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stdin", text)
        status = main(["adaptive", *(str(each) for each in arguments)])
        return status, *capfd.readouterr()

    return call


@pytest.fixture(scope="module")
def items():
    return load_benchmark(NAME).items["item"].tolist()


@pytest.fixture
def answers(items, tmp_path):
    """Answers of one model to all items."""
    path = tmp_path / "answers.csv"
    scores = np.random.default_rng(0).integers(0, 2, len(items))
    pd.DataFrame({"item": items, "score": scores}).to_csv(path, index=False)
    return path


def expected(scores, n):
    """The items of a session in Python, and its estimate."""
    session = AdaptiveSession(load_benchmark(NAME))
    while not session.done(max_items=n):
        (item,) = session.ask()
        session.tell(item, scores[item])
    return [item for item, _ in session.history], session.estimate()["gpirt"].iloc[0]


def test_a_program_gives_the_answers(cli, answers):
    scores = pd.read_csv(answers).set_index("item")["score"]
    asked, score = expected(scores, 6)
    typed = "".join(f"{scores[item]}\n" for item in asked)
    status, out, err = cli(NAME, "--max-items", 6, typed=typed)
    assert status == 0 and err.count("\n") == 1 and FEW_KNOWN in err
    ids, table = out.split("\n\n")
    assert ids.splitlines() == asked
    row = dict(zip(*(line.split("\t") for line in table.splitlines()), strict=True))
    assert row["answered"] == "6" and float(row["gpirt"]) == pytest.approx(score, rel=1e-5)
    status, out, _ = cli(NAME, "--max-items", 6, "--json", typed=typed)
    *questions, last = map(json.loads, out.splitlines())
    assert [question["ask"] for question in questions] == asked
    assert last["answers"] == 6 and last["estimate"][0]["gpirt"] == pytest.approx(score)
    assert [each["item"] for each in last["history"]] == asked and last["waiting"] == []


def test_a_file_gives_the_answers(cli, answers, tmp_path):
    scores = pd.read_csv(answers).set_index("item")["score"]
    asked, score = expected(scores, 6)
    target = tmp_path / "out.json"
    status, out, err = cli(
        NAME, "--answers", answers, "--max-items", 6, "--json", "-o", target
    )  # fmt: skip
    assert (status, out) == (0, "") and err.count("\n") == 1 and FEW_KNOWN in err
    found = json.loads(target.read_text())
    assert [each["item"] for each in found["history"]] == asked
    assert found["estimate"][0]["gpirt"] == pytest.approx(score)


def test_only_items_with_an_answer_are_asked(cli, items, tmp_path):
    path = tmp_path / "some.csv"
    some = items[5:400:7]
    pd.DataFrame({"item": some, "score": 1}).to_csv(path, index=False)
    status, out, _ = cli(NAME, "--answers", path, "--json")
    found = json.loads(out)
    assert status == 0 and found["answers"] == len(some)
    assert {each["item"] for each in found["history"]} == set(some)


def test_on_a_terminal(cli):
    typed = "1\nhigh\n7\n-inf\n0\nskip\n1\nq\n"
    status, out, err = cli(NAME, typed=typed, terminal=True)
    assert status == 0 and "'high' is no score; give a number, skip or quit" in err
    for number in ("7", "-inf"):
        assert f"{number} is not in [0, 1]; give another, skip or quit" in err
    assert err.count("(answers: ") == 8 and "(answers: 2, score 0." in err
    assert out.splitlines()[2].split("\t")[1] == "3"  # the third line: below an empty one


def test_a_session_goes_on(cli, answers, tmp_path):
    path = tmp_path / "session.json"
    scores = pd.read_csv(answers).set_index("item")["score"]
    asked, score = expected(scores, 6)
    options = (NAME, "--max-items", 6, "--session", path, "--json")
    typed = [f"{scores[item]}\n" for item in asked]
    status, out, _ = cli(*options, typed="".join(typed[:4]))
    assert status == 0 and len(json.loads(path.read_text())["history"]) == 4
    assert json.loads(out.splitlines()[-1])["waiting"] == [asked[4]]
    status, out, _ = cli(*options, typed="".join(typed[4:]))
    assert [json.loads(line)["ask"] for line in out.splitlines()[:-1]] == asked[4:]
    assert json.loads(out.splitlines()[-1])["estimate"][0]["gpirt"] == pytest.approx(score)
    status, out, err = cli(*options)  # nothing is asked any more
    assert status == 0 and len(out.splitlines()) == 1 and err == ""  # nothing is noted again
    status, _, err = cli("glue", "--session", path)
    assert status == 2 and "was begun with another benchmark" in err
    status, _, err = cli(NAME, "--session", path, "--scenario", "arc_challenge")
    assert status == 2 and "was begun with --scenario None" in err


def test_answers_that_come_later(cli, items, tmp_path):
    session, path = tmp_path / "session.json", tmp_path / "answers.csv"
    path.write_text("item,score\narc_challenge/00000,1\n")
    known = {}
    for _ in range(4):
        status, out, err = cli(
            NAME, "--answers", path, "--session", session, "--json", "--batch", 3, "--max-items", 7
        )
        assert status == 0
        waiting = json.loads(out)["waiting"]
        if not waiting:
            break
        assert all(f"note: no answer yet to {item}" in err for item in waiting)
        known |= dict.fromkeys(waiting, 1)
        pd.Series(known, name="score").rename_axis("item").to_csv(path)
    assert json.loads(out)["answers"] == 7 and len(known) == 7


def test_costs_and_budget(cli, items, answers, tmp_path):
    costs = tmp_path / "costs.csv"
    price = pd.Series(np.arange(len(items)) % 5 + 1.0, items, name="cost")
    price.rename_axis("item").to_csv(costs)
    options = (NAME, "--answers", answers, "--json", "--costs", costs)
    status, out, _ = cli(*options, "--budget", 20, "--session", tmp_path / "s.json")
    found = json.loads(out)
    assert status == 0 and 15 < found["spent"] <= 20
    assert found["spent"] == price[[each["item"] for each in found["history"]]].sum()
    status, out, _ = cli(*options, "--budget", 20, "--session", tmp_path / "s.json")
    assert status == 0 and json.loads(out)["spent"] == found["spent"]
    status, _, err = cli(*options, "--budget", 30, "--session", tmp_path / "s.json")
    assert status == 2 and "begun with --budget 20.0, not 30.0" in err
    (price + 1).rename_axis("item").to_csv(costs)
    status, _, err = cli(*options, "--session", tmp_path / "s.json")
    assert status == 2 and "begun with other --costs" in err
    for change, problem in ((-1, "costs has -1"), (np.nan, "costs has nan")):
        price.where(price.index != items[3], change).rename_axis("item").to_csv(costs)
        status, _, err = cli(*options)
        assert status == 2 and f"{problem} for item {items[3]!r}" in err
    price.rename_axis("item").to_csv(costs)
    status, _, err = cli(*options, "--budget", 0.5)
    assert status == 2 and "below the cheapest item" in err
    assert "--budget needs --costs" in cli(NAME, "--budget", 3)[2]


def test_a_target(cli, answers):
    status, out, _ = cli(NAME, "--answers", answers, "--target-std", 0.1, "--json")
    assert status == 0 and 0 < json.loads(out)["answers"] < 60


@pytest.mark.parametrize("typed", ["1\nhigh\n", "1\n7\n"])
def test_a_wrong_answer_of_a_program(cli, tmp_path, typed):
    path = tmp_path / "session.json"
    status, _, err = cli(NAME, "--session", path, typed=typed)
    assert status == 2 and err.count("\n") == 2 and FEW_KNOWN in err
    assert "standard input, line 2" in err or "is outside the response range" in err
    assert len(json.loads(path.read_text())["history"]) == 1


def test_answers_of_two_models(cli, items, tmp_path):
    path = tmp_path / "answers.csv"
    pd.DataFrame(1, index=["a", "b"], columns=items[:3]).to_csv(path, index_label="model")
    status, _, err = cli(NAME, "--answers", path)
    assert status == 2 and "--answers are of 2 models" in err


def test_interrupted_between_two_answers(cli, monkeypatch, tmp_path):
    path = tmp_path / "session.json"

    def lines():
        yield "1\n"
        raise KeyboardInterrupt

    class Typed(io.StringIO):
        source = lines()

        def readline(self):
            return next(self.source)

    def call():
        monkeypatch.setattr(sys, "stdin", Typed())
        return main(["adaptive", NAME, "--session", str(path)])

    assert call() == 130
    assert len(json.loads(path.read_text())["history"]) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["session.json"]


def test_all_items_as_anchors(cli, tmp_path):
    data = make_responses(n_models=8, n_items=40, random_state=0).responses
    data.to_csv(tmp_path / "scores.csv", index_label="model")
    options = ["--k", "1.0", "--n-dims", "1", "-o", str(tmp_path / "all.npz")]
    assert main(["build", str(tmp_path / "scores.csv"), *options]) == 0
    assert len(load_benchmark(tmp_path / "all.npz").anchors()) == 40
    status, _, err = cli(tmp_path / "all.npz", "--max-items", 2, typed="1\n1\n")
    assert status == 0 and "adaptive asking" not in err
