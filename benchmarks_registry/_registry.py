"""Which benchmarks can be loaded by name, and from where."""

import os
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._release import CITATION, LICENCE, RELEASED, canonical_name, load_released
from benchmarks_registry._storage import read_benchmark

BUNDLED_FOLDER = Path(__file__).parent / "parameters"
FOLDER_VARIABLE = "SKLEARN_IRT_BENCHMARKS"
ENTRY_POINT_GROUP = "sklearn_irt.benchmarks"


class _Known(NamedTuple):
    name: str
    kind: str  # bundled, folder, package
    path: Callable[[], str | os.PathLike]


def _announced_path(entry_point) -> str | os.PathLike:
    """What a package's entry point stands for: a path, or a function that returns one."""
    found = entry_point.load()
    return found() if callable(found) else found


def _known() -> dict[str, _Known]:
    """Benchmark files by lower-case name; the first of a name counts."""
    found = [
        _Known(path.stem, "bundled", lambda path=path: path) for path in _files(BUNDLED_FOLDER)
    ]
    for folder in filter(None, os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep)):
        found += [_Known(p.stem, "folder", lambda p=p: p) for p in _files(Path(folder))]
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        found.append(_Known(entry_point.name, "package", lambda e=entry_point: _announced_path(e)))
    known: dict[str, _Known] = {}
    for entry in found:
        known.setdefault(entry.name.lower(), entry)
    return known


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))


def list_benchmarks() -> pd.DataFrame:
    """Benchmarks that can be loaded by name.

    Returns
    -------
    DataFrame
        Index name; columns kind (bundled; download: the authors' release; folder: one that
        the environment variable SKLEARN_IRT_BENCHMARKS names; package: announced by an installed
        one), scenarios, items, anchors, models (it was trained on), error (mean over the
        scenarios on held-out models, points of 100), source and licence. What is not known
        before a download is missing.

    Examples
    --------
    >>> from benchmarks_registry import list_benchmarks
    >>> int(list_benchmarks().loc["helm-lite", "anchors"])
    500
    """
    rows = []
    for entry in _known().values():
        try:
            tiny = read_benchmark(entry.path())
            heldout = tiny.info.get("heldout")
            error = round(float(pd.Series(heldout["mean"]).mean()), 2) if heldout else None
        except Exception as problem:  # a broken file or package must not hide the others
            warnings.warn(f"{entry.name} cannot be read: {problem}", UserWarning, stacklevel=2)
            continue
        rows.append(
            {
                "name": entry.name,
                "kind": entry.kind,
                "scenarios": ", ".join(tiny.estimator.scenarios_),
                "items": len(tiny.items),
                "anchors": len(tiny.anchors()),
                "models": len(tiny.estimator.training_models_),
                "error": error,
                "source": tiny.info.get("source", ""),
                "licence": tiny.info.get("licence", ""),
            }
        )
    rows += [
        {
            "name": name,
            "kind": "download",
            "scenarios": "all" if released.scenarios is None else released.scenarios[0],
            "source": CITATION,
            "licence": LICENCE,
        }
        for name, released in RELEASED.items()
    ]
    table = pd.DataFrame(rows).set_index("name")
    return table.astype(dict.fromkeys(["items", "anchors", "models"], "Int64"))


def load_benchmark(name_or_path: str | os.PathLike) -> TinyBenchmark:
    """Load a tiny benchmark by its name in `list_benchmarks`, or from a file.

    The authors' released ones (tinyMMLU, tinyArc, ...) are downloaded on first use, verified,
    converted without executing anything, and cached; the bundled ones work offline.

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
    OSError
        Where a download is needed and fails; says where to put the file by hand.

    Examples
    --------
    >>> from benchmarks_registry import load_benchmark
    >>> load_benchmark("helm-lite").anchors("gsm")[:2]
    ['gsm/...', 'gsm/...']
    """
    path = os.fsdecode(name_or_path)
    if os.path.isfile(path) or not isinstance(name_or_path, str):
        return read_benchmark(path)
    known = _known()
    if path.lower() in known:
        return read_benchmark(known[path.lower()].path())
    if canonical_name(path):
        return load_released(path)
    if os.path.isdir(path):
        return read_benchmark(path)  # says what is wrong with it
    names = [*sorted(entry.name for entry in known.values()), *RELEASED]
    close = get_close_matches(path.lower(), [name.lower() for name in names], n=1)
    meant = next((f" (did you mean {n!r}?)" for n in names if [n.lower()] == close), "")
    raise ValueError(
        f"there is no benchmark and no file named {path!r}{meant}; give the path of a file, or "
        f"one of {names}"
    )
