"""Responses in a file, and how much memory a fit takes."""

import io
import subprocess
import sys
import tempfile
import textwrap
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.kernels import cavi, logistic, relatives

FITTED = ("discrimination_", "difficulty_", "item_covariance_", "ability_", "ability_covariance_")


@pytest.fixture(scope="module")
def X():
    return make_responses(n_models=80, n_items=120, n_dims=2, random_state=0).responses.to_numpy()


@pytest.fixture(scope="module")
def percent():
    data = make_responses(60, n_dims=2, scenarios={"a": 40, "b": 60}, random_state=3)
    return (100 * data.responses.to_numpy()).astype(np.float32), data["items"]["scenario"]


def mapped(path, array):
    np.save(path, array)
    return np.load(path, mmap_mode="r")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int64", "bool"])
def test_a_memory_mapped_matrix_gives_the_fit_of_that_in_memory(dtype, order, tmp_path, X):
    array = np.asarray(X.astype(dtype), order=order)
    found = IRTRegressor(2).fit(mapped(tmp_path / "x.npy", array))
    kind = "float64" if dtype == "float64" else "float32"
    expected = IRTRegressor(2).fit(array.astype(kind))
    for name in FITTED:
        assert getattr(found, name).dtype == getattr(expected, name).dtype
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-4)
    double = IRTRegressor(2).fit(array.astype(float))
    np.testing.assert_allclose(found.predict(X), double.predict(X), atol=1e-4)


def test_in_its_unit_with_holes_and_scenarios(tmp_path, percent):
    cells, labels = percent[0].copy(), percent[1]
    cells[::3, 5] = np.nan
    irt = IRTRegressor(2, scenarios=labels, response_range=(0, 100))
    found = clone(irt).fit(mapped(tmp_path / "x.npy", cells))
    expected = irt.fit(cells)
    for name in FITTED:
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-3)


def test_the_threshold_is_found_in_a_memory_mapped_matrix(tmp_path, X):
    irt = IRTRegressor(1, response_model="threshold")
    found = clone(irt).fit(mapped(tmp_path / "x.npy", X.astype(np.uint8)))
    np.testing.assert_array_equal(found.thresholds_, irt.fit(X).thresholds_)


def test_an_infinite_response_in_a_file_is_named(tmp_path, X):
    bad = X.copy()
    bad[70, 7] = np.inf
    with pytest.raises(ValueError, match=r"infinite at row 70 \(model\) and column 7 \(item\)"):
        IRTRegressor(1).fit(mapped(tmp_path / "x.npy", bad))


def chunks(array):
    return iter(np.array_split(array, 7))


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64", "int64", "bool"])
def test_an_iterator_of_chunks_gives_the_fit_of_the_matrix(dtype, tmp_path, X):
    array = X.astype(dtype)
    found = IRTRegressor(2).fit(chunks(array))
    expected = IRTRegressor(2).fit(mapped(tmp_path / "x.npy", array))
    for name in FITTED:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_an_iterator_of_chunks_with_names_holes_and_scenarios(tmp_path, percent):
    cells, labels = percent[0].copy(), percent[1]
    cells[::3, 5] = np.nan
    frame = pd.DataFrame(cells, columns=[f"q{i}" for i in range(cells.shape[1])])
    frame.to_csv(tmp_path / "x.csv", index=False)
    irt = IRTRegressor(2, scenarios=labels, response_range=(0, 100))
    found = clone(irt).fit(pd.read_csv(tmp_path / "x.csv", chunksize=7, dtype=np.float32))
    expected = clone(irt).fit(frame)
    for name in (*FITTED, "feature_names_in_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    right = IRTRegressor(2, response_range=(0, 100), response_model="threshold")
    found = clone(right).fit(pd.read_csv(tmp_path / "x.csv", chunksize=7, dtype=np.float32))
    expected = right.fit(frame)
    for name in (*FITTED, "feature_names_in_", "thresholds_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_bad_chunks_are_named(X):
    def refused(error, match, *parts):
        irt = IRTRegressor(1, response_range=(0, 1))
        with pytest.raises(error, match=match):
            irt.fit(iter(parts))
        assert not hasattr(irt, "n_features_in_")

    frame = pd.DataFrame(X[:5], columns=[f"q{i}" for i in range(X.shape[1])])
    refused(ValueError, "gave no chunk; was it read before")
    refused(ValueError, r"chunk 1 of X has 4 columns \(items\), but the first has 120", X, X[:, :4])
    refused(ValueError, "chunk 1 of X has dtype float64, which uint8", X.astype("uint8"), X)
    refused(ValueError, r"chunk 0 of X has shape \(120,\)", *X)
    refused(ValueError, "column 0 of chunk 1 of X is 'q119'", frame, frame.iloc[:, ::-1])
    refused(ValueError, "column 0 of chunk 2 of X is 'q119'", X, frame, frame.iloc[:, ::-1])
    text = frame.astype(object).set_axis(range(120), axis=1)
    text.iloc[3, 4] = "yes"
    refused(ValueError, r"chunk 1 of X: .*'yes', at .*item 4", X, text)
    refused(ValueError, "chunk 0 of X: X has the item 'q'", frame.set_axis(["q"] * 120, axis=1))
    refused(ValueError, "chunk 0 of X: .*inhomogeneous", [[0, 1], [0]])
    refused(TypeError, "chunk 0 of X: an iterator where a matrix must be", iter([X]))
    refused(TypeError, "chunk 1 of X must hold numbers .* dtype is object", X, None)
    refused(TypeError, "chunk 1 of X must hold numbers .* dtype is <U1", X, X[:2].astype("U1"))
    refused(ValueError, "at least two models", X[:1])
    refused(ValueError, "shape .* one item", X[:, :0])
    refused(ValueError, "every cell is NaN", X[:1] * np.nan, X[:1] * np.nan)
    refused(ValueError, r"infinite at row 5 \(model\) and column 0", X[:5], X[:5] + np.inf)
    refused(ValueError, "infinite at model 5 and item 'q0'", frame, frame + np.inf)
    refused(ValueError, "response 2 at model 0 and item 'q0', outside", frame * 0 + 2, frame)


def test_chunks_may_mix_what_pandas_reads(X):
    """A column of read_csv is bool, int or float as its chunk has holes or not."""
    frame = pd.DataFrame(X, columns=[f"q{i}" for i in range(X.shape[1])])
    mixed = frame.iloc[:30].astype({"q0": bool, "q1": int})
    found = IRTRegressor(1).fit(iter([mixed, X[30:50], frame[50:]]))
    np.testing.assert_allclose(found.ability_, IRTRegressor(1).fit(frame).ability_, atol=1e-9)
    assert list(found.feature_names_in_) == list(frame.columns)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_one_chunk_is_in_memory_at_a_time(kind, X):
    last = []

    def make():
        for rows in np.array_split(X, 4):
            assert not last or last.pop()() is None
            cells = rows.copy()
            last.append(weakref.ref(cells))
            yield kind(cells)
            del cells

    IRTRegressor(1).fit(make())
    assert last.pop()() is None


def test_a_full_disk_is_named(X, monkeypatch):
    class Full(io.BytesIO):
        def fileno(self):
            raise OSError("no space left")

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **kwargs: Full())
    with pytest.raises(OSError, match="chunk 0 of X could not be stored .*no space left.*TMPDIR"):
        IRTRegressor(1).fit(chunks(X))


def test_only_the_fit_of_the_model_takes_an_iterator(X):
    irt = IRTRegressor(1).fit(X)
    for method in (AnchorSelector(3).fit, GPIRTEstimator().fit, irt.predict, irt.transform):
        with pytest.raises(TypeError, match="only IRTRegressor.fit takes one"):
            method(chunks(X))


def test_chunks_are_never_in_memory_together(monkeypatch):
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 100_000)
    monkeypatch.setattr(cavi, "BLOCK_CELLS", 100_000)
    rng = np.random.default_rng(0)
    shape = (20, 12_000)
    parts = (rng.integers(0, 2, shape, dtype=np.uint8) for _ in range(15))
    tracemalloc.start()
    irt = IRTRegressor(1, max_iter=1, tol=0).fit(parts)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert irt.ability_.shape == (300, 1)
    assert peak < 0.4 * 8 * 15 * shape[0] * shape[1]


def test_the_fit_never_holds_a_memory_mapped_matrix_as_a_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    answers = mapped(tmp_path / "x.npy", rng.integers(0, 2, (300, 12_000), dtype=np.uint8))
    monkeypatch.setattr(logistic, "BLOCK_ELEMENTS", 100_000)
    monkeypatch.setattr(cavi, "BLOCK_CELLS", 100_000)
    tracemalloc.start()
    irt = IRTRegressor(1, max_iter=1, tol=0).fit(answers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert irt.ability_.shape == (300, 1)
    assert peak < 0.4 * 8 * answers.size  # as float64; a copy in float32 were half of that


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "dtype"),
    [
        ("irt", "uint8"),
        ("design", "uint8"),
        ("information", "float32"),
        ("correctness", "float32"),
    ],
)
def test_a_pipeline_takes_a_memory_mapped_matrix(method, dtype, tmp_path, X):
    pipe = make_pipeline(
        AnchorSelector(10, method=method, irt=IRTRegressor(1), random_state=0),
        GPIRTEstimator(random_state=0),
    )
    found = clone(pipe).fit(mapped(tmp_path / "x.npy", X.astype(dtype)))
    expected = pipe.fit(X.astype(np.float32))
    np.testing.assert_array_equal(found[0].anchors_, expected[0].anchors_)
    answers = X[:5, found[0].anchors_]
    np.testing.assert_allclose(found[1].predict(answers), expected[1].predict(answers), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_a_pipeline_takes_a_memory_mapped_matrix_in_its_unit(dtype, tmp_path, percent):
    cells, labels = percent
    selector = AnchorSelector(
        5, method="random", scenarios=labels, response_range=(0, 100), irt=IRTRegressor(1)
    )
    pipe = make_pipeline(selector.set_params(random_state=0), GPIRTEstimator(random_state=0))
    found = clone(pipe).fit(mapped(tmp_path / "x.npy", cells.astype(dtype)))
    expected = pipe.fit(cells.astype(dtype).astype(float))
    answers = cells[:5, found[0].anchors_]
    np.testing.assert_allclose(found[1].predict(answers), expected[1].predict(answers), atol=0.05)


def test_without_a_selector_and_the_new_models_from_a_file(tmp_path, X):
    answers = mapped(tmp_path / "x.npy", X.astype(np.uint8))
    estimator = GPIRTEstimator(n_dims=1, random_state=0).fit(answers)
    expected = clone(estimator).fit(X.astype(np.float32))
    np.testing.assert_allclose(estimator.predict(answers), expected.predict(X), atol=1e-4)


def test_what_the_selector_hands_on_is_not_the_callers(X):
    """A matrix that the caller changes between the steps is not that which was fitted."""
    own = X.copy()
    selector = AnchorSelector(5, method="random", random_state=0)
    anchors = selector.fit_transform(own)
    own[:] = 0.5
    np.testing.assert_array_equal(anchors._context.responses, X)


MEASURE = """
    import sys
    from pathlib import Path
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor

    def peak():
        # Not ru_maxrss, which begins with that of the process that started this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def fit(X, n_dims, k):
        irt = IRTRegressor(n_dims, max_iter=3, tol=0)  # more rounds and starts take no more memory
        selector = AnchorSelector(k, method=sys.argv[1], irt=irt, n_init=1, random_state=0)
        return make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(X)

    n_models, n_items, n_dims = map(int, sys.argv[2:])
    rng = np.random.default_rng(0)
    fit(rng.integers(0, 2, (40, 50)).astype(float), 1, 5)  # what is loaded is not counted
    X = np.empty((n_models, n_items))
    loadings, difficulty = rng.normal(0.3, 0.5, (n_items, 5)), rng.normal(size=n_items)
    for row in X:
        row[:] = rng.random(n_items) < 1 / (1 + np.exp(difficulty - loadings @ rng.normal(size=5)))
    before = peak()
    fit(X, n_dims, 100)
    print(peak() - before, X.nbytes)
"""


def memory_of(method, n_models, n_items, n_dims):
    """Bytes that a Pipeline with such anchors takes beyond the matrix, and those of the matrix."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read as Linux tells it")
    command = [sys.executable, "-c", textwrap.dedent(MEASURE)]
    sizes = map(str, (method, n_models, n_items, n_dims))
    done = subprocess.run(
        [*command, *sizes], capture_output=True, text=True, check=True, timeout=300
    )
    return map(int, done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "n_items", "n_dims", "fixed"),
    [("irt", 14_042, 5, 0), ("irt", 28_659, 10, 0), ("design", 14_042, 5, 40e6)],
)
def test_a_pipeline_of_real_size_takes_four_times_its_matrix(method, n_items, n_dims, fixed):
    """Designed anchors need a workspace besides: simulated models by items looked at."""
    extra, matrix = memory_of(method, 395, n_items, n_dims)
    assert 0 < extra <= 3 * matrix + fixed  # the fourth is X


def test_a_pipeline_takes_at_most_four_times_its_matrix_and_blocks(monkeypatch):
    for module, name in (
        (logistic, "BLOCK_ELEMENTS"),
        (cavi, "BLOCK_CELLS"),
        (relatives, "BLOCK_ELEMENTS"),
    ):
        monkeypatch.setattr(module, name, 50_000)
    X = np.random.default_rng(0).integers(0, 2, (120, 3000)).astype(float)
    irt = IRTRegressor(1, max_iter=3, tol=0)
    selector = AnchorSelector(10, method="irt", n_init=1, irt=irt, random_state=0)
    tracemalloc.start()
    make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 3 * X.nbytes + 2e6  # the fourth is X
