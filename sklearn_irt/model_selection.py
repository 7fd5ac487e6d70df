"""Ways to split models into training models and new ones, as scikit-learn's splitters.

scikit-learn's own work too: ``LeaveOneGroupOut`` and ``GroupShuffleSplit`` with an organisation per
model as `groups`, so that none has models on both sides.
"""

from collections.abc import Hashable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state

from sklearn_irt._responses import as_numbers

__all__ = [
    "HeldOutGroupsSplit",
    "NewestModelsSplit",
    "RandomModelsSplit",
    "StrongestModelsSplit",
]

Split = tuple[np.ndarray, np.ndarray]


class RandomModelsSplit(BaseCrossValidator):
    """New models at random, models that are the same never on both sides.

    Rows with equal responses, the same name (of a DataFrame's index) or the same group stay
    together: one model that is listed twice, else, would be its own perfect prediction.

    Parameters
    ----------
    n_splits : int, default=5
    test_size : float in (0, 1) or int, default=0.25
        Share or number of new models; fewer where the last ones that fit are listed twice.
    random_state : int, RandomState or None, default=None

    Examples
    --------
    >>> from sklearn_irt.model_selection import RandomModelsSplit
    >>> X = [[0, 1, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0]]  # the first two are the same
    >>> for train, new in RandomModelsSplit(2, test_size=0.5, random_state=3).split(X):
    ...     print(train, new)
    [0 1] [2 3]
    [2 3] [0 1]
    """

    __metadata_request__split = {"groups": True}

    def __init__(self, n_splits: int = 5, test_size: float = 0.25, random_state: Any = None):
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield training and new rows.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.
        y : None
            Ignored.
        groups : array-like of shape (n_models,), default=None
            Models with the same label stay together.

        Yields
        ------
        train, new : ndarray of int
        """
        n_splits = self.get_n_splits()
        same = _same_models(X, groups)
        size = np.bincount(same)
        n_new = _number_of(self.test_size, len(same), "test_size")
        if len(size) < 2:
            raise ValueError(
                "X has no two models that differ (equal responses, names or groups stay together), "
                "so they cannot be split"
            )
        rng = check_random_state(self.random_state)
        for _ in range(n_splits):
            chosen, taken = np.zeros(len(size), dtype=bool), 0
            order = rng.permutation(len(size))
            for group in order:
                if taken + size[group] <= n_new:
                    chosen[group] = True
                    taken += size[group]
            if not taken:  # every model is listed more often than there may be new ones
                chosen[order[np.argmin(size[order])]] = True
            new = chosen[same]
            yield np.flatnonzero(~new), np.flatnonzero(new)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits; the arguments are ignored."""
        if not _is_positive(self.n_splits):
            raise ValueError(f"n_splits must be a positive integer, got {self.n_splits!r}")
        return int(self.n_splits)


class _OneSplit(BaseCrossValidator):
    """A splitter that knows one way to split."""

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """1; the arguments are ignored."""
        return 1


class NewestModelsSplit(_OneSplit):
    """The newest models are new, the older ones train; no day is on both sides.

    Parameters
    ----------
    dates : array-like of shape (n_models,), or Series indexed by model name
        Day of each model (dates, texts as 2024-03-01, or years, which stand for their first day);
        missing where it is unknown. Models without a day are left out: they might be older or
        newer. A Series is matched to the index of X by name, and models that it lacks are left
        out; where its index, or that of X, only numbers the rows, it is read in order.
    test_size : float in (0, 1) or int, default=0.25
        Share or number of the dated models that are new, as near as the days allow.

    Examples
    --------
    >>> from sklearn_irt.model_selection import NewestModelsSplit
    >>> splitter = NewestModelsSplit(["2024-03-01", "2023-07-01", None, "2023-11-01"], test_size=1)
    >>> next(splitter.split([[0, 1], [1, 0], [1, 1], [0, 0]]))
    (array([1, 3]), array([0]))
    """

    def __init__(self, dates: Any, test_size: float = 0.25):
        self.dates = dates
        self.test_size = test_size

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield the older and the newest rows.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
        y, groups : None
            Ignored.

        Yields
        ------
        train, new : ndarray of int
        """
        days = self._days(X)
        dated = np.flatnonzero(~np.isnat(days))
        cuts = np.unique(days[dated])[:-1]  # a day up to which models train
        if not len(cuts):
            raise ValueError("dates has fewer than two different days, so none is the newest")
        n_new = _number_of(self.test_size, len(dated), "test_size")
        counts = np.array([(days[dated] > cut).sum() for cut in cuts])
        cut = cuts[np.argmin(np.abs(counts - n_new))]
        newer = days[dated] > cut
        yield dated[~newer], dated[newer]

    def _days(self, X: Any) -> np.ndarray:
        """Day of every row, NaT where it is unknown."""
        dates = self.dates
        if isinstance(dates, pd.Series):
            dates = _dates_by_name(dates, X)
        elif isinstance(dates, (str, bytes, Mapping)) or not hasattr(dates, "__len__"):
            raise ValueError(f"dates must be a sequence of dates or a Series, got {dates!r}")
        elif getattr(dates, "ndim", 1) != 1:
            raise ValueError(f"dates must have shape (n_models,), got {dates.shape}")
        _check_length(dates, X, "dates", "dates")
        # As a Series first: numpy turns days into numbers.
        typed = isinstance(dates, (pd.Series, np.ndarray))
        cells = pd.Series(dates) if typed else pd.Series(list(dates), dtype=object)
        cells = cells.astype(object).reset_index(drop=True)
        texts = cells.map(_date_as_text)
        days = pd.to_datetime(texts, utc=True, format="ISO8601", errors="coerce")
        wrong = np.flatnonzero(days.isna() & ~cells.map(_is_missing).astype(bool))
        if len(wrong):
            raise ValueError(
                "dates must hold dates, texts as 2024-03-01 or years (missing where unknown), got "
                f"{cells[wrong[0]]!r} for {_row_name(X, wrong[0])}"
            )
        return days.dt.tz_localize(None).dt.normalize().to_numpy()


class StrongestModelsSplit(_OneSplit):
    """The strongest models are new, the weakest train: extrapolation.

    Parameters
    ----------
    train_size : float in (0, 1) or int, default=0.5
        Share or number of the weakest models, which train.
    test_size : float in (0, 1) or int, default=0.3
        Share or number of the strongest models, which are new.

    Examples
    --------
    >>> from sklearn_irt.model_selection import StrongestModelsSplit
    >>> X = [[1, 1, 1], [0, 0, 1], [0, 1, 1], [0, 0, 0]]
    >>> next(StrongestModelsSplit(train_size=0.5, test_size=1).split(X))
    (array([1, 3]), array([0]))
    """

    def __init__(self, train_size: float = 0.5, test_size: float = 0.3):
        self.train_size = train_size
        self.test_size = test_size

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield the weakest and the strongest rows.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
            Responses, NaN where not asked.
        y : array-like of shape (n_models,), default=None
            Strength of each model; None: the mean of its responses.
        groups : None
            Ignored.

        Yields
        ------
        train, new : ndarray of int
        """
        if y is None:
            strength = _row_means(np.asarray(as_numbers(X), dtype=float))
        else:
            strength = _read_strength(y)
            _check_length(strength, X, "y", "scores")
        if np.isnan(strength).any():
            raise ValueError(f"the strength of row {np.argmax(np.isnan(strength))} (model) is NaN")
        n_models = len(strength)
        n_train = _number_of(self.train_size, n_models, "train_size")
        n_new = _number_of(self.test_size, n_models, "test_size")
        if n_train + n_new > n_models:
            raise ValueError(
                f"train_size={self.train_size!r} and test_size={self.test_size!r} make "
                f"{n_train} and {n_new} models, but X has {n_models}: lower one of them"
            )
        order = np.argsort(strength, kind="stable")
        yield np.sort(order[:n_train]), np.sort(order[-n_new:])


class HeldOutGroupsSplit(BaseCrossValidator):
    """Models of named groups are new, all others train: an organisation, or specialised models.

    Parameters
    ----------
    groups_out : sequence
        Labels of the groups that are new, together; or a sequence of such sequences, a split each.

    Examples
    --------
    >>> from sklearn_irt.model_selection import HeldOutGroupsSplit
    >>> X, maker = [[0, 1], [1, 1], [1, 0], [0, 0]], ["meta", "openai", "meta", "google"]
    >>> splitter = HeldOutGroupsSplit([["openai", "google"], ["meta"]])
    >>> for train, new in splitter.split(X, groups=maker):
    ...     print(train, new)
    [0 2] [1 3]
    [1 3] [0 2]
    """

    __metadata_request__split = {"groups": True}

    def __init__(self, groups_out: Any):
        self.groups_out = groups_out

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[Split]:
        """Yield training and new rows.

        Parameters
        ----------
        X : array-like of shape (n_models, n_items)
        y : None
            Ignored.
        groups : array-like of shape (n_models,)
            Group of each model.

        Yields
        ------
        train, new : ndarray of int
        """
        if groups is None:
            raise ValueError("groups must be given: the group of each model")
        labels = _read_labels(groups, X)
        for names in self._parts():
            new = np.zeros(len(labels), dtype=bool)
            for name in names:
                own = np.array([not pd.isna(label) and label == name for label in labels])
                if not own.any():
                    raise ValueError(f"groups_out names {name!r}, but no model is of that group")
                new |= own
            if new.all():
                raise ValueError(f"groups_out={list(names)!r} holds every model out: none trains")
            yield np.flatnonzero(~new), np.flatnonzero(new)

    def _parts(self) -> list:
        given = self.groups_out
        sized = hasattr(given, "__len__") and np.iterable(given)
        if isinstance(given, (str, bytes)) or not sized or not len(given):
            raise ValueError(f"groups_out must be a sequence of group labels, got {given!r}")
        if any(isinstance(part, (list, tuple, set, np.ndarray)) for part in given):
            if not all(isinstance(part, (list, tuple, set, np.ndarray)) for part in given):
                raise ValueError("groups_out mixes labels and sequences of labels")
            empty = [number for number, part in enumerate(given) if not len(part)]
            if empty:
                raise ValueError(f"groups_out names no group for split {empty[0]}: none is new")
            return list(given)
        return [given]

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of splits; the arguments are ignored."""
        return len(self._parts())


def _is_positive(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool) and number >= 1


def _number_of(size: Any, n_models: int, name: str) -> int:
    """A number of models from a share or a number, at least 1 and less than all."""
    if _is_positive(size):
        number = int(size)
    elif isinstance(size, Real) and not isinstance(size, (Integral, bool)) and 0 < size < 1:
        number = max(1, int(round(size * n_models)))
    else:
        raise ValueError(f"{name} must be a share in (0, 1) or a number of models, got {size!r}")
    if number >= n_models:
        raise ValueError(f"{name}={size!r} leaves none of {n_models} models on the other side")
    return number


def _check_length(values: Any, X: Any, name: str, what: str) -> None:
    if len(values) != len(X):
        raise ValueError(f"{name} has {len(values)} {what}, but X has {len(X)} models (rows)")


def _row_name(X: Any, row: int) -> str:
    return f"model {X.index[row]!r}" if isinstance(X, pd.DataFrame) else f"row {row} (model)"


def _read_labels(groups: Any, X: Any) -> np.ndarray:
    """Group of every model, (n_models,)."""
    try:
        labels = np.asarray(groups, dtype=object)
    except ValueError:  # ragged
        labels = np.empty((0, 0), dtype=object)
    if labels.ndim != 1:
        raise ValueError("groups must have shape (n_models,): one label for each model (row)")
    _check_length(labels, X, "groups", "labels")
    for row, label in enumerate(labels):
        if isinstance(label, (list, set, dict, np.ndarray)):
            raise ValueError(
                f"groups must hold one label for each model, got {label!r} for {_row_name(X, row)}"
            )
    return labels


def _read_strength(y: Any) -> np.ndarray:
    """Strength of every model, NaN where there is none."""
    try:
        cells = np.asarray(y)
        if cells.dtype.kind == "O":
            cells = np.where(pd.isna(cells), np.nan, cells)
        texts = cells.dtype.kind in "USMm" or any(isinstance(c, (str, bytes)) for c in cells.flat)
        strength = np.full((0, 0), np.nan) if texts else cells.astype(float)
    except (TypeError, ValueError, OverflowError):
        strength = np.full((0, 0), np.nan)
    if strength.ndim != 1:
        raise ValueError("y must be the strength of each model: numbers of shape (n_models,)")
    return strength


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, str):
        return cell.strip().lower() in ("", "nan", "nat")
    return cell is None or cell is pd.NA or cell is pd.NaT or bool(np.all(cell != cell))


def _date_as_text(cell: Any) -> Any:
    """A year as its text, other numbers and lists as texts that are no dates; dates as they are."""
    if isinstance(cell, (bool, np.bool_)) or not isinstance(cell, Hashable):
        return str(cell)
    if isinstance(cell, pd.Period):
        return cell.to_timestamp()
    if not isinstance(cell, Real):
        return cell
    if cell != cell:
        return None
    is_year = 1000 <= cell <= 9999 and int(cell) == cell
    return f"{int(cell)}" if is_year else f"number {cell}"


def _dates_by_name(dates: pd.Series, X: Any) -> pd.Series:
    """Dates in the order of the rows of X, missing where the Series lacks a model."""
    if not isinstance(X, pd.DataFrame):
        return dates
    names, numbered = dates.index, isinstance(X.index, pd.RangeIndex)
    if numbered or isinstance(names, pd.RangeIndex):
        # Numbers of rows are names only where every row has its own.
        return dates.reindex(X.index) if names.is_unique and X.index.isin(names).all() else dates
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        raise ValueError(f"dates has the model {twice!r} more than once: one date for each")
    if not X.index.isin(names).any():
        raise ValueError(
            f"dates has none of the models of X (the first is {X.index[0]!r}): name them as the "
            "index of X does, or give an array in its order"
        )
    return dates.reindex(X.index)


def _row_means(responses: np.ndarray) -> np.ndarray:
    known = ~np.isnan(responses)
    count = known.sum(axis=1)
    total = np.where(known, responses, 0.0).sum(axis=1)
    return np.divide(total, count, out=np.full(len(responses), np.nan), where=count > 0)


def _same_models(X: Any, groups: Any) -> np.ndarray:
    """Number of the set of models that each row must stay with, (n_models,)."""
    responses = np.asarray(as_numbers(X), dtype=float)
    if responses.ndim != 2:
        raise ValueError(f"X must have shape (n_models, n_items), got {responses.shape}")
    rows = np.nan_to_num(responses, nan=-np.inf) + 0.0
    keys = [[row.tobytes() for row in rows]]
    if isinstance(X, pd.DataFrame) and not isinstance(X.index, pd.RangeIndex):
        keys.append([str(name) for name in X.index])
    if groups is not None:
        labels = _read_labels(groups, X)
        # A missing label is no group: such a model stands alone.
        keys.append([i if pd.isna(label) else str(label) for i, label in enumerate(labels)])
    n_models, links = len(rows), []
    for values in keys:
        first: dict = {}
        links += [(i, first.setdefault(value, i)) for i, value in enumerate(values)]
    ends = np.array(links).T
    graph = coo_array((np.ones(ends.shape[1]), tuple(ends)), shape=(n_models, n_models))
    return connected_components(graph, directed=False)[1]
