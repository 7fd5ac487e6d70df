"""Train the bundled benchmarks from the fetched data: ``python -m benchmarks_registry._build``."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import Bunch
from threadpoolctl import threadpool_limits

from benchmarks_registry._storage import save_benchmark
from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import (
    fetch_alpaca_eval,
    fetch_glue,
    fetch_helm_lite,
    fetch_open_llm,
)

SEED = 0
N_SPLITS = 5
TEST_SIZE = 0.25
K = 100

_COLLECTION = (
    "responses collected in github.com/socialfoundations/benchmark-prediction at 2e98c82e; item "
    "parameters trained by sklearn_irt"
)
_COLLECTION_LICENCE = "MIT (collected responses); BSD-3-Clause (item parameters)"
_COLLECTION_CITATION = (
    "Zhang, Dorner, Hardt (2025), How benchmark prediction from fewer data misses the mark, "
    "arXiv 2506.07673"
)


class Entry(NamedTuple):
    """What a bundled benchmark is made of."""

    fetch: Callable[[], Bunch]
    description: str
    metric: str
    source: str
    citation: str
    licence: str = _COLLECTION_LICENCE
    drop: tuple[str, ...] = ()
    method: str = "design"


ENTRIES = {
    "helm-lite": Entry(
        fetch_helm_lite,
        "commonsense (OpenbookQA), gsm (GSM8K), math (MATH level 1, seven subjects), med_qa "
        "(MedQA), mmlu (five subjects); an item is scenario/position of the instance in HELM's run "
        "files, from 0",
        "exact_match",
        f"HELM Lite v1; {_COLLECTION}",
        "Liang et al. (2023), Holistic evaluation of language models, TMLR; "
        + _COLLECTION_CITATION,
    ),
    "open-llm-v2": Entry(
        fetch_open_llm,
        "ifeval (prompt_level_strict_acc) and musr (acc_norm, three subtasks) of the Open LLM "
        "Leaderboard v2; an item is scenario/doc_id of lm-evaluation-harness, musr's subtasks one "
        "after the other",
        "ifeval: prompt_level_strict_acc; musr: acc_norm",
        f"Open LLM Leaderboard v2; {_COLLECTION}",
        "Fourrier et al. (2024), Open LLM Leaderboard v2, Hugging Face; " + _COLLECTION_CITATION,
    ),
    "arc-challenge": Entry(
        lambda: fetch_open_llm("arc_challenge"),
        "ARC challenge as run by the Open LLM Leaderboard; an item is scenario/doc_id of "
        "lm-evaluation-harness",
        "acc_norm",
        f"Open LLM Leaderboard; {_COLLECTION}",
        "Clark et al. (2018), Think you have solved question answering?, arXiv 1803.05457; "
        + _COLLECTION_CITATION,
    ),
    "alpaca-eval-2": Entry(
        fetch_alpaca_eval,
        "AlpacaEval 2.0, win probability against gpt4_1106_preview; without NullModel, a constant "
        "answer that fools the judge; an item is data set/position in the evaluation set",
        "weighted win probability",
        "github.com/tatsu-lab/alpaca_eval at cd543a14; item parameters trained by sklearn_irt",
        "Dubois et al. (2024), Length-controlled AlpacaEval, arXiv 2404.04475",
        "Apache-2.0 (annotations); BSD-3-Clause (item parameters)",
        ("NullModel",),
        method="information",  # the simulated design suits right or wrong answers better
    ),
    "glue": Entry(
        lambda: fetch_glue(["rte", "mrpc", "sst2"]),
        "rte, mrpc and sst2 of GLUE, validation split; that a row is the same model in all three "
        "is likely, not published; an item is task/position in the validation split",
        "accuracy",
        f"GLUE; {_COLLECTION}",
        f"Wang et al. (2019), GLUE, ICLR; {_COLLECTION_CITATION}",
    ),
}


def pipeline(scenarios: Any, method: str = "design", seed: int = SEED) -> Pipeline:
    """The pipeline that is bundled."""
    return make_pipeline(
        AnchorSelector(K, method=method, scenarios=scenarios, random_state=seed),
        GPIRTEstimator(random_state=seed),
    )


def training_data(entry: Entry) -> tuple[pd.DataFrame, np.ndarray, list[str]]:
    """Responses of distinct models, labels of the items, and the rows left out."""
    data = entry.fetch()
    left_out = data.models["model"].isin(entry.drop)
    if "duplicate_of" in data.models:
        left_out |= data.models["duplicate_of"].notna()
    labels = data["items"][["scenario", "subscenario"]].to_numpy(dtype=object)
    left_out = left_out.to_numpy()
    return data.responses[~left_out], labels, [str(m) for m in data.responses.index[left_out]]


def heldout_errors(
    responses: pd.DataFrame, labels: np.ndarray, truth: np.ndarray, ours: str = "design"
) -> dict:
    """Errors on models left out of the training, beside the mean of as many random items.

    Parameters
    ----------
    responses : DataFrame of shape (n_models, n_items)
    labels : ndarray of shape (n_items, 2)
    truth : ndarray of shape (n_models, n_scenarios)
        Full scores.
    ours : str
        How the anchors are chosen.

    Returns
    -------
    dict
        mean, worst, random_mean: {scenario: points of 100}, over `splits` random splits that
        leave out `share` of the models.
    """
    splits = ShuffleSplit(N_SPLITS, test_size=TEST_SIZE, random_state=SEED)
    errors: dict[str, list[np.ndarray]] = {ours: [], "random": []}
    for seed, (train, new) in enumerate(splits.split(responses)):
        for method, found in errors.items():
            pipe = pipeline(labels, method, seed).fit(responses.iloc[train])
            if method == "random":
                pipe[1].set_params(estimate="naive")
            answers = pipe[0].transform(responses.iloc[new])
            found.append(np.abs(pipe[1].predict_scenarios(answers).to_numpy() - truth[new]))

    def points(values: np.ndarray) -> dict[str, float]:
        return dict(zip(pipe[1].scenarios_, (100 * values).round(2).tolist(), strict=True))

    chosen, random = (np.concatenate(found) for found in errors.values())
    return {
        "splits": N_SPLITS,
        "share": TEST_SIZE,
        "mean": points(chosen.mean(axis=0)),
        "worst": points(chosen.max(axis=0)),
        "random_mean": points(random.mean(axis=0)),
    }


def build(name: str, folder: Path) -> Path:
    """Train one bundled benchmark and write its file."""
    entry = ENTRIES[name]
    responses, labels, left_out = training_data(entry)
    n_models, n_items = responses.shape
    print(f"{name}: {n_models} models x {n_items} items, {len(left_out)} rows left out", flush=True)
    pipe = pipeline(labels, entry.method).fit(responses)
    heldout = heldout_errors(responses, labels, pipe[1].training_scores_, entry.method)
    for figure in ("mean", "worst", "random_mean"):
        print(f"  held-out {figure}, points: {heldout[figure]}")
    description = entry.description
    if left_out:
        description += f"; rows left out (not models, or repeated names): {', '.join(left_out)}"
    path = save_benchmark(
        pipe,
        folder / f"{name}.npz",
        name=name,
        heldout=heldout,
        description=description,
        source=entry.source,
        licence=entry.licence,
        citation=entry.citation,
        metric=entry.metric,
    )
    print(f"  {path}: {path.stat().st_size / 1024:.0f} KiB", flush=True)
    return path


def main(arguments: list[str] | None = None) -> int:
    """Build all bundled benchmarks, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"some of {sorted(ENTRIES)}; all by default")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "parameters")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.names) - set(ENTRIES))
    if unknown:
        parser.error(f"unknown benchmark {unknown[0]}; known are {sorted(ENTRIES)}")
    options.output.mkdir(parents=True, exist_ok=True)
    for name in options.names or ENTRIES:
        with threadpool_limits(limits=1):  # sums in one order: the same file to the bit
            build(name, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
