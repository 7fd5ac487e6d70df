"""The package's public names are imported when they are asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import benchmarks_registry

ROOT = Path(__file__).resolve().parents[2]


def test_public_names():
    assert set(benchmarks_registry.__all__) == set(benchmarks_registry._ROOMS)
    assert set(benchmarks_registry.__all__) <= set(dir(benchmarks_registry))
    for name in benchmarks_registry.__all__:
        found = getattr(benchmarks_registry, name)
        assert found.__name__ == name and vars(benchmarks_registry)[name] is found
    with pytest.raises(AttributeError, match="has no attribute 'load'"):
        benchmarks_registry.load  # noqa: B018
    with pytest.raises(ImportError, match="save"):
        from benchmarks_registry import save  # noqa: F401


def test_the_package_itself_imports_nothing_heavy():
    code = (
        "import sys, benchmarks_registry\n"
        "print(sorted({'sklearn', 'pandas', 'numpy'} & set(sys.modules)))\n"
        "from benchmarks_registry import *\n"
        "print(load_benchmark.__module__)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.stdout.splitlines() == ["[]", "benchmarks_registry._registry"], done.stderr
