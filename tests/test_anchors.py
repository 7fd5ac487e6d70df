"""AnchorSelector: which items, which weights, and what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses

METHODS = ["irt", "correctness", "random", "information", "design"]
DESIGNED = ["information", "design"]
each_method = pytest.mark.parametrize("method", METHODS)
each_design = pytest.mark.parametrize("method", DESIGNED)


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
def test_only_some_methods_need_a_model(method, X):
    selector = make("irt").fit(X)
    assert isinstance(selector.irt_, IRTRegressor) and selector.irt_.discrimination_.shape[1] == 2
    selector.set_params(method=method).fit(X)
    assert hasattr(selector, "irt_") == (method in ("irt", *DESIGNED))


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
    # The calibration of designed anchors is a least-squares fit.
    rtol = 1e-10 if method in DESIGNED else 1e-12
    np.testing.assert_allclose(selector.weights_, selector.item_weights_, rtol=rtol)
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
        if method in DESIGNED:  # calibrated weights stay near equal ones
            assert np.abs(estimate - items.mean(axis=1)).max() < 0.15
        elif method != "random":
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
        ("random_share", -0.1),
        ("random_share", 1.5),
        ("random_share", None),
        ("budget", 0),
        ("budget", -3.0),
        ("budget", "x"),
        ("costs", 3),
        ("verbose", "x"),
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


@each_design
@pytest.mark.parametrize("random_share", [0.0, 0.5, 1.0])
def test_fewer_designed_anchors_are_a_part_of_more(method, random_share, X, labels):
    selector = make(method, scenarios=labels, random_share=random_share)
    few, more = (clone(selector).set_params(k=k).fit(X) for k in (10, 20))
    assert len(few.anchors_) == 30 and len(more.anchors_) == 60
    assert set(few.anchors_) < set(more.anchors_)


@each_design
def test_the_random_share_is_stratified_and_the_same_for_every_share(method, X, labels):
    base = make(method, scenarios=labels)
    drawn = clone(base).set_params(k=6, random_share=1.0).fit(X)
    for k in (5, 6, 11):
        anchors = clone(base).set_params(k=k, random_share=1.0).fit(X).anchors_
        in_x, in_y = (anchors < 60).sum(), ((anchors >= 60) & (anchors < 80)).sum()
        assert in_x + in_y == k and abs(in_x - in_y) <= 1
    half = clone(base).set_params(k=12).fit(X)
    assert set(drawn.anchors_) <= set(half.anchors_)
    designed = clone(base).set_params(k=6, random_share=0.0).fit(X)
    assert set(designed.anchors_) <= set(half.anchors_)
    # Six of each in every scenario, and what is in both is made up for.
    assert len(half.anchors_) == 36


def test_nothing_of_a_random_share_of_one_depends_on_the_design(X, labels):
    one, two = (make(m, scenarios=labels, random_share=1.0).fit(X) for m in DESIGNED)
    np.testing.assert_array_equal(one.anchors_, two.anchors_)
    np.testing.assert_array_equal(one.weights_, two.weights_)


@each_design
def test_designed_anchors_of_each_scenario_as_many_as_wanted(method, X, labels):
    index = pd.factorize(labels["scenario"])[0]
    selector = make(method, k={"a": 7, "b": 0.1, "c": 1}, scenarios=labels).fit(X)
    assert np.bincount(index[selector.anchors_]).tolist() == [7, 10, 1]
    np.testing.assert_allclose(np.bincount(index[selector.anchors_], selector.weights_), 1)
    assert (selector.weights_ >= 0).all()


@each_design
@pytest.mark.parametrize("kind", ["fractional", "missing", "few models"])
def test_designed_anchors_of_other_responses(method, kind):
    rng = np.random.RandomState(0)
    data = make_responses(
        5 if kind == "few models" else 50,
        60,
        response="fractional" if kind == "fractional" else "binary",
        missing=0.4 if kind == "missing" else 0.0,
        random_state=1,
    )
    responses = data.responses.to_numpy()
    selector = make(method, k=15).fit(responses)
    assert len(set(selector.anchors_)) == 15
    assert selector.weights_.sum() == pytest.approx(1) and (selector.weights_ >= 0).all()
    again = make(method, k=15).fit(responses)
    np.testing.assert_array_equal(again.anchors_, selector.anchors_)
    # Another order of the training models is no other benchmark.
    rows = rng.permutation(len(responses))
    assert len(set(make(method, k=15).fit(responses[rows]).anchors_)) == 15


def test_weights_of_designed_anchors_are_calibrated(X):
    """Their mean is nearer to the training models' scores than that of equal weights."""
    truth = X.to_numpy().mean(axis=1)
    for method in DESIGNED:
        selector = make(method, k=30).fit(X)
        answers = X.to_numpy()[:, selector.anchors_]
        calibrated, equal = answers @ selector.weights_, answers.mean(axis=1)
        assert ((calibrated - truth) ** 2).sum() < 0.95 * ((equal - truth) ** 2).sum()


@pytest.fixture
def costs():
    return np.random.RandomState(5).uniform(0.5, 4.0, size=220)


@each_design
@pytest.mark.parametrize("random_share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("budget", [1.0, 7.5, 25.0])
def test_costs_of_the_anchors_stay_within_the_budget(
    method, random_share, budget, X, labels, costs
):
    index = pd.factorize(labels["scenario"])[0]
    selector = make(
        method, k=15, scenarios=labels, costs=costs, budget=budget, random_share=random_share
    ).fit(X)
    spent = np.bincount(index[selector.anchors_], costs[selector.anchors_])
    assert len(spent) == 3 and (spent <= budget + 1e-9).all()
    assert (np.bincount(index[selector.anchors_]) <= 15).all()
    np.testing.assert_allclose(np.bincount(index[selector.anchors_], selector.weights_), 1)
    for s in range(3):  # what is left buys nothing more
        others = np.setdiff1d(np.flatnonzero(index == s), selector.anchors_)
        full = (index[selector.anchors_] == s).sum() == 15
        assert full or costs[others].min() > budget - spent[s] - 1e-9


@each_design
def test_cheap_items_are_preferred(method, X):
    costs = np.where(np.arange(220) % 2, 1.0, 50.0)
    selector = make(method, k=12, costs=costs, random_share=0.0).fit(X)
    assert (selector.anchors_ % 2 == 1).all()
    without, equal = (
        make(method, k=12, costs=c, random_share=0.0).fit(X) for c in (None, np.full(220, 7.0))
    )
    np.testing.assert_array_equal(without.anchors_, equal.anchors_)


def test_free_items_are_possible(X):
    costs = np.ones(220)
    costs[:30] = 0.0
    selector = make("information", k=40, costs=costs, budget=5.0, random_share=0.0).fit(X)
    assert (selector.anchors_ < 30).sum() == 30 and len(selector.anchors_) in (34, 35)


def test_costs_are_matched_by_name(X, costs):
    named = pd.Series(costs, X.columns).sample(frac=1, random_state=0)
    one, two = (make("design", k=9, costs=c, budget=9.0).fit(X) for c in (costs, named))
    np.testing.assert_array_equal(one.anchors_, two.anchors_)
    assert one.costs is costs  # as it was given


def changed(costs, item, value):
    costs = costs.copy()
    costs[item] = value
    return costs


@each_design
@pytest.mark.parametrize(
    ("change", "budget", "message"),
    [
        (lambda c: changed(c, 17, -1.0), None, "costs has -1 for item 'a/0*17'"),
        (lambda c: changed(c, 17, np.nan), None, "costs has nan for item '.*17'"),
        (lambda c: changed(c, 17, np.inf), None, "costs has inf for item '.*17'"),
        (lambda c: 0 * c, None, "costs are all zero"),
        (lambda c: c[:-1], None, r"costs has shape \(219,\), but X has 220 items"),
        (lambda c: c[:, None], None, r"costs has shape \(220, 1\)"),
        (lambda c: ["dear"] * 220, None, "costs must be numbers"),
        (lambda c: c, 0.4, r"budget=0.4 is below the cheapest item, which costs 0\.5"),
        (lambda c: None, 3.0, "budget needs costs"),
    ],
)
def test_bad_costs_are_named(method, change, budget, message, X, costs):
    selector = make(method, k=3, costs=change(costs), budget=budget)
    with pytest.raises(ValueError, match=message):
        selector.fit(X)
    assert not hasattr(selector, "anchors_")
    assert selector.set_params(costs=costs, budget=None).fit(X).anchors_.size == 3


def test_bad_costs_without_item_names_tell_the_column(X, costs):
    selector = make("information", k=3, costs=changed(costs, 17, -1.0))
    with pytest.raises(ValueError, match=r"costs has -1 for item \(column\) 17"):
        selector.fit(X.to_numpy())


@pytest.mark.parametrize("method", ["irt", "correctness", "random"])
def test_costs_are_for_designs_only(method, X, costs):
    with pytest.raises(ValueError, match=f'costs are for method="design" .* not for {method!r}'):
        make(method, costs=costs).fit(X)


@each_design
def test_a_scenario_whose_items_are_all_too_dear_is_named(method, X, labels):
    costs = np.where(labels["scenario"] == "b", 10.0, 1.0)
    selector = make(method, k=5, scenarios=labels, costs=costs, budget=4.0)
    with pytest.raises(ValueError, match="cheapest item of the scenario 'b', which costs 10"):
        selector.fit(X)


@each_design
def test_progress_is_told(method, X, labels, capsys):
    make(method, k=25, scenarios=labels, random_share=0.0).fit(X)
    assert capsys.readouterr().out == ""
    make(method, k=25, scenarios=labels, random_share=0.0, verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    for name in "abc":
        own = [line for line in lines if f" {name}: " in line]
        assert [line.split()[2] for line in own] == ["10/25", "20/25", "25/25"]


@each_design
def test_designed_anchors_tell_more_about_new_models(method):
    """Estimates of models that were not seen err less than from as many random ones."""
    data = make_responses(160, 200, n_dims=1, random_state=4)
    train, new = data.responses[:100], data.responses[100:]
    errors = {}
    for name in (method, "random"):
        selector = make(name, k=15).set_params(n_dims=1)
        if name == method:
            selector.set_params(random_share=0.0)
        estimator = GPIRTEstimator("pirt", relatives=False, mixing="paper", random_state=0).fit(
            selector.fit_transform(train)
        )
        found = estimator.predict(new.to_numpy()[:, selector.anchors_])
        errors[name] = np.abs(found - data.scores[100:]).mean()
    assert errors[method] < errors["random"]
