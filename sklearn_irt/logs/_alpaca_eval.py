"""Reader of the annotations of AlpacaEval."""

import hashlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from sklearn_irt.logs import _alpaca_order, _reading, _tidy

HARNESS = "AlpacaEval"
FILE = "annotations.json"
SCENARIO = "alpaca_eval"
TIE = 0


def read_alpaca_eval(
    path: _reading.PathLike | Iterable[_reading.PathLike],
    *,
    model: str | None = None,
    annotator: str | None = None,
) -> pd.DataFrame:
    """Read the judge's annotations of AlpacaEval.

    Parameters
    ----------
    path : path or iterable of paths
        Files ``annotations.json`` (or .json.gz), or folders with them at any depth, such as
        ``results/<model>/<annotator>/annotations.json``.
    model : str, default=None
        Name of the model, if the files are one model's. None: ``generator_2``.
    annotator : str, default=None
        Whose annotations to take. None: those of the only annotator.

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario ("alpaca_eval"), subscenario (NA: the leaderboard's win rate is
        the mean over all instructions), item, score: ``preference`` - 1, the probability that
        the judge prefers the model, NaN where there is no preference. An item is
        "helpful_base/024", the instruction's data set and position among the 805 of AlpacaEval,
        as in the bundled benchmark alpaca-eval-2; instructions that are not among them are
        named by a hash.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ValueError
        Naming the file and entry that is wrong: an instruction twice, a preference outside
        [1, 2], two models in one file; several annotators and none asked for.

    See Also
    --------
    sklearn_irt.datasets.fetch_alpaca_eval : The public leaderboard's table.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> from sklearn_irt.logs import read_alpaca_eval
    >>> entry = {"instruction": "Say hello.", "dataset": "ours", "generator_2": "our-model",
    ...          "annotator": "weighted_judge", "preference": 1.75}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "annotations.json")
    ...     _ = path.write_text(json.dumps([entry]))
    ...     table = read_alpaca_eval(path)
    >>> table[["model", "item", "score"]].values.tolist()
    [['our-model', 'ours/c8e2c1437abb', 0.75]]
    """
    tidy = _tidy.TidyTable()
    files = _reading.list_files(path)
    found = [each for each in files if is_log(each)] or (files if len(files) == 1 else [])
    if not found:
        raise ValueError(f"no {FILE} of {HARNESS} among {_reading.few(files)}")
    tables = [_Annotations(each) for each in found]
    judges = sorted({each.annotator for each in tables})
    if annotator is None and len(judges) > 1:
        raise ValueError(f"several annotators, give annotator= one of {judges}")
    if annotator is not None and annotator not in judges:
        raise ValueError(f"no annotations by {annotator!r}; there are {judges}")
    kept = []
    for each in tables:
        if annotator in (None, each.annotator):
            kept.append(each)
        else:
            what = f"annotations by {each.annotator}"
            tidy.leave_out(each.path, what, len(each.scores), each.model)
    called = _tidy.renamed((each.model for each in kept), model)
    seen: dict[str, Path] = {}
    for each in kept:
        name = called(each.model)
        if name in seen:
            raise ValueError(f"{each.path}: annotations of {name!r} as in {seen[name]}")
        seen[name] = each.path
        tidy.add(
            name,
            SCENARIO,
            None,
            list(each.scores),
            list(each.scores.values()),
            file=each.path,
            harness=HARNESS,
            metric=each.metric,
            annotator=each.annotator,
            baseline=each.baseline,
        )
    return tidy.table()


def is_log(path: Path) -> bool:
    """Whether a file is a list of annotations, by its name."""
    return _reading.plain_name(path) == FILE


class _Annotations:
    """One model's annotations by one judge."""

    def __init__(self, path: Path):
        self.path = path
        self.scores: dict[str, float] = {}
        first: dict[str, str] = {}
        named: dict[str, Any] = {}
        for where, entry in _reading.read_entries(path):
            for key in ("instruction", "generator_2"):
                if not isinstance(entry.get(key), str):
                    raise ValueError(f"{where}: no {key}; the entry has {sorted(entry)}")
            for key in ("generator_2", "generator_1", "annotator"):
                if named.setdefault(key, entry.get(key)) != entry.get(key):
                    raise ValueError(
                        f"{where}: {key} is {entry.get(key)!r}, but {named[key]!r} above; a file "
                        "holds one model's annotations by one judge against one baseline"
                    )
            item = item_id(entry["instruction"], entry.get("dataset"))
            if item in self.scores:
                raise ValueError(f"{where}: the instruction of {first[item]} a second time")
            first[item] = where
            self.scores[item] = _win(where, entry)
        self.model: str = named["generator_2"]
        self.baseline = named["generator_1"]
        self.annotator = named["annotator"] or path.absolute().parent.name
        weighted = str(self.annotator).startswith("weighted")
        self.metric = "weighted win probability" if weighted else "win rate"


def _win(where: str, entry: dict[str, Any]) -> float:
    """Probability that the judge prefers the model's answer."""
    if "preference" not in entry:
        raise ValueError(f"{where}: no preference; the entry has {sorted(entry)}")
    preference = _reading.as_score(entry["preference"], where, "the preference")
    if preference == TIE:  # older judges' mark of a draw
        return 0.5
    if not math.isnan(preference) and not 1 <= preference <= 2:
        raise ValueError(f"{where}: the preference is {preference:g}, outside of [1, 2]")
    return preference - 1


def item_id(instruction: str, dataset: str | None) -> str:
    """Name of an instruction: data set and position in AlpacaEval, or else a hash.

    Parameters
    ----------
    instruction : str
    dataset : str or None

    Returns
    -------
    str
    """
    digest = hashlib.sha256(instruction.encode("utf-8", "surrogatepass")).hexdigest()
    position = _alpaca_order.POSITIONS.get(digest[: _alpaca_order.DIGITS])
    name = digest[:12] if position is None else f"{position:03d}"
    return f"{dataset or SCENARIO}/{name}"
