"""How far estimated scores are off on eleven public benchmarks: the tables of docs/accuracy.rst.

    python examples/accuracy.py --jobs 2
    python examples/accuracy.py --split extrapolation --seeds 1
    python examples/accuracy.py --train 10 --methods design
    python examples/accuracy.py --datasets gsm,rte --seeds 1 --sizes 100

Splits of the models into training models and new ones, which answer the anchors only:

random          a quarter are new
extrapolation   the weakest half trains, the strongest 30 % are new
organisation    HELM Lite: OpenAI's and Anthropic's models are new, then Meta's and Mistral's

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
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import fetch_glue, fetch_helm_lite, fetch_open_llm

FETCHERS = {
    "commonsense": fetch_helm_lite,
    "gsm": fetch_helm_lite,
    "math": fetch_helm_lite,
    "med_qa": fetch_helm_lite,
    "mmlu": fetch_helm_lite,
    "arc_challenge": fetch_open_llm,
    "ifeval": fetch_open_llm,
    "musr": fetch_open_llm,
    "rte": fetch_glue,
    "mrpc": fetch_glue,
    "sst2": fetch_glue,
}
METHODS = ["random", "correctness", "irt", "information", "design"]
OFF = {"relatives": False, "mixing": "paper"}
ESTIMATES = {
    "naive": {**OFF, "estimate": "naive"},
    "p-IRT": {**OFF, "estimate": "pirt"},
    "gp-IRT (paper)": {**OFF, "estimate": "gpirt"},
    "robust": {"relatives": False, "mixing": "robust", "estimate": "gpirt"},
    "relatives": {"relatives": "auto", "mixing": "paper", "estimate": "pirt"},
    "relatives, robust": {"relatives": "auto", "mixing": "robust", "estimate": "gpirt"},
}
ORGANISATIONS = [("openai", "anthropic"), ("meta", "mistralai")]
SIZES = [30, 60, 100]
N_DIMS = 5
COVERAGE = 0.9


def load(name: str) -> tuple[np.ndarray, list[str]]:
    """Responses and names of one benchmark's models, without those that got nothing right."""
    data = FETCHERS[name](name)
    responses = data.responses.to_numpy()
    some = responses.mean(axis=1) > 0
    return responses[some], [str(model) for model in data.responses.index[some]]


def splits(kind: str, responses: np.ndarray, models: list, seeds: int, n_train: int) -> list:
    """(seed, training rows, new rows) of every split; `n_train` training rows, all if 0."""
    n_models, found = len(responses), []
    for seed in range(seeds):
        if kind == "random":
            new = [np.random.RandomState(seed).permutation(n_models)[: n_models // 4]]
            old = [np.setdiff1d(np.arange(n_models), new[0])]
        elif kind == "extrapolation":
            order = np.argsort(responses.mean(axis=1), kind="stable")
            old, new = [order[: n_models // 2]], [order[-int(0.3 * n_models) :]]
        else:
            owner = np.array([model.split("/")[0] for model in models])
            new = [np.flatnonzero(np.isin(owner, held)) for held in ORGANISATIONS]
            old = [np.setdiff1d(np.arange(n_models), rows) for rows in new]
        if n_train:
            rng = np.random.default_rng(seed)
            old = [rng.choice(rows, n_train, replace=False) for rows in old]
        found += [(seed, *rows) for rows in zip(old, new, strict=True) if len(rows[1])]
    return found


def measure(
    name: str, responses: np.ndarray, rows_of: tuple, methods: list, sizes: list, share: float
) -> list[dict]:
    """Errors of every estimate on one split of one benchmark.

    The score is the plain mean over the items, whatever subscenarios they belong to.
    """
    seed, train, new = rows_of
    truth = responses[new].mean(axis=1)
    rows = []
    # The IRT model depends on neither the method nor the number of anchors: it is fitted once.
    with tempfile.TemporaryDirectory() as memory, threadpool_limits(limits=1):
        for method in methods:
            for size in sizes:
                selector = AnchorSelector(
                    size,
                    method=method,
                    random_share=share,
                    n_dims=N_DIMS,
                    memory=memory,
                    random_state=seed,
                )
                pipe = make_pipeline(selector, GPIRTEstimator(memory=memory, random_state=seed))
                with warnings.catch_warnings():
                    # The cap on the rounds is part of what is measured.
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    pipe.fit(responses[train])
                answers = pipe[0].transform(responses[new])
                for estimate, settings in ESTIMATES.items():
                    pipe[1].set_params(**settings)
                    low, high = pipe[1].predict_interval(answers, coverage=COVERAGE).T
                    rows.append(
                        {
                            "dataset": name,
                            "anchors": method,
                            "estimate": estimate,
                            "size": size,
                            "error": np.abs(pipe[1].predict(answers) - truth).mean(),
                            "covered": ((low <= truth) & (truth <= high)).mean(),
                            "width": (high - low).mean(),
                        }
                    )
    return rows


def table(rows: pd.DataFrame, figure: str, methods: list) -> str:
    """Mean over the benchmarks of the means over their splits; rows in the order of the docs."""
    means = rows.pivot_table(index=["anchors", "estimate"], columns="size", values=figure)
    order = pd.MultiIndex.from_product([methods, list(ESTIMATES)], names=means.index.names)
    means = means.reindex(order)
    return (100 * means).round(2).to_string()


def main() -> None:
    def names(known):
        def read(text):
            chosen = text.split(",")
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
            return chosen

        return read

    def positive(text):
        number = int(text)
        if number < 1:
            raise argparse.ArgumentTypeError(f"{number} is not positive")
        return number

    def numbers(text):
        return [positive(number) for number in text.split(",")]

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=positive, default=5, help="splits of each benchmark")
    parser.add_argument("--datasets", type=names(FETCHERS), default=list(FETCHERS))
    parser.add_argument("--methods", type=names(METHODS), default=METHODS)
    parser.add_argument(
        "--split", choices=["random", "extrapolation", "organisation"], default="random"
    )
    parser.add_argument("--train", type=int, default=0, help="training models, drawn at random")
    parser.add_argument(
        "--random-share", type=float, default=0.5, help="of the anchors of information and design"
    )
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="numbers of anchors")
    parser.add_argument("--jobs", type=int, default=1, help="splits measured at a time")
    options = parser.parse_args()

    cells = []
    for name in options.datasets:
        responses, models = load(name)
        cells += [
            delayed(measure)(
                name, responses, rows, options.methods, options.sizes, options.random_share
            )
            for rows in splits(options.split, responses, models, options.seeds, options.train)
        ]
    rows = []
    for done, found in enumerate(
        Parallel(n_jobs=options.jobs, return_as="generator")(cells), start=1
    ):
        rows += found
        print(f"{done}/{len(cells)} splits, {found[0]['dataset']}", file=sys.stderr, flush=True)
    rows = pd.DataFrame(rows)
    print(f"{', '.join(options.datasets)}; {options.split}, {options.seeds} seeds each")
    for figure, title in {
        "error": "mean absolute error of the estimated score, points of 100",
        "covered": f"% of the new models inside their {COVERAGE:.0%} interval",
        "width": "mean width of the interval, points of 100",
    }.items():
        print(f"\n{title}\n{table(rows, figure, options.methods)}")


if __name__ == "__main__":
    main()
