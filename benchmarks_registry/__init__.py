"""Pretrained tiny benchmarks: load one, or save and share one's own."""

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
