"""Reader of the logs of Inspect."""

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pandas as pd

from sklearn_irt.logs import _reading, _tidy

HARNESS = "Inspect"
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0}
ZSTANDARD = 93
LOCAL_HEADER = struct.Struct("<26xHH")
JOURNAL = re.compile(r"_journal/summaries/(\d+)\.json")


def read_inspect(
    path: _reading.PathLike | Iterable[_reading.PathLike],
    *,
    scorer: str | Mapping[str, str] | None = None,
    model: str | None = None,
    epochs: str = "mean",
    rename: Mapping[str, str] | None = None,
    latest: bool = True,
) -> pd.DataFrame:
    """Read logs of Inspect.

    Parameters
    ----------
    path : path or iterable of paths
        Files ``*.eval`` or ``*.json``, or folders with them at any depth. Recent versions of
        Inspect compress .eval files with Zstandard; reading those needs Python 3.14 or the
        package zstandard (``pip install "sklearn-irt[logs]"``).
    scorer : str or {task: scorer}, default=None
        Whose scores to take; "scorer:key" where a scorer gives several. None: the only one.
    model : str, default=None
        Name of the model, if the logs are one model's. None: as in the logs.
    epochs : {"mean", "error"}, default="mean"
        What to do where a sample was asked several times: average its scores, or refuse.
    rename : {task: name}, default=None
        Other names for tasks in item ids and scenarios.
    latest : bool, default=True
        Whether to take the last log only, where a model ran a task several times. If False,
        the earlier ones are taken too, as models of their own, named "model@date".

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario (the task), subscenario (NA), item ("task/sample id"), score: 1
        for C, 0.5 for P, 0 for I and N, numbers as they are, NaN for samples that failed or
        were not scored.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ImportError
        Where a log is compressed with Zstandard and nothing installed reads it.
    ValueError
        Naming the file and sample that is wrong; several scorers and none asked for.

    See Also
    --------
    read_logs : Recognises which harness wrote a log.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from sklearn_irt.logs import read_inspect
    >>> log = {
    ...     "version": 2, "status": "success",
    ...     "eval": {"task": "capitals", "model": "our/model", "created": "2025-01-31T12:00:00"},
    ...     "samples": [{"id": "fr", "epoch": 1, "scores": {"match": {"value": "C"}}},
    ...                 {"id": "it", "epoch": 1, "scores": {"match": {"value": "P"}}}],
    ... }
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.json")
    ...     _ = path.write_text(json.dumps(log))
    ...     table = read_inspect(path)
    >>> table[["model", "item", "score"]].values.tolist()
    [['our/model', 'capitals/fr', 1.0], ['our/model', 'capitals/it', 0.5]]
    """
    if epochs not in ("mean", "error"):
        raise ValueError(f'epochs must be "mean" or "error", got {epochs!r}')
    tidy = _tidy.TidyTable()
    files = _reading.list_files(path)
    logs = [each for each in files if is_log(each)]
    alone = len(files) == 1 and _reading.plain_name(files[0]).endswith(".json")
    if not logs and not alone:
        raise ValueError(
            f"no log of {HARNESS} among {_reading.few(files)}: expected .eval or .json files"
        )
    for each in files:
        named = _reading.plain_name(each).endswith((".json", ".jsonl", ".csv"))
        if logs and each not in logs and named:
            tidy.leave_out(each, f"a file that is no log of {HARNESS}")
    runs = []
    for each in logs or files:
        log = _Log(each)
        runs.append(_tidy.Run(each, log.model, log.task, log.created, log))
    tasks = {run.task for run in runs}
    for option, name in ((scorer, "scorer"), (rename, "rename")):
        _tidy.check_tasks(option, name, tasks)
    called = _tidy.renamed((run.model for run in runs), model)
    runs = _tidy.choose_runs([run._replace(model=called(run.model)) for run in runs], latest, tidy)
    for run in runs:
        _add(tidy, run, _tidy.for_task(scorer, run.task), epochs, (rename or {}).get(run.task))
    return tidy.table()


def is_log(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its name or its beginning."""
    if path.name.endswith(".eval"):
        return True
    if not _reading.plain_name(path).endswith(".json"):
        return False
    start = _reading.head(path)
    return all(f'"{key}"' in start for key in ("status", "eval", "task_id"))


def _add(
    tidy: _tidy.TidyTable, run: _tidy.Run, scorer: str | None, epochs: str, name: str | None
) -> None:
    """Put one log's scores into the table."""
    log: _Log = run.details
    asked = log.scores()
    scorers = list(dict.fromkeys(each for _, _, given in asked for each in given))
    if not scorers:
        raise ValueError(f"{run.path}: no sample has a score; the log's status is {log.status!r}")
    chosen = _reading.one_of(scorers, scorer, ())
    if chosen is None and scorer is not None:
        raise ValueError(f"{run.path}: no scorer {scorer!r}; there are {scorers}")
    if chosen is None:
        raise ValueError(f"{run.path}: several scorers, give scorer= one of {scorers}")
    answers: dict[str, list[float]] = {}
    first: dict[tuple[str, int], str] = {}
    for where, (sample, epoch), given in asked:
        key = (sample, epoch)
        if key in first:
            raise ValueError(f"{where}: the sample {sample!r} a second time in epoch {epoch}")
        first[key] = where
        answers.setdefault(sample, []).append(_grade(given.get(chosen), where, chosen))
    most = max(len(scores) for scores in answers.values())
    if most > 1 and epochs == "error":
        raise ValueError(f'{run.path}: samples were asked up to {most} times; take epochs="mean"')
    scores = {sample: _mean(given) for sample, given in answers.items()}
    scored = [given for sample, given in answers.items() if not math.isnan(scores[sample])]
    unscored = sum(math.isnan(score) for given in scored for score in given)
    if unscored:
        what = "epochs without a score, of samples that have one in others"
        tidy.leave_out(run.path, what, unscored, run.model)
    if log.status != "success":
        _tidy.warn(
            f"{run.path}: the run did not end well (status {log.status!r}); its "
            f"{len(answers)} samples are read"
        )
    scenario = name or run.task
    tidy.add(
        run.model,
        scenario,
        None,
        [f"{scenario}/{sample}" for sample in scores],
        list(scores.values()),
        file=run.path,
        harness=HARNESS,
        version=log.version,
        metric=chosen,
        date=run.date or None,
        epochs=most,
    )


def _mean(scores: list[float]) -> float:
    given = [score for score in scores if not math.isnan(score)]
    return sum(given) / len(given) if given else math.nan


def _grade(value: Any, where: str, scorer: str) -> float:
    """A score as a number, as Inspect's own value_to_float makes it."""
    if isinstance(value, str):
        grade = GRADES.get(value, GRADES.get(value.lower()) if len(value) > 1 else None)
        if grade is not None:
            return grade
        try:
            value = float(value)
        except ValueError:
            raise ValueError(
                f"{where}: the score by {scorer!r} is {value!r}, which is neither a number nor "
                f"one of {', '.join(GRADES)}"
            ) from None
    return _reading.as_score(value, where, f"the score by {scorer!r}")


class _Log:
    """The header of a log; its samples are read when asked for."""

    def __init__(self, path: Path):
        self.path = path
        self._samples: Any = None
        if path.name.endswith(".eval"):
            header = self._header_of_archive()
        else:
            header = _reading.read_json(path)
            self._samples = header.get("samples") if isinstance(header, dict) else None
        spec = header.get("eval") if isinstance(header, dict) else None
        if not isinstance(spec, dict) or not {"task", "model"} <= spec.keys():
            raise ValueError(f"{path}: no log of {HARNESS}: it does not name its task and model")
        self.task, self.model = str(spec["task"]), str(spec["model"])
        self.created = _in_utc(str(spec.get("created") or ""))
        # A log that was never finished has no status.
        self.status = str(header.get("status", "started"))
        packages = spec.get("packages")
        self.version = packages.get("inspect_ai") if isinstance(packages, dict) else None

    def _header_of_archive(self) -> Any:
        with self._archive() as archive:
            for name in ("header.json", "_journal/start.json"):
                if name in archive.NameToInfo:
                    return _member(archive, name, self.path)
        raise ValueError(f"{self.path}: no log of {HARNESS}: the archive has no header.json")

    def _archive(self) -> zipfile.ZipFile:
        try:
            return zipfile.ZipFile(self.path)
        except zipfile.BadZipFile as error:
            raise ValueError(
                f"{self.path}: not a zip archive, as .eval files are; is it cut off? ({error})"
            ) from None

    def scores(self) -> list[tuple[str, tuple[str, int], dict[str, Any]]]:
        """Where it stands, id and epoch, and scores by scorer, of every sample."""
        samples = self._samples
        if self.path.name.endswith(".eval"):
            samples = self._samples_of_archive()
        if not isinstance(samples, list) or not samples:
            raise ValueError(f"{self.path}: the log has no samples; its status is {self.status!r}")
        found = []
        for number, sample in enumerate(samples, 1):
            where = f"{self.path}, sample {number}"
            if not isinstance(sample, dict) or not isinstance(sample.get("id"), (int, str)):
                raise ValueError(f"{where}: no id")
            epoch = sample.get("epoch", 1)
            if not isinstance(epoch, int):
                raise ValueError(f"{where}: epoch is {epoch!r}, not a whole number")
            scores = sample.get("scores") or {}
            if not isinstance(scores, dict):
                raise ValueError(f"{where}: scores are not an object")
            found.append((where, (str(sample["id"]), epoch), _by_scorer(scores)))
        return found

    def _samples_of_archive(self) -> list[Any]:
        """Summaries of all samples: they hold the scores, and are far smaller than the samples."""
        with self._archive() as archive:
            names = archive.NameToInfo
            if "summaries.json" in names:
                return self._list(archive, "summaries.json")
            journal = [name for name in names if JOURNAL.fullmatch(name)]
            journal.sort(key=lambda name: int(JOURNAL.fullmatch(name)[1]))  # type: ignore[index]
            latest: dict[tuple[str, str], Any] = {}
            for name in journal:
                for each in self._list(archive, name):
                    # A sample that was tried again stands in the journal twice.
                    latest[str(each.get("id")), str(each.get("epoch"))] = each
            if journal:
                return list(latest.values())
            samples = [name for name in names if name.startswith("samples/")]
            return [_member(archive, name, self.path) for name in samples]

    def _list(self, archive: zipfile.ZipFile, name: str) -> list[dict[str, Any]]:
        """A member that holds a list of objects."""
        found = _member(archive, name, self.path)
        if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
            raise ValueError(f"{self.path}, {name}: expected a list of objects")
        return found


def _in_utc(date: str) -> str:
    """A date that can be compared with others as text; older versions write local time."""
    try:
        moment = datetime.fromisoformat(date.replace("Z", "+00:00"))
    except ValueError:
        return date
    return moment.astimezone(timezone.utc).isoformat() if moment.tzinfo else date


def _by_scorer(scores: dict[str, Any]) -> dict[str, Any]:
    """Values by scorer, "scorer:key" where a scorer gives several."""
    found: dict[str, Any] = {}
    for scorer, score in scores.items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            found.update({f"{scorer}:{key}": each for key, each in value.items()})
        else:
            found[scorer] = value
    return found


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> Any:
    """Content of a JSON document in an archive."""
    info = archive.NameToInfo[name]
    try:
        data = archive.read(info)
    except NotImplementedError:
        if info.compress_type != ZSTANDARD:
            raise ValueError(f"{path}: {name} is compressed in an unknown way") from None
        data = _decompress(path, info)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: {name} is damaged: {error}") from None
    return _reading.parse_json(data, f"{path}, {name}")


def _decompress(path: Path, info: zipfile.ZipInfo) -> bytes:
    """A member compressed with Zstandard, which zipfile reads from Python 3.14 on only."""
    try:
        import zstandard
    except ImportError:
        raise ImportError(
            f"{path} is compressed with Zstandard: install the package zstandard "
            '(pip install "sklearn-irt[logs]"), or convert the log with '
            "`inspect log convert --to json`"
        ) from None
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        name_size, extra_size = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
        file.seek(name_size + extra_size, io.SEEK_CUR)
        packed = io.BytesIO(file.read(info.compress_size))
    try:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        data = reader.read(info.file_size + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"{path}: {info.filename} is damaged: {error}") from None
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise ValueError(f"{path}: {info.filename} is damaged: its size or checksum is wrong")
    return bytes(data)
