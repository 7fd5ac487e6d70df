"""What time of the processor and memory a fit needs, at any size: the figures of docs/scale.rst.

    python examples/scale.py --models 5000 --items 30000
    python examples/scale.py --models 395 --items 14042 --dtype float64 --pipeline

A matrix of simulated right and wrong answers is written into a temporary folder, in blocks, and
fitted where it lies (float64: from memory), each size in a process of its own: as many models and
items as asked, half of the models, and half of the items. --pipeline also chooses IRT anchors, fits
a GPIRTEstimator, and estimates as many new models as --new says.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor

CHUNK = 200
STATUS = pathlib.Path("/proc/self/status")  # of Linux; ru_maxrss may be the parent's
COLUMNS = "models   items  what        cpu s  s/round  peak MB  of them the fit's"


def peak() -> float:
    """The most memory, in MB, that this process has held so far, mapped files included."""
    if not STATUS.exists():
        return float("nan")
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def write(path: pathlib.Path, n_models: int, n_items: int, dtype: str, seed: int) -> None:
    """Answers of a five-dimensional model, written in blocks of rows."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(0.3, 0.5, size=(n_items, 5)).astype(np.float32)
    difficulty = rng.normal(size=n_items).astype(np.float32)
    stored = np.lib.format.open_memmap(path, "w+", dtype, (n_models, n_items))
    for start in range(0, n_models, CHUNK):
        rows = stored[start : start + CHUNK]
        ability = rng.normal(size=(len(rows), 5)).astype(np.float32)
        chance = expit(ability @ loadings.T - difficulty)
        rows[:] = rng.random(chance.shape, dtype=np.float32) < chance
    stored.flush()


def report(shape: tuple, what: str, start: float, before: float, per_round: str = "") -> None:
    seconds = time.process_time() - start
    print(
        f"{shape[0]:6d}{shape[1]:8d}  {what:8s}{seconds:9.1f}{per_round:>9s}"
        f"{peak():9.0f}{peak() - before:19.0f}",
        flush=True,
    )


def measure(path: pathlib.Path, options: argparse.Namespace) -> None:
    """Fit the matrix in a file and print rows of the table; in a process of its own."""
    warnings.simplefilter("ignore", ConvergenceWarning)  # a few rounds are enough to time them
    IRTRegressor(1, max_iter=1).fit(np.eye(4))  # what is loaded at first use is not counted
    X = np.load(path, mmap_mode=None if options.dtype == "float64" else "r")
    before, start = peak(), time.process_time()
    IRTRegressor(options.dims, max_iter=1, tol=0).fit(X)
    first, start = time.process_time() - start, time.process_time()
    settings = IRTRegressor(options.dims, max_iter=options.rounds, tol=0)
    clone(settings).fit(X)
    per_round = (time.process_time() - start - first) / (options.rounds - 1)
    report(X.shape, "fit", start, before, f"{per_round:.2f}")
    if not options.pipeline:
        return
    start = time.process_time()
    selector = AnchorSelector(100, method="irt", irt=settings, random_state=0)
    pipe = make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(X)
    report(X.shape, "pipeline", start, before)
    anchors = pipe[0].anchors_
    rows = np.resize(np.arange(len(X)), options.new)
    answers = np.array(X[:, anchors], dtype=np.float32)[rows]
    del X
    start = time.process_time()
    pipe[-1].predict(answers)
    report((options.new, len(anchors)), "predict", start, before)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=5000)
    parser.add_argument("--items", type=int, default=30_000)
    parser.add_argument("--dims", type=int, default=5)
    parser.add_argument("--dtype", choices=["uint8", "float32", "float64"], default="uint8")
    parser.add_argument("--rounds", type=int, default=5, help="of each fit, 2 or more")
    parser.add_argument("--pipeline", action="store_true", help="anchors and estimator, too")
    parser.add_argument("--new", type=int, default=5000, help="models to estimate")
    parser.add_argument("--only", action="store_true", help="not the halves")
    parser.add_argument("--file", type=pathlib.Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, least in (("models", 4), ("items", 2), ("dims", 1), ("rounds", 2), ("new", 1)):
        if getattr(options, name) < least:
            parser.error(f"--{name} must be at least {least}")
    if options.pipeline and options.items < 200:
        parser.error("--pipeline takes 100 anchors, so --items must be at least 200")
    if options.file is not None:
        measure(options.file, options)
        return
    sizes = [(options.models, options.items)]
    if not options.only:
        sizes += [(options.models // 2, options.items), (options.models, options.items // 2)]
    print(COLUMNS, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = pathlib.Path(folder) / "responses.npy"
            write(path, *size, options.dtype, seed=0)
            own = [sys.executable, __file__, *sys.argv[1:], "--file", str(path)]
            subprocess.run(own, check=True)


if __name__ == "__main__":
    main()
