"""Reader of the run folders of HELM."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sklearn_irt.logs import _reading, _tidy

HARNESS = "HELM"
SCORES = ("per_instance_stats.json", "display_predictions.json")
RUN_FILES = {*SCORES, "run_spec.json", "instances.json", "scenario_state.json"}
# The main metrics of HELM's schemas (classic, lite, capabilities), and the scenarios they are of.
MAIN_METRICS = {
    "final_number_exact_match": "gsm",
    "exact_match_indicator": "gsm dyck_language",
    "math_equiv_chain_of_thought": "math",
    "math_equiv": "math",
    "quasi_exact_match": (
        "boolq imdb raft civil_comments wikifact babi_qa synthetic_reasoning legalbench "
        "legal_support lsat_qa med_qa entity_data_imputation entity_matching bbq"
    ),
    "f1_score": "narrative_qa natural_qa quac",
    "f1_set_match": "synthetic_reasoning_natural",
    "bleu_4": "wmt_14",
    "RR@10": "msmarco",
    "rouge_2": "summarization_cnndm summarization_xsum legal_summarization",
    "chain_of_thought_correctness": "mmlu_pro gpqa",
    "ifeval_strict_accuracy": "ifeval",
    "wildbench_score_rescaled": "wildbench",
    "omni_math_accuracy": "omni_math",
    "test_avg": "code",
    "pass": "code",
}
PREFERRED_METRICS = (
    "exact_match",
    "quasi_exact_match",
    "f1_score",
    "math_equiv_chain_of_thought",
    "math_equiv",
    "final_number_exact_match",
    "exact_match_indicator",
    "rouge_2",
    "bleu_4",
)
# Arguments in the name of a run that tell how it was run, not on what.
HOW_RUN = {
    "model",
    "model_deployment",
    "method",
    "data_augmentation",
    "stop",
    "instructions",
    "groups",
    "eval_split",
    "train_split",
    "num_outputs",
    "num_train_trials",
    "num_trials",
    "max_train_instances",
    "max_eval_instances",
    "valid_topk",
    "num_logprobs",
    "device",
    "temperature",
    "use_chain_of_thought",
    "use_official_examples",
    "chain_of_thought",
    "prompt",
    "output_format_instructions",
    "global_prefix",
    "follow_format_instructions",
}


class RunSpec(NamedTuple):
    """What the name and the specification of a run tell."""

    name: str
    model: str
    scenario: str
    subscenario: str | None
    shots: int | None
    suite: str | None


class RunAnswers(NamedTuple):
    """One run's scores by instance id, in the order of its files."""

    spec: RunSpec
    path: Path
    metric: str
    scores: dict[str, float]


def read_helm(
    path: _reading.PathLike | Iterable[_reading.PathLike],
    *,
    metric: str | Mapping[str, str] | None = None,
    model: str | None = None,
    ids: str = "instance",
    split: str | None = None,
    trial: int = 0,
) -> pd.DataFrame:
    """Read run folders of HELM.

    Parameters
    ----------
    path : path or iterable of paths
        Folders with runs at any depth, such as ``benchmark_output/runs/<suite>``. A run is a
        folder with ``per_instance_stats.json`` (or ``display_predictions.json``), and where
        there are ``run_spec.json`` and ``instances.json``; each may be compressed by gzip.
    metric : str or {scenario: metric}, default=None
        Which score to take. None: the main metric of the scenario in HELM's schemas, or else
        the first of exact_match, quasi_exact_match, f1_score and others.
    model : str, default=None
        Name of the model, if the runs are one model's. None: as in the run's specification.
    ids : {"instance", "position"}, default="instance"
        Item ids: "mmlu/abstract_algebra/id147", HELM's own id of the instance, or "mmlu/00012",
        the position among all of the scenario's instances, subscenarios in the order of their
        names, as the bundled benchmark helm-lite has them. Positions need the same instances
        in every run.
    split : str, default=None
        Split of the instances. None: test where there is one, or else valid.
    trial : int, default=0
        Which choice of the examples in the prompt (``train_trial_index``).

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario (what precedes ":" in the name of the run), subscenario (the
        values of its arguments that tell the data, such as the subject), item, score.
        Perturbed instances, other splits and trials are left out; ask `left_out`.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ValueError
        Naming the file that is wrong, or what is there instead of the metric or trial; where
        two runs are about the same model and instances.

    See Also
    --------
    read_logs : Recognises which harness wrote a log.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from sklearn_irt.logs import read_helm
    >>> stats = [
    ...     {"instance_id": f"id{i}", "train_trial_index": 0,
    ...      "stats": [{"name": {"name": "exact_match"}, "count": 1, "sum": i, "mean": i}]}
    ...     for i in (0, 1)
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = pathlib.Path(folder, "mmlu:subject=anatomy,model=our_model")
    ...     run.mkdir()
    ...     _ = (run / "per_instance_stats.json").write_text(json.dumps(stats))
    ...     table = read_helm(folder)
    >>> table[["model", "item", "score"]].values.tolist()
    [['our/model', 'mmlu/anatomy/id0', 0.0], ['our/model', 'mmlu/anatomy/id1', 1.0]]
    """
    if ids not in ("instance", "position"):
        raise ValueError(f'ids must be "instance" or "position", got {ids!r}')
    tidy = _tidy.TidyTable()
    folders = _run_folders(_reading.list_files(path), tidy)
    specs = {folder: _read_spec(folder, files) for folder, files in folders.items()}
    _tidy.check_tasks(metric, "metric", [spec.scenario for spec in specs.values()])
    called = _tidy.renamed((spec.model for spec in specs.values()), model)
    seen: dict[tuple[str, str, str | None], Path] = {}
    runs = []
    for folder, files in folders.items():
        spec = specs[folder]._replace(model=called(specs[folder].model))
        key = (spec.model, spec.scenario, spec.subscenario)
        if key in seen:
            raise ValueError(
                f"{folder}: the model {spec.model!r} on the same instances as {seen[key]}; read "
                "the runs of one suite and one method at a time"
            )
        seen[key] = folder
        asked = _tidy.for_task(metric, spec.scenario)
        runs.append(_read_run(spec, files, asked, split, trial, tidy))
    names = _item_names(runs, ids)
    for run in runs:
        tidy.add(
            run.spec.model,
            run.spec.scenario,
            run.spec.subscenario,
            [names[run.spec.scenario, run.spec.subscenario, each] for each in run.scores],
            list(run.scores.values()),
            file=run.path,
            harness=HARNESS,
            metric=run.metric,
            shots=run.spec.shots,
            suite=run.spec.suite,
            run=run.spec.name,
        )
    return tidy.table()


def _run_folders(files: list[Path], tidy: _tidy.TidyTable) -> dict[Path, dict[str, Path]]:
    """The files of every run, by folder and plain name."""
    folders: dict[Path, dict[str, Path]] = {}
    for path in files:
        if _reading.plain_name(path) in RUN_FILES:
            folders.setdefault(path.parent, {})[_reading.plain_name(path)] = path
    for folder in folders:
        # A file given by itself brings its run along.
        for path in sorted(folder.iterdir()):
            if _reading.plain_name(path) in RUN_FILES:
                folders[folder].setdefault(_reading.plain_name(path), path)
    runs = {}
    for folder, found in folders.items():
        if found.keys() & set(SCORES):
            runs[folder] = found
        else:
            tidy.leave_out(folder, f"a run without scores: no {' or '.join(SCORES)}")
    if not runs:
        raise ValueError(
            f"no scored run of {HARNESS} among {_reading.few(files)}: expected run folders with "
            f"{' or '.join(SCORES)}"
        )
    return runs


def _read_spec(folder: Path, files: dict[str, Path]) -> RunSpec:
    """Model, scenario and subscenario of a run."""
    adapter: Any = {}
    name: Any = folder.absolute().name
    if "run_spec.json" in files:
        content = _reading.read_json(files["run_spec.json"])
        if not isinstance(content, dict):
            raise ValueError(f"{files['run_spec.json']}: expected a JSON object")
        name, adapter = content.get("name") or name, content.get("adapter_spec") or {}
    elif "scenario_state.json" in files:
        content = _reading.read_json(files["scenario_state.json"])
        adapter = content.get("adapter_spec") if isinstance(content, dict) else {}
    adapter = adapter if isinstance(adapter, dict) else {}
    scenario, _, given = str(name).partition(":")
    # Values may hold commas of their own: a new argument starts with a word and "=".
    pairs = [each.partition("=") for each in re.split(r",(?=\w+=)", given) if each]
    if ":" not in str(name) and "=" in scenario:
        # "gsm,model=..." or a renamed folder.
        scenario, *rest = re.split(r",(?=\w+=)", str(name))
        pairs = [each.partition("=") for each in rest]
    arguments = {key: value for key, _, value in pairs}
    model = adapter.get("model") or arguments.get("model", "").replace("_", "/", 1)
    if not model:
        raise ValueError(f"{folder}: neither the name of the run nor a run_spec.json tells a model")
    told = [value for key, value in arguments.items() if key not in HOW_RUN and value]
    shots = adapter.get("max_train_instances")
    parent = folder.absolute().parent
    return RunSpec(
        str(name),
        str(model),
        scenario,
        ",".join(told) or None,
        shots if isinstance(shots, int) else None,
        parent.name if parent.parent.name == "runs" else None,
    )


def _read_run(
    spec: RunSpec,
    files: dict[str, Path],
    asked: str | None,
    split: str | None,
    trial: int,
    tidy: _tidy.TidyTable,
) -> RunAnswers:
    """Scores of the unperturbed instances of one split and trial."""
    path = next(files[name] for name in SCORES if name in files)
    splits = _splits(files["instances.json"]) if "instances.json" in files else {}
    entries: list[tuple[str, str, str | None, dict[str, Any]]] = []
    dropped: Counter[str] = Counter()
    trials = set()
    for where, entry in _reading.read_entries(path):
        instance = entry.get("instance_id")
        if not isinstance(instance, str):
            raise ValueError(f"{where}: no instance_id; the entry has {sorted(entry)}")
        index = entry.get("train_trial_index", 0)
        if not isinstance(index, int):
            raise ValueError(f"{where}: train_trial_index is {index!r}, not a whole number")
        trials.add(index)
        if entry.get("perturbation"):
            dropped["answers to perturbed instances"] += 1
        elif index != trial:
            dropped[f"answers of the train trial {index}"] += 1
        else:
            stats, told = _stats(where, entry)
            entries.append((where, instance, splits.get(instance, told), stats))
    if not entries:
        raise ValueError(
            f"{path}: no unperturbed answer of the train trial {trial}; there are the trials "
            f"{sorted(trials)}"
        )
    known = {each for _, _, each, _ in entries if each is not None}
    wanted = split or ("test" if "test" in known else "valid" if "valid" in known else None)
    if split is not None and known and split not in known:
        raise ValueError(f"{path}: no instance of the split {split!r}; there are {sorted(known)}")
    scores: dict[str, float] = {}
    metric = ""
    for where, instance, each, stats in entries:
        if each is not None and each != wanted:
            dropped[f"instances of the split {each}"] += 1
            continue
        if instance in scores:
            raise ValueError(f"{where}: the instance {instance!r} a second time")
        metric = metric or _choose_metric(where, spec.scenario, stats, asked)
        if metric not in stats:
            raise ValueError(f"{where}: no metric {metric!r}; there are {sorted(stats)}")
        scores[instance] = _reading.as_score(stats[metric], where, f"the metric {metric!r}")
    if not scores:
        raise ValueError(
            f"{path}: no instance of the split test or valid; there are {sorted(known)}"
        )
    for what, count in dropped.items():
        tidy.leave_out(path, what, count, spec.model)
    return RunAnswers(spec, path, metric, scores)


def _splits(path: Path) -> dict[str, str]:
    """Split of every unperturbed instance."""
    return {
        entry["id"]: entry["split"]
        for _, entry in _reading.read_entries(path)
        if not entry.get("perturbation")
        and isinstance(entry.get("id"), str)
        and isinstance(entry.get("split"), str)
    }


def _stats(where: str, entry: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Metrics of an entry, and the split that they name."""
    stats = entry.get("stats")
    if isinstance(stats, dict):  # display_predictions.json
        return stats, None
    found: dict[str, Any] = {}
    split = None
    for stat in stats if isinstance(stats, list) else [None]:
        name = stat.get("name") if isinstance(stat, dict) else None
        if not isinstance(name, dict) or not isinstance(name.get("name"), str):
            raise ValueError(f"{where}: a metric without a name")
        if name.get("perturbation") or name.get("sub_split"):
            continue
        split = name.get("split", split)
        found[name["name"]] = _mean(stat)
    return found, split


def _mean(stat: dict[str, Any]) -> Any:
    if "mean" in stat:
        return stat["mean"]
    count, total = stat.get("count"), stat.get("sum")
    numbers = isinstance(count, (int, float)) and isinstance(total, (int, float))
    return total / count if numbers and count else None


def _choose_metric(where: str, scenario: str, stats: dict[str, Any], asked: str | None) -> str:
    main = [name for name, scenarios in MAIN_METRICS.items() if scenario in scenarios.split()]
    preferred = (*main, *PREFERRED_METRICS)
    metric = _reading.one_of(sorted(stats), asked, preferred)
    if metric is None:
        problem = f"no metric {asked!r}" if asked else "no metric known as a score, give metric="
        raise ValueError(f"{where}: {problem}; there are {sorted(stats)}")
    return metric


def _item_names(runs: list[RunAnswers], ids: str) -> dict[tuple[str, str | None, str], str]:
    """Item id of every scenario, subscenario and instance."""
    names: dict[tuple[str, str | None, str], str] = {}
    if ids == "instance":
        for run in runs:
            scenario, subscenario = run.spec.scenario, run.spec.subscenario
            prefix = f"{scenario}/{subscenario}" if subscenario else scenario
            for instance in run.scores:
                names[scenario, subscenario, instance] = f"{prefix}/{instance}"
        return names
    first: dict[str, dict[str, RunAnswers]] = {}
    models: dict[str, dict[str, set[str]]] = {}
    for run in runs:
        scenario, subscenario = run.spec.scenario, run.spec.subscenario or ""
        known = first.setdefault(scenario, {}).setdefault(subscenario, run)
        if list(run.scores) != list(known.scores):
            raise ValueError(
                f'{run.path}: ids="position" needs the same instances in every run, but these are '
                f'not those of {known.path} in their order; take ids="instance"'
            )
        models.setdefault(scenario, {}).setdefault(run.spec.model, set()).add(subscenario)
    for scenario, parts in first.items():
        for model, read in models[scenario].items():
            if read != parts.keys():
                raise ValueError(
                    f'ids="position" counts over all of {scenario}, but the model {model!r} has no '
                    f'run of {sorted(parts.keys() - read)[0]!r}; take ids="instance"'
                )
        position = 0
        for subscenario in sorted(parts):
            for instance in parts[subscenario].scores:
                names[scenario, subscenario or None, instance] = f"{scenario}/{position:05d}"
                position += 1
    return names
