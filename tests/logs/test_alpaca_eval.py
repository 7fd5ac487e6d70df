"""Annotations of AlpacaEval: the leaderboard's own and broken ones."""

import gzip
import json

import numpy as np
import pytest

from sklearn_irt.datasets import fetch_alpaca_eval
from sklearn_irt.logs import left_out, pivot, provenance, read_alpaca_eval, read_table

MODELS = ["gpt4_gamed", "text_davinci_001"]


def annotation(instruction="Say hello.", preference=1.75, **others):
    return {
        "instruction": instruction,
        "dataset": "ours",
        "generator_1": "base",
        "generator_2": "our-model",
        "annotator": "weighted_judge",
        "preference": preference,
    } | others


@pytest.fixture
def write(tmp_path):
    def write(*entries, folder="our-model/weighted_judge"):
        path = tmp_path / folder / "annotations.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(entries))
        return path

    return write


def test_win_rates_of_the_leaderboard(real_data):
    folder = real_data / "alpaca_eval_2"
    found = pivot(read_alpaca_eval(folder / "results"))
    assert found.responses.index.tolist() == MODELS
    board = pivot(read_table(folder / "win_probability.csv.gz", scenario="alpaca_eval"))
    expected = board.responses.loc[MODELS, found.responses.columns]
    assert found.responses.columns.tolist() == board.responses.columns.tolist()
    np.testing.assert_allclose(found.responses, expected, atol=5.1e-7)
    np.testing.assert_allclose(found.responses.mean(axis=1), expected.mean(axis=1), atol=1e-7)
    assert found.items["subscenario"].isna().all()
    assert found.missing.values.tolist() == [["text_davinci_001", "alpaca_eval", 805, 0, 2]]
    origin = found.provenance
    assert set(origin["metric"]) == {"weighted win probability"}
    assert set(origin["baseline"]) == {"gpt4_1106_preview"}


def test_ids_are_those_of_the_data_set_and_the_bundled_benchmark(real_data):
    from benchmarks_registry import load_benchmark

    table = read_alpaca_eval(real_data / "alpaca_eval_2" / "results" / "gpt4_gamed")
    assert table["item"].tolist() == fetch_alpaca_eval()["items"]["item"].tolist()
    tiny = load_benchmark("alpaca-eval-2")
    figures = tiny.estimate(table, metric=provenance(table)["metric"].item())
    assert figures["answered"].tolist() == [805]
    assert figures["gpirt"].iloc[0] == pytest.approx(table["score"].mean(), abs=1e-6)


def test_ids_do_not_depend_on_the_order(real_data, write):
    path = next((real_data / "alpaca_eval_2" / "results" / "gpt4_gamed").rglob("*.json"))
    entries = json.loads(path.read_text())
    keys = ("instruction", "dataset", "generator_1", "generator_2", "annotator", "preference")
    short = [{key: entry[key] for key in keys} for entry in entries[::-1]]
    table = read_alpaca_eval(write(*short))
    expected = read_alpaca_eval(path)
    assert table.set_index("item")["score"].equals(expected.set_index("item")["score"][::-1])


def test_missing_preferences(write):
    path = write(annotation("a", 1.0), annotation("b", None), annotation("c", 2))
    table = read_alpaca_eval(path)
    np.testing.assert_array_equal(table["score"], [0.0, np.nan, 1.0])
    assert provenance(table)["missing"].tolist() == [1]
    assert pivot(table).missing.values.tolist() == [["our-model", "alpaca_eval", 3, 1, 0]]


def test_draws_of_older_judges(write):
    path = write(annotation("a", 0, annotator="old"), annotation("b", 1.5, annotator="old"))
    table = read_alpaca_eval(path)
    assert table["score"].tolist() == [0.5, 0.5]
    assert provenance(table)["metric"].item() == "win rate"


def test_annotators(write, tmp_path, message):
    write(annotation("a"))
    write(annotation("a", 1.0, annotator="other"), folder="our-model/other")
    assert message(read_alpaca_eval, tmp_path) == (
        "several annotators, give annotator= one of ['other', 'weighted_judge']"
    )
    assert message(read_alpaca_eval, tmp_path, annotator="x") == (
        "no annotations by 'x'; there are ['other', 'weighted_judge']"
    )
    table = read_alpaca_eval(tmp_path, annotator="other", model="mine")
    assert table[["model", "score"]].values.tolist() == [["mine", 0.0]]
    assert left_out(table)["what"].tolist() == ["annotations by weighted_judge"]


def test_the_same_model_twice(write, tmp_path, message):
    one, two = write(annotation("a"), folder="a"), write(annotation("a"), folder="b")
    assert message(read_alpaca_eval, tmp_path) == f"{two}: annotations of 'our-model' as in {one}"


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (annotation("a"), "the instruction of {path}, entry 1 a second time"),
        (
            annotation("b", generator_2="other"),
            "generator_2 is 'other', but 'our-model' above; a file holds one model's annotations "
            "by one judge against one baseline",
        ),
        (annotation("b", 2.5), "the preference is 2.5, outside of [1, 2]"),
        (annotation("b", -1), "the preference is -1, outside of [1, 2]"),
        (annotation("b", "2"), "the preference is '2', which is not a finite number"),
        ({"instruction": "b"}, "no generator_2; the entry has ['instruction']"),
        ({"generator_2": "our-model"}, "no instruction; the entry has ['generator_2']"),
        (7, "expected a JSON object, got a number"),
    ],
)
def test_bad_entries(write, second, said, message):
    path = write(annotation("a"), second)
    assert message(read_alpaca_eval, path) == f"{path}, entry 2: {said.format(path=path)}"


def test_no_preference(write, message):
    entry = annotation("a")
    del entry["preference"]
    path = write(entry)
    assert message(read_alpaca_eval, path).startswith(f"{path}, entry 1: no preference; the entry")


def test_bad_files(write, tmp_path, message):
    path = write(annotation("a"), annotation("b"))
    text = path.read_text()
    path.write_text(text[:-30])
    assert message(read_alpaca_eval, path).startswith(f"{path}, line 1: not JSON: ")
    path.write_text("")
    assert message(read_alpaca_eval, path) == f"{path}: the file is empty"
    path.write_text("[]")
    assert message(read_alpaca_eval, path) == f"{path}: the list is empty"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + text.replace(",", ",\r\n").encode()))
    assert len(read_alpaca_eval(path)) == 2
    path.rename(tmp_path / "annotations.json.gz")
    assert len(read_alpaca_eval(tmp_path)) == 2
    (tmp_path / "annotations.json.gz").rename(tmp_path / "other.json")
    (tmp_path / "more.json").write_text("[]")
    assert message(read_alpaca_eval, tmp_path).startswith("no annotations.json of AlpacaEval among")
