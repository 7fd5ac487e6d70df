"""RESULTS of the command line: logs or tables to one tidy table, with a benchmark's item ids."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchmarks_registry import TinyBenchmark, _task_names
from benchmarks_registry.cli import _options, _output
from sklearn_irt.logs import _lm_eval, _reading, _tidy, left_out, pivot, provenance
from sklearn_irt.logs._recognise import READERS, recognise

LM_EVAL = _lm_eval.HARNESS
# Options that a reader takes, and its own name for them.
TAKEN: dict[str, dict[str, str]] = {
    LM_EVAL: {"metric": "metric", "filter": "filter", "rename": "rename", "task": "task"},
    "HELM": {"metric": "metric"},
    "Inspect": {"metric": "scorer", "rename": "rename"},
    "AlpacaEval": {"metric": "annotator"},
}


class Reading(NamedTuple):
    """How the user wants RESULTS to be read."""

    metric: str | dict[str, str] | None = None
    filter: str | dict[str, str] | None = None
    rename: dict[str, str] | None = None
    task: str | None = None
    model: str | None = None
    groups: bool = True

    @classmethod
    def of(
        cls,
        metric: Sequence[str],
        filter: Sequence[str],
        rename: Sequence[str],
        task: str | None,
        model: str | None,
        groups: bool = True,
    ) -> "Reading":
        """From the options of a command."""
        return cls(
            _options.by_task(metric, "metric"),
            _options.by_task(filter, "filter"),
            _options.renames(rename),
            task,
            model,
            groups,
        )


def read(paths: Sequence[str], how: Reading) -> pd.DataFrame:
    """Read the results of any harnesses, or tables.

    Parameters
    ----------
    paths : sequence of str
    how : Reading

    Returns
    -------
    DataFrame
        As the readers of `sklearn_irt.logs` return.
    """
    with _output.working("reading"):
        groups = _by_harness(paths)
        _check_options(how, groups)
        return _joined(groups, how, {})


def read_for(tiny: TinyBenchmark, paths: Sequence[str], how: Reading) -> pd.DataFrame:
    """Read the results of models on a benchmark.

    Parameters
    ----------
    tiny : TinyBenchmark
    paths : sequence of str
    how : Reading
        Metrics and filters that are not given are the benchmark's.

    Returns
    -------
    DataFrame
        With ids of the benchmark's items; in its `left_out` also the tasks that the benchmark
        has not.

    Raises
    ------
    ValueError
        Where nothing is about the benchmark, or it lacks an item of one of its tasks.
    """
    with _output.working("reading"):
        groups = _by_harness(paths)
        _check_options(how, groups)
        others: list[dict[str, Any]] = []
        if LM_EVAL in groups:
            files, others = _files_about(tiny, groups.pop(LM_EVAL), how)
            if files:
                groups[LM_EVAL] = files
            elif not groups:
                _fail_without_tasks(tiny, others)
        defaults = _defaults(tiny, groups.get(LM_EVAL, []), how)
        table = _joined(groups, how, defaults)
        table.attrs["left_out"] = [*table.attrs["left_out"], *others]
        if "ids" in defaults["HELM"]:
            _check_positions(tiny, table)
        return _with_ids(tiny, table)


def _by_harness(paths: Sequence[str]) -> dict[str, list[Path]]:
    groups: dict[str, list[Path]] = {}
    for path in paths:
        groups.setdefault(recognise(path), []).append(Path(path))
    return groups


def _check_options(how: Reading, groups: dict[str, list[Path]]) -> None:
    """Refuse an option that no reader of these results takes."""
    for name in ("metric", "filter", "rename", "task"):
        taken = any(name in TAKEN.get(harness, {}) for harness in groups)
        if getattr(how, name) is not None and not taken:
            raise ValueError(f"--{name} is not for results of this kind ({', '.join(groups)})")


def _joined(
    groups: dict[str, list[Path]], how: Reading, defaults: dict[str, dict[str, Any]]
) -> pd.DataFrame:
    """The tables of all harnesses, one below the other."""
    tables = []
    for harness, paths in groups.items():
        options = {
            theirs: getattr(how, ours)
            for ours, theirs in TAKEN.get(harness, {}).items()
            if getattr(how, ours) is not None
        }
        if harness == LM_EVAL:
            options["groups"] = how.groups
        options |= defaults.get(harness, {})
        if how.model is not None:
            options["model"] = how.model
        tables.append(READERS[harness](paths, **options))
    table = _tidy.joined(tables)
    return table if how.model is None else _called(table, how.model)


def _called(table: pd.DataFrame, model: str) -> pd.DataFrame:
    """The same answers under the name of their only model."""
    found = table["model"].unique()
    if len(found) > 1:
        raise ValueError(
            f"--model is one name, but the results are of {len(found)} models: "
            f"{_reading.few(found)}"
        )
    return table.assign(model=model)


def _task_in(path: Path) -> str | None:
    """The task that the name of a log tells."""
    named = _lm_eval.SAMPLES.fullmatch(_reading.plain_name(path))
    return named["task"] if named else None


def _files_about(
    tiny: TinyBenchmark, paths: Sequence[Path], how: Reading
) -> tuple[list[Path], list[dict[str, Any]]]:
    """Logs of the benchmark's tasks, or of an unknown one, and what is left out."""
    known = _task_names.task_names(tiny)
    kept: list[Path] = []
    others: dict[str, list[Path]] = {}
    found: set[str] = set()
    for path in filter(_lm_eval.is_log, _reading.list_files(paths)):
        task = how.task or _task_in(path)
        found.add(str(task))
        name = (how.rename or {}).get(str(task), task)
        if name is None or name in known:
            kept.append(path)
        else:
            others.setdefault(name, []).append(path)
    for task, name in (how.rename or {}).items():
        if name not in known:
            raise ValueError(
                f"--rename {task}={name}: {tiny.name} has no task {name!r}, only "
                f"{_reading.few(sorted(known))}"
            )
        if task not in found:
            raise ValueError(f"--rename names {task!r}, but there are only: {sorted(found)}")
    notes = [
        {"file": str(files[0]), "what": f"logs of {task}, which {tiny.name} has not",
         "model": None, "count": len(files)}
        for task, files in others.items()
    ]  # fmt: skip
    return kept, notes


def _fail_without_tasks(tiny: TinyBenchmark, others: list[dict[str, Any]]) -> None:
    found = _reading.few(
        str(note["what"]).removeprefix("logs of ").split(",")[0] for note in others
    )
    raise ValueError(
        f"there is no log of a task of {tiny.name} ({_reading.few(_wanted(tiny))}) among the "
        f"results, only of {found or 'none'}; --rename OLD=NEW gives a task the name that the "
        "benchmark has for it"
    )


def _wanted(tiny: TinyBenchmark) -> list[str]:
    """Tasks as the harness names them, or prefixes of the item ids."""
    return sorted(_task_names.tasks_of(tiny) or _task_names.task_names(tiny))


def _defaults(tiny: TinyBenchmark, files: Sequence[Path], how: Reading) -> dict[str, dict]:
    """Options of the readers that the benchmark tells."""
    metrics, filters, renamed = {}, {}, how.rename or {}
    for task in {how.task or _task_in(path) for path in files} - {None}:
        scoring = _task_names.scoring_of(tiny, renamed.get(task, task))
        if len(scoring.metrics) == 1:
            metrics[task] = scoring.metrics[0]
        if scoring.filter is not None:
            filters[task] = scoring.filter
    # Every task a scenario of its own here, so that its provenance names it.
    options: dict[str, Any] = {"groups": False}
    for name, told, given in (("metric", metrics, how.metric), ("filter", filters, how.filter)):
        if given is None or isinstance(given, dict):
            options[name] = told | (given or {}) or None
    helm = {"ids": "position"} if _task_names.HARNESSES.get(tiny.name) == "HELM" else {}
    return {LM_EVAL: options, "HELM": helm}


def _check_positions(tiny: TinyBenchmark, table: pd.DataFrame) -> None:
    """Refuse HELM's instances where their places are not known: some of a scenario only."""
    sizes = tiny.items["scenario"].value_counts()
    sources = provenance(table)
    for row in sources[sources["harness"] == "HELM"].itertuples(index=False):
        of_model = (table["model"] == row.model) & (table["scenario"] == row.scenario)
        found = table["item"][of_model].nunique()
        if row.scenario in sizes and found != sizes[row.scenario]:
            raise ValueError(
                f"the runs of {row.model!r} have {found} of the {sizes[row.scenario]} instances of "
                f"{row.scenario}; as {tiny.name} names them by their place among all, give all, or "
                "a table with its ids"
            )


def _with_ids(tiny: TinyBenchmark, table: pd.DataFrame) -> pd.DataFrame:
    """Answers to the benchmark's items under its ids; others are told, or refused."""
    items = table["item"].unique()
    ids = _task_names.items_of(tiny, items)
    unknown = [item for item in items if ids[item] is None]
    about = {_task_names.task_of(item) for item in items if ids[item] is not None}
    for item in unknown:
        if _task_names.task_of(item) in about or not about:
            first = table[table["item"] == item].iloc[0]
            raise ValueError(
                f"{tiny.name} has no item {item!r}, which the model {first['model']!r} answers; "
                f"ids look like {tiny.anchors()[0]!r}"
            )
    notes = []
    if unknown:
        counts = table["item"].map(lambda item: ids[item] is None)
        per_task = table["item"][counts].map(_task_names.task_of).value_counts(sort=False)
        alone = [item for item in unknown if not _task_names.task_of(item)]
        others = f" and {len(alone) - 1} more" if len(alone) > 1 else ""
        named = {"": f"{alone[0]!r}{others}"} if alone else {}
        notes = [
            {"file": "", "model": None, "count": int(count),
             "what": f"answers to {named.get(task, f'items of {task}')}, which {tiny.name} has not"}
            for task, count in per_task.items()
        ]  # fmt: skip
    attrs = dict(table.attrs)
    mapped = table.assign(item=table["item"].map(ids))
    mapped = mapped[mapped["item"].notna()].reset_index(drop=True)
    mapped.attrs = attrs | {"left_out": [*attrs.get("left_out", []), *notes]}
    return mapped


def warn_about_scoring(tiny: TinyBenchmark, table: pd.DataFrame) -> None:
    """Warn where answers were scored otherwise than the benchmark's responses."""
    sources = provenance(table).drop_duplicates(["harness", "scenario", "metric", "filter"])
    for row in sources.itertuples(index=False):
        if pd.isna(row.metric) or row.harness == _task_names.HARNESSES.get(tiny.name):
            continue
        scoring = _task_names.scoring_of(tiny, str(row.scenario))
        told = f"the answers to {row.scenario} are scored by"
        made = f"but {tiny.name} was made from responses scored by"
        if scoring.metrics and row.metric not in scoring.metrics:
            warnings.warn(f"{told} {row.metric!r}, {made} {scoring.metrics[0]!r}", stacklevel=2)
        elif scoring.filter and not pd.isna(row.filter) and row.filter != scoring.filter:
            if row.filter != _lm_eval.NO_FILTER:
                told, made = f"{told} the filter", f"{made} the filter"
                warnings.warn(f"{told} {row.filter!r}, {made} {scoring.filter!r}", stacklevel=2)


def coverage(tiny: TinyBenchmark, table: pd.DataFrame) -> pd.DataFrame:
    """How many anchors of every scenario each model answers.

    Returns
    -------
    DataFrame
        Columns model, scenario, anchors, anchors_answered.
    """
    scored = table[table["score"].notna()]
    models = table["model"].unique()
    rows = []
    for scenario in tiny.estimator.scenarios_:
        anchors = tiny.anchors(scenario)
        counts = scored[scored["item"].isin(anchors)].groupby("model")["item"].nunique()
        rows += [(model, scenario, len(anchors), int(counts.get(model, 0))) for model in models]
    return pd.DataFrame(rows, columns=["model", "scenario", "anchors", "anchors_answered"])


def partial_notes(answered: pd.DataFrame) -> list[str]:
    """In words, which models answered some of the anchors only."""
    some = answered[answered["anchors_answered"] < answered["anchors"]]
    return [
        f"note: {row.model} answered {row.anchors_answered} of the "
        f"{_output.counted(row.anchors, 'anchor')} of {row.scenario}"
        for row in some.itertuples(index=False)
    ]


def left_out_notes(table: pd.DataFrame) -> list[str]:
    """In words, what is not in the table."""
    return [
        "note: left out: " + (f"{row.file}: " if row.file else "") + f"{row.what} ({row.count})"
        for row in left_out(table).itertuples(index=False)
    ]


def chosen_metric_notes(table: pd.DataFrame, how: Reading) -> list[str]:
    """In words, where logs of lm-evaluation-harness hold several metrics and one was taken."""
    sources = provenance(table)
    found: dict[str, None] = {}
    for row in sources[sources["harness"] == LM_EVAL].drop_duplicates("scenario").itertuples():
        others = [name for name in _metrics_in(row.file) if name != row.metric]
        asked = how.metric.get(row.scenario) if isinstance(how.metric, dict) else how.metric
        if others and asked is None:
            found.setdefault(
                f"note: {row.scenario}: {row.metric} is taken of the metrics "
                f"{', '.join((row.metric, *others))}; --metric takes another"
            )
    return list(found)


def _metrics_in(path: str) -> list[str]:
    """Names of the numbers in the first line of a log."""
    _, record = next(iter(_reading.read_records(Path(path))))
    listed = record.get("metrics")
    keys = listed if isinstance(listed, list) else list(record)
    numbers = (bool, int, float)
    return [
        key for key in keys
        if key not in _lm_eval.NO_METRICS and isinstance(record.get(key), numbers)
    ]  # fmt: skip


def matrix_of(table: pd.DataFrame) -> pd.DataFrame:
    """Responses of the models of a table, a row each; NaN where there is no score.

    Raises
    ------
    ValueError
        Where an item is answered twice, for example under two names of a task.
    """
    return pivot(table[["model", "item", "score"]]).responses
