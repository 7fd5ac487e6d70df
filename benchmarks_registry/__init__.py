"""Pretrained tiny benchmarks: load one, or save and share one's own."""

import os
from pathlib import Path

import pandas as pd

from benchmarks_registry._benchmark import TinyBenchmark, read_benchmark, save_benchmark
from benchmarks_registry._format import BenchmarkFileError

__all__ = [
    "BenchmarkFileError",
    "TinyBenchmark",
    "list_benchmarks",
    "load_benchmark",
    "save_benchmark",
]

_BUNDLED = Path(__file__).parent / "parameters"


def _bundled() -> dict[str, Path]:
    return {path.stem: path for path in sorted(_BUNDLED.glob("*.npz"))}


def list_benchmarks() -> pd.DataFrame:
    """Benchmarks that can be loaded by name.

    Returns
    -------
    DataFrame
        Index name; columns scenarios, items, anchors, models (it was trained on), source and
        licence.

    Examples
    --------
    >>> from benchmarks_registry import list_benchmarks
    >>> int(list_benchmarks().loc["helm-lite", "anchors"])
    500
    """
    rows = []
    for path in _bundled().values():
        tiny = read_benchmark(path)
        rows.append(
            {
                "name": tiny.name,
                "scenarios": ", ".join(tiny.estimator.scenarios_),
                "items": len(tiny.items),
                "anchors": len(tiny.anchors()),
                "models": len(tiny.estimator.training_models_),
                "source": tiny.info.get("source", ""),
                "licence": tiny.info.get("licence", ""),
            }
        )
    return pd.DataFrame(rows).set_index("name")


def load_benchmark(name_or_path: str | os.PathLike) -> TinyBenchmark:
    """Load a tiny benchmark by its name in `list_benchmarks`, or from a file.

    Parameters
    ----------
    name_or_path : str or path-like
        A name (without regard to case), or the path of a file that `save_benchmark` wrote.

    Returns
    -------
    TinyBenchmark

    Raises
    ------
    ValueError
        Where there is neither a benchmark nor a file of that name.
    BenchmarkFileError
        Where the file is damaged or not a benchmark.

    Examples
    --------
    >>> from benchmarks_registry import load_benchmark
    >>> load_benchmark("helm-lite").anchors("gsm")[:2]
    ['gsm/...', 'gsm/...']
    """
    text = os.fspath(name_or_path)
    bundled = _bundled()
    if isinstance(text, str) and text.lower() in bundled and not os.path.isfile(text):
        return read_benchmark(bundled[text.lower()])
    if not os.path.exists(text):
        raise ValueError(
            f"there is no benchmark and no file named {text!r}; the benchmarks are "
            f"{sorted(bundled)}"
        )
    return read_benchmark(text)
