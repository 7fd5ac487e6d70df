"""What a reader of a report should know before using its figures."""

import re

import numpy as np

from benchmarks_registry._benchmark import FEW_MODELS, TinyBenchmark, is_heldout
from benchmarks_registry._report_scores import Evaluation, named

# Below this share of the questions answers are few.
FEW_ANSWERS = 0.5


def cautions(tiny: TinyBenchmark, evaluation: Evaluation | None) -> list[dict]:
    """What a reader should know before using the figures."""
    found: list[tuple[str, str]] = []
    n_models = len(tiny.estimator.training_models_)
    if n_models == 0:
        found.append(
            (
                "Released parameters",
                "The benchmark holds no training models' answers: intervals are not calibrated on "
                "models left out, and it cannot be told whom a model resembles",
            )
        )
    elif n_models < FEW_MODELS:
        text = f"The benchmark was trained on {n_models} models only"
        found.append(("Few training models", text))
    if not is_heldout(tiny.info.get("heldout"), tiny.estimator.scenarios_):
        text = "No errors on held-out models are recorded in this benchmark"
        found.append(("Accuracy not recorded", text))
    if evaluation is not None:
        found += [("Warning of the estimate", text) for text in evaluation.warnings]
        found += _few_answers(tiny, evaluation)
        found += _beyond_training(tiny, evaluation)
        found += _unusual(evaluation)
        found += _other_metrics(tiny, evaluation)
    return [{"head": head, "text": text.rstrip(".") + "."} for head, text in found]


def _few_answers(tiny: TinyBenchmark, evaluation: Evaluation) -> list[tuple[str, str]]:
    asked = {scenario: len(tiny.anchors(scenario)) for scenario in tiny.estimator.scenarios_}
    one = len(evaluation.models) == 1
    none, few = [], []
    for (model, scenario), answered in evaluation.table["answered"].items():
        if scenario not in asked or answered >= FEW_ANSWERS * asked[scenario]:
            continue
        where = scenario if one else f"{model} in {scenario}"
        if answered == 0:
            none.append(where)
        else:
            few.append(f"{where} ({answered} of {asked[scenario]})")
    found = []
    if none:
        source = "the other scenarios" if len(asked) > 1 else "the training models alone"
        text = f"Scores guessed from {source}: {named(none)}"
        found.append(("No answers", text))
    if few:
        text = f"Fewer than half of the questions were answered: {named(few)}"
        found.append(("Few answers", text))
    return found


def _beyond_training(tiny: TinyBenchmark, evaluation: Evaluation) -> list[tuple[str, str]]:
    """Models outside of what the training models have shown, where prediction is least certain."""
    scores = tiny.estimator.training_scores_
    if not len(scores):
        return []
    highest = dict(zip(tiny.estimator.scenarios_, scores.max(axis=0), strict=True))
    table = evaluation.table[tiny.estimator.estimate]
    above = [
        scenario if len(evaluation.models) == 1 else f"{model} in {scenario}"
        for (model, scenario), score in table.items()
        if score > highest.get(scenario, np.inf)
    ]
    if not above:
        return []
    text = (
        f"Estimated above every training model: {named(above)}. For such models intervals hold "
        "the true score less often than 90\u00a0%"
    )
    return [("Stronger than the training models", text)]


def _unusual(evaluation: Evaluation) -> list[tuple[str, str]]:
    unusual = evaluation.unusual()
    if not unusual:
        return []
    text = (
        f"{named(unusual)}: the answers are unlike those of the training models, so the estimate "
        "is not to be trusted; look for a wrong prompt, a scoring fault or another metric (at most "
        "one in twenty ordinary models is called so)"
    )
    return [("Unusual answers", text)]


def _other_metrics(tiny: TinyBenchmark, evaluation: Evaluation) -> list[tuple[str, str]]:
    if "metric" not in evaluation.sources or not tiny.info.get("metric"):
        return []
    used = [str(metric) for metric in evaluation.sources["metric"].dropna().unique()]
    meant = str(tiny.info["metric"])  # of several scenarios a text that names each
    other = [m for m in used if not re.search(rf"(?<!\w){re.escape(m)}(?!\w)", meant)]
    if not other:
        return []
    text = (
        f"The answers are scored by {named(other)}, the benchmark's responses by {meant}; check "
        "that these are the same"
    )
    return [("Another metric", text)]
