"""One checkpoint of yours, run in full, makes the estimates of the next ones sharper.

    python examples/own_models.py

IFEval and MuSR of the Open LLM Leaderboard. An organisation with at least three models is a team:
none of its models is among the training models. The team runs its first model in full and adds it
with `add_models`, which takes milliseconds and no refit; its other models answer the anchors only.
Their scores are estimated without and with the added one. The data is downloaded once and cached.
"""

import argparse
import copy
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import fetch_open_llm

SIZES = [30, 60, 100]
N_GROUPS = 5


def teams(owners: np.ndarray, least: int = 3) -> list[str]:
    """Organisations with at least so many models."""
    names, counts = np.unique(owners, return_counts=True)
    return [str(name) for name in names[counts >= least]]


def measure(benchmark: str) -> list[dict]:
    """Errors of the teams' other models, without and with the added one."""
    data = fetch_open_llm(benchmark)
    kept = data.models["duplicate_of"].isna().to_numpy()  # the same model submitted twice
    responses = data.responses[kept]
    owners = np.array([str(name).split("/")[0] for name in responses.index])
    rows = []
    found = teams(owners)
    for group in range(N_GROUPS):  # several teams leave at a time: fewer fits
        away = found[group::N_GROUPS]
        train = responses[~np.isin(owners, away)]
        for size in SIZES:
            pipe = make_pipeline(
                AnchorSelector(size, random_state=0), GPIRTEstimator(random_state=0)
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                pipe.fit(train)
            for team in away:
                first, others = responses[owners == team].iloc[:1], responses[owners == team][1:]
                truth = others.mean(axis=1)
                answers = pipe[0].transform(others)
                own = copy.copy(pipe[1]).add_models(first)
                for added, estimator in (("no", pipe[1]), ("yes", own)):
                    error = np.abs(estimator.predict(answers) - truth)
                    rows += [
                        {"benchmark": benchmark, "size": size, "added": added, "error": 100 * e}
                        for e in error
                    ]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--benchmarks", nargs="*", default=["ifeval", "musr"])
    options = parser.parse_args()
    rows = pd.DataFrame([row for name in options.benchmarks for row in measure(name)])
    table = rows.pivot_table(index=["benchmark", "added"], columns="size", values="error")
    counts = rows.groupby("benchmark").size() // (2 * len(SIZES))
    print("mean absolute error by number of anchors, points of 100")
    print(table.round(2).to_string())
    print(f"models: {', '.join(f'{name} {count}' for name, count in counts.items())}")


if __name__ == "__main__":
    main()
