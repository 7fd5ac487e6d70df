"""How often answers are called unusual, where they are not and where they are.

    python experiments/unusual.py
    python experiments/unusual.py --seeds 1 --anchors 30 gsm rte

For each benchmark and random split: the share of the new models whose answers `predict_table`
calls unusual; of the same models with every answer reversed (easy wrong, hard right); with their
answers shuffled among the items; and AlpacaEval's NullModel, a constant text that fools the judge.
The first should stay below 5 %, the others be near 100 %. The data is downloaded once, or found in
the folder that SKLEARN_IRT_DATA names.
"""

import argparse
import sys
import warnings

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import fetch_alpaca_eval, fetch_glue, fetch_helm_lite, fetch_open_llm
from sklearn_irt.model_selection import RandomModelsSplit

FETCHERS = {
    "alpaca_eval": fetch_alpaca_eval,
    **dict.fromkeys(("commonsense", "gsm", "math", "med_qa", "mmlu"), fetch_helm_lite),
    **dict.fromkeys(("arc_challenge", "ifeval", "musr"), fetch_open_llm),
    **dict.fromkeys(("rte", "mrpc", "sst2"), fetch_glue),
}


def measure(name: str, seed: int, k: int) -> dict[str, float]:
    """Number of new models, and shares of each kind that are called unusual, on one split."""
    found = FETCHERS[name]() if name == "alpaca_eval" else FETCHERS[name](name)
    responses = found.responses
    constant = responses.loc[responses.index == "NullModel"].to_numpy()
    responses = responses.loc[responses.index != "NullModel"]
    ((train, new),) = RandomModelsSplit(1, random_state=seed).split(responses)
    responses = responses.to_numpy()
    selector = AnchorSelector(k, random_state=seed)
    estimator = GPIRTEstimator(random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator.fit(selector.fit_transform(responses[train]))
    rng = np.random.default_rng(seed)
    kinds = {
        "real": responses[new],
        "reversed": 1.0 - responses[new],
        "shuffled": rng.permuted(responses[new], axis=1),
        "NullModel": constant,
    }
    shares = {
        kind: float(estimator.predict_table(np.asarray(selector.transform(rows)))["unusual"].mean())
        for kind, rows in kinds.items()
        if len(rows)
    }
    return {"benchmark": name, "models": len(new), **shares}


def main(arguments: list[str] | None = None) -> int:
    """Print a row for each benchmark, and one for all models."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(FETCHERS)}")
    parser.add_argument("--seeds", type=int, default=3, help="splits of each")
    parser.add_argument("--anchors", type=int, default=100)
    given = parser.parse_args(arguments)
    names = given.names or list(FETCHERS)
    for name in names:
        if name not in FETCHERS:
            parser.error(f"unknown benchmark {name!r}; known are {', '.join(FETCHERS)}")
    rows = []
    for name in names:
        rows += [measure(name, seed, given.anchors) for seed in range(given.seeds)]
        print(name, file=sys.stderr, flush=True)
    table = pd.DataFrame(rows)
    shares = table.columns.drop(["benchmark", "models"])
    # Every new model counts once in the last row; NullModel is one benchmark's only.
    pooled = table[shares].mul(table["models"], axis=0).sum() / table["models"].sum()
    found = table.groupby("benchmark", sort=False)[shares].mean()
    found.loc["all"] = pooled.drop("NullModel", errors="ignore")
    numbers = table.groupby("benchmark", sort=False)["models"].sum()
    numbers["all"] = table["models"].sum()
    print((100 * found).round(1).assign(models=numbers).to_string())
    return 0


if __name__ == "__main__":
    sys.exit(main())
