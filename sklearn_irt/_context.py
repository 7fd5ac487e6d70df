"""What AnchorSelector hands to the next step of a Pipeline, and nothing more."""

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import pandas as pd

from sklearn_irt._responses import ResponseRange
from sklearn_irt._scenarios import Scenarios

ATTRS_KEY = "sklearn_irt_context"


@dataclass(frozen=True, eq=False)
class AnchorContext:
    """The benchmark behind the anchors' columns. Opaque, immutable, compared by identity.

    `irt` is the selector's IRT model, fitted or not; `responses` (n_models, n_items), scaled to
    [0, 1], are the training models' and only present in the output of `fit_transform`.
    """

    anchors: np.ndarray
    weights: np.ndarray
    gain: float
    scenarios: Scenarios
    bounds: ResponseRange
    irt: Any
    item_names: np.ndarray | None
    responses: np.ndarray | None = None
    models: np.ndarray | None = None

    @cached_property
    def digest(self) -> str:
        """Hash of everything that a following step could depend on."""
        return joblib.hash([getattr(self, field.name) for field in fields(self)])

    def __copy__(self) -> "AnchorContext":
        return self

    def __deepcopy__(self, memo: dict) -> "AnchorContext":
        return self


class AnchoredArray(np.ndarray):
    """The anchors' columns, carrying an `AnchorContext` through views, copies and pickles.

    Results of arithmetic are plain arrays: their values are no longer the answers.
    """

    _context: AnchorContext | None = None

    def __array_finalize__(self, source: Any) -> None:
        self._context = getattr(source, "_context", None)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        plain = [np.asarray(x) if isinstance(x, AnchoredArray) else x for x in inputs]
        if out is not None:
            kwargs["out"] = tuple(np.asarray(x) if isinstance(x, AnchoredArray) else x for x in out)
        return getattr(ufunc, method)(*plain, **kwargs)

    def __reduce__(self):
        return _rebuild, (_plain(self), self._context)


def _plain(X: np.ndarray) -> np.ndarray:
    """The base array, without the digest in its dtype."""
    return np.asarray(X).view(np.dtype(X.dtype.str))


def _rebuild(values: np.ndarray, context: AnchorContext | None) -> np.ndarray:
    return values if context is None else attach(values, context)


def attach(X: Any, context: AnchorContext) -> Any:
    """The same columns, carrying the context: an AnchoredArray, or a DataFrame's attrs."""
    if isinstance(X, pd.DataFrame):
        X.attrs[ATTRS_KEY] = context
        return X
    if not isinstance(X, np.ndarray) or X.dtype.hasobject:
        return X
    # joblib hashes an ndarray subclass by its bytes, shape and dtype only: the digest in the
    # dtype's metadata keeps a cached step from answering for other anchors.
    dtype = np.dtype(X.dtype.str, metadata={"context": context.digest})
    array = np.ascontiguousarray(X).view(dtype).view(AnchoredArray)
    array._context = context
    return array


def context_of(X: Any) -> AnchorContext | None:
    """The context that X carries, or None."""
    if isinstance(X, pd.DataFrame):
        context = X.attrs.get(ATTRS_KEY)
        return context if isinstance(context, AnchorContext) else None
    return getattr(X, "_context", None)
