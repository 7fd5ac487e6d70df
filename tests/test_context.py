"""What travels from AnchorSelector to GPIRTEstimator: it survives, and it never lies."""

import copy
import dataclasses
import io
import pickle
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt._context import AnchoredArray, context_of
from sklearn_irt.datasets import make_responses

K = 15


@pytest.fixture(scope="module")
def data():
    return make_responses(n_models=90, n_items=120, random_state=0)


@pytest.fixture(scope="module")
def selector(data):
    return AnchorSelector(k=K, n_dims=2, n_init=1, random_state=0).fit(data.responses)


@pytest.fixture
def anchored(data, selector):
    """Output of fit_transform as an array."""
    return clone(selector).fit_transform(data.responses)


@pytest.fixture
def frame(data, selector):
    """Output of fit_transform as a DataFrame."""
    return clone(selector).set_output(transform="pandas").fit_transform(data.responses)


def fitted(X, y=None):
    return GPIRTEstimator(random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def expected(data, selector):
    answers = data.responses.to_numpy()[:, selector.anchors_]
    return fitted(clone(selector).fit_transform(data.responses)).predict(answers)


def agrees(X, data, selector, expected):
    answers = data.responses.iloc[:, selector.anchors_]
    predicted = fitted(X).predict(answers if isinstance(X, pd.DataFrame) else answers.to_numpy())
    np.testing.assert_allclose(predicted, expected, rtol=0, atol=1e-10)


def test_the_array_is_the_anchors_columns(data, selector, anchored):
    assert type(anchored) is AnchoredArray
    np.testing.assert_array_equal(anchored, data.responses.to_numpy()[:, selector.anchors_])
    assert context_of(anchored).responses.shape == data.responses.shape


def test_the_dataframe_is_the_anchors_columns(data, selector, frame):
    pd.testing.assert_frame_equal(frame, data.responses.iloc[:, selector.anchors_])
    assert context_of(frame).responses.shape == data.responses.shape


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_array_survives_pickle(protocol, anchored, data, selector, expected):
    back = pickle.loads(pickle.dumps(anchored, protocol=protocol))
    assert type(back) is AnchoredArray
    agrees(back, data, selector, expected)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_dataframe_survives_pickle(protocol, frame, data, selector, expected):
    agrees(pickle.loads(pickle.dumps(frame, protocol=protocol)), data, selector, expected)


@pytest.mark.parametrize("mmap_mode", [None, "r", "c"])
@pytest.mark.parametrize("compress", [0, 3])
def test_array_survives_joblib(tmp_path, mmap_mode, compress, anchored, data, selector, expected):
    if mmap_mode and compress:
        pytest.skip("a compressed file cannot be mapped")
    joblib.dump(anchored, tmp_path / "a.joblib", compress=compress)
    back = joblib.load(tmp_path / "a.joblib", mmap_mode=mmap_mode)
    assert type(back) is AnchoredArray
    agrees(back, data, selector, expected)


SAME_VALUES = {
    "copy": lambda X: X.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "view": lambda X: X[:, :],
    "fortran": lambda X: X.copy(order="F"),
    "np.copy subok": lambda X: np.copy(X, subok=True),
    "asanyarray": np.asanyarray,
    "take all": lambda X: np.take(X, np.arange(X.shape[0]), axis=0),
    "transposed twice": lambda X: X.T.T,
    "float32": lambda X: X.astype(np.float32),
    "slice pickled": lambda X: pickle.loads(pickle.dumps(X[:, :])),
}


@pytest.mark.parametrize("change", SAME_VALUES.values(), ids=SAME_VALUES)
def test_array_survives_what_keeps_the_values(change, anchored, data, selector, expected):
    agrees(change(anchored), data, selector, expected)


SAME_FRAME = {
    "copy": lambda X: X.copy(),
    "shallow": lambda X: X.copy(deep=False),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "loc": lambda X: X.loc[:, :],
    "rename index": lambda X: X.rename(index=str.upper),
    "concat of one": lambda X: pd.concat([X]),
    "concat of halves": lambda X: pd.concat([X.iloc[:40], X.iloc[40:]]),
    "columns joined": lambda X: pd.concat([X.iloc[:, :4], X.iloc[:, 4:]], axis=1),
    "float32": lambda X: X.astype("float32"),
    "nullable": lambda X: X.convert_dtypes(),
}


@pytest.mark.parametrize("change", SAME_FRAME.values(), ids=SAME_FRAME)
def test_dataframe_survives_what_keeps_the_values(change, frame, data, selector, expected):
    agrees(change(frame), data, selector, expected)


def test_attrs_hold_the_same_object(frame):
    context = context_of(frame)
    assert context_of(frame.copy()) is context
    assert context_of(copy.deepcopy(frame)) is context
    assert context_of(frame.iloc[:3]) is context
    assert copy.copy(context) is context and copy.deepcopy(context) is context
    assert context_of(pd.concat([frame, frame])) is context


def test_frames_of_different_contexts_join_without_one(data, frame):
    other = AnchorSelector(k=5, method="random", random_state=1).set_output(transform="pandas")
    joined = pd.concat([frame, other.fit_transform(data.responses).add_prefix("b")], axis=1)
    assert context_of(joined) is None


def test_context_is_immutable_and_compares_by_identity(anchored, data, selector):
    context = context_of(anchored)
    with pytest.raises(dataclasses.FrozenInstanceError):
        context.weights = None
    twin = context_of(clone(selector).fit_transform(data.responses))
    assert context == context and context != twin
    assert twin.digest == context.digest


ARITHMETIC = {
    "times": lambda X: X * 1.0,
    "plus": lambda X: X + 0,
    "minus mean": lambda X: X - X.mean(axis=0),
    "compare": lambda X: X > 0.5,
    "sqrt": np.sqrt,
    "reversed": lambda X: 1 - X,
    "in place": lambda X: np.add(X, 0.0, out=X),
    "matmul": lambda X: X @ np.eye(X.shape[1]),
    "where": lambda X: np.where(X > 0.5, X, X),
    "vstack": lambda X: np.vstack([X, X]),
    "concatenate": lambda X: np.concatenate([X[:4], X[4:]]),
    "hstack": lambda X: np.hstack([X, X]),
    "asarray": np.asarray,
    "asfortranarray": np.asfortranarray,
    "np.array": np.array,
    "list": lambda X: np.array(X.tolist()),
    "mean": lambda X: X.mean(axis=1, keepdims=True),
    "object": lambda X: StandardScaler().fit_transform(X),
}


@pytest.mark.parametrize("change", ARITHMETIC.values(), ids=ARITHMETIC)
def test_results_of_arithmetic_carry_no_context(change, anchored):
    plain = np.array(anchored)
    changed = change(anchored)
    assert context_of(changed) is None
    np.testing.assert_allclose(np.asarray(changed, float), np.asarray(change(plain), float))


def test_reductions_are_plain_numbers(anchored):
    plain = np.array(anchored)
    assert anchored.sum() == plain.sum() and isinstance(anchored.sum(), float)
    assert np.mean(anchored) == plain.mean()
    assert float(anchored[0, 0]) == plain[0, 0]
    assert np.isnan(anchored).sum() == 0


@pytest.mark.parametrize(
    "slice_rows",
    [
        lambda X: X[:50],
        lambda X: X[::2],
        lambda X: X[np.arange(len(X)) % 3 > 0],
        lambda X: np.take(X, [0, 1, 2], axis=0),
        lambda X: X[:, :5],
    ],
)
@pytest.mark.parametrize("kind", ["anchored", "frame"])
def test_rows_or_columns_taken_away_are_refused(kind, slice_rows, request):
    X = request.getfixturevalue(kind)
    if isinstance(X, pd.DataFrame):
        values = slice_rows(X.to_numpy())
        rows = slice_rows(np.arange(X.size).reshape(X.shape)) // X.shape[1]
        X = X.iloc[rows[:, 0], : values.shape[1]]
    else:
        X = slice_rows(X)
    with pytest.raises(ValueError, match="X has shape .* split the models before the Pipeline"):
        fitted(X)


@pytest.mark.parametrize("kind", ["anchored", "frame"])
def test_changed_values_are_refused(kind, request):
    X = request.getfixturevalue(kind)
    with pytest.raises(ValueError, match="X differs from the anchors' responses"):
        fitted(X[::-1])
    if isinstance(X, pd.DataFrame):
        with pytest.raises(ValueError, match="X differs from the anchors' responses"):
            fitted(X.iloc[:, ::-1])
        X = X.copy()
        X.iloc[3, 2] = 1 - X.iloc[3, 2]
    else:
        X[3, 2] = 1 - X[3, 2]
    with pytest.raises(ValueError, match="X differs from the anchors' responses"):
        fitted(X)


def test_a_missing_answer_that_was_filled_is_refused(data):
    responses = data.responses.to_numpy().copy()
    responses[::7, ::3] = np.nan
    X = AnchorSelector(k=40, n_dims=2, random_state=0).fit_transform(responses)
    assert np.isnan(X).any()
    assert fitted(X.copy()).n_features_in_ == 40
    X[np.isnan(X)] = 0.0
    with pytest.raises(ValueError, match="X differs"):
        fitted(X)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_output_of_transform_cannot_be_fitted_on(output, data, selector):
    X = clone(selector).set_output(transform=output).fit(data.responses).transform(data.responses)
    assert context_of(X).responses is None
    with pytest.raises(ValueError, match="fit_transform"):
        fitted(X)


@pytest.mark.parametrize("name", ["scenarios", "response_range"])
def test_what_belongs_to_the_selector_is_refused_in_the_estimator(name, anchored):
    value = {"scenarios": ["a"] * K, "response_range": (0, 1)}[name]
    with pytest.raises(ValueError, match=f"{name} belongs to the AnchorSelector"):
        GPIRTEstimator(**{name: value}).fit(anchored)


LOSSY = {
    "scaler": StandardScaler(),
    "asarray": FunctionTransformer(np.asarray),
    "copy by hand": FunctionTransformer(lambda X: np.array(X.tolist())),
    "union": FeatureUnion([("a", FunctionTransformer()), ("b", FunctionTransformer())]),
}


@pytest.mark.parametrize("step", LOSSY.values(), ids=LOSSY)
def test_a_lossy_step_between_warns_when_there_is_a_target(step, data, selector):
    pipe = make_pipeline(clone(selector), step, GPIRTEstimator(random_state=0))
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        pipe.fit(data.responses.to_numpy(), data.scores)
    lost = [str(w.message) for w in record if "context was lost" in str(w.message)]
    assert len(lost) == 1
    assert "let GPIRTEstimator follow AnchorSelector directly" in lost[0]


def test_a_union_of_selectors_warns(data, selector):
    union = FeatureUnion(
        [("a", clone(selector)), ("b", AnchorSelector(k=5, method="random", random_state=0))]
    )
    for output in ("default", "pandas"):
        union.set_output(transform=output)
        with pytest.warns(UserWarning, match="context was lost"):
            make_pipeline(union, GPIRTEstimator(random_state=0)).fit(data.responses, data.scores)


def test_no_warning_where_nothing_was_lost(data, selector):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(clone(selector), GPIRTEstimator(random_state=0)).fit(
            data.responses, data.scores
        )
        fitted(data.responses, data.scores)


def test_polars_output_warns(data, selector):
    pytest.importorskip("polars")
    pipe = make_pipeline(
        clone(selector).set_output(transform="polars"), GPIRTEstimator(random_state=0)
    )
    with pytest.warns(UserWarning, match="polars output"):
        pipe.fit(data.responses.to_numpy(), data.scores)


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_an_identity_step_keeps_the_context(output, data, selector, expected):
    pipe = make_pipeline(
        clone(selector), FunctionTransformer(), "passthrough", GPIRTEstimator(random_state=0)
    ).set_output(transform=output)
    np.testing.assert_allclose(
        pipe.fit(data.responses, data.scores).predict(data.responses), expected, atol=1e-10
    )


def _hashed_alike(one, other):
    return joblib.hash(one) == joblib.hash(other)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_hash_depends_on_everything_that_the_context_holds(output, data):
    """A step that is cached by joblib must not answer for other anchors or other models."""
    X = data.responses

    def fit_transform(responses=X, **params):
        selector = AnchorSelector(k=120, n_dims=2, random_state=0).set_params(**params)
        return selector.set_output(transform=output).fit_transform(responses)

    base = fit_transform()
    assert _hashed_alike(base, fit_transform())
    assert _hashed_alike(base, pickle.loads(pickle.dumps(base)))
    half = np.repeat(["a", "b"], 60)
    sub = np.column_stack([np.repeat("a", 120), np.repeat(["x", "y"], [20, 100])])
    # All items are anchors: the values are the same throughout.
    for params in (
        {"scenarios": half},
        {"scenarios": sub},
        {"response_range": (0, 2)},
        {"method": "random"},
        {"n_dims": 3},
    ):
        other = fit_transform(**params)
        np.testing.assert_array_equal(np.asarray(other), np.asarray(base))
        assert not _hashed_alike(base, other), params
    renamed = X.rename(columns=lambda name: "q" + name)
    if output == "default":  # an array: only the context knows the names
        assert not _hashed_alike(base, fit_transform(renamed))


def test_hash_depends_on_responses_that_are_no_anchors(data):
    selector = AnchorSelector(k=5, method="random", random_state=0)
    base = selector.fit_transform(data.responses)
    changed = data.responses.copy()
    other_item = np.setdiff1d(np.arange(120), selector.anchors_)[0]
    changed.iloc[0, other_item] = 1 - changed.iloc[0, other_item]
    other = clone(selector).fit_transform(changed)
    np.testing.assert_array_equal(base, other)
    assert not _hashed_alike(base, other)


@pytest.mark.slow
def test_hash_is_that_of_another_process(data, selector, anchored):
    again = joblib.Parallel(n_jobs=2)(
        joblib.delayed(_fit_and_hash)(clone(selector), data.responses) for _ in range(2)
    )
    assert again == [joblib.hash(anchored)] * 2


def _fit_and_hash(selector, responses):
    return joblib.hash(selector.fit_transform(responses))


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_transform_does_not_leak_the_training_responses(output):
    data = make_responses(n_models=400, n_items=500, random_state=1)
    selector = AnchorSelector(k=10, method="random", random_state=0).set_output(transform=output)
    with_them = selector.fit_transform(data.responses)
    without = selector.transform(data.responses.iloc[:3])
    assert len(pickle.dumps(with_them)) > data.responses.size * 8
    assert len(pickle.dumps(without)) < data.responses.size * 8 / 10
    assert context_of(without).responses is None and context_of(without).models is None
    assert len(pickle.dumps(selector)) < data.responses.size * 8 / 10


def test_input_is_left_alone(data, selector):
    for output in ("default", "pandas"):
        X, values = data.responses.copy(), data.responses.to_numpy().copy()
        clone(selector).set_output(transform=output).fit_transform(X)
        pd.testing.assert_frame_equal(X, data.responses)
        assert X.attrs == {} and context_of(X) is None
        clone(selector).set_output(transform=output).fit_transform(values)
        np.testing.assert_array_equal(values, data.responses.to_numpy())
        assert values.dtype.metadata is None and type(values) is np.ndarray


@pytest.mark.parametrize(
    "as_objects",
    [
        lambda X: X.astype(object),
        lambda X: X.astype(object).tolist(),
        lambda X: pd.DataFrame(X).astype(object),
        lambda X: np.where(np.isnan(X), None, X.astype(object)).tolist(),
        lambda X: np.where(np.isnan(X), None, X.astype(object)),
        lambda X: pd.DataFrame(X).convert_dtypes(),
        lambda X: pd.DataFrame(X).astype("boolean"),
        lambda X: X.tolist(),
    ],
    ids=["objects", "list", "object frame", "None list", "None", "Int64", "boolean", "NaN list"],
)
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_context_reaches_the_estimator_from_every_container(as_objects, output, data, selector):
    X = data.responses.to_numpy().copy()
    X[::5, ::4] = np.nan
    base = clone(selector).fit_transform(X)
    other = clone(selector).set_output(transform=output).fit_transform(as_objects(X))
    assert context_of(other) is not None
    np.testing.assert_allclose(fitted(other).mixing_, fitted(base).mixing_, rtol=0, atol=1e-12)


def test_anchors_are_saved_by_numpy_without_a_warning(data, selector):
    """The dtype's metadata is ours; np.save warns about it."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.save(buffer, np.array(selector.transform(data.responses), dtype=float))
    buffer.seek(0)
    np.testing.assert_array_equal(np.load(buffer), data.responses.to_numpy()[:, selector.anchors_])
