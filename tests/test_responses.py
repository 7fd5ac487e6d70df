"""Reading a response matrix: bad input is named, odd input is read."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor

N, M = 24, 30


@pytest.fixture(scope="module")
def values():
    rng = np.random.RandomState(0)
    ability, difficulty = rng.normal(size=(N, 1)), rng.normal(size=M)
    return (rng.random_sample((N, M)) < 1 / (1 + np.exp(difficulty - 1.5 * ability))).astype(float)


@pytest.fixture(scope="module")
def frame(values):
    return pd.DataFrame(
        values, index=[f"llm{i}" for i in range(N)], columns=[f"q{j}" for j in range(M)]
    )


def irt():
    return IRTRegressor(2, tol=1e-3)


def selector():
    return AnchorSelector(k=8, irt=irt(), n_init=1, random_state=0)


def estimator():
    return GPIRTEstimator(irt=irt(), random_state=0)


MAKERS = [irt, selector, estimator]
each = pytest.mark.parametrize("make", MAKERS)


def answer(fitted, X):
    return np.asarray(fitted.predict(X) if hasattr(fitted, "predict") else fitted.transform(X))


def with_cell(X, row, column, value):
    X = X.astype(object).copy()
    if isinstance(X, pd.DataFrame):
        X.iloc[row, column] = value
    else:
        X[row, column] = value
    return X


BAD = {
    "no rows": (lambda X: X[:0], ValueError, "0 sample.*at least two models"),
    "no columns": (lambda X: X[:, :0], ValueError, "0 feature"),
    "one model": (lambda X: X[:1], ValueError, "minimum of 2.*at least two models"),
    "1-d": (lambda X: X[0], ValueError, "Expected 2D array, got 1D array"),
    "3-d": (lambda X: X[:, :, None], ValueError, "dim 3"),
    "scalar": (lambda X: 1.0, ValueError, "Expected 2D array, got scalar"),
    "ragged": (lambda X: [[1, 0], [1]], ValueError, "inhomogeneous"),
    "sparse matrix": (sp.csr_matrix, TypeError, "Sparse data was passed for X"),
    "sparse array": (sp.csr_array, TypeError, "Sparse data was passed for X"),
    "complex": (lambda X: X * 1j, ValueError, "Complex data not supported"),
    "string in an array": (
        lambda X: with_cell(X, 2, 3, "right"),
        ValueError,
        r"X must hold numbers.*'right'.*row 2 \(model\) and column 3 \(item\)",
    ),
    "string in a list": (
        lambda X: with_cell(X, 2, 3, "right").tolist(),
        ValueError,
        r"X must hold numbers.*'right'.*row 2 \(model\) and column 3 \(item\)",
    ),
    "dict in an array": (
        lambda X: with_cell(X, 2, 3, {"a": 1}),
        TypeError,
        r"X must hold numbers.*argument must be a string or a real number.*row 2",
    ),
    "infinite": (
        lambda X: with_cell(X, 2, 3, np.inf).astype(float),
        ValueError,
        r"contains infinity.*row 2 \(model\) and column 3 \(item\)",
    ),
    "all missing": (lambda X: X * np.nan, ValueError, "X has no observed response"),
    "None": (lambda X: None, ValueError, "Expected 2D array, got scalar|X.*None"),
}


@each
@pytest.mark.parametrize(("spoil", "error", "message"), BAD.values(), ids=BAD)
def test_bad_matrix_in_fit(make, spoil, error, message, values):
    spoiled = make()
    with pytest.raises(error, match=f"(?s){message}"):
        spoiled.fit(spoil(values))
    np.testing.assert_array_equal(
        answer(spoiled.fit(values), values), answer(make().fit(values), values)
    )


BAD_FRAME = {
    "string": (
        lambda X: with_cell(X, 4, 5, "yes"),
        r"X must hold numbers.*'yes'.*model 'llm4' and item 'q5'",
    ),
    "infinite": (
        lambda X: with_cell(X, 4, 5, -np.inf).astype(float),
        "infinity.*model 'llm4' and item 'q5'",
    ),
    "duplicate item": (
        lambda X: X.rename(columns={"q5": "q4"}),
        "X has the item 'q4' in more than one column",
    ),
    "index as an item": (
        lambda X: X.reset_index(drop=True).reset_index(names="Unnamed: 0"),
        'column "Unnamed: 0", the row names of a file .*index_col=0',
    ),
    "mixed names": (lambda X: X.rename(columns={"q5": 5}), None),
}


@each
@pytest.mark.parametrize(("spoil", "message"), BAD_FRAME.values(), ids=BAD_FRAME)
def test_bad_frame_in_fit_names_model_and_item(make, spoil, message, frame):
    spoiled = make()
    if message is None:
        with pytest.raises(TypeError, match="only supported if all input features have string"):
            spoiled.fit(spoil(frame))
    else:
        with pytest.raises(ValueError, match=f"(?s){message}"):
            spoiled.fit(spoil(frame))
    np.testing.assert_array_equal(
        answer(spoiled.fit(frame), frame), answer(make().fit(frame), frame)
    )


@each
@pytest.mark.parametrize("value", [-0.5, 1.01])
def test_value_outside_a_given_range_names_model_and_item(make, value, frame):
    fitted = make().set_params(response_range=(0, 1))
    bad = with_cell(frame, 4, 5, value).astype(float)
    for X, where in (
        (bad, "model 'llm4' and item 'q5'"),
        (bad.to_numpy(), r"row 4 \(model\) and column 5 \(item\)"),
    ):
        with pytest.raises(
            ValueError, match=rf"response {value:g} at {where}, outside the response range \[0, 1\]"
        ):
            fitted.fit(X)
    assert fitted.fit(frame).n_features_in_ == M


@each
@pytest.mark.parametrize(
    "bounds", [(1, 0), (0, 0), (0,), (0, 1, 2), (0, np.inf), (np.nan, 1), ("a", "b"), [[0, 1]]]
)
def test_bad_response_range(make, bounds, values):
    with pytest.raises(ValueError, match="response_range must be a pair of finite numbers"):
        make().set_params(response_range=bounds).fit(values)


@each
def test_learned_range_warns_once_and_names_range_and_cause(make, values):
    causes = {
        "percentages": (values * 99 + 1, r"range \[1, 100\].*percentages.*\(0, 100\)"),
        "ratings": (values * 9 + 1, r"range \[1, 10\].*ratings.*response_range=\(1, 10\)"),
        "marks": (np.where(values == 0, -1.0, 1.0), r"range \[-1, 1\].*-1 a mark of missing"),
        "other": (values * 3 - 2, r"range \[-2, 1\].*response_range=\(low, high\)"),
    }
    for X, message in causes.values():
        with warnings.catch_warnings(record=True) as record:
            warnings.simplefilter("always")
            make().fit(X)
        about_range = [w for w in record if "response_range" in str(w.message)]
        assert len(about_range) == 1
        with pytest.warns(UserWarning, match=message):
            make().fit(X)
    with pytest.raises(ValueError, match=r"every response in X is 7.*response_range=\(low, high\)"):
        make().fit(np.full((4, 4), 7.0))


@each
def test_range_of_unit_responses_is_the_unit_interval(make, values):
    """Training values within [0, 1] do not shrink the range: new ones may be 0 or 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        narrow = make().fit(0.25 + values / 2)
        assert np.isfinite(answer(narrow, values)).all()


def test_new_values_outside_a_learned_range_are_clipped_with_a_warning(values):
    with pytest.warns(UserWarning, match="response_range"):
        fitted = irt().fit(values * 4)
    with pytest.warns(UserWarning, match=r"outside the range \[0, 4\].*clipped"):
        clipped = fitted.predict(np.where(values == 1, 6.0, -1.0))
    np.testing.assert_array_equal(clipped, fitted.predict(values * 4))


PREDICT_BAD = {
    "narrow": (lambda X: X[:, :5], ValueError, f"X has 5 features.*is expecting {M} features"),
    "wide": (lambda X: np.c_[X, X], ValueError, f"X has {2 * M} features.*expecting {M}"),
    "infinite": (lambda X: with_cell(X, 1, 2, np.inf).astype(float), ValueError, "infinity.*row 1"),
    "string": (lambda X: with_cell(X, 1, 2, "a"), ValueError, "X must hold numbers.*row 1"),
    "outside": (lambda X: with_cell(X, 1, 2, 3.0), ValueError, "response 3 at row 1.*column 2"),
    "no rows": (lambda X: X[:0], ValueError, "0 sample"),
    "1-d": (lambda X: X[0], ValueError, "Expected 2D array"),
    "ragged": (lambda X: [[1, 0], [1]], ValueError, "inhomogeneous"),
    "sparse": (sp.csr_matrix, TypeError, "Sparse data"),
    "complex": (lambda X: X * 1j, ValueError, "Complex data"),
}


@pytest.mark.parametrize("make", [irt, estimator])
@pytest.mark.parametrize(("spoil", "error", "message"), PREDICT_BAD.values(), ids=PREDICT_BAD)
def test_bad_matrix_in_predict_leaves_the_fitted_state(make, spoil, error, message, values):
    fitted = make().fit(values)
    before, state = fitted.predict(values), pickle.dumps(fitted)
    with pytest.raises(error, match=f"(?s){message}"):
        fitted.predict(spoil(values))
    assert pickle.dumps(fitted) == state
    np.testing.assert_array_equal(fitted.predict(values), before)


@each
def test_other_column_order_or_names_are_refused(make, frame):
    fitted = make().fit(frame)
    before = answer(fitted, frame)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        answer(fitted, frame.iloc[:, ::-1])
    with pytest.raises(ValueError, match="(?s)unseen at fit time.*- z.*seen at fit time.*- q3"):
        answer(fitted, frame.rename(columns={"q3": "z"}))
    with pytest.raises(ValueError, match="(?s)seen at fit time, yet now missing.*- q3"):
        answer(fitted, frame.drop(columns="q3"))
    with pytest.raises(ValueError, match="'q4' in more than one column"):
        answer(fitted, frame.rename(columns={"q3": "q4"}))
    np.testing.assert_array_equal(answer(fitted, frame), before)


METHODS = {
    irt: ["predict", "transform", "predict_responses", "score", "get_feature_names_out"],
    selector: ["transform", "inverse_transform", "get_support", "get_feature_names_out"],
    estimator: [
        "predict",
        "predict_interval",
        "predict_scenarios",
        "predict_table",
        "relatives_of",
        "add_models",
    ],
}


@pytest.mark.parametrize(
    ("make", "method"), [(make, method) for make in MAKERS for method in METHODS[make]]
)
def test_not_fitted(make, method, values):
    args = () if method.startswith("get_") else (values,)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(make(), method)(*args)
    if make is estimator:
        with pytest.raises(NotFittedError):
            estimator().compare(values, values)
    if make is irt:
        with pytest.raises(NotFittedError):
            irt().item_information(np.zeros((1, 2)))


BAD_TARGETS = {
    "short": (lambda y: y[:5], f"y has 5 scores, but X has {N} models"),
    "nan": (lambda y: np.r_[np.nan, y[1:]], "y contains NaN"),
    "infinite": (lambda y: np.r_[np.inf, y[1:]], "y contains NaN or infinity"),
    "strings": (lambda y: ["a"] * N, "could not convert string to float"),
    "2-d": (lambda y: np.c_[y, y], "should be a 1d array"),
}


@pytest.mark.parametrize("make", [irt, estimator])
@pytest.mark.parametrize(("spoil", "message"), BAD_TARGETS.values(), ids=BAD_TARGETS)
def test_bad_target(make, spoil, message, values):
    fitted = make()
    with pytest.raises(ValueError, match=message):
        fitted.fit(values, spoil(values.mean(axis=1)))
    assert fitted.fit(values, values.mean(axis=1)).n_features_in_ == M


CONTAINERS = {
    "list": lambda X: X.tolist(),
    "tuple": lambda X: tuple(map(tuple, X.tolist())),
    "None": lambda X: np.where(np.isnan(X), None, X.astype(object)).tolist(),
    "pd.NA in a list": lambda X: np.where(np.isnan(X), pd.NA, X.astype(object)).tolist(),
    "pd.NA in an array": lambda X: np.where(np.isnan(X), pd.NA, X.astype(object)),
    "objects": lambda X: X.astype(object),
    "frame": pd.DataFrame,
    "object frame": lambda X: pd.DataFrame(X).astype(object),
    "object frame with pd.NA": lambda X: pd.DataFrame(X).astype(object).where(~np.isnan(X), pd.NA),
    "Int64": lambda X: pd.DataFrame(X).astype("Int64"),
    "Float64": lambda X: pd.DataFrame(X).astype("Float64"),
    "boolean": lambda X: pd.DataFrame(X).astype("boolean"),
    "fortran": np.asfortranarray,
    "read only": lambda X: _read_only(X),
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
}


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


@each
@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
def test_every_container_gives_the_same(make, container, values):
    X = values.copy()
    X[::3, ::4] = np.nan
    expected = answer(make().fit(X), X)
    fitted = make().fit(container(X))
    np.testing.assert_allclose(answer(fitted, X).astype(float), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(
        answer(make().fit(X), container(X)).astype(float), expected, rtol=0, atol=1e-10
    )


@each
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint8, np.float16, ">f8"])
def test_every_dtype_gives_the_same(make, dtype, values):
    expected = answer(make().fit(values), values)
    X = values.astype(dtype)
    np.testing.assert_allclose(answer(make().fit(X), X).astype(float), expected, rtol=0, atol=1e-10)


@each
def test_float32_is_close_and_kept_where_it_can_be(make, values):
    expected = answer(make().fit(values), values)
    single = answer(make().fit(values.astype(np.float32)), values.astype(np.float32))
    np.testing.assert_allclose(np.abs(single), np.abs(expected), rtol=0, atol=5e-3)
    if make is not estimator:
        fitted = make().fit(values.astype(np.float32))
        assert np.asarray(fitted.transform(values.astype(np.float32))).dtype == np.float32


@each
def test_input_is_not_written_to(make, values, frame):
    X, held = values.copy(), frame.copy()
    X[0, 0] = held.iloc[0, 0] = np.nan
    before_X, before_frame = X.copy(), held.copy()
    for data in (X, held):
        fitted = make().set_params(response_range=(0, 2)).fit(data)
        answer(fitted, data)
    np.testing.assert_array_equal(X, before_X)
    pd.testing.assert_frame_equal(held, before_frame)


def empty_row(X):
    X = X.copy()
    X[3] = np.nan
    return X


def empty_column(X):
    X = X.copy()
    X[:, 3] = np.nan
    return X


def constant_columns(X):
    X = X.copy()
    X[:, 3], X[:, 4] = 0.0, 1.0
    return X


def extreme_rows(X):
    X = X.copy()
    X[3], X[4] = 0.0, 1.0
    return X


ODD = {
    "all-NaN row": empty_row,
    "all-NaN column": empty_column,
    "constant columns": constant_columns,
    "all right and all wrong": extreme_rows,
    "all the same": lambda X: np.ones_like(X),
    "twins": lambda X: np.vstack([X, X]),
    "two models": lambda X: X[:2],
    "one item": lambda X: X[:, :1],
    "two items": lambda X: X[:, :2],
    "mostly missing": lambda X: np.where(np.random.RandomState(0).rand(*X.shape) < 0.9, np.nan, X),
}


@each
@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_matrices_give_finite_results(make, odd, values):
    X = odd(values)
    fitted = make()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*anchors were asked for")
        fitted.fit(X)
    result = np.asarray(fitted.fit(X).predict(X)) if make is not selector else fitted.weights_
    assert np.isfinite(result).all()
    if make is not selector:
        assert ((result > -1e-9) & (result < 1 + 1e-9)).all()
    if make is irt:
        for name in ("ability_", "discrimination_", "difficulty_", "item_covariance_"):
            assert np.isfinite(getattr(fitted, name)).all(), name
    if make is estimator:
        score, std = fitted.predict(X, return_std=True)
        assert np.isfinite(std).all() and (std >= 0).all()
        numbers = fitted.predict_table(X).drop(columns=["naive", "relatives"])
        assert np.isfinite(numbers).all(axis=None)


@each
def test_a_failed_fit_leaves_the_parameters(make, values):
    fitted = make().fit(values)
    before = {name: copy.copy(value) for name, value in fitted.get_params().items()}
    with pytest.raises(ValueError):
        fitted.fit(values * np.nan)
    assert str(fitted.get_params()) == str(before)
    np.testing.assert_array_equal(
        answer(fitted.fit(values), values), answer(make().fit(values), values)
    )


@each
def test_a_list_of_matrices_is_no_matrix(make, values):
    with pytest.raises(
        TypeError, match=r"list of matrices; give numpy.concatenate\(X\).*iter\(X\)"
    ):
        make().fit([values[:10], values[10:]])
