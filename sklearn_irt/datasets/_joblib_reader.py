"""A reader of joblib files that hold one numeric array or one list of strings, and nothing else.

Nothing in the file is executed: see `_restricted`.
"""

import math
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from sklearn_irt.datasets._restricted import (
    ARRAY_GLOBALS,
    NDARRAY,
    Global,
    Opcodes,
    Refused,
    RestrictedUnpickler,
    UntrustedFileError,
    checked_dtype,
    checked_shape,
)

__all__ = ["UntrustedFileError", "read_joblib"]

COMPRESSED = {b"\x78": "zlib", b"\x1f\x8b": "gzip", b"BZ": "bz2", b"ZF": "joblib's old zlib"}
COMPRESSED |= {b"\xfd7zXZ": "xz", b"\x5d\x00": "lzma", b"\x04\x22\x4d\x18": "lz4"}


def read_joblib(
    source: bytes | str | os.PathLike[str], *, name: str | None = None
) -> np.ndarray | list[str]:
    """Read a joblib file without executing anything in it.

    Parameters
    ----------
    source : bytes or path
        The contents of an uncompressed file that `joblib.dump` wrote, or where it lies.
    name : str, default=None
        What to call it in errors; the path by default.

    Returns
    -------
    ndarray or list of str
        The array (boolean, integer or floating, native byte order, its own memory) or list.

    Raises
    ------
    UntrustedFileError
        If the file holds anything else, is damaged, or declares more than it contains.
    """
    if isinstance(source, bytes):
        name = name or "<bytes>"
    else:
        name = name or os.fspath(source)
        source = Path(source).read_bytes()
    for magic, method in COMPRESSED.items():
        if source.startswith(magic):
            raise UntrustedFileError(name, f"compressed ({method}); only plain files are read")
    if not source.startswith(b"\x80"):
        raise UntrustedFileError(name, "not a pickle of protocol 2 or later")
    value = _ArrayUnpickler(source, name).load()
    if type(value) is np.ndarray:
        return value
    if type(value) is list and all(type(entry) is str for entry in value):
        return value
    raise UntrustedFileError(
        name, f"holds a {type(value).__name__}; only a numeric array or a list of str is read"
    )


class _Wrapper:
    """A NumpyArrayWrapper whose state has not been read yet."""


_WRAPPER = Global()


class _ArrayUnpickler(RestrictedUnpickler):
    """Also reads joblib's arrays, whose bytes follow their description in the file."""

    admitted = ARRAY_GLOBALS | {("joblib.numpy_pickle", "NumpyArrayWrapper"): _WRAPPER}
    _array_read = False

    def _load_newobj(self) -> None:
        arguments = self.stack.pop()
        cls = self.stack.pop()
        if cls is not _WRAPPER or type(arguments) is not tuple or arguments:
            raise Refused("a new object that is not a plain NumpyArrayWrapper")
        self.append(_Wrapper())

    def _built(self, target: Any, state: Any) -> Any:
        if type(target) is _Wrapper:
            return self._wrapped_array(state)
        return super()._built(target, state)

    def _wrapped_array(self, state: Any) -> np.ndarray:
        known = {"subclass", "shape", "order", "dtype"}
        optional = {"allow_mmap", "numpy_array_alignment_bytes"}
        if type(state) is not dict or not known <= set(state) <= known | optional:
            raise Refused("a NumpyArrayWrapper with unknown attributes")
        if state["subclass"] is not NDARRAY:
            raise Refused("an array of a class other than numpy.ndarray")
        frame = self._unframer.current_frame
        if frame is not None and frame.read(1):
            raise Refused("array bytes inside a pickle frame")
        if state.get("numpy_array_alignment_bytes") is not None:
            self._source.read(self._source.read(1)[0])
        dtype, shape = checked_dtype(state["dtype"]), checked_shape(state["shape"])
        size = math.prod(shape) * dtype.itemsize
        if size > self._source.remaining:
            raise Refused(
                f"an array of {size} bytes declared where {self._source.remaining} are left"
            )
        return self._array(self._source.read(size), state["dtype"], shape, state["order"])

    def _array(self, data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
        if self._array_read:
            raise Refused("more than one array")
        array = super()._array(data, dtype, shape, order)
        self._array_read = True
        return array

    dispatch = Opcodes(RestrictedUnpickler.dispatch | {pickle.NEWOBJ[0]: _load_newobj})
