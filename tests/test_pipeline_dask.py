"""A grid search on joblib's backend of dask gives what the default backend gives."""

import os

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses


@pytest.fixture
def client(tmp_path):
    """Two workers, each a process of its own, on this machine."""
    distributed = pytest.importorskip("dask.distributed", reason='needs the extra "dask"')
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            local_directory=str(tmp_path),
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def error(pipe, X, y):
    return abs(pipe.predict(X) - y).mean()


def process(pipe, X, y):
    return os.getpid()


@pytest.mark.slow
# Of dask's own dependencies, not ours.
@pytest.mark.filterwarnings("default::DeprecationWarning", "default::FutureWarning")
def test_grid_search_on_dask_gives_the_same(client):
    X, y = make_responses(30, 40, n_dims=2, random_state=0, return_X_y=True)
    pipe = make_pipeline(AnchorSelector(n_dims=2, random_state=0), GPIRTEstimator(random_state=0))
    search = GridSearchCV(
        pipe,
        {"anchorselector__k": [5, 15]},
        scoring={"error": error, "process": process},
        cv=2,
        refit=False,
        error_score="raise",
    )
    expected = search.fit(X, y).cv_results_
    with joblib.parallel_config(backend="dask", wait_for_workers_timeout=60):
        found = search.fit(X, y).cv_results_
    assert found["params"] == expected["params"]
    for split in range(2):
        assert os.getpid() not in found[f"split{split}_test_process"]  # the workers did it
    for name in (name for name in expected if name.endswith("_error")):
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-10, err_msg=name)
