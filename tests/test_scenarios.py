"""Scenario labels: what is read, what is refused, and that order does not matter."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt._costs import read_costs
from sklearn_irt._scenarios import read_scenarios
from sklearn_irt.datasets import make_responses

# The estimator of the paper: the IRT model alone, and one share of the anchors' mean.
PAPER = {"relatives": False, "mixing": "paper"}
ESTIMATORS = [IRTRegressor(1), AnchorSelector(k=5, n_dims=1), GPIRTEstimator(n_dims=1)]
each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)


@pytest.fixture(scope="module")
def data():
    return make_responses(
        80, scenarios={"maths": {"algebra": 30, "geometry": 10}, "law": 50}, random_state=0
    )


@pytest.fixture(scope="module")
def labels(data):
    return data["items"][["scenario", "subscenario"]]


def test_weights_are_those_of_the_paper(labels):
    scenarios = read_scenarios(labels, 90)
    assert scenarios.names == ("maths", "law")
    assert scenarios.subscenarios == (("algebra", "geometry"), ())
    assert {type(name) for name in scenarios.names + scenarios.subscenarios[0]} == {str}
    expected = np.r_[np.full(30, 1 / 60), np.full(10, 1 / 20), np.full(50, 1 / 50)]
    np.testing.assert_allclose(scenarios.weights, expected, rtol=1e-15)
    np.testing.assert_array_equal(scenarios.members(1), np.arange(40, 90))
    assert [scenarios.weights[scenarios.members(s)].sum() for s in (0, 1)] == pytest.approx([1, 1])


def test_no_labels_are_one_scenario():
    scenarios = read_scenarios(None, 4)
    assert scenarios.names == ("all",) and scenarios.subscenarios == ((),)
    np.testing.assert_array_equal(scenarios.weights, np.full(4, 0.25))
    assert read_scenarios(["x"] * 4, 4).names == ("x",)


SAME = {
    "list": lambda pairs: [tuple(p) for p in pairs.astype(object).to_numpy()],
    "array": lambda pairs: pairs.to_numpy(dtype=object),
    "frame": lambda pairs: pairs,
    "categories": lambda pairs: pairs.astype("category"),
    "None": lambda pairs: pairs.astype(object).where(pairs.notna(), None),
    "nan": lambda pairs: pairs.astype(object).where(pairs.notna(), np.nan),
}


@pytest.mark.parametrize("container", SAME.values(), ids=SAME)
def test_containers_of_labels(container, labels):
    expected, found = read_scenarios(labels, 90), read_scenarios(container(labels), 90)
    assert found.names == expected.names and found.subscenarios == expected.subscenarios
    np.testing.assert_array_equal(found.weights, expected.weights)
    np.testing.assert_array_equal(found.index, expected.index)


@pytest.mark.parametrize(
    "container",
    [list, tuple, np.array, pd.Series, pd.Categorical, pd.Index],
    ids=lambda c: c.__name__,
)
def test_containers_of_single_labels(container):
    found = read_scenarios(container(["b", "a", "b", "a"]), 4)
    assert found.names == ("b", "a")
    np.testing.assert_array_equal(found.index, [0, 1, 0, 1])
    numbered = read_scenarios(container([7, 3, 7, 3]), 4)
    assert numbered.names == ("7", "3")


def test_same_subscenario_name_in_two_scenarios_is_two_subscenarios():
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), ("b", "x")]
    scenarios = read_scenarios(pairs, 4)
    np.testing.assert_array_equal(scenarios.weights, [0.5, 0.5, 0.5, 0.5])


def test_a_missing_subscenario_is_one_of_its_own():
    scenarios = read_scenarios([("a", "x"), ("a", None), ("a", None), ("a", None)], 4)
    np.testing.assert_allclose(scenarios.weights, [1 / 2, 1 / 6, 1 / 6, 1 / 6])


@each
def test_wrong_number_of_labels(estimator, data):
    wrong = clone(estimator).set_params(scenarios=["a"] * 89)
    with pytest.raises(ValueError, match="scenarios has 89 labels, but X has 90 items"):
        wrong.fit(data.responses)
    assert wrong.set_params(scenarios=["a"] * 90).fit(data.responses).n_features_in_ == 90


@each
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_missing_label_names_the_item(estimator, missing, data):
    labels = np.array(["a"] * 90, dtype=object)
    labels[17] = missing
    wrong = clone(estimator).set_params(scenarios=labels)
    with pytest.raises(ValueError, match=r"scenarios has no scenario for item \(column\) 17"):
        wrong.fit(data.responses)
    pairs = np.column_stack([labels, labels])
    with pytest.raises(ValueError, match="no scenario for item"):
        wrong.set_params(scenarios=pairs).fit(data.responses)


@pytest.mark.parametrize("shape", [(90, 1), (90, 3), (90, 2, 2), ()])
def test_wrong_shape_of_labels(shape, data):
    with pytest.raises(ValueError, match="scenarios must"):
        IRTRegressor(1, scenarios=np.full(shape, "a")).fit(data.responses)


def scores(X, labels, answers, **params):
    fitted = GPIRTEstimator(
        "pirt", scenarios=labels, n_dims=2, random_state=0, **(PAPER | params)
    ).fit(X)
    # Calibrated by models left out, which are drawn by position.
    fitted.calibration_[:] = 1.0
    return fitted, fitted.predict(answers, return_std=True)


@pytest.mark.parametrize("order", ["reversed", "interleaved", "random"])
def test_order_of_the_columns_does_not_matter(order, data, labels):
    """The same items in another order, labels with them: the same estimates."""
    X = data.responses.to_numpy()
    answers = np.where(np.random.RandomState(1).rand(*X.shape) < 0.4, X, np.nan)
    permutation = {
        "reversed": np.arange(90)[::-1],
        "interleaved": np.argsort(np.arange(90) % 7, kind="stable"),
        "random": np.random.RandomState(2).permutation(90),
    }[order]
    one, (score, std) = scores(X, labels, answers)
    other, (score_2, std_2) = scores(
        X[:, permutation], labels.iloc[permutation], answers[:, permutation]
    )
    np.testing.assert_allclose(score_2, score, rtol=0, atol=1e-6)
    np.testing.assert_allclose(std_2, std, rtol=0, atol=1e-6)
    np.testing.assert_allclose(
        other.predict_scenarios(answers[:, permutation])[list(one.scenarios_)],
        one.predict_scenarios(answers),
        rtol=0,
        atol=1e-6,
    )
    np.testing.assert_allclose(other.item_weights_, one.item_weights_[permutation], rtol=1e-14)
    np.testing.assert_allclose(
        other.training_scores_.mean(axis=1), one.training_scores_.mean(axis=1)
    )
    naive, naive_2 = (
        e.set_params(estimate="naive").predict(a)
        for e, a in ((one, answers), (other, answers[:, permutation]))
    )
    np.testing.assert_allclose(naive_2, naive, rtol=0, atol=1e-12)


def test_order_of_the_rows_does_not_matter(data, labels):
    X = data.responses.to_numpy()
    answers = np.where(np.random.RandomState(1).rand(*X.shape) < 0.4, X, np.nan)
    _, (score, std) = scores(X, labels, answers)
    rows = np.random.RandomState(2).permutation(len(X))
    _, (score_2, std_2) = scores(X[rows], labels, answers)
    np.testing.assert_allclose(score_2, score, rtol=0, atol=1e-6)
    np.testing.assert_allclose(std_2, std, rtol=0, atol=1e-6)


def test_names_of_the_labels_do_not_matter(data, labels):
    X = data.responses.to_numpy()
    answers = np.where(np.random.RandomState(1).rand(*X.shape) < 0.4, X, np.nan)
    renamed = pd.DataFrame({"s": "z" + labels["scenario"], "t": "b" + labels["subscenario"]})
    np.testing.assert_array_equal(scores(X, labels, answers)[1], scores(X, renamed, answers)[1])
    default = {"relatives": "auto", "mixing": "robust"}
    one, two = (scores(X, names, answers, **default)[1] for names in (labels, renamed))
    np.testing.assert_array_equal(one, two)


def test_relatives_do_not_depend_on_the_order(data, labels):
    """With a given share; the learned one depends a little on who is left out."""
    X = data.responses.to_numpy()
    answers = np.where(np.random.RandomState(1).rand(*X.shape) < 0.4, X, np.nan)
    answers[::2] = 1 - answers[::2]  # nobody's copy
    rng = np.random.RandomState(2)
    rows, columns = rng.permutation(len(X)), rng.permutation(90)
    one, (score, std) = scores(X, labels, answers, relatives=0.6)
    _, (by_row, std_by_row) = scores(X[rows], labels, answers, relatives=0.6)
    _, (by_column, std_by_column) = scores(
        X[:, columns], labels.iloc[columns], answers[:, columns], relatives=0.6
    )
    for found, found_std in ((by_row, std_by_row), (by_column, std_by_column)):
        np.testing.assert_allclose(found, score, rtol=0, atol=1e-6)
        np.testing.assert_allclose(found_std, std, rtol=0, atol=1e-6)
    alone = one.set_params(relatives=False).predict(answers)
    assert np.abs(alone - score).max() > 0.01


@pytest.mark.parametrize("method", ["irt", "correctness"])
def test_anchors_are_as_good_in_another_order_of_the_items(method, data):
    """The starts of k-means are drawn by position, so the anchors may differ, not the error."""
    X = data.responses.to_numpy()
    truth = X.mean(axis=1)
    errors = []
    for order in (np.arange(90), np.random.RandomState(3).permutation(90)):
        selector = AnchorSelector(k=40, method=method, n_dims=2, random_state=0, n_init=10)
        anchored = selector.fit_transform(X[:, order])
        assert len(set(order[selector.anchors_])) == 40
        errors.append(np.abs(np.asarray(anchored) @ selector.weights_ - truth).mean())
    assert max(errors) < 0.07 and abs(errors[0] - errors[1]) < 0.02


@pytest.mark.slow
def test_the_leaderboard_at_real_size():
    """Six scenarios of 28,659 items, one of them with the 57 subjects of MMLU."""
    subjects = {f"subject {i}": 246 if i < 56 else 266 for i in range(57)}
    sizes = {
        "truthfulqa": 817,
        "gsm8k": 1319,
        "winogrande": 1267,
        "arc": 1172,
        "hellaswag": 10042,
        "mmlu": subjects,
    }
    data = make_responses(120, scenarios=sizes, n_dims=2, random_state=0)
    labels = data["items"][["scenario", "subscenario"]]
    train, new = data.responses[:90], data.responses[90:]
    hellaswag = new.loc[:, (labels["scenario"] == "hellaswag").to_numpy()].mean(axis=1)
    errors = {}
    for method in ("random", "irt"):
        pipe = make_pipeline(
            AnchorSelector(100, n_dims=2, method=method, scenarios=labels, random_state=0),
            GPIRTEstimator(random_state=0),
        ).fit(train)
        assert len(pipe[0].anchors_) == 600
        answers = pipe[0].transform(new)
        score, std = pipe[1].predict(answers, return_std=True)
        assert np.abs(score - data.scores[90:]).mean() < 1.2 * std.mean()
        for kind in ("gpirt", "naive"):
            each = pipe[1].set_params(estimate=kind).predict_scenarios(answers)["hellaswag"].array
            errors[method, kind] = np.abs(each - hellaswag.array).mean()
        assert 0.005 < std.mean() < 0.03
    assert errors["random", "gpirt"] < 0.7 * errors["random", "naive"]
    assert errors["irt", "gpirt"] < 0.7 * errors["random", "naive"]
    subject = labels["subscenario"].to_numpy()[pipe[0].anchors_]
    assert pipe[1].scenarios_ == tuple(sizes)
    counts = pd.Series(subject).dropna().value_counts()
    assert len(counts) > 35  # clusters spread over the subjects without being told to


@pytest.mark.parametrize("change", ["reversed", "typo", "repeated", "positions"])
def test_labels_and_costs_are_matched_by_name_or_refused(change):
    names = ["a", "b", "c", "d"]
    labels = pd.Series(["x", "x", "y", "y"], names)
    costs = pd.Series([1.0, 2, 3, 4], names)
    if change == "positions":  # integers that are no names say nothing
        labels, costs = labels.reset_index(drop=True), costs.reset_index(drop=True)
    else:
        labels, costs = labels[::-1], costs[::-1]
    if change in ("reversed", "positions"):
        assert read_scenarios(labels, 4, names).index.tolist() == [0, 0, 1, 1]
        assert read_costs(costs, 4, None, names).tolist() == [1, 2, 3, 4]
        return
    wrong = {"a": "typo"} if change == "typo" else {"a": "b"}
    expected = "no item 'a'"
    if change == "repeated":
        labels, costs = (pd.concat([each, each[:1]]) for each in (labels, costs))
        wrong, expected = {}, "item 'd' more than once"
    for read, given in ((read_scenarios, labels), (read_costs, costs)):
        arguments = (4, names) if read is read_scenarios else (4, None, names)
        with pytest.raises(ValueError, match=expected):
            read(given.rename(wrong), *arguments)
