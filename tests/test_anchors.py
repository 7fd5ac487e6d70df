"""AnchorSelector: which items, which weights, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_irt import AnchorSelector, IRTRegressor
from sklearn_irt.datasets import make_responses

METHODS = ["irt", "correctness", "random"]
each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def data():
    return make_responses(
        70, scenarios={"a": {"x": 60, "y": 20}, "b": 100, "c": 40}, random_state=0
    )


@pytest.fixture(scope="module")
def labels(data):
    return data["items"][["scenario", "subscenario"]]


@pytest.fixture(scope="module")
def X(data):
    return data.responses


def make(method="irt", k=12, **params):
    return AnchorSelector(k=k, method=method, n_dims=2, random_state=0, **params)


@each_method
def test_anchors_and_weights(method, X, labels):
    selector = make(method, scenarios=labels).fit(X)
    index = pd.factorize(labels["scenario"])[0]
    assert selector.anchors_.shape == selector.weights_.shape == (36,)
    assert (np.diff(selector.anchors_) > 0).all()
    assert np.issubdtype(selector.anchors_.dtype, np.integer)
    np.testing.assert_array_equal(np.bincount(index[selector.anchors_]), [12, 12, 12])
    np.testing.assert_allclose(np.bincount(index[selector.anchors_], selector.weights_), 1)
    assert (selector.weights_ > 0).all()
    assert selector.scenarios_ == ("a", "b", "c")
    by_scenario = [selector.weights_[index[selector.anchors_] == s] for s in range(3)]
    np.testing.assert_allclose(
        selector.effective_sample_size_, [1 / (w**2).sum() for w in by_scenario]
    )
    np.testing.assert_allclose(np.bincount(index, selector.item_weights_), 1)
    assert selector.item_weights_[0] == pytest.approx(1 / 120)
    assert selector.item_weights_[70] == pytest.approx(1 / 40)


@each_method
def test_naive_mean_of_the_anchors_estimates_the_score(method, X, labels, data):
    selector = make(method, k=30, scenarios=labels)
    anchored = np.asarray(selector.fit_transform(X))
    estimate = anchored @ selector.weights_ / 3
    assert np.abs(estimate - data.scores).mean() < 0.035


@each_method
def test_only_the_irt_method_needs_a_model(method, X):
    selector = make("irt").fit(X)
    assert isinstance(selector.irt_, IRTRegressor) and selector.irt_.discrimination_.shape[1] == 2
    selector.set_params(method=method).fit(X)
    assert hasattr(selector, "irt_") == (method == "irt")


def test_random_anchors_are_stratified(X, labels):
    for seed in range(5):
        selector = make("random", k=11, scenarios=labels).set_params(random_state=seed).fit(X)
        in_a = selector.anchors_ < 80
        in_y = in_a & (selector.anchors_ >= 60)
        assert abs(in_y.sum() - (in_a.sum() - in_y.sum())) == 1
        assert selector.weights_[in_y].sum() == pytest.approx(0.5)
        in_b = (selector.anchors_ >= 80) & (selector.anchors_ < 180)
        np.testing.assert_allclose(selector.weights_[in_b], 1 / 11)


@each_method
def test_seeds_reproduce_and_matter(method, X, labels):
    selector = make(method, scenarios=labels)
    one, two = clone(selector).fit(X), clone(selector).fit(X)
    np.testing.assert_array_equal(one.anchors_, two.anchors_)
    np.testing.assert_array_equal(one.weights_, two.weights_)
    others = [clone(selector).set_params(random_state=s).fit(X).anchors_ for s in range(1, 6)]
    assert any((other != one.anchors_).any() for other in others)
    rng = [clone(selector).set_params(random_state=np.random.RandomState(0)) for _ in range(2)]
    np.testing.assert_array_equal(rng[0].fit(X).anchors_, rng[1].fit(X).anchors_)


def test_anchors_do_not_depend_on_n_jobs(X, labels):
    base = make(scenarios=labels).fit(X)
    for n_jobs in (1, 2):
        other = make(scenarios=labels, irt=IRTRegressor(2, n_jobs=n_jobs)).fit(X)
        np.testing.assert_array_equal(other.anchors_, base.anchors_)
        np.testing.assert_array_equal(other.weights_, base.weights_)


def test_k_as_share_and_by_scenario(X, labels):
    index = pd.factorize(labels["scenario"])[0]

    def counts(k):
        anchors = make("random", k=k, scenarios=labels).fit(X).anchors_
        return np.bincount(index[anchors]).tolist()

    assert counts(0.1) == [8, 10, 4]
    assert counts(1.0) == [80, 100, 40]
    assert counts(1) == [1, 1, 1]
    assert counts(1e-9) == [1, 1, 1]
    assert counts({"a": 5, "b": 0.5, "c": 1}) == [5, 50, 1]
    assert counts({"c": 7, "b": 6, "a": np.int64(5)}) == [5, 6, 7]
    assert make("random", k={"all": 9}).fit(X).anchors_.size == 9
    numbered = labels["scenario"].map({"a": 1, "b": 2, "c": 3})
    assert make("random", k={1: 2, 2: 3, 3: 4}, scenarios=numbered).fit(X).anchors_.size == 9


@each_method
@pytest.mark.parametrize("k", [0, -1, 1.5, -0.5, 0.0, np.nan, np.inf, "5", None, [5]])
def test_bad_k_is_named(method, k, X):
    selector = make(method, k=k)
    for call in (selector.fit, selector.fit_transform):
        with pytest.raises(ValueError, match="The 'k' parameter of AnchorSelector must be"):
            call(X)
    assert selector.set_params(k=3).fit(X).anchors_.size == 3


@pytest.mark.parametrize(
    ("k", "message"),
    [
        ({"a": 5, "b": 5}, "k has no entry for the scenario 'c'"),
        ({"a": 5, "b": 5, "c": 5, "d": 5}, "k names the scenario 'd', but the scenarios are"),
        ({}, "k has no entry for the scenario 'a'"),
        ({"a": 5, "b": 0, "c": 5}, "k must be a positive number .* for the scenario 'b', got 0"),
        ({"a": 5, "b": -2, "c": 5}, "k must be .* 'b', got -2"),
        ({"a": 5, "b": 1.5, "c": 5}, "k must be .* 'b', got 1.5"),
        ({"a": 5, "b": np.nan, "c": 5}, "k must be .* 'b', got nan"),
        ({"a": 5, "b": "x", "c": 5}, "k must be .* 'b', got 'x'"),
        ({"a": 5, "b": None, "c": 5}, "k must be .* 'b', got None"),
    ],
)
def test_bad_entry_of_k_names_the_scenario(k, message, X, labels):
    selector = make("random", k=k, scenarios=labels)
    with pytest.raises(ValueError, match=message):
        selector.fit(X)
    assert selector.set_params(k=3).fit(X).anchors_.size == 9


@each_method
def test_more_anchors_than_items_are_all_items_with_a_warning(method, X, labels):
    selector = make(method, k=60, scenarios=labels)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        selector.fit(X)
    messages = [str(w.message) for w in record]
    assert len(messages) == 1
    assert "k=60" in messages[0] and "'c' has 40 items" in messages[0]
    assert selector.anchors_.size == 60 + 60 + 40
    in_c = selector.anchors_ >= 180
    np.testing.assert_array_equal(selector.anchors_[in_c], np.arange(180, 220))
    np.testing.assert_allclose(selector.weights_[in_c], 1 / 40)


@each_method
def test_all_items_as_anchors_give_the_exact_score(method, data, X, labels):
    selector = make(method, k=1.0, scenarios=labels)
    anchored = np.asarray(selector.fit_transform(X))
    np.testing.assert_allclose(selector.weights_, selector.item_weights_, rtol=1e-12)
    np.testing.assert_allclose(anchored @ selector.weights_ / 3, data.scores, atol=1e-12)


@each_method
def test_items_that_nobody_answered_are_the_last_to_be_anchors(method, X):
    holed = X.to_numpy().copy()
    empty = np.arange(0, 220, 3)
    holed[:, empty] = np.nan
    for seed in range(3):
        selector = make(method, k=20).set_params(random_state=seed).fit(holed)
        assert not np.isin(selector.anchors_, empty).any()
        assert selector.weights_.sum() == pytest.approx(1)
    left = 220 - len(empty)
    assert not np.isin(make(method, k=left).fit(holed).anchors_, empty).any()
    one_more = make(method, k=left + 1).fit(holed).anchors_
    assert np.isin(one_more, empty).sum() == 1


@each_method
def test_items_that_few_answered_are_avoided(method, X):
    holed = X.to_numpy().copy()
    holed[5:, :30] = np.nan
    assert (make(method, k=40).fit(holed).anchors_ >= 30).all()


@each_method
def test_duplicate_and_constant_items_give_distinct_anchors(method, X):
    for items in (
        np.repeat(X.to_numpy()[:, :3], 20, axis=1),
        np.ones((10, 40)),
        np.zeros((10, 40)),
    ):
        selector = make(method, k=15).fit(items)
        assert len(set(selector.anchors_)) == 15
        assert selector.weights_.sum() == pytest.approx(1) and (selector.weights_ > 0).all()
        estimate = items[:, selector.anchors_] @ selector.weights_
        if method != "random":
            np.testing.assert_allclose(estimate, items.mean(axis=1), atol=1e-9)


def test_own_settings_of_the_model_are_used(X):
    irt = IRTRegressor(3, max_iter=7, tol=0)
    selector = make(irt=irt).fit(X)
    assert selector.irt_.n_iter_ == 7 and selector.irt_.discrimination_.shape[1] == 3
    assert selector.irt_ is not irt and not hasattr(irt, "discrimination_")
    assert selector.get_params()["irt__max_iter"] == 7
    assert selector.set_params(irt__n_dims=1).fit(X).irt_.discrimination_.shape[1] == 1


def test_parameters_are_left_alone(X, labels):
    irt = IRTRegressor(2)
    selector = make(irt=irt, scenarios=labels, k={"a": 3, "b": 3, "c": 3}).fit(X)
    assert selector.irt is irt and irt.random_state is None and irt.memory is None
    assert selector.k == {"a": 3, "b": 3, "c": 3} and selector.scenarios is labels


def test_memory_fits_once_for_every_k(tmp_path, X):
    base = [make(k=k).fit(X).anchors_ for k in (5, 9)]
    for _ in range(2):
        for k, anchors in zip((5, 9), base, strict=True):
            selector = make(k=k, memory=str(tmp_path)).fit(X)
            np.testing.assert_array_equal(selector.anchors_, anchors)
    assert len(list(tmp_path.rglob("output.pkl"))) == 1


def test_transform_and_back(X):
    selector = make("random").fit(X)
    answers = selector.transform(X)
    np.testing.assert_array_equal(answers, X.to_numpy()[:, selector.anchors_])
    full = selector.inverse_transform(answers)
    assert full.shape == X.shape
    np.testing.assert_array_equal(full[:, selector.get_support()], answers)
    assert np.isnan(full[:, ~selector.get_support()]).all()
    np.testing.assert_array_equal(selector.transform(full), answers)
    for wrong in (np.ones((2, 11)), np.ones(12), np.ones((2, 220))):
        with pytest.raises(ValueError, match=r"X must have shape \(n_models, 12\)"):
            selector.inverse_transform(wrong)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_back_from_nullable_columns(dtype, X):
    selector = make("random").fit(X)
    answers = X.iloc[:, selector.anchors_].astype(dtype)
    answers.iloc[0, 0] = pd.NA
    full = selector.inverse_transform(answers)
    assert np.isnan(full[0, selector.anchors_[0]])
    np.testing.assert_array_equal(full[1:, selector.anchors_], X.iloc[1:, selector.anchors_])


def test_names_of_the_anchors(X):
    selector = make("random").fit(X)
    expected = X.columns[selector.anchors_]
    assert list(selector.get_feature_names_out()) == list(expected)
    assert list(selector.get_support(indices=True)) == list(selector.anchors_)
    unnamed = make("random").fit(X.to_numpy())
    assert list(unnamed.get_feature_names_out()) == [f"x{i}" for i in unnamed.anchors_]
    given = [f"q{i}" for i in range(220)]
    assert list(unnamed.get_feature_names_out(given)) == [f"q{i}" for i in unnamed.anchors_]
    with pytest.raises(ValueError, match="input_features should have length equal"):
        unnamed.get_feature_names_out(["a"])


def test_what_is_no_anchor_may_be_anything_that_is_a_number(X):
    selector = make("random").fit(X)
    odd = X.copy()
    others = ~selector.get_support()
    odd.loc[:, others] = np.nan
    odd.iloc[:, np.flatnonzero(others)[0]] = np.inf
    odd.iloc[:, np.flatnonzero(others)[1]] = -77.0
    np.testing.assert_array_equal(selector.transform(odd), selector.transform(X))


@pytest.mark.parametrize("bounds", [None, (0, 100), (-50, 250)])
def test_transform_keeps_the_unit(bounds, X):
    selector = make(response_range=bounds)
    if bounds is None:
        with pytest.warns(UserWarning, match="percentages"):
            anchored = selector.fit_transform(X * 100)
    else:
        anchored = selector.fit_transform(X * 100)
    np.testing.assert_array_equal(anchored, 100 * X.to_numpy()[:, selector.anchors_])
    if bounds != (-50, 250):
        np.testing.assert_array_equal(selector.anchors_, make().fit(X).anchors_)


def test_sparse_matrices_are_refused_everywhere(X):
    sp = pytest.importorskip("scipy.sparse")
    selector = make("random").fit(X.to_numpy())
    for call in (selector.fit, selector.fit_transform, selector.transform):
        with pytest.raises(TypeError, match="Sparse data was passed"):
            call(sp.csr_matrix(X.to_numpy()))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("method", "information?"),
        ("n_dims", 0),
        ("irt", "IRTRegressor"),
        ("n_init", 0),
        ("memory", 3),
        ("random_state", "x"),
        ("scenarios", "ab"),
        ("response_range", 5),
    ],
)
def test_bad_parameters_are_named(name, value, X):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of AnchorSelector must be"):
        make().set_params(**{name: value}).fit_transform(X)


def test_balanced_truth_is_met_exactly_by_stratified_anchors():
    """10, 100 and 1,000 items; every model has one accuracy in each subscenario."""
    sizes = [10, 100, 1000]
    accuracy = np.random.RandomState(0).rand(30, 3)
    responses = np.repeat(accuracy, sizes, axis=1)
    pairs = np.column_stack([np.repeat("s", 1110), np.repeat(["x", "y", "z"], sizes)])
    for k in (3, 7, 29, 500):
        selector = make("random", k=k, scenarios=pairs)
        naive = np.asarray(selector.fit_transform(responses)) @ selector.weights_
        np.testing.assert_allclose(naive, accuracy.mean(axis=1), atol=1e-12)
    assert np.abs(responses.mean(axis=1) - accuracy.mean(axis=1)).max() > 0.2
