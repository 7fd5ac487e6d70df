"""Which benchmarks can be loaded by name, and from where."""

import os
import warnings
from difflib import get_close_matches

import pandas as pd

from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._names import BUNDLED_FOLDER as BUNDLED_FOLDER
from benchmarks_registry._names import RELEASED, canonical_name
from benchmarks_registry._names import known_files as _known
from benchmarks_registry._release import CITATION, LICENCE, load_released
from benchmarks_registry._storage import read_benchmark


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
