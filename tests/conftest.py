"""The only conftest: where the shared real data lies, and benchmarks that many tests use."""

import os
from pathlib import Path

import pytest
from gpirt_benches import Families, one_scenario, several_scenarios
from threadpoolctl import threadpool_limits


def _shared_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared"
    return Path(os.environ.get("SKLEARN_IRT_SHARED", beside))


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of the shared real data; tests that need it skip where it is absent."""
    folder = _shared_folder()
    if not (folder / "data").is_dir():
        if os.environ.get("SKLEARN_IRT_REQUIRE_SHARED"):
            pytest.fail(f"the shared data must be at {folder} (SKLEARN_IRT_SHARED)")
        pytest.skip(f"no shared data at {folder}; set SKLEARN_IRT_SHARED")
    return folder


@pytest.fixture
def real_data(shared, monkeypatch) -> Path:
    """The shared data as the fetchers' cache."""
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(shared / "data"))
    return shared / "data"


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Many small products: threads of BLAS cost more than they bring, the more so in parallel."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield


@pytest.fixture
def message():
    """The message of the ValueError that a call raises."""

    def message(call, *arguments, **options):
        with pytest.raises(ValueError) as error:
            call(*arguments, **options)
        return str(error.value)

    return message


@pytest.fixture(
    scope="module",
    params=[(one_scenario, "irt"), (several_scenarios, "irt"), (several_scenarios, "random")],
    ids=["one", "several", "several random"],
)
def bench(request):
    make, method = request.param
    return make(method)


@pytest.fixture(scope="module")
def several():
    return several_scenarios("irt")


@pytest.fixture(scope="module")
def one():
    return one_scenario("irt")


@pytest.fixture(scope="module")
def families():
    return Families()
