"""Plain tables: wide and long, csv, tsv, jsonl and parquet."""

import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest

from sklearn_irt.logs import left_out, pivot, provenance, read_table

LONG = "model,item,score\nm1,arc/0,1\nm1,arc/1,0\nm2,arc/0,0.5\nm2,arc/1,\n"
WIDE = "name,arc/0,arc/1\nm1,1,0\nm2,0.5,\n"
RESPONSES = np.array([[1.0, 0.0], [0.5, np.nan]])


@pytest.fixture
def write(tmp_path):
    def write(text, name="scores.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def as_jsonl(text):
    header, *rows = [line.split(",") for line in text.splitlines()]
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)


@pytest.mark.parametrize("text", [LONG, WIDE], ids=["long", "wide"])
@pytest.mark.parametrize(
    ("name", "encode"),
    [
        ("a.csv", str.encode),
        ("a.csv.gz", lambda text: gzip.compress(text.encode())),
        ("a.csv", lambda text: ("\ufeff" + text.replace("\n", "\r\n")).encode()),
        ("a.csv", lambda text: text.replace("\n", "\n\n").rstrip().encode()),
        ("a.tsv", lambda text: text.replace(",", "\t").encode()),
        ("a.jsonl", lambda text: as_jsonl(text).encode()),
        ("a.jsonl.gz", lambda text: gzip.compress(as_jsonl(text).encode())),
    ],
    ids=["csv", "gzip", "bom and crlf", "blank lines", "tsv", "jsonl", "jsonl gzip"],
)
def test_formats(write, text, name, encode):
    table = read_table(write(encode(text), name))
    assert table.columns.tolist() == ["model", "scenario", "subscenario", "item", "score"]
    assert set(table["scenario"]) == {"arc"} and table["subscenario"].isna().all()
    found = pivot(table)
    assert found.responses.index.tolist() == ["m1", "m2"]
    assert found.responses.columns.tolist() == ["arc/0", "arc/1"]
    np.testing.assert_array_equal(found.responses, RESPONSES)
    assert found.missing.values.tolist() == [["m2", "arc", 2, 1, 0]]
    assert set(provenance(table)["harness"]) == {"table"}


@pytest.mark.parametrize("named", [True, False])
def test_parquet(tmp_path, named, message):
    pytest.importorskip("pyarrow", exc_type=ImportError)
    frame = pd.DataFrame(RESPONSES, ["m1", "m2"], ["arc/0", "arc/1"])
    frame.rename_axis("model" if named else None).to_parquet(tmp_path / "wide.parquet")
    long = pivot(read_table(tmp_path / "wide.parquet")).responses
    np.testing.assert_array_equal(long, RESPONSES)
    table = read_table(tmp_path / "wide.parquet")
    table.to_parquet(tmp_path / "long.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "long.parquet"), table)
    path = tmp_path / "bad.parquet"
    pd.DataFrame({"model": ["a"], "q": ["x"]}).to_parquet(path)
    said = f"{path}, row 1: item 'q' is 'x', which is not a number; "
    assert message(read_table, path).startswith(said)
    path.write_bytes(b"hello")
    assert message(read_table, path).startswith(f"{path}: not a parquet file: ")


def test_parquet_without_pyarrow(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = write(b"", "a.parquet")
    with pytest.raises(ImportError, match="reading parquet needs pyarrow"):
        read_table(path)


def test_back_from_pivot(tmp_path):
    rng = np.random.default_rng(0)
    responses = pd.DataFrame(
        rng.random((7, 11)).round(3), [f"m{i}" for i in range(7)], [f"q{i}" for i in range(11)]
    )
    responses.to_csv(tmp_path / "a.csv")
    found = pivot(read_table(tmp_path / "a.csv"))
    np.testing.assert_array_equal(found.responses, responses)
    found.responses.to_csv(tmp_path / "b.csv")
    pd.testing.assert_frame_equal(pivot(read_table(tmp_path / "b.csv")).responses, found.responses)


def test_long_table_with_labels_and_other_names(write, message):
    path = write("llm,id,s,scenario,subscenario,note\na,1,0.5,x,y,hm\na,2,1,x,,hm\n")
    columns = {"model": "llm", "item": "id", "score": "s"}
    table = read_table(path, columns=columns)
    assert table.fillna("").values.tolist() == [
        ["a", "x", "y", "1", 0.5],
        ["a", "x", "", "2", 1.0],
    ]
    assert message(read_table, path, columns={"item": "q"}) == (
        f"{path}, line 1: no column 'q'; there are llm, id, s, scenario, subscenario and 1 more"
    )
    assert message(read_table, path, columns={"x": "q"}).startswith("columns names the field 'x'")


def test_long_table_without_models(write):
    path = write("item,score\nq1,1\nq2,0\n", "gpt.csv")
    assert set(read_table(path)["model"]) == {"gpt"}
    assert set(read_table(path, model="ours")["model"]) == {"ours"}


def test_scenarios(write):
    path = write("model,arc/1,mmlu/1,arc/2\na,1,0,1\nb,1,0,1\n")
    assert read_table(path)["scenario"].tolist() == ["arc", "arc", "mmlu"] * 2
    assert set(read_table(path, scenario="all")["scenario"]) == {"all"}
    path = write("model,arc/1,q2\na,1,0\n")
    assert read_table(path)["scenario"].isna().all()


def test_layout(write, message):
    path = write("item,score,taste\nm1,1,0\n")
    table = read_table(path, layout="wide")
    assert table["item"].tolist() == ["score", "taste"] and set(table["model"]) == {"m1"}
    path = write(WIDE)
    assert message(read_table, path, layout="long") == (
        f"{path}, line 1: a long table needs the columns item and score; there are name, arc/0, "
        "arc/1"
    )
    assert message(read_table, path, layout="x").startswith("layout must be")


def test_words_for_no_value_and_truth(write):
    path = write("model,a,b,c,d,e\nm,NaN,,NA,True,false\n")
    np.testing.assert_array_equal(read_table(path)["score"], [np.nan, np.nan, np.nan, 1, 0])


def test_quoted_names_over_lines(write, message):
    path = write('model,item,score\nm,"q, with\n\na line",1\nm,q2,x\n')
    assert message(read_table, path) == f"{path}, line 5: the score is 'x', which is not a number"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ": the file is empty"),
        ("model,a,b\n", ": the table has no row below its header"),
        (
            "model,a,b\nm,1,0\nn,1\n",
            ", line 3: 2 cells, but the header has 3; is the file cut off?",
        ),
        ("model,a,b\nm,1,0,1\n", ", line 2: 4 cells, but the header has 3"),
        ('model,a\nm,"1\n', ", line 2: unexpected end of data; is the file cut off?"),
        ("model,a,b\nm,1,high\n", ", line 2: item 'b' is 'high', which is not a number"),
        ("model,a,b\nm,1,inf\n", ", line 2: item 'b' is inf, which is not a finite number"),
        ("model,a,b\nm,1,0\n\nm,1,1\n", ", line 4: the model 'm' a second time, after line 2"),
        ("model,a,a\nm,1,0\n", ", line 1: the column 'a' stands there twice"),
        ("model,a,\nm,1,0\n", ", line 1: the column 3 has no name"),
        ("model\nm\n", ", line 1: a wide table needs a column for each item"),
        ("model,a\n,1\n", ", line 2: no model in the column 1"),
        (
            "model,item,score\nm,q,1\nn,q,1\nm,q,0\n",
            ", line 4: the model 'm' on the item 'q' a second time, after line 2",
        ),
        (
            "item,score\nq,1\nr,1\nq,0\n",
            ", line 4: the model 'scores' on the item 'q' a second time, after line 2",
        ),
        ("model,item,score\nm,,1\n", ", line 2: the column 'item' is empty"),
        ("model,item,score\n,q,1\n", ", line 2: the column 'model' is empty"),
        (
            "model,item,score\nm,q,-inf\n",
            ", line 2: the score is -inf, which is not a finite number",
        ),
        (b"model,a\nm,1\nn\xff,1\n", ", line 3: not UTF-8 text: *"),
    ],
)
def test_bad_tables(write, text, said, message):
    path = write(text)
    found = message(read_table, path)
    start, _, end = f"{path}{said}".partition("*")
    assert found.startswith(start) and found.endswith(end), found


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("model,question,score", "ours,code/00000,1"),
        ("model,item,correct", "ours,code/00000,1"),
        ("Model,Item,Score", "ours,code/00000,1"),
        ("model,question,correct,tokens", "ours,code/00000,1,20"),
        ("model,question,score", "ours,0,1\nours,1,0"),
        ("model,q,score,a,b,c,d,e", "ours,code/00000,1,1,1,1,1,1"),
    ],
)
def test_a_long_table_with_other_names_is_told_what_it_needs(write, header, row, message):
    path = write(f"{header}\n{row}\n")
    found = message(read_table, path)
    shown = ", ".join(header.split(",")[:5])
    assert "is 'code/00000', which is not a number; " in found or "a second time" in found
    assert f"it needs the columns item and score; there are {shown}" in found


def test_a_large_wide_table_is_not_taken_for_a_long_one(write, message):
    path = write("model,a,b,c,d,e\nm,1,1,1,1,high\n")
    assert message(read_table, path).endswith("item 'e' is 'high', which is not a number")


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", ","), ("a.csv", "|")]
)
def test_another_separator_is_told(write, name, separator, message):
    path = write(LONG.replace(",", separator), name)
    for layout in (None, "long"):
        found = message(read_table, path, layout=layout)
        assert f"the cells seem to be separated by {separator!r}, but in a .csv file" in found


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a,b,c\n0.1,0,1\n0.2,1,1\n0.3,1,0\n", "line 1: the models have no names"),
        ("a,b,c\n1,0,1\n0,1,1\n1,1,0\n", "line 4: the model '1' a second time, after line 2"),
        ("a,b\nTrue,0\nTrue,1\n", "line 3: the model 'True' a second time, after line 2"),
        ("a,b\n0.1,0\n,1\n", "line 3: no model in the column 1"),
    ],
)
def test_a_wide_table_without_models_is_refused(write, text, where, message):
    path = write(text)
    assert message(read_table, path) == (
        f"{path}, {where}; there is no column model, and the first one, 'a', holds numbers only: "
        "call it model if these are names of models, else add a column model"
    )
    path = write(as_jsonl("a,b\n0.1,0\n0.2,1\n"), "a.jsonl")
    assert message(read_table, path).startswith(f"{path}: the models have no names; there is no")


def test_numbers_are_models_where_the_column_says_so(write, tmp_path):
    for header in ("model", "", "Unnamed: 0"):
        table = read_table(write(f"{header},q1\n1000,1\n2000,0\n"))
        assert table["model"].tolist() == ["1000", "2000"]
    table = read_table(write("step,q1\n1000,1\n2000,0\n"), columns={"model": "step"})
    assert table["model"].tolist() == ["1000", "2000"]
    table = read_table(write("llm,q1\n1000,1\ngpt,0\n"))
    assert table["model"].tolist() == ["1000", "gpt"]
    pd.DataFrame({"a": [0.1, 0.2], "b": [0, 1]}).to_csv(tmp_path / "index.csv")
    found = pivot(read_table(tmp_path / "index.csv")).responses
    assert found.columns.tolist() == ["a", "b"] and found.index.tolist() == ["0", "1"]


def test_bad_json_lines(write, message):
    path = write('{"model": "a", "q": 1}\n\n{"model": "b", "q": "x"}\n', "a.jsonl")
    said = f"{path}, line 3: item 'q' is 'x', which is not a number; "
    assert message(read_table, path).startswith(said)
    path = write('{"model": "a", "q": 1}\n{"model": "b", "r": null, "q": true}\n', "a.jsonl")
    np.testing.assert_array_equal(read_table(path)["score"], [1, np.nan, 1, np.nan])
    path = write('{"model": "a", "q": 1}\n{"model": "b", ', "a.jsonl")
    assert message(read_table, path).startswith(f"{path}, line 2: not JSON: ")


def test_folder(write, tmp_path, message):
    write("item,score\nq1,1\n", "a.csv")
    write("item,score\nq1,0\n", "b.csv")
    write("hello", "notes.txt")
    table = read_table(tmp_path)
    assert table[["model", "score"]].values.tolist() == [["a", 1.0], ["b", 0.0]]
    assert left_out(table)["what"].tolist() == ["a file that is no table"]
    assert message(read_table, tmp_path, model="a") == (
        f"{tmp_path / 'b.csv'}: the model 'a' on the item 'q1' a second time, after "
        f"{tmp_path / 'a.csv'}"
    )
    assert message(read_table, tmp_path / "notes.txt").startswith("no table among ")
