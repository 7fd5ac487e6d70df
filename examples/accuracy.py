"""How far estimated scores are off on eleven public benchmarks: the tables of docs/accuracy.rst.

    python examples/accuracy.py --jobs 2
    python examples/accuracy.py --split extrapolation --seeds 1
    python examples/accuracy.py --train 10 --methods design
    python examples/accuracy.py --without-twins --methods design
    python examples/accuracy.py --adaptive --datasets gsm,rte
    python examples/accuracy.py --datasets gsm,rte --seeds 1 --sizes 100

Splits of the models into training models and new ones, which answer the anchors only:

random          a quarter are new
extrapolation   the weakest half trains, the strongest 30 % are new
organisation    HELM Lite: OpenAI's and Anthropic's models are new, then Meta's and Mistral's

--without-twins leaves out new models of which a training model has 99.5 % of the answers. --pairs
adds what `compare` says of pairs of new models. --adaptive measures `simulate_adaptive` instead:
no anchors, every item may be asked. The data is downloaded once and cached.
"""

import argparse
import sys
import tempfile
import warnings

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from sklearn_irt import AnchorSelector, GPIRTEstimator, simulate_adaptive
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
    "relatives, residual": {"relatives": "auto", "mixing": 1.0, "estimate": "gpirt"},
    "relatives, robust": {"relatives": "auto", "mixing": "robust", "estimate": "gpirt"},
}
N_PAIRS = 400
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


def without_twins(responses: np.ndarray, train: np.ndarray, new: np.ndarray) -> np.ndarray:
    """The new models of which no training model has 99.5 % of the answers."""
    equal = np.array([(responses[train] == row).mean(axis=1).max() for row in responses[new]])
    return new[equal < 0.995]


def measure_pairs(estimator: GPIRTEstimator, answers: np.ndarray, truth: np.ndarray) -> dict:
    """Coverage and width of the intervals of differences, and those of two standard errors."""
    first, second = np.triu_indices(len(truth), 1)
    some = np.random.RandomState(0).permutation(len(first))[:N_PAIRS]
    first, second = first[some], second[some]
    table = estimator.compare(answers[first], answers[second], coverage=COVERAGE)
    true = truth[first] - truth[second]
    std = estimator.predict(answers, return_std=True)[1]
    half = ndtri(0.5 * (1 + COVERAGE)) * np.hypot(std[first], std[second])
    return {
        "pairs covered": ((table["low"] <= true) & (true <= table["high"])).mean(),
        "pairs width": (table["high"] - table["low"]).mean(),
        "independent width": 2 * half.mean(),
    }


def measure_adaptive(name: str, responses: np.ndarray, rows_of: tuple, sizes: list) -> list[dict]:
    """Errors after so many adaptively chosen items on one split of one benchmark."""
    seed, train, new = rows_of
    truth = responses[new].mean(axis=1)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        estimator = GPIRTEstimator(n_dims=N_DIMS, random_state=seed).fit(responses[train])
    found = simulate_adaptive(estimator, responses[new], max(sizes))
    half = ndtri(0.5 * (1 + COVERAGE)) * found.std
    error = np.abs(found.score - truth[:, None])
    return [
        {
            "dataset": name,
            "anchors": "adaptive",
            "estimate": "relatives",
            "size": size,
            "error": error[:, size - 1].mean(),
            "covered": (error <= half)[:, size - 1].mean(),
            "width": 2 * half[:, size - 1].mean(),
        }
        for size in sizes
    ]


def measure(
    name: str,
    responses: np.ndarray,
    rows_of: tuple,
    methods: list,
    sizes: list,
    share: float,
    pairs: bool,
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
                if pairs:  # of the last one: the default
                    rows[-1] |= measure_pairs(pipe[1], answers, truth)
    return rows


def table(rows: pd.DataFrame, figure: str, methods: list) -> str:
    """Mean over the benchmarks of the means over their splits; rows in the order of the docs."""
    means = rows.pivot_table(index=["anchors", "estimate"], columns="size", values=figure)
    order = pd.MultiIndex.from_product([methods, list(ESTIMATES)], names=means.index.names)
    means = means.reindex(order.intersection(means.index, sort=False))
    return (100 * means).round(2).to_string()


def overall(rows: pd.DataFrame, figure: str, methods: list) -> str:
    """Mean over the benchmarks, their splits and sizes."""
    means = rows.groupby(["anchors", "estimate"], sort=False)[figure].mean().dropna()
    return (100 * means.loc[methods]).round(1).to_string(header=False)


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
    parser.add_argument("--without-twins", action="store_true")
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--adaptive", action="store_true")
    parser.add_argument("--train", type=int, default=0, help="training models, drawn at random")
    parser.add_argument(
        "--random-share", type=float, default=0.5, help="of the anchors of information and design"
    )
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="numbers of anchors")
    parser.add_argument("--jobs", type=int, default=1, help="splits measured at a time")
    options = parser.parse_args()

    cells, twins = [], {}
    for name in options.datasets:
        responses, models = load(name)
        for seed, train, new in splits(
            options.split, responses, models, options.seeds, options.train
        ):
            if options.without_twins:
                single = without_twins(responses, train, new)
                twins.setdefault(name, []).append(1.0 - len(single) / len(new))
                new = single
            rows = seed, train, new
            if options.adaptive:
                cells.append(delayed(measure_adaptive)(name, responses, rows, options.sizes))
                continue
            settings = options.methods, options.sizes, options.random_share, options.pairs
            cells.append(delayed(measure)(name, responses, rows, *settings))
    rows = []
    for done, found in enumerate(
        Parallel(n_jobs=options.jobs, return_as="generator")(cells), start=1
    ):
        rows += found
        print(f"{done}/{len(cells)} splits, {found[0]['dataset']}", file=sys.stderr, flush=True)
    rows = pd.DataFrame(rows)
    print(f"{', '.join(options.datasets)}; {options.split}, {options.seeds} seeds each")
    if twins:
        shares = (f"{name} {np.mean(share):.0%}" for name, share in twins.items())
        print(f"new models left out, as they have a twin: {', '.join(shares)}")
    titles = {
        "error": "mean absolute error of the estimated score, points of 100",
        "covered": f"% of the new models inside their {COVERAGE:.0%} interval",
        "width": "mean width of the interval, points of 100",
        "pairs covered": f"% of the differences of pairs inside their {COVERAGE:.0%} interval",
        "pairs width": "mean width of these intervals, points of 100",
        "independent width": "mean width from two independent standard errors, points of 100",
    }
    methods = ["adaptive"] if options.adaptive else options.methods
    for figure in [figure for figure in titles if figure in rows]:
        print(f"\n{titles[figure]}\n{table(rows, figure, methods)}")
        print(f"over all sizes\n{overall(rows, figure, methods)}")


if __name__ == "__main__":
    main()
