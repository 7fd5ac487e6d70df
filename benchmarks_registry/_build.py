"""Train the bundled benchmarks from the fetched data: ``python -m benchmarks_registry._build``."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks_registry._benchmark import save_benchmark
from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import fetch_helm_lite

SEED = 0
N_SPLITS = 5
K = 100
SOURCES = {
    "helm-lite": {
        "source": "HELM Lite v1, five scenarios, the responses collected in "
        "github.com/socialfoundations/benchmark-prediction at 2e98c82e; item parameters trained "
        "by sklearn_irt",
        "licence": "MIT (collected responses); BSD-3-Clause (item parameters)",
        "citation": "Liang et al. (2023), Holistic evaluation of language models, TMLR; Zhang, "
        "Hardt (2025), How benchmark prediction from fewer data misses the mark, arXiv 2506.07673",
        "description": "commonsense (OpenbookQA), gsm (GSM8K), math (MATH level 1), med_qa "
        "(MedQA), mmlu (five subjects)",
        "metric": "exact match, 0 or 1",
    }
}
FETCHERS = {"helm-lite": fetch_helm_lite}


def pipeline(scenarios: Any, method: str = "irt", seed: int = SEED) -> Pipeline:
    """The pipeline that is bundled."""
    return make_pipeline(
        AnchorSelector(K, method=method, scenarios=scenarios, random_state=seed),
        GPIRTEstimator(random_state=seed),
    )


def heldout_errors(responses: pd.DataFrame, scenarios: np.ndarray) -> dict:
    """Errors on models left out of the training, beside the mean of as many random items.

    Returns
    -------
    dict
        mean, worst, random_mean: {scenario: points of 100}, over `splits` splits that leave out
        `share` of the models.
    """
    splits = ShuffleSplit(N_SPLITS, test_size=0.25, random_state=SEED)
    errors, random_errors = [], []
    for seed, (train, new) in enumerate(splits.split(responses)):
        pipe = pipeline(scenarios, seed=seed).fit(responses.iloc[train])
        truth = GPIRTEstimator(scenarios=scenarios).fit(responses).training_scores_[new]
        answers = pipe[0].transform(responses.iloc[new])
        errors.append(np.abs(pipe[1].predict_scenarios(answers).to_numpy() - truth))
        random = pipeline(scenarios, "random", seed).fit(responses.iloc[train])
        answers = random[0].transform(responses.iloc[new])
        random[1].set_params(estimate="naive")
        random_errors.append(np.abs(random[1].predict_scenarios(answers).to_numpy() - truth))
    names = pipe[1].scenarios_

    def points(values: np.ndarray) -> dict[str, float]:
        return {name: round(100 * float(v), 2) for name, v in zip(names, values, strict=True)}

    return {
        "splits": N_SPLITS,
        "share": 0.25,
        "mean": points(np.concatenate(errors).mean(axis=0)),
        "worst": points(np.concatenate(errors).max(axis=0)),
        "random_mean": points(np.concatenate(random_errors).mean(axis=0)),
    }


def build(name: str, folder: Path) -> Path:
    """Train one bundled benchmark and write its file."""
    data = FETCHERS[name]()
    scenarios = data["items"][["scenario", "subscenario"]].to_numpy(dtype=object)
    print(f"{name}: {data.responses.shape[0]} models x {data.responses.shape[1]} items", flush=True)
    heldout = heldout_errors(data.responses, scenarios)
    print(f"  held-out error, points: {heldout['mean']}; random items: {heldout['random_mean']}")
    pipe = pipeline(scenarios).fit(data.responses)
    path = save_benchmark(pipe, folder / f"{name}.npz", name=name, heldout=heldout, **SOURCES[name])
    print(f"  {path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Build all bundled benchmarks, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {sorted(FETCHERS)}; all by default")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "parameters")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(FETCHERS))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; known are {sorted(FETCHERS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or FETCHERS:
        build(name, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
