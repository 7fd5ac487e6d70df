"""Reader of the sample logs of lm-evaluation-harness."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from sklearn_irt.logs import _reading, _tidy

HARNESS = "lm-evaluation-harness"
# Where lines hold several metrics: the one that leaderboards report.
PREFERRED_METRICS = ("acc_norm", "acc", "exact_match", "prompt_level_strict_acc", "pass@1", "em")
NO_FILTER = "none"
DATE = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
SAMPLES = re.compile(rf"samples_(?P<task>.+?)(?:_(?P<date>{DATE}))?\.jsonl")
DATED = re.compile(rf"_({DATE})\.json")
NO_METRICS = {
    "doc_id",
    "doc",
    "target",
    "arguments",
    "resps",
    "filtered_resps",
    "filter",
    "metrics",
    "doc_hash",
    "prompt_hash",
    "target_hash",
    "bypass",  # logged by --predict_only in place of a score
}


class Results(NamedTuple):
    """A results file: what its samples do not tell."""

    path: Path
    date: str
    content: dict[str, Any]

    def table(self, key: str) -> dict[str, Any]:
        """An object within the file, empty where the version does not write it."""
        value = self.content.get(key)
        return value if isinstance(value, dict) else {}

    @property
    def tasks(self) -> set[str]:
        return set(self.table("configs")) | set(self.table("results"))

    @property
    def model(self) -> str | None:
        name = self.content.get("model_name")
        arguments = self.table("config").get("model_args")
        if not name and isinstance(arguments, dict):
            name = arguments.get("pretrained") or arguments.get("model")
        elif not name and isinstance(arguments, str):
            given = re.search(r"(?:^|,)\s*(?:pretrained|model|path)=([^,]+)", arguments)
            name = given and given[1]
        return name if isinstance(name, str) and name else None


def read_lm_eval(
    path: _reading.PathLike | Iterable[_reading.PathLike],
    *,
    metric: str | Mapping[str, str] | None = None,
    filter: str | Mapping[str, str] | None = None,
    model: str | None = None,
    task: str | None = None,
    rename: Mapping[str, str] | None = None,
    groups: bool = True,
    latest: bool = True,
) -> pd.DataFrame:
    """Read what lm-evaluation-harness writes with ``--log_samples``.

    Parameters
    ----------
    path : path or iterable of paths
        Files ``samples_<task>_<date>.jsonl`` (or .jsonl.gz), or folders with them at any depth.
        The results file beside them is read too: it names the model, shots and version. The
        older ``<model arguments>_<task>.jsonl`` are read as well.
    metric : str or {task: metric}, default=None
        Which score to take. None: the only one, or the first of acc_norm, acc, exact_match,
        prompt_level_strict_acc, pass@1 and em.
    filter : str or {task: filter}, default=None
        Whose answers to take where a task was logged once for each of several filters. A task
        without filters is read as it is.
    model : str, default=None
        Name of the model, if the files are one model's. None: as the results file has it, or
        else the folder.
    task : str, default=None
        Name of the task, for a single old log whose name does not tell.
    rename : {task: name}, default=None
        Other names for tasks in item ids and scenarios, for example those of a benchmark.
    groups : bool, default=True
        Whether the scenario is the group of a task, where a results file has one that the
        harness scores by one metric (mmlu, with its subjects as subscenarios).
    latest : bool, default=True
        Whether to take the last run only, where a model ran a task several times. If False,
        the earlier ones are taken too, as models of their own, named "model@date".

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario, subscenario, item ("task/00012", the ``doc_id``), score. Ask
        `provenance` and `left_out` for the metrics, shots and files.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ValueError
        Naming file and line of what is wrong: no JSON, no such metric or filter (lists those
        that are there), several filters and none asked for, a document twice.

    See Also
    --------
    read_logs : Recognises which harness wrote a log.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_irt.logs import read_lm_eval
    >>> lines = '{"doc_id": 0, "resps": [], "acc": 1.0}\\n{"doc_id": 1, "resps": [], "acc": 0.0}\\n'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "our__model", "samples_arc_2025-01-31T12-00-00.5.jsonl")
    ...     path.parent.mkdir()
    ...     _ = path.write_text(lines)
    ...     table = read_lm_eval(folder)
    >>> table[["model", "item", "score"]].values.tolist()
    [['our/model', 'arc/00000', 1.0], ['our/model', 'arc/00001', 0.0]]
    """
    tidy = _tidy.TidyTable()
    files = _reading.list_files(path)
    results = _ResultsFiles()
    runs = _find_runs(files, results, model, task, tidy)
    tasks = {run.task for run in runs}
    for option, name in ((metric, "metric"), (filter, "filter"), (rename, "rename")):
        _tidy.check_tasks(option, name, tasks)
    called = _tidy.renamed((run.model for run in runs), model)
    runs = _tidy.choose_runs([run._replace(model=called(run.model)) for run in runs], latest, tidy)
    scenarios = _scenarios(results.all(), tasks) if groups else {}
    for run in runs:
        asked = _tidy.for_task(metric, run.task), _tidy.for_task(filter, run.task)
        answers = _Answers(run, *asked)
        name = _tidy.for_task(rename or {}, run.task)
        labels = (name, None) if name else scenarios.get(run.task, (run.task, None))
        answers.add_to(tidy, labels, name or run.task)
    return tidy.table()


def is_sample(record: Any) -> bool:
    """Whether a JSON object looks like a line of a sample log."""
    return (
        isinstance(record, dict)
        and "doc_id" in record
        and {"resps", "doc"} & record.keys() != set()
    )


def is_log(path: Path) -> bool:
    """Whether a file is a sample log, by its name or its first line."""
    name = _reading.plain_name(path)
    if not name.endswith(".jsonl"):
        return False
    named = SAMPLES.fullmatch(name)
    if named and named["date"]:
        return True
    start = _reading.head(path).lstrip()
    if start.startswith("["):
        return '"doc_id"' in start and '"resps"' in start
    try:
        return is_sample(json.loads(start.split("\n", 1)[0]))
    except (ValueError, RecursionError):
        # A long first line is cut in what is looked at.
        return '"doc_id"' in start and '"resps"' in start


class _ResultsFiles:
    """The results files of each folder, read once."""

    def __init__(self) -> None:
        self._folders: dict[Path, list[Results]] = {}

    def all(self) -> list[Results]:
        return [each for folder in self._folders.values() for each in folder]

    def beside(self, path: Path) -> list[Results]:
        folder = path.parent
        if folder not in self._folders:
            self._folders[folder] = list(self._read(folder))
        return self._folders[folder]

    @staticmethod
    def _read(folder: Path) -> Iterator[Results]:
        for path in sorted(folder.iterdir()):
            name = _reading.plain_name(path)
            if not name.endswith(".json") or not path.is_file():
                continue
            try:
                content = _reading.read_json(path)
            except ValueError:
                if name.startswith("results"):
                    raise
                continue
            if isinstance(content, dict) and {"results", "configs"} <= content.keys():
                dated = DATED.search(name)
                yield Results(path, dated[1] if dated else "", content)


def _find_runs(
    files: list[Path],
    results: _ResultsFiles,
    model: str | None,
    task: str | None,
    tidy: _tidy.TidyTable,
) -> list[_tidy.Run]:
    """Every sample log among the files, with its model, task, date and results file."""
    logs = [path for path in files if is_log(path)]
    if not logs:
        raise ValueError(
            f"no sample log of {HARNESS} among {_reading.few(files)}: expected "
            "samples_<task>_<date>.jsonl, as written with --log_samples"
        )
    if task is not None and len(logs) > 1:
        raise ValueError(f"task={task!r} is for a single log, but there are {len(logs)}")
    known = set(logs)
    for path in files:
        if path not in known and _reading.plain_name(path).endswith((".jsonl", ".csv")):
            tidy.leave_out(path, f"a file that is no sample log of {HARNESS}")
    runs = []
    guessed: list[Path] = []
    for path in logs:
        named = SAMPLES.fullmatch(_reading.plain_name(path))
        date = (named and named["date"]) or ""
        beside = results.beside(path)
        run_task = task or (named["task"] if named else _old_task(path, beside))
        found = _results_of(path, run_task, date, beside, model)
        folder = path.absolute().parent.name.replace("__", "/")
        # What the logs tell comes first, so that model= cannot make two models one.
        name = (found and found.model) or (folder if "/" in folder else model)
        if not name:
            name = folder
            if path.parent not in guessed:
                guessed.append(path.parent)
                _tidy.warn(
                    f"{path}: no results file beside it names the model, so it is called {name!r} "
                    "after the folder; give model="
                )
        runs.append(_tidy.Run(path, name, run_task, date or (found.date if found else ""), found))
    return runs


def _old_task(path: Path, beside: list[Results]) -> str:
    """The task in "<model arguments>_<task>.jsonl", told by the results file."""
    stem = _reading.plain_name(path).removesuffix(".jsonl")
    known = {task for each in beside for task in each.tasks}
    fitting = [task for task in known if stem == task or stem.endswith(f"_{task}")]
    if not fitting:
        raise ValueError(
            f"{path}: the name of the file does not tell the task, and no results file beside it "
            "does; give task="
        )
    return max(fitting, key=len)


def _results_of(
    path: Path, task: str, date: str, beside: list[Results], model: str | None
) -> Results | None:
    """The results file of a sample log: of its date, or else of its task."""
    same_date = [each for each in beside if date and each.date == date]
    fitting = same_date or [each for each in beside if task in each.tasks]
    names = {each.model for each in fitting}
    if len(names) > 1 and model is not None:
        return None
    if len(names) > 1:
        raise ValueError(
            f"{path}: the results files beside it are of several models "
            f"({', '.join(sorted(map(str, names)))}) and none has its date; give model="
        )
    if not fitting:
        return None
    found = max(fitting, key=lambda each: each.date)
    # The results of another run tell the model, but not how this one was asked.
    other_run = date and not same_date
    return found._replace(content={"model_name": found.model}) if other_run else found


def _scenarios(results: list[Results], tasks: set[str]) -> dict[str, tuple[str, str | None]]:
    """Scenario and subscenario of the tasks that are in a group scored by one metric."""
    found: dict[str, tuple[str, str | None]] = {}
    for each in results:
        listed = each.table("group_subtasks").items()
        children = {group: names for group, names in listed if _is_names(names)}
        for group, scores in each.table("groups").items():
            keys = scores if isinstance(scores, dict) else ()
            metrics = {key.split(",")[0] for key in keys if "," in key}
            metrics = {key for key in metrics if not key.endswith("_stderr")}
            if len(metrics) != 1:
                continue
            for task in _leaves(group, children, set()) & tasks:
                # The outermost such group; groups come with their members below them.
                if task not in found or found[task][0] in _members(group, children, set()):
                    found[task] = (group, task.removeprefix(f"{group}_"))
    return found


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _members(group: str, children: dict[str, list[str]], seen: set[str]) -> set[str]:
    for child in children.get(group) or ():
        if child not in seen:
            seen.add(child)
            _members(child, children, seen)
    return seen


def _leaves(group: str, children: dict[str, list[str]], seen: set[str]) -> set[str]:
    return {name for name in _members(group, children, seen) if not children.get(name)}


class _Answers:
    """The scores in one sample log, by filter."""

    def __init__(self, run: _tidy.Run, metric: str | None, filter: str | None):
        self.run = run
        self.asked_metric, self.asked_filter = metric, filter
        self.metric = ""
        self.counts: Counter[str] = Counter()
        self._scores: dict[str, dict[Any, float]] = {}
        self._first: dict[tuple[str, Any], str] = {}
        self._passes: Counter[Any] = Counter()
        self._unnamed = self._filters_in_order()
        for where, record in _reading.read_records(run.path):
            self._read(where, record)

    def _filters_in_order(self) -> list[str]:
        """Names of the filters by the results file, for logs whose lines do not name them."""
        details: Results | None = self.run.details
        config = details.table("configs").get(self.run.task) if details else None
        listed = config.get("filter_list") if isinstance(config, dict) else None
        names = [each.get("name") for each in listed or () if isinstance(each, dict)]
        return [name for name in names if isinstance(name, str)] or [NO_FILTER]

    def _read(self, where: str, record: dict[str, Any]) -> None:
        document = record.get("doc_id")
        if not isinstance(document, (int, str)) or isinstance(document, bool):
            raise ValueError(f"{where}: no doc_id; the line has {sorted(record)}")
        if "filter" in record:
            name = str(record["filter"])
        else:
            # Older versions write all documents by the first filter, then by the next.
            turn = self._passes[document]
            self._passes[document] += 1
            name = self._unnamed[min(turn, len(self._unnamed) - 1)]
        self.counts[name] += 1
        key = (name, document)
        if key in self._first:
            raise ValueError(
                f"{where}: doc_id {document} a second time, after {self._first[key]}; does the "
                "file hold two models or runs, or answers by filters that it does not name?"
            )
        self._first[key] = where
        if not self.metric:
            self.metric = self._choose_metric(where, record)
        if self.metric not in record:
            raise ValueError(f"{where}: no metric {self.metric!r}; the line has {sorted(record)}")
        score = _reading.as_score(record[self.metric], where, f"the metric {self.metric!r}")
        self._scores.setdefault(name, {})[document] = score

    def _choose_metric(self, where: str, record: dict[str, Any]) -> str:
        listed = record.get("metrics")
        keys = listed if isinstance(listed, list) else list(record)
        keys = [key for key in keys if isinstance(key, str) and key not in NO_METRICS]
        names = [key for key in keys if isinstance(record.get(key), (bool, int, float))]
        # The first document's score may be null.
        names = names or [key for key in keys if key in record and record[key] is None]
        if not names:
            raise ValueError(f"{where}: no metric that is a number; the line has {sorted(record)}")
        metric = _reading.one_of(names, self.asked_metric, PREFERRED_METRICS)
        if metric is None and self.asked_metric is not None:
            raise ValueError(f"{where}: no metric {self.asked_metric!r}; there are {names}")
        if metric is None:
            raise ValueError(f"{where}: several metrics, give metric= one of {names}")
        return metric

    def _choose_filter(self) -> str:
        names = list(self._scores)
        if self.asked_filter in names:
            return str(self.asked_filter)
        if len(names) == 1 and (self.asked_filter is None or names == [NO_FILTER]):
            return names[0]
        if self.asked_filter is None:
            raise ValueError(
                f"{self.run.path}: every document is logged once for each of several filters, "
                f"give filter= one of {names}"
            )
        raise ValueError(f"{self.run.path}: no filter {self.asked_filter!r}; there are {names}")

    def add_to(self, tidy: _tidy.TidyTable, labels: tuple[str, str | None], prefix: str) -> None:
        """Put the scores by the filter asked for into the table."""
        run, details = self.run, self.run.details
        chosen = self._choose_filter()
        scores = self._scores[chosen]
        for name, count in self.counts.items():
            if name != chosen:
                tidy.leave_out(run.path, f"answers by the filter {name!r}", count, run.model)
        asked = scores.keys()
        others = {document for each in self._scores.values() for document in each} - asked
        if others:
            what = f"documents that have no answer by the filter {chosen!r}"
            tidy.leave_out(run.path, what, len(others), run.model)
        if details and self._is_better_lower(details):
            _tidy.warn(
                f"{run.path}: of the metric {self.metric!r} lower values are better; take another "
                "one, or turn its scores round before you use them as correctness"
            )
        tidy.add(
            run.model,
            *labels,
            [_item(prefix, document) for document in scores],
            list(scores.values()),
            file=run.path,
            harness=HARNESS,
            version=_version(details) if details else None,
            metric=self.metric,
            filter=chosen,
            shots=details.table("n-shot").get(run.task) if details else None,
            date=run.date or None,
        )

    def _is_better_lower(self, details: Results) -> bool:
        known = details.table("higher_is_better").get(self.run.task)
        return isinstance(known, dict) and known.get(self.metric) is False


def _item(prefix: str, document: Any) -> str:
    return f"{prefix}/{document:05d}" if isinstance(document, int) else f"{prefix}/{document}"


def _version(details: Results) -> str | None:
    for key in ("lm_eval_version", "git_hash"):
        if isinstance(details.content.get(key), str):
            return details.content[key]
    return None
