"""Which harness wrote a log, by its files."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from sklearn_irt.logs import _alpaca_eval, _helm, _inspect, _lm_eval, _reading, _table, _tidy

READERS: dict[str, Callable[..., pd.DataFrame]] = {
    _helm.HARNESS: _helm.read_helm,
    _alpaca_eval.HARNESS: _alpaca_eval.read_alpaca_eval,
    _inspect.HARNESS: _inspect.read_inspect,
    _lm_eval.HARNESS: _lm_eval.read_lm_eval,
    _table.HARNESS: _table.read_table,
}


def read_logs(
    path: _reading.PathLike | Iterable[_reading.PathLike], **options: Any
) -> pd.DataFrame:
    """Read logs of whichever harness wrote them.

    Parameters
    ----------
    path : path or iterable of paths
        A file or folder of one harness; several may be of different ones.
    **options
        Passed to the reader: `read_lm_eval`, `read_helm`, `read_alpaca_eval`, `read_inspect` or
        `read_table`.

    Returns
    -------
    DataFrame of shape (n_answers, 5)
        Columns model, scenario, subscenario, item, score.

    Raises
    ------
    FileNotFoundError
        Where there is nothing at the path.
    ValueError
        Where no harness is recognised, or several in one folder; and what the reader raises.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn_irt.logs import provenance, read_logs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "samples_arc_2025-01-31T12-00-00.jsonl")
    ...     _ = path.write_text('{"doc_id": 0, "resps": [], "acc": 1.0}\\n')
    ...     table = read_logs(path, model="ours")
    >>> provenance(table)["harness"].item()
    'lm-evaluation-harness'
    """
    paths = [path] if isinstance(path, (str, os.PathLike)) else list(path)
    if not paths:
        raise ValueError("no path is given")
    groups: dict[str, list[_reading.PathLike]] = {}
    for each in paths:
        groups.setdefault(recognise(each), []).append(each)
    # All of one harness at once: it tells earlier runs from later ones.
    return _tidy.joined([READERS[name](group, **options) for name, group in groups.items()])


def recognise(path: _reading.PathLike) -> str:
    """Name the harness that wrote a file or folder.

    Parameters
    ----------
    path : path

    Returns
    -------
    str
        A key of `READERS`.

    Raises
    ------
    ValueError
        Where there is none, or more than one.
    """
    files = _reading.list_files(path)
    found: dict[str, Path] = {}
    for each in files:
        name = _harness(each)
        if name is not None:
            found.setdefault(name, each)
    if len(found) > 1:
        # Tables beside a harness's logs are often made from them.
        found.pop(_table.HARNESS, None)
    if len(found) > 1:
        named = ", ".join(f"{name} ({each})" for name, each in found.items())
        raise ValueError(f"{path}: logs of several harnesses: {named}; read one at a time")
    if not found:
        raise ValueError(f"{path}: no log of {', '.join(READERS)} among {_reading.few(files)}")
    return next(iter(found))


def _harness(path: Path) -> str | None:
    if _reading.plain_name(path) in _helm.SCORES:
        return _helm.HARNESS
    if _alpaca_eval.is_log(path):
        return _alpaca_eval.HARNESS
    if _inspect.is_log(path):
        return _inspect.HARNESS
    if _lm_eval.is_log(path):
        return _lm_eval.HARNESS
    return _table.HARNESS if _table.is_table(path) else None
