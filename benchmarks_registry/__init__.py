"""Pretrained tiny benchmarks: load one, or save and share one's own."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks_registry._benchmark import TinyBenchmark
    from benchmarks_registry._evaluate import evaluate
    from benchmarks_registry._format import BenchmarkFileError
    from benchmarks_registry._registry import list_benchmarks, load_benchmark
    from benchmarks_registry._report import write_report
    from benchmarks_registry._storage import save_benchmark

__all__ = [
    "BenchmarkFileError",
    "TinyBenchmark",
    "evaluate",
    "list_benchmarks",
    "load_benchmark",
    "save_benchmark",
    "write_report",
]

# Imported when first asked for: the command's help needs none of them.
_ROOMS = {
    "BenchmarkFileError": "_format",
    "TinyBenchmark": "_benchmark",
    "evaluate": "_evaluate",
    "list_benchmarks": "_registry",
    "load_benchmark": "_registry",
    "save_benchmark": "_storage",
    "write_report": "_report",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
