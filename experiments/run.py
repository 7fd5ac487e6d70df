"""Every strategy under every shift: the tables of docs/results.rst.

    python experiments/run.py                     # all, within half an hour on two cores
    python experiments/run.py --quick             # a small part of each, within three minutes
    python experiments/run.py helm axes --jobs 4

helm     HELM Lite, five scenarios: random splits, and by organisation
alpaca   AlpacaEval 2.0: random splits, and the newest quarter as new models
openllm  Open LLM Leaderboard: random, by date, specialised models, and the strongest as new models
glue     three tasks of GLUE: random splits
newest   the newest three quarters of the models as new ones (the paper's appendix E)
axes     dimensions, numbers of training models, shares of missing cells

A tidy csv file per experiment goes to the output folder, its tables go between the markers of the
page. What is done is kept in the folder's cache: after a break the same command goes on. The data
is downloaded once, or found in the folder that SKLEARN_IRT_DATA names.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tables import axis_table, errors_table, replace_tables, scenarios_table

from sklearn_irt.datasets import (
    fetch_alpaca_eval,
    fetch_glue,
    fetch_helm_lite,
    fetch_open_llm,
)
from sklearn_irt.evaluation import compare_strategies
from sklearn_irt.metrics import mean_win_rate
from sklearn_irt.model_selection import (
    HeldOutGroupsSplit,
    NewestModelsSplit,
    RandomModelsSplit,
    StrongestModelsSplit,
)

HERE = Path(__file__).resolve().parent
SEED = 0
DIMS = (2, 5, 10, 15)
SIZES = (30, 60, 100)
# Of the quick run and of the axes.
FEW = ["random/naive", "irt/gpirt", "design/default"]
ORGANISATIONS = [["openai", "anthropic"], ["meta", "mistralai"]]
SPECIAL = ("coder", "math", "code", "-med", "bio", "-fin", "law")


class Data(NamedTuple):
    """A benchmark, models that are listed twice left out."""

    responses: pd.DataFrame
    labels: np.ndarray
    models: pd.DataFrame


class Case(NamedTuple):
    """One comparison: a benchmark and how its models are split."""

    benchmark: str
    split: str
    data: Data
    cv: Any
    options: dict


class Settings(NamedTuple):
    """What the command line says."""

    quick: bool
    jobs: int
    memory: Path

    @property
    def splits(self) -> int:
        return 1 if self.quick else 5

    @property
    def sizes(self) -> tuple[int, ...]:
        return (30,) if self.quick else SIZES


def load(fetch: Callable, *names: Any) -> Data:
    """Distinct models only; NullModel, which fools AlpacaEval's judge, is none."""
    found = fetch(*names)
    keep = found.models["model"] != "NullModel"
    if "duplicate_of" in found.models:
        keep &= found.models["duplicate_of"].isna()
    labels = found["items"][["scenario", "subscenario"]].to_numpy(dtype=object)
    keep = keep.to_numpy()
    return Data(found.responses[keep], labels, found.models[keep].reset_index(drop=True))


def random(settings: Settings, splits: int | None = None) -> RandomModelsSplit:
    return RandomModelsSplit(splits or settings.splits, random_state=SEED)


def helm(settings: Settings) -> Iterator[Case]:
    data = load(fetch_helm_lite, ["math", "mmlu"] if settings.quick else None)
    yield Case("HELM Lite", "random", data, random(settings), {})
    groups = data.models["organisation"].to_numpy(dtype=object)
    out = ORGANISATIONS[:1] if settings.quick else ORGANISATIONS
    cv = HeldOutGroupsSplit(out)
    yield Case("HELM Lite", "by organisation", data, cv, {"groups": groups})


def alpaca(settings: Settings) -> Iterator[Case]:
    data = load(fetch_alpaca_eval)
    yield Case("AlpacaEval 2.0", "random", data, random(settings), {})
    cv = NewestModelsSplit(data.models["date"].to_numpy())
    yield Case("AlpacaEval 2.0", "by date", data, cv, {})


def openllm(settings: Settings) -> Iterator[Case]:
    arc = load(fetch_open_llm, "arc_challenge")
    if not settings.quick:
        yield Case("ARC challenge", "random", arc, random(settings, 2), {})
    yield Case(
        "ARC challenge", "by date", arc, NewestModelsSplit(arc.models["date"].to_numpy()), {}
    )
    yield Case("ARC challenge", "extrapolation", arc, StrongestModelsSplit(), {})
    if settings.quick:
        return
    both = load(fetch_open_llm)
    special = both.models["model"].str.lower().map(lambda name: any(w in name for w in SPECIAL))
    yield Case("IFEval and MuSR", "random", both, random(settings, 2), {})
    cv = HeldOutGroupsSplit([True])
    yield Case("IFEval and MuSR", "specialised", both, cv, {"groups": special.to_numpy()})
    yield Case("IFEval and MuSR", "extrapolation", both, StrongestModelsSplit(), {})


def glue(settings: Settings) -> Iterator[Case]:
    data = load(fetch_glue, ["rte"] if settings.quick else ["rte", "mrpc", "sst2"])
    yield Case("GLUE", "random", data, random(settings), {})


def newest(settings: Settings) -> Iterator[Case]:
    split = "newest 75 %"
    cases = [("AlpacaEval 2.0", load(fetch_alpaca_eval))]
    if not settings.quick:
        cases += [("ARC challenge", load(fetch_open_llm, "arc_challenge"))]
        cases += [("IFEval and MuSR", load(fetch_open_llm))]
    for name, data in cases:
        dates = data.models["date"].to_numpy()
        yield Case(name, split, data, NewestModelsSplit(dates, test_size=0.75), {})


def axes(settings: Settings) -> Iterator[Case]:
    """Split "axis=value" of each: the strategies of FEW at the largest number of anchors."""
    options = {"strategies": FEW, "k": settings.sizes[-1]}
    benchmarks = [("MMLU", load(fetch_helm_lite, "mmlu"))]
    if not settings.quick:
        benchmarks.append(("ARC challenge", load(fetch_open_llm, "arc_challenge")))
    for name, data in benchmarks:
        splits = list(random(settings, None if settings.quick else 3).split(data.responses))
        for dims in (2, 10) if settings.quick else (*DIMS, DIMS):
            label = "chosen" if dims == DIMS else dims
            chosen = dict(options, n_dims=dims)
            yield Case(name, f"dimensions={label}", data, splits, chosen)
        rng = np.random.default_rng(SEED)
        order = [(rng.permutation(train), new) for train, new in splits]
        for n_train in (10,) if settings.quick else (5, 10, 20, 40):
            fewer = [(np.sort(train[:n_train]), new) for train, new in order]
            yield Case(name, f"training models={n_train}", data, fewer, options)
        for share in (0.5,) if settings.quick else (0.25, 0.5, 0.75):
            for number, (train, new) in enumerate(splits):
                responses = data.responses.copy()
                hidden = np.zeros(responses.shape, dtype=bool)
                hidden[train] = rng.random((len(train), hidden.shape[1])) < share
                part = data._replace(responses=responses.mask(hidden))
                case = Case(name, f"missing share={share}", part, [(train, new)], options)
                yield case._replace(options=options | {"number": number})


EXPERIMENTS: dict[str, Callable[[Settings], Iterator[Case]]] = {
    "helm": helm,
    "alpaca": alpaca,
    "openllm": openllm,
    "glue": glue,
    "newest": newest,
    "axes": axes,
}


def measure(case: Case, settings: Settings) -> pd.DataFrame:
    """The results of one case, with the benchmark and the split as columns."""
    options = dict({"k": settings.sizes, "strategies": FEW if settings.quick else None})
    options |= case.options
    number = options.pop("number", 0)
    results = compare_strategies(
        case.data.responses,
        cv=case.cv,
        scenarios=case.data.labels,
        memory=str(settings.memory),
        n_jobs=settings.jobs,
        random_state=SEED,
        verbose=1,
        **options,
    )
    results["split"] += number
    if results["scenario"].nunique() > 2:
        results = pd.concat([results, win_rates(results, case.data)], ignore_index=True)
    results.insert(0, "case", case.split)
    results.insert(0, "benchmark", case.benchmark)
    return results


def win_rates(results: pd.DataFrame, data: Data) -> pd.DataFrame:
    """HELM's mean win rate of true and of estimated scores, against the training models."""
    parts = pd.Series(data.labels[:, 0]).unique()
    means = data.responses.T.groupby([data.labels[:, 0], data.labels[:, 1]], dropna=False).mean()
    scores = means.groupby(level=0).mean().T[parts]
    blocks = []
    for keys, rows in results[results["scenario"] != "all"].groupby(["strategy", "k", "split"]):
        wide = rows.pivot(index="model", columns="scenario", values=["true", "estimated"])
        reference = scores.drop(index=wide.index).to_numpy()
        block = pd.DataFrame({"model": wide.index, "scenario": "mean win rate"})
        block[["strategy", "k", "split"]] = keys
        for figure in ("true", "estimated"):
            block[figure] = mean_win_rate(wide[figure][parts].to_numpy(), reference)
        blocks.append(block)
    return pd.concat(blocks, ignore_index=True)


def tables(name: str, results: pd.DataFrame) -> str:
    """The tables of one experiment, in reStructuredText."""
    if name == "axes":
        return axis_table(results)
    found = []
    for (benchmark, case), part in results.groupby(["benchmark", "case"], sort=False):
        found.append(errors_table(f"{benchmark}, {case}", part))
        if part["scenario"].nunique() > 1:
            found.append(scenarios_table(f"{benchmark}, {case}", part))
    return "\n".join(found)


def main(arguments: list[str] | None = None) -> int:
    """Run the experiments that are named; see the module's text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"of {', '.join(EXPERIMENTS)}, all"
    )
    parser.add_argument("--quick", action="store_true", help="a small part of each")
    parser.add_argument("--jobs", type=int, default=2, help="splits measured at a time")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--page", type=Path, default=HERE.parent / "docs" / "results.rst")
    given = parser.parse_args(arguments)
    for name in given.names:
        if name not in (*EXPERIMENTS, "all"):
            parser.error(f"unknown experiment {name!r}; known are {', '.join(EXPERIMENTS)}, all")
    names = list(EXPERIMENTS) if not given.names or "all" in given.names else given.names
    settings = Settings(given.quick, given.jobs, given.output / "cache")
    settings.memory.mkdir(parents=True, exist_ok=True)
    for name in names:
        start, found = time.perf_counter(), []
        for case in EXPERIMENTS[name](settings):
            print(f"{name}: {case.benchmark}, {case.split}", file=sys.stderr, flush=True)
            found.append(measure(case, settings))
        results = pd.concat(found, ignore_index=True)
        path = given.output / f"{name}{'-quick' if given.quick else ''}.csv"
        results.round(6).to_csv(path, index=False)
        text = tables(name, results)
        minutes = (time.perf_counter() - start) / 60
        command = f"python experiments/run.py {name}{' --quick' if given.quick else ''}"
        kind = "**Quick run**, a small part only" if given.quick else "Full run"
        replace_tables(given.page, name, f"{kind}: ``{command}``\n\n{text}")
        print(f"{name}: {minutes:.1f} min, {path}\n\n{text}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
