"""What tasks of lm-evaluation-harness are on a benchmark: their items, metrics and filters."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._release import RELEASE

N_TINY = 100
DOCUMENT = re.compile(r"(?P<task>.+)/(?P<document>\d+)")


class Task(NamedTuple):
    """One task of the harness, where it is named otherwise than the benchmark's items."""

    scenario: str
    size: int
    metrics: tuple[str, ...]  # that count as the benchmark's own
    filter: str | None = None
    first: int | None = None  # place in the scenario of document 0; None: documents are the anchors


class Scoring(NamedTuple):
    """How a benchmark's responses were scored."""

    metrics: tuple[str, ...]  # any of them; empty where unknown
    filter: str | None


# Of the authors' release, documents being the anchors; letters as choices have acc_norm = acc.
TINY = {
    "tinyTruthfulQA": Task("truthfulqa", N_TINY, ("acc", "mc2")),
    "tinyGSM8k": Task("gsm8k", N_TINY, ("exact_match", "acc"), "strict-match"),
    "tinyWinogrande": Task("winogrande", N_TINY, ("acc", "acc_norm")),
    "tinyArc": Task("arc", N_TINY, ("acc_norm",)),
    "tinyHellaswag": Task("hellaswag", N_TINY, ("acc_norm",)),
    "tinyMMLU": Task("mmlu", N_TINY, ("acc", "acc_norm")),
}
TINY_SOURCES = {f"{RELEASE.url}, bench {bench!r}" for bench in ("lb", "mmlu")}
_SPELLINGS = {"truthfulqa": "harness_truthfulqa_mc_0"}
# Of benchmarks that name the items as the bundled open-llm-v2 does.
LEADERBOARD = {
    "leaderboard_ifeval": Task("ifeval", 541, ("prompt_level_strict_acc",), first=0),
    "leaderboard_musr_murder_mysteries": Task("musr", 250, ("acc_norm",), first=0),
    "leaderboard_musr_object_placements": Task("musr", 256, ("acc_norm",), first=250),
    "leaderboard_musr_team_allocation": Task("musr", 250, ("acc_norm",), first=506),
}
# Not run by lm-evaluation-harness.
HARNESSES = {
    "helm-lite": "HELM",
    "tinyHelmLite": "HELM",
    "alpaca-eval-2": "AlpacaEval",
    "tinyAlpacaEval": "AlpacaEval",
}
_SYNONYMS = {"accuracy": ("accuracy", "acc")}


def tasks_of(tiny: TinyBenchmark) -> dict[str, Task]:
    """The harness's tasks whose documents are items of a benchmark under another name.

    Parameters
    ----------
    tiny : TinyBenchmark

    Returns
    -------
    dict of str to Task
        With the benchmark's own spelling of the scenarios; empty for most.
    """
    scenarios = tiny.estimator.scenarios_
    found = {}
    # The source is kept where models are added under another name.
    for name, task in TINY.items() if tiny.info.get("source") in TINY_SOURCES else ():
        spellings = (task.scenario, _SPELLINGS.get(task.scenario))
        scenario = next((spelling for spelling in spellings if spelling in scenarios), None)
        if scenario is not None:
            found[name] = task._replace(scenario=scenario)
    items = set(tiny.items["item"])
    for name, task in LEADERBOARD.items():
        if all(_id(task, document) in items for document in (0, task.size - 1)):
            found[name] = task
    return found


def _id(task: Task, document: int) -> str:
    return f"{task.scenario}/{(task.first or 0) + document:05d}"


def task_names(tiny: TinyBenchmark) -> set[str]:
    """Names of all tasks with items of a benchmark: by its item ids, and by the table."""
    return {task_of(item) for item in tiny.items["item"]} | set(tasks_of(tiny))


def task_of(item: str) -> str:
    """The task in an item id "task/00012", "" where it names none."""
    return item.rpartition("/")[0]


def items_of(tiny: TinyBenchmark, items: Iterable[str]) -> dict[str, str | None]:
    """Ids of a benchmark's items from those of a log.

    Parameters
    ----------
    tiny : TinyBenchmark
    items : iterable of str
        "task/00012" with the task's name in the harness, or ids of the benchmark.

    Returns
    -------
    dict of str to str or None
        The benchmark's id for each; None where it has no such item.
    """
    known = set(tiny.items["item"])
    tasks = tasks_of(tiny)
    anchors = {name: tiny.anchors(task.scenario) for name, task in tasks.items()}
    found: dict[str, str | None] = {}
    for item in items:
        found[item] = item if item in known else None
        named = DOCUMENT.fullmatch(item)
        task = tasks.get(named["task"]) if named and found[item] is None else None
        if task is None or int(named["document"]) >= task.size:
            continue
        document = int(named["document"])
        if task.first is not None:
            found[item] = _id(task, document)
        elif document < len(anchors[named["task"]]):
            found[item] = anchors[named["task"]][document]
    return found


def documents_of(tiny: TinyBenchmark, anchors: Iterable[str]) -> dict[str, list[int]]:
    """What to ask lm-evaluation-harness for: the documents of each task.

    Parameters
    ----------
    tiny : TinyBenchmark
    anchors : iterable of str
        Ids of the items to ask.

    Returns
    -------
    dict of str to list of int
        Ascending.

    Raises
    ------
    ValueError
        Where the benchmark is of another harness, or an id names no task and document.
    """
    if tiny.name in HARNESSES:
        raise ValueError(
            f"{tiny.name} is a benchmark of {HARNESSES[tiny.name]}, not of lm-evaluation-harness; "
            "take the ids"
        )
    tasks = tasks_of(tiny)
    places = {
        anchor: (name, document)
        for name, task in tasks.items()
        if task.first is None
        for document, anchor in enumerate(tiny.anchors(task.scenario))
    }
    found: dict[str, list[int]] = {}
    for anchor in anchors:
        name, document = places.get(anchor) or _place(tiny, anchor, tasks)
        found.setdefault(name, []).append(document)
    return {name: sorted(documents) for name, documents in found.items()}


def _place(tiny: TinyBenchmark, item: str, tasks: dict[str, Task]) -> tuple[str, int]:
    """Task and document of an item."""
    named = DOCUMENT.fullmatch(item)
    if named is None:
        raise ValueError(
            f"the id {item!r} of {tiny.name} names no task and document of lm-evaluation-harness, "
            "such as arc_challenge/00012; take the ids"
        )
    place = int(named["document"])
    for name, task in tasks.items():
        first = task.first
        if first is not None and task.scenario == named["task"]:
            if first <= place < first + task.size:
                return name, place - first
    return named["task"], place


def scoring_of(tiny: TinyBenchmark, task: str) -> Scoring:
    """How a benchmark's responses to a task, or scenario, were scored.

    Parameters
    ----------
    tiny : TinyBenchmark
    task : str
        A task of the harness, or a scenario.

    Returns
    -------
    Scoring
    """
    known = tasks_of(tiny).get(task)
    if known is not None:
        return Scoring(known.metrics, known.filter)
    recorded = recorded_metrics(tiny.info.get("metric", ""), tiny.estimator.scenarios_)
    scenario = task if task in tiny.estimator.scenarios_ else _scenario_of(tiny, task)
    text = recorded.get(scenario, "")
    metric, _, filter = text.partition(",")
    if not metric:
        return Scoring((), None)
    return Scoring(_SYNONYMS.get(metric, (metric,)), filter or None)


def _scenario_of(tiny: TinyBenchmark, task: str) -> str | None:
    """The scenario of the items whose ids begin with a task."""
    of_task = tiny.items["item"].str.startswith(f"{task}/").to_numpy()
    return tiny.items["scenario"].to_numpy()[of_task][0] if of_task.any() else None


def recorded_metrics(text: str, scenarios: Iterable[str]) -> dict[str | None, str]:
    """The metric of each scenario from what `describe_metrics` writes; nothing from prose."""
    scenarios = list(scenarios)
    parts = [part.partition(": ") for part in text.split("; ")]
    if all(colon and name in scenarios for name, colon, _ in parts):
        return {name: metric for name, _, metric in parts}
    # The metric that has a space is a description.
    return {} if " " in text else dict.fromkeys(scenarios, text)


def describe_metrics(metrics: dict[str, str]) -> str:
    """One text for the metric of each scenario: "acc", or "ifeval: acc; gsm8k: exact_match"."""
    if len(set(metrics.values())) <= 1:
        return next(iter(metrics.values()), "")
    return "; ".join(f"{scenario}: {metric}" for scenario, metric in metrics.items())
