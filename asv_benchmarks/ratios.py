"""The comparisons with peers once, as one table: the one of docs/speed.rst.

    python -m asv_benchmarks.ratios                # all, ten minutes
    python -m asv_benchmarks.ratios --quick        # without those that take minutes
    python -m asv_benchmarks.ratios --grid         # only seconds: a grid search at MMLU's size
    python -m asv_benchmarks.ratios --pipeline     # only seconds: Pipelines at two real sizes

Run it from the checkout's folder, on a machine that does nothing else.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from asv_benchmarks._data import simulated, sized
from asv_benchmarks.comparisons import COMPARISONS, SLOW, Comparison, measure, seconds
from sklearn_irt import AnchorSelector, GPIRTEstimator

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.rst"
FIGURES = ("size", "ours, s", "peer, s", "ratio", "lowest to highest", "held out: ours", "peer")


def number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def row(found: Comparison | str) -> tuple[str, ...]:
    """The cells of a comparison, or of the reason that there is none."""
    if not isinstance(found, Comparison):
        return (found, *[""] * (len(FIGURES) - 1))
    ratios = found.ratios
    likelihoods = [found.likelihood_ours, found.likelihood_peer]
    return (
        found.size,
        number(np.median(found.ours)),
        number(np.median(found.peer)),
        number(found.ratio),
        f"{number(ratios.min())} to {number(ratios.max())}" if len(ratios) > 1 else "once",
        *["" if value is None else f"{value:.4f}" for value in likelihoods],
    )


def table(results: dict[str, Comparison | str]) -> pd.DataFrame:
    """A row a comparison, of text."""
    rows = {name: row(found) for name, found in results.items()}
    return pd.DataFrame.from_dict(rows, "index", columns=FIGURES).rename_axis("ours / peer")


def as_json(results: dict[str, Comparison | str]) -> str:
    """All repeats, and the reasons of what was skipped."""
    plain = {
        name: found._asdict() | {"ratio": found.ratio} if isinstance(found, Comparison) else found
        for name, found in results.items()
    }
    return json.dumps(plain, indent=2)


def grid_seconds(n_jobs: int) -> float:
    """A grid search over k and dimensions, five folds, on a simulated matrix; fits are cached."""
    responses = simulated(*sized((395, 14_042), (20, 60)), 5)
    with tempfile.TemporaryDirectory() as folder:
        pipe = make_pipeline(
            AnchorSelector(memory=folder, random_state=0), GPIRTEstimator(random_state=0)
        )
        grid = {
            "anchorselector__k": sized([30, 60, 100], [5]),
            "anchorselector__n_dims": sized([2, 5, 10, 15], [1]),
        }
        search = GridSearchCV(
            pipe,
            grid,
            scoring="neg_mean_absolute_error",
            cv=KFold(sized(5, 2)),
            n_jobs=n_jobs,
            refit=False,
            error_score="raise",
        )
        return seconds(lambda: search.fit(responses, responses.mean(axis=1)))


def pipelines() -> Iterator[str]:
    """Seconds from a simulated matrix to a fitted Pipeline of 100 anchors, line by line."""
    for n_items, n_dims in ((14_042, 5), (28_659, 10)):
        responses = simulated(*sized((395, n_items), (20, n_items // 200)), 5)
        for method in ("irt", "design"):
            selector = AnchorSelector(
                sized(100, 5), method=method, n_dims=sized(n_dims, 1), random_state=0
            )
            pipe = make_pipeline(selector, GPIRTEstimator(random_state=0))
            taken = seconds(lambda pipe=pipe, X=responses: pipe.fit(X))
            shape = f"{responses.shape[0]} x {responses.shape[1]:,}, d={selector.n_dims}"
            yield f"{shape}, {method}: {taken:.1f} s"


def main(arguments: list[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--json", type=Path, help="write every repeat to this file")
    parser.add_argument(
        "--page", type=Path, help="where the table goes; of a full run, docs/speed.rst"
    )
    parser.add_argument(
        "--grid", action="store_true", help="print the seconds of a grid search, minutes"
    )
    parser.add_argument(
        "--pipeline", action="store_true", help="print the seconds of fitting Pipelines"
    )
    parser.add_argument("--jobs", type=int, default=2, help="of the grid search")
    given = parser.parse_args(arguments)
    if given.grid:
        print(f"{grid_seconds(given.jobs):.0f} s, n_jobs={given.jobs}")
        return 0
    if given.pipeline:
        for line in pipelines():
            print(line, flush=True)
        return 0
    page = given.page or (None if given.quick else PAGE)
    if page is not None and not page.is_file():
        parser.error(f"--page {page}: there is no such file")
    if given.json and not given.json.parent.is_dir():
        parser.error(f"--json {given.json}: there is no such folder")
    # asv imports this module too, from where it does not see the folder `experiments`.
    from experiments.tables import replace_tables, rst_table

    results = {}
    for name in COMPARISONS:
        if given.quick and name in SLOW:
            continue
        results[name] = measure(name)
        print(name, *row(results[name]), sep=" | ", file=sys.stderr, flush=True)
    text = rst_table(table(results))
    print(text)
    if given.json:
        given.json.write_text(as_json(results) + "\n", encoding="utf-8")
    if page is None:
        return 0
    command = f"python -m asv_benchmarks.ratios{' --quick' if given.quick else ''}"
    kind = "**Quick run**, without the longest" if given.quick else "Full run"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    replace_tables(page, "ratios", f"{kind}: ``{command}`` ({machine})\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
