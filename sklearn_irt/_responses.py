"""Reading a response matrix: cells, names, range."""

import functools
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from sklearn_irt.kernels.logistic import row_blocks

# A mean of a few responses may leave their range by so much of its width.
ROUNDING = 1e-9


class ResponseRange(NamedTuple):
    """Lowest and highest possible response, in the unit of the data."""

    low: float
    high: float
    learned: bool  # taken from the training responses: new ones outside are clipped

    @property
    def width(self) -> float:
        return self.high - self.low


class MappedResponses:
    """A response matrix that lies in a file, read in blocks of rows or columns.

    ``mapped[rows]`` is an array of those rows scaled to [0, 1], ``mapped[:, items]`` the same
    matrix with some of the items; ``np.asarray`` reads it.
    """

    def __init__(
        self,
        cells: np.ndarray,
        bounds: ResponseRange | None = None,
        items: np.ndarray | None = None,
    ):
        self._cells, self._bounds, self._items = cells, bounds, items
        self.shape = cells.shape if items is None else (len(cells), len(items))
        self.dtype = np.dtype(np.float64 if cells.dtype == np.float64 else np.float32)

    def __len__(self) -> int:
        return len(self._cells)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple):
            if self._items is None and isinstance(key[1], slice):  # a block of the file
                return MappedResponses(self._cells[:, key[1]], self._bounds)
            items = np.arange(self._cells.shape[1]) if self._items is None else self._items
            return MappedResponses(self._cells, self._bounds, items[key[1]])
        block = self._cells[key] if self._items is None else self._cells[key][:, self._items]
        values = np.array(block, dtype=self.dtype)  # plain, and in memory
        if self._bounds is None or self._bounds[:2] == (0.0, 1.0):
            return values
        values -= self._bounds.low
        values /= self._bounds.width
        return np.clip(values, 0.0, 1.0, out=values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=False)

    @functools.cached_property
    def extremes(self) -> tuple[float, float]:
        """Lowest and highest observed response, NaN where there is none."""
        each = np.array([_extremes(part) for _, part in _parts(self)])
        return float(np.fmin.reduce(each[:, 0])), float(np.fmax.reduce(each[:, 1]))

    def scaled(self, bounds: ResponseRange) -> "MappedResponses":
        """The same responses on the scale of [0, 1]."""
        return MappedResponses(self._cells, bounds, self._items)


def _parts(values: np.ndarray | MappedResponses) -> Iterator[tuple[int, np.ndarray]]:
    """First row and rows of each part of the matrix; all at once where it is in memory."""
    if not isinstance(values, MappedResponses):
        yield 0, values
        return
    for rows in row_blocks(*values.shape):
        yield rows.start, values[rows]


def _extremes(values: np.ndarray | MappedResponses) -> tuple[float, float]:
    """Lowest and highest observed response, NaN where there is none."""
    if isinstance(values, MappedResponses):
        return values.extremes
    return float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None))


def names_of(X: Any) -> tuple[pd.Index, pd.Index] | None:
    """Row and column names of a DataFrame, None for anything else."""
    return (X.index, X.columns) if isinstance(X, pd.DataFrame) else None


def model_names(X: Any, n_models: int) -> np.ndarray:
    """Names of the rows: the index of a DataFrame, else row_0, row_1, ..."""
    if isinstance(X, pd.DataFrame) and not isinstance(X.index, pd.RangeIndex):
        return np.asarray(X.index.map(str), dtype=object)
    return np.array([f"row_{i}" for i in range(n_models)], dtype=object)


def describe_cell(X: Any, row: int, column: int) -> str:
    """'model "gpt" and item "q7"', or row and column numbers where there are no names."""
    names = names_of(X)
    if names is None:
        return f"row {row} (model) and column {column} (item)"
    return f"model {names[0][row]!r} and item {names[1][column]!r}"


def as_numbers(X: Any) -> Any:
    """X with objects and nullable columns as floats, None and pd.NA as NaN; others unchanged.

    Raises
    ------
    TypeError, ValueError
        Naming the first cell that is not a number, or an item in two columns; an iterator.
    """
    if isinstance(X, Iterator):
        raise TypeError(
            "X must be a matrix, got an iterator; of all methods, only IRTRegressor.fit takes one "
            "(of chunks of rows)"
        )
    if isinstance(X, (list, tuple)) and any(getattr(part, "ndim", 1) == 2 for part in X):
        raise TypeError(
            f"X is a {type(X).__name__} of matrices; give numpy.concatenate(X), pandas.concat(X) "
            "or, to IRTRegressor.fit, iter(X)"
        )
    if isinstance(X, np.ma.MaskedArray):
        return X.astype(float).filled(np.nan)
    if isinstance(X, pd.DataFrame):
        if X.columns.nlevels > 1:
            raise ValueError(
                "the columns of X have several levels; name them by item, and give the other "
                "levels as scenarios=X.columns.get_level_values(0)"
            )
        if "Unnamed: 0" in X.columns:
            raise ValueError(
                'X has a column "Unnamed: 0", the row names of a file that was read without '
                "index_col=0"
            )
        numbered = isinstance(X.columns, pd.RangeIndex)
        if not numbered and not any(isinstance(name, str) for name in X.columns):
            X = X.set_axis([str(name) for name in X.columns], axis=1)  # names all the same
        if not X.columns.is_unique:
            twice = X.columns[X.columns.duplicated()][0]
            raise ValueError(f"X has the item {twice!r} in more than one column; rename or drop it")
        if all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in X.dtypes):
            return X
        return pd.DataFrame(_floats(X.to_numpy(dtype=object), X), X.index, X.columns)
    if isinstance(X, (list, tuple)):
        try:
            X = np.asarray(X)
        except ValueError:  # ragged: scikit-learn says what is wrong
            return X
    return _floats(X, X) if isinstance(X, np.ndarray) and X.dtype.hasobject else X


def _floats(cells: np.ndarray, X: Any) -> np.ndarray:
    missing = pd.isna(cells)
    try:
        return np.where(missing, np.nan, cells).astype(float)
    except (TypeError, ValueError):
        _raise_not_a_number(X)
        raise


def _raise_not_a_number(X: Any) -> None:
    """Raise an error that names the first cell that is not a number, if there is one."""
    try:
        cells = np.asarray(X, dtype=object)
    except ValueError:  # ragged
        return
    if cells.ndim != 2:
        return
    for row, column in np.ndindex(cells.shape):
        cell = cells[row, column]
        if cell is pd.NA or cell is None:
            continue
        try:
            float(cell)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"X must hold numbers (NaN for not asked): {error}, at "
                f"{describe_cell(X, row, column)}"
            ) from None


def read_responses(estimator: BaseEstimator, X: Any, *, reset: bool) -> np.ndarray:
    """Validate a response matrix.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_` (reset), or is checked against.
    X : array-like of shape (n_models, n_items)
    reset : bool
        True in `fit`.

    Returns
    -------
    ndarray of shape (n_models, n_items), float64 or float32
        NaN where not asked; the given values otherwise. A memory-mapped X, other than one of
        float64, is float32.

    Raises
    ------
    ValueError
        Naming the model and item of the first cell that is not a finite number or NaN.
    """
    X = as_numbers(X)
    try:
        values = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float32 if is_narrow(X) else [np.float64, np.float32],
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )
    except (TypeError, ValueError) as error:
        if "infinity" in str(error):
            cells = np.asarray(X, dtype=float)
            row, column = np.argwhere(np.isinf(cells))[0]
            raise ValueError(f"{error} First at {describe_cell(X, row, column)}.") from None
        if "could not convert" in str(error) or "must be a string or a real" in str(error):
            _raise_not_a_number(X)
        if "minimum of 2 is required" in str(error):
            raise ValueError(
                f"{error} An item response model needs at least two models (rows)."
            ) from None
        if "n_features" not in str(error) and "features, but" in str(error) and not reset:
            raise ValueError(
                f"{error} Give one column per item that the estimator was fitted on, NaN where "
                "an item was not asked."
            ) from None
        raise
    if reset and np.isnan(values).all():
        raise ValueError("X has no observed response: every cell is NaN")
    return values


def is_narrow(X: Any) -> bool:
    """Whether X is a memory-mapped matrix of numbers that are read as float32."""
    return isinstance(X, np.memmap) and X.dtype.kind in "fiub" and X.dtype != np.float64


def map_responses(estimator: BaseEstimator, cells: np.memmap, X: Any) -> MappedResponses:
    """Validate a memory-mapped response matrix for `fit`, in blocks of rows.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`.
    cells : memmap of shape (n_models, n_items)
    X : memmap or DataFrame
        The same, with their names.

    Returns
    -------
    MappedResponses

    Raises
    ------
    ValueError, TypeError
        As `read_responses`.
    """
    if cells.dtype.kind not in "fiub":
        raise TypeError(f"X must hold numbers (NaN for not asked), but its dtype is {cells.dtype}")
    if cells.ndim != 2 or len(cells) < 2 or cells.shape[1] < 1:
        raise ValueError(
            f"X has shape {cells.shape}; an item response model needs at least two models (rows) "
            "and one item (column)"
        )
    validate_data(estimator, X, reset=True, skip_check_array=True)
    mapped = MappedResponses(cells)
    if np.isnan(mapped.extremes[0]):
        raise ValueError("X has no observed response: every cell is NaN")
    if np.isinf(mapped.extremes).any():
        for first, part in _parts(mapped):
            for row, column in np.argwhere(np.isinf(part)):
                raise ValueError(f"X is infinite at {describe_cell(X, first + row, column)}")
    return mapped


def read_range(values: np.ndarray | MappedResponses, response_range: Any, X: Any) -> ResponseRange:
    """Range of the training responses.

    Parameters
    ----------
    values : ndarray or MappedResponses of shape (n_models, n_items)
    response_range : None or pair of float
        None: [0, 1] where all values lie in it, else their minimum and maximum with a warning.
    X : array-like
        What the user gave, for the names in messages.

    Returns
    -------
    ResponseRange
    """
    low, high = _extremes(values)
    if response_range is not None:
        try:
            bounds = tuple(float(bound) for bound in response_range)
        except (TypeError, ValueError):
            bounds = ()
        finite = len(bounds) == 2 and np.isfinite([*bounds, bounds[1] - bounds[0]]).all()
        if not finite or not bounds[0] < bounds[1]:
            raise ValueError(
                f"response_range must be a pair of finite numbers (low, high) with low < high, "
                f"got {response_range!r}"
            )
        given = ResponseRange(*bounds, learned=False)
        refuse_outside(values, given, X)
        return given
    if low >= -ROUNDING and high <= 1.0 + ROUNDING:
        return ResponseRange(0.0, 1.0, learned=False)
    if low == high:
        raise ValueError(
            f"every response in X is {low:g}, so their range is unknown: give "
            "response_range=(low, high)"
        )
    if low == -1.0 and high <= 1.0:
        cause = "is -1 a mark of missing answers? Then use NaN"
    elif low >= 0.0 and high <= 100.0 and high > 10.0:
        cause = "percentages? Then give response_range=(0, 100)"
    elif low >= 1.0 and high <= 10.0:
        cause = f"ratings? Then give their scale, e.g. response_range=(1, {high:g})"
    else:
        cause = "give response_range=(low, high) if the scale is wider"
    warnings.warn(
        f"X has responses outside [0, 1]; their range [{low:g}, {high:g}] is taken as "
        f"response_range ({cause})",
        UserWarning,
        stacklevel=3,
    )
    return ResponseRange(low, high, learned=True)


def refuse_outside(
    values: Any,
    bounds: ResponseRange,
    X: Any,
    advice: str = "; mark what was not asked with NaN, or give response_range",
) -> None:
    """Raise a ValueError that names the first response outside the range, then the advice."""
    slack = ROUNDING * bounds.width
    low, high = _extremes(values)
    if not (low < bounds.low - slack or high > bounds.high + slack):
        return
    for first, part in _parts(values):
        outside = (part < bounds.low - slack) | (part > bounds.high + slack)
        if outside.any():
            row, column = np.argwhere(outside)[0]
            raise ValueError(
                f"X has the response {_shown(part[row, column])} at "
                f"{describe_cell(X, first + row, column)}, "
                f"outside the response range [{bounds.low:g}, {bounds.high:g}]{advice}"
            )


def _shown(value: np.floating) -> str:
    """A number as people write it: 2, not 2.0, and all digits of the others."""
    return f"{value:g}" if float(f"{value:g}") == float(value) else repr(float(value))


def to_unit(values: Any, bounds: ResponseRange, X: Any) -> Any:
    """Responses scaled to [0, 1]; the same array where they are in [0, 1] already.

    New responses outside a range that was learned from the training responses are clipped with
    a warning; outside a given one they raise a ValueError.
    """
    low, high = _extremes(values)
    if bounds.learned:
        if low < bounds.low or high > bounds.high:
            warnings.warn(
                f"responses outside the range [{bounds.low:g}, {bounds.high:g}] of the training "
                "responses are clipped to it; give response_range at fit",
                UserWarning,
                stacklevel=3,
            )
            values = np.clip(values, bounds.low, bounds.high)
    else:
        refuse_outside(values, bounds, X)
    if bounds.low <= 0.0 and bounds.high >= 2.0:
        if 0.0 < high <= 1.0:
            warnings.warn(
                f"every response is at most 1, on a scale from {bounds.low:g} to "
                f"{bounds.high:g}: are they shares of it? Then multiply them by {bounds.high:g}",
                UserWarning,
                stacklevel=3,
            )
    if isinstance(values, MappedResponses):
        return values.scaled(bounds)
    if low < bounds.low or high > bounds.high:
        values = np.clip(values, bounds.low, bounds.high)  # by a rounding error
    if bounds.low == 0.0 and bounds.high == 1.0:
        return values
    return (values - values.dtype.type(bounds.low)) / values.dtype.type(bounds.width)


def read_all_items(
    X: Any, n_items: int, item_names: Any, bounds: ResponseRange, called: str
) -> np.ndarray:
    """Responses of models to all items of a benchmark, whatever is fitted on them.

    Parameters
    ----------
    X : array-like of shape (n_models, n_items)
        NaN where not asked. A DataFrame's columns are matched by item name where there are names,
        and may be some of the items.
    n_items : int
    item_names : sequence of str, or None
    bounds : ResponseRange
    called : str
        What the caller calls X, for messages.

    Returns
    -------
    ndarray of shape (n_models, n_items)
        On the scale of [0, 1].

    Raises
    ------
    ValueError
        Naming an item that is not known, the shape that was expected, or the cell that is
        infinite or outside the range.
    """
    table = as_numbers(X)
    if isinstance(table, pd.DataFrame) and item_names is not None:
        known = {str(name): i for i, name in enumerate(item_names)}
        for column in table.columns:
            if str(column) not in known:
                raise ValueError(f"{called} has the item {column!r}, which is not known here")
        values = np.full((len(table), n_items), np.nan)
        values[:, [known[str(column)] for column in table.columns]] = table
    else:
        values = np.asarray(table, dtype=float)
        if values.ndim != 2 or values.shape[1] != n_items:
            raise ValueError(
                f"{called} has shape {values.shape}, but the benchmark has {n_items} items: give "
                f"one column for each of the {n_items} items, NaN where not asked"
            )
    if not len(values):
        raise ValueError(f"{called} has no rows: give at least one model")
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise ValueError(f"{called} is infinite at {describe_cell(X, row, column)}")
    return to_unit(values, bounds, X)
