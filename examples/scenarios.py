"""Several scenarios, shifts between old and new models, and scores that are not 0 or 1.

    python examples/scenarios.py --jobs 2
    python examples/scenarios.py --parts alpaca --anchor-seeds 10

Three measurements that docs/accuracy.rst reports:

- `abilities`: HELM Lite's five scenarios; what answers in one scenario tell about the others.
- `win-rate`: the error of HELM's mean win rate, with models split at random and by organisation,
  so that no organisation is on both sides.
- `alpaca`: AlpacaEval 2.0, whose responses are win probabilities: taken as they are, and made 0 or
  1 by the paper's threshold for the IRT model.

The data is downloaded once and cached.
"""

import argparse
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import fetch_alpaca_eval, fetch_helm_lite
from sklearn_irt.metrics import mean_win_rate

N_SPLITS = 5
N_SPLITS_ALPACA = 8
K = 100
SIZES = [20, 30, 60, 100]
ABILITIES = ["correlated", "separate", "joint"]
METHODS = ["random", "correctness", "irt"]
N_NEW_HELM = 20


def random_split(n_models: int, n_new: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the training models and of the new ones."""
    new = np.random.RandomState(seed).permutation(n_models)[:n_new]
    return np.setdiff1d(np.arange(n_models), new), new


def organisation_split(organisation: pd.Series, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole organisations, in random order, until there are enough new models."""
    shuffled = np.random.RandomState(seed).permutation(organisation.unique())
    sizes = organisation.value_counts()[shuffled].cumsum()
    held = shuffled[: np.searchsorted(sizes, N_NEW_HELM) + 1]
    new = organisation.isin(held).to_numpy()
    return np.flatnonzero(~new), np.flatnonzero(new)


def fitted(selector: AnchorSelector, estimator: GPIRTEstimator, responses) -> Pipeline:
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        # The cap on the rounds is part of what is measured.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return make_pipeline(selector, estimator).fit(responses)


def helm_lite():
    """Responses, labels of the items, and the true scores, subscenarios counting the same."""
    data = fetch_helm_lite()
    labels = data["items"][["scenario", "subscenario"]]
    groups = [labels["scenario"].to_numpy(), labels["subscenario"].fillna("").to_numpy()]
    truth = data.responses.T.groupby(groups).mean().groupby(level=0).mean().T
    return data, labels.to_numpy(dtype=object), truth


def measure_abilities(data, labels, truth, seed: int) -> list[dict]:
    """Error of p-IRT from random anchors, mean over the scenarios, on one random split."""
    train, new = random_split(len(truth), N_NEW_HELM, seed)
    rows = []
    # The fits do not depend on the number of anchors: the memory shares them.
    with tempfile.TemporaryDirectory() as memory:
        for abilities in ABILITIES:
            irt = IRTRegressor(abilities=abilities, memory=memory)
            for k in SIZES:
                selector = AnchorSelector(
                    k, method="random", irt=irt, scenarios=labels, random_state=seed
                )
                estimator = GPIRTEstimator("pirt", mixing="paper", random_state=seed)
                pipe = fitted(selector, estimator, data.responses.iloc[train])
                answers = pipe[0].transform(data.responses.iloc[new])
                for relatives in [False, "auto"] if abilities == "correlated" else [False]:
                    found = pipe[1].set_params(relatives=relatives).predict_scenarios(answers)
                    known = truth.iloc[new][found.columns]
                    error = np.abs(found.to_numpy() - known.to_numpy()).mean()
                    name = f"{abilities}, relatives" if relatives else abilities
                    rows.append({"abilities": name, "anchors a scenario": k, "error": error})
    return rows


def measure_win_rate(data, labels, truth, kind: str, seed: int) -> list[dict]:
    """Error of the mean win rate against the training models, on one split."""
    if kind == "random":
        train, new = random_split(len(truth), N_NEW_HELM, seed)
    else:
        train, new = organisation_split(data.models["organisation"], seed)
    rate = mean_win_rate(truth.iloc[new], reference=truth.iloc[train])
    rows = []
    with tempfile.TemporaryDirectory() as memory:
        for method in METHODS:
            selector = AnchorSelector(
                K, method=method, scenarios=labels, memory=memory, random_state=seed
            )
            estimator = GPIRTEstimator(
                relatives=False, mixing="paper", aggregate="mean_win_rate", random_state=seed
            )
            pipe = fitted(selector, estimator, data.responses.iloc[train])
            answers = pipe[0].transform(data.responses.iloc[new])
            for estimate in ["naive", "gpirt"]:
                found = pipe[1].set_params(estimate=estimate).predict(answers)
                error = np.abs(found - rate).mean()
                rows.append(
                    {"anchors": method, "estimate": estimate, "split": kind, "error": error}
                )
    return rows


def measure_alpaca(data, seed: int, n_anchor_seeds: int = 1) -> list[dict]:
    """Error of the estimated win probability on one random split."""
    # NullModel gives a constant answer that fools the judge: no model.
    models = data.responses.index != "NullModel"
    responses, truth = data.responses[models], data.scores[models].to_numpy()
    train, new = random_split(len(truth), len(truth) // 4, seed)
    rows = []
    with tempfile.TemporaryDirectory() as memory:
        for model in ["fractional", "threshold"]:
            irt = IRTRegressor(response_model=model, memory=memory)
            for method in ["random", "irt"]:
                for anchor_seed in range(seed, seed + 100 * n_anchor_seeds, 100):
                    selector = AnchorSelector(K, method=method, irt=irt, random_state=anchor_seed)
                    estimator = GPIRTEstimator(relatives=False, mixing="paper", random_state=seed)
                    pipe = fitted(selector, estimator, responses.iloc[train])
                    answers = pipe[0].transform(responses.iloc[new])
                    for estimate in ["naive", "pirt", "gpirt"]:
                        found = pipe[1].set_params(estimate=estimate).predict(answers)
                        error = np.abs(found - truth[new]).mean()
                        rows.append(
                            {"anchors": method, "estimate": estimate, "responses": model}
                            | {"error": error}
                        )
    return rows


def measure_alpaca_default(data, seed: int) -> list[dict]:
    """Error of the default estimator with every choice of anchors on one random split."""
    models = data.responses.index != "NullModel"
    responses, truth = data.responses[models], data.scores[models].to_numpy()
    train, new = random_split(len(truth), len(truth) // 4, seed)
    rows = []
    with tempfile.TemporaryDirectory() as memory:
        for method in ["random", "irt", "information", "design"]:
            selector = AnchorSelector(K, method=method, memory=memory, random_state=seed)
            pipe = fitted(selector, GPIRTEstimator(random_state=seed), responses.iloc[train])
            found = pipe.predict(responses.iloc[new])
            error = np.abs(found - truth[new]).mean()
            rows.append({"anchors": method, "estimate": "default", "error": error})
    return rows


def report(title: str, rows: list[dict], index: list[str], columns: str) -> None:
    """Print the means over the splits, in the order in which they were measured."""
    rows = pd.DataFrame(rows)
    means = 100 * rows.groupby([*index, columns], sort=False)["error"].mean().unstack(columns)
    print(f"{title}\n{means.round(2).to_string()}\n", flush=True)


def main() -> None:
    parts = ["abilities", "win-rate", "alpaca"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--jobs", type=int, default=1, help="splits measured at a time")
    parser.add_argument(
        "--anchor-seeds",
        type=int,
        default=1,
        help="choices of anchors on each split of AlpacaEval; one alone moves the figures by 0.15",
    )
    options = parser.parse_args()

    def run(cells: list) -> list[dict]:
        found = []
        parallel = Parallel(n_jobs=options.jobs, return_as="generator")
        for done, rows in enumerate(parallel(cells), start=1):
            found += rows
            print(f"{done}/{len(cells)} splits", file=sys.stderr, flush=True)
        return found

    if "abilities" in options.parts:
        helm = helm_lite()
        cells = [delayed(measure_abilities)(*helm, seed) for seed in range(N_SPLITS)]
        report(
            "HELM Lite, random anchors, p-IRT: mean over the scenarios of the absolute error, "
            "points of 100",
            run(cells),
            index=["abilities"],
            columns="anchors a scenario",
        )
    if "win-rate" in options.parts:
        helm = helm_lite()
        kinds = ["random", "organisation"]
        if helm[0].models["organisation"].isna().any():
            print("the table of HELM Lite's models is not in the cache: no split by organisation")
            kinds.remove("organisation")
        cells = [
            delayed(measure_win_rate)(*helm, kind, seed)
            for kind in kinds
            for seed in range(N_SPLITS)
        ]
        report(
            f"HELM Lite, {K} anchors a scenario: mean absolute error of the mean win rate, points "
            "of 100, by split of the models",
            run(cells),
            index=["anchors", "estimate"],
            columns="split",
        )
    if "alpaca" in options.parts:
        data = fetch_alpaca_eval()
        cells = [
            delayed(measure_alpaca)(data, seed, options.anchor_seeds)
            for seed in range(N_SPLITS_ALPACA)
        ]
        report(
            f"AlpacaEval 2.0, {K} anchors: mean absolute error of the win probability, points of "
            "100, by the responses that the IRT model is fitted on",
            run(cells),
            index=["anchors", "estimate"],
            columns="responses",
        )
        report(
            f"The same with the default estimator, {K} anchors",
            run([delayed(measure_alpaca_default)(data, seed) for seed in range(N_SPLITS_ALPACA)]),
            index=["anchors"],
            columns="estimate",
        )


if __name__ == "__main__":
    main()
