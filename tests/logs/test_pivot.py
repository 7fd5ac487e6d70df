"""The matrix of responses, and the report on what is not in it."""

import numpy as np
import pandas as pd
import pytest

from sklearn_irt import IRTRegressor
from sklearn_irt.logs import left_out, pivot, provenance, read_table
from sklearn_irt.logs._tidy import TidyTable


def tidy(*rows, **provenance):
    table = TidyTable()
    for model, scenario, items, scores in rows:
        table.add(model, scenario, None, items, scores, file="f", harness="h", **provenance)
    return table.table()


def test_matrix_items_and_gaps():
    table = tidy(
        ("b", "x", ["x/1", "x/2"], [1.0, np.nan]),
        ("b", "y", ["y/1"], [0.0]),
        ("a", "x", ["x/3", "x/1"], [0.5, 0.0]),
    )
    found = pivot(table)
    assert found.responses.index.tolist() == ["b", "a"]
    assert found.responses.columns.tolist() == ["x/1", "x/2", "x/3", "y/1"]
    expected = [[1, np.nan, np.nan, 0], [0, np.nan, 0.5, np.nan]]
    np.testing.assert_array_equal(found.responses, expected)
    assert found.items["item"].tolist() == found.responses.columns.tolist()
    assert found.items["scenario"].tolist() == ["x", "x", "x", "y"]
    assert found.items["subscenario"].isna().all() and found.items["subscenario"].dtype == "string"
    assert found.missing.values.tolist() == [
        ["b", "x", 3, 1, 1],
        ["a", "x", 3, 0, 1],
        ["a", "y", 1, 0, 1],
    ]
    assert len(found.dropped) == 0 and found.conflicts == []
    assert found.report().splitlines()[0] == (
        "2 models x 4 items, scenarios: 2; 4 of 8 responses missing"
    )
    assert repr(found).startswith("<ResponseMatrix: 2 models x 4 items")


def test_several_tables_keep_their_provenance():
    one, two = tidy(("a", "x", ["x/1"], [1.0])), tidy(("b", "x", ["x/1"], [0.0]))
    two.attrs["left_out"].append({"file": "f", "model": "b", "what": "w", "count": 3})
    found = pivot([one, two])
    assert found.provenance["model"].tolist() == ["a", "b"]
    assert found.dropped.values.tolist() == [["f", "b", "w", 3]]
    assert "left out: f: w (3)" in found.report()
    assert one.attrs["provenance"] == tidy(("a", "x", ["x/1"], [1.0])).attrs["provenance"]


def test_a_table_of_ones_own():
    table = pd.DataFrame({"model": [1, 2], "item": ["q", "q"], "score": [True, None]})
    found = pivot(table)
    np.testing.assert_array_equal(found.responses, [[1.0], [np.nan]])
    assert found.items["scenario"].isna().all()
    assert len(provenance(table)) == 0 and len(left_out(table)) == 0
    assert found.missing[["model", "items"]].values.tolist() == [[2, 1]]


@pytest.mark.parametrize(
    ("duplicates", "expected"), [("mean", 0.75), ("first", 0.5), ("last", 1.0)]
)
def test_duplicates(duplicates, expected, message):
    table = tidy(("a", "x", ["q", "r", "q"], [0.5, 0.25, 1.0]), ("b", "x", ["q"], [0.0]))
    assert message(pivot, table) == (
        "the model 'a' answers the item 'q' more than once; give duplicates=\"mean\", \"first\" "
        'or "last"'
    )
    found = pivot(table, duplicates=duplicates)
    np.testing.assert_array_equal(found.responses, [[expected, 0.25], [0.0, np.nan]])
    what = f"answers to an item answered before (duplicates={duplicates!r})"
    assert found.dropped.values.tolist() == [["", "a", what, 1]]


def test_conflicting_metrics_are_told():
    tables = [
        tidy(("a", "x", ["q"], [1.0]), metric="acc", shots=0),
        tidy(("b", "x", ["q"], [1.0]), metric="acc_norm", shots=0),
        tidy(("b", "y", ["r"], [1.0]), metric="f1", shots=5),
    ]
    with pytest.warns(
        UserWarning, match="the answers to x differ in metric: 'acc' .a., 'acc_norm'"
    ):
        found = pivot(tables)
    assert len(found.conflicts) == 1 and f"conflict: {found.conflicts[0]}" in found.report()


def test_bad_tables(message):
    good = tidy(("a", "x", ["q"], [1.0]))
    assert message(pivot, good.drop(columns="score")).startswith("the table has no column 'score'")
    wide = pd.DataFrame(1.0, index=["a"], columns=[f"q{i}" for i in range(300)])
    assert message(pivot, wide) == (
        "the table has no column 'model'; there are q0, q1, q2, q3, q4 and 295 more; pivot takes a "
        "row per answer, a matrix of models x items needs none"
    )
    assert message(pivot, good.assign(model=None)) == "row 0 of the table has no model"
    said = "the score of the model 'a' on the item 'q' is "
    assert message(pivot, good.assign(score="x")) == f"{said}'x', which is not a finite number"
    assert message(pivot, good.assign(score=np.inf)).endswith("which is not a finite number")
    assert message(pivot, good.iloc[:0]) == "the table has no answers"
    assert message(pivot, []) == "the table has no answers"
    assert message(pivot, good, duplicates="x").startswith("duplicates must be")
    other = tidy(("b", "y", ["q"], [1.0]))
    assert message(pivot, [good, other]).startswith("the item 'q' has the scenario 'x' and 'y'; ")
    assert message(pivot, [good, other.drop(columns="scenario")]).startswith(
        "the item 'q' has the scenario 'x' and none; "
    )


def test_the_matrix_goes_into_an_estimator(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (20, 15)), [f"m{i}" for i in range(20)])
    X.columns = [f"q{i}" for i in range(15)]
    X.to_csv(tmp_path / "a.csv")
    found = pivot(read_table(tmp_path / "a.csv"))
    model = IRTRegressor(n_dims=1).fit(found.responses)
    assert model.feature_names_in_.tolist() == found.items["item"].tolist()
