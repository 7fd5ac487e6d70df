"""Responses in a file, and how much memory a fit takes."""

import subprocess
import sys
import textwrap
import tracemalloc
from pathlib import Path

import numpy as np
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
    from sklearn_irt import AnchorSelector, GPIRTEstimator

    def peak():
        # Not ru_maxrss, which begins with that of the process that started this one.
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

    def fit(X, n_dims, k):
        selector = AnchorSelector(k, method="irt", n_dims=n_dims, random_state=0)
        return make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(X)

    n_models, n_items, n_dims = map(int, sys.argv[1:])
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


def memory_of(n_models, n_items, n_dims):
    """Bytes that a Pipeline of IRT anchors takes beyond the matrix, and those of the matrix."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is read as Linux tells it")
    command = [sys.executable, "-c", textwrap.dedent(MEASURE)]
    sizes = map(str, (n_models, n_items, n_dims))
    done = subprocess.run(
        [*command, *sizes], capture_output=True, text=True, check=True, timeout=300
    )
    return map(int, done.stdout.split())


@pytest.mark.slow
def test_a_pipeline_of_mmlu_size_takes_at_most_four_times_its_matrix():
    extra, matrix = memory_of(395, 14_042, 5)
    assert 0 < extra <= 3 * matrix  # the fourth is X


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
