"""A reader of joblib files that hold one numeric array or one list of strings, and nothing else.

A pickle is a program. This reader runs it on a machine that has only the instructions which build
such a value: every other opcode or global is refused, by name, before anything happens, and no
global is ever imported or called. Array bytes are read here, not by NumPy's or joblib's code.
"""

import math
import os
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np

MAX_DIMENSIONS = 32
DTYPE_CODE = re.compile(r"b1|[iu][1248]|f[248]")
OPCODE_NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}
COMPRESSED = {b"\x78": "zlib", b"\x1f\x8b": "gzip", b"BZ": "bz2", b"ZF": "joblib's old zlib"}
COMPRESSED |= {b"\xfd7zXZ": "xz", b"\x5d\x00": "lzma", b"\x04\x22\x4d\x18": "lz4"}


class UntrustedFileError(ValueError):
    """A file holds something other than one numeric array or one list of strings.

    Attributes
    ----------
    name : str
        The file.
    refused : str or None
        The global, "module.name", that was asked for and refused, if that was the reason.
    """

    def __init__(self, name: str, reason: str, refused: str | None = None):
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.refused = refused


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
    try:
        value = _ArrayUnpickler(_Source(source), name).load()
    except UntrustedFileError:
        raise
    except Exception as error:
        # Whatever the damage, the caller sees one kind of error.
        reason = f"damaged ({type(error).__name__}: {str(error)[:80]})"
        raise UntrustedFileError(name, reason) from error
    if type(value) is np.ndarray:
        return value
    if type(value) is list and all(type(entry) is str for entry in value):
        return value
    raise UntrustedFileError(
        name, f"holds a {type(value).__name__}; only a numeric array or a list of str is read"
    )


class _Source:
    """Bytes to read from in which a short read is an error."""

    def __init__(self, data: bytes):
        self._data = data
        self._position = 0

    @property
    def remaining(self) -> int:
        return len(self._data) - self._position

    def read(self, size: int) -> bytes:
        if size > self.remaining:
            raise EOFError(f"{size} bytes declared, {self.remaining} left")
        start, self._position = self._position, self._position + size
        return self._data[start : self._position]

    def readline(self) -> bytes:
        end = self._data.find(b"\n", self._position)
        return self.read(self.remaining if end < 0 else end + 1 - self._position)


class _Global:
    """Stands for an admitted global; it can be named in the file and cannot do anything."""


_WRAPPER, _NDARRAY, _DTYPE, _RECONSTRUCT, _FROMBUFFER = (_Global() for _ in range(5))
ADMITTED = {
    ("joblib.numpy_pickle", "NumpyArrayWrapper"): _WRAPPER,
    ("numpy", "ndarray"): _NDARRAY,
    ("numpy", "dtype"): _DTYPE,
    ("numpy.core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _RECONSTRUCT,
    ("numpy.core.numeric", "_frombuffer"): _FROMBUFFER,
    ("numpy._core.numeric", "_frombuffer"): _FROMBUFFER,
}


class _Dtype:
    """A dtype being read: its code, then, once built, the dtype."""

    def __init__(self, code: str):
        self.code = code
        self.dtype: np.dtype | None = None


class _Wrapper:
    """A NumpyArrayWrapper whose state has not been read yet."""


class _Array:
    """An array from `_reconstruct` whose state has not been read yet."""


class _Opcodes(dict):
    """The admitted opcodes."""

    def __missing__(self, code: int) -> Any:
        raise _Refused(f"refused opcode {OPCODE_NAMES.get(code, hex(code))}")


class _Refused(Exception):
    """A reason to refuse, raised where the file's name is not known."""


# The Python implementation: the C one allocates what a file declares before it reads it.
class _ArrayUnpickler(pickle._Unpickler):
    def __init__(self, source: _Source, name: str):
        super().__init__(source)
        self._source = source
        self._name = name
        self._array_read = False

    def load(self) -> Any:
        try:
            value = super().load()
            frame = self._unframer.current_frame
            if self._source.remaining or (frame is not None and frame.read(1)):
                raise _Refused("bytes after the end of the pickle")
        except _Refused as reason:
            raise UntrustedFileError(self._name, str(reason)) from None
        return value

    def find_class(self, module: str, name: str) -> _Global:
        try:
            return ADMITTED[module, name]
        except KeyError:
            refused = ascii(f"{module}.{name}"[:200])[1:-1]
            raise UntrustedFileError(
                self._name, f"refused global {refused}; nothing was executed", refused
            ) from None

    def _load_reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack.pop()
        if type(arguments) is not tuple:
            raise _Refused("a call without a tuple of arguments")
        if function is _DTYPE:
            self.append(_Dtype(_dtype_code(arguments)))
        elif function is _RECONSTRUCT:
            if len(arguments) != 3 or arguments[0] is not _NDARRAY:
                raise _Refused("an array of a class other than numpy.ndarray")
            self.append(_Array())
        elif function is _FROMBUFFER:
            if len(arguments) != 4:
                raise _Refused("an array buffer without data, dtype, shape and order")
            self.append(self._array(*arguments))
        else:
            raise _Refused(f"a call of a {type(function).__name__}")

    def _load_newobj(self) -> None:
        arguments = self.stack.pop()
        cls = self.stack.pop()
        if cls is not _WRAPPER or type(arguments) is not tuple or arguments:
            raise _Refused("a new object that is not a plain NumpyArrayWrapper")
        self.append(_Wrapper())

    def _load_build(self) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        if type(target) is _Dtype:
            target.dtype = _built_dtype(target, state)
        elif type(target) is _Wrapper:
            self.stack[-1] = self._wrapped_array(state)
        elif type(target) is _Array:
            if type(state) is not tuple or len(state) != 5:
                raise _Refused("an array state that is not of five parts")
            _, shape, dtype, fortran, data = state
            self.stack[-1] = self._array(data, dtype, shape, "F" if fortran is True else "C")
        else:
            raise _Refused(f"a state set on a {type(target).__name__}")

    def _load_bytearray8(self) -> None:
        size = int.from_bytes(self.read(8), "little")
        self.append(self.read(size))

    def _load_append(self) -> None:
        value = self.stack.pop()
        self._extend([value])

    def _load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, values: list[Any]) -> None:
        if type(self.stack[-1]) is not list:
            raise _Refused(f"items appended to a {type(self.stack[-1]).__name__}")
        self.stack[-1].extend(values)

    def _load_setitem(self) -> None:
        value = self.stack.pop()
        self._update([self.stack.pop(), value])

    def _load_setitems(self) -> None:
        self._update(self.pop_mark())

    def _update(self, pairs: list[Any]) -> None:
        target = self.stack[-1]
        # Hashing a deeply nested key would overflow the C stack.
        if type(target) is not dict or any(type(key) is not str for key in pairs[::2]):
            raise _Refused("items set on something other than a dict with str keys")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def _wrapped_array(self, state: Any) -> np.ndarray:
        known = {"subclass", "shape", "order", "dtype"}
        optional = {"allow_mmap", "numpy_array_alignment_bytes"}
        if type(state) is not dict or not known <= set(state) <= known | optional:
            raise _Refused("a NumpyArrayWrapper with unknown attributes")
        if state["subclass"] is not _NDARRAY:
            raise _Refused("an array of a class other than numpy.ndarray")
        frame = self._unframer.current_frame
        if frame is not None and frame.read(1):
            raise _Refused("array bytes inside a pickle frame")
        if state.get("numpy_array_alignment_bytes") is not None:
            self._source.read(self._source.read(1)[0])
        dtype, shape = _checked_dtype(state["dtype"]), _checked_shape(state["shape"])
        size = math.prod(shape) * dtype.itemsize
        if size > self._source.remaining:
            raise _Refused(
                f"an array of {size} bytes declared where {self._source.remaining} are left"
            )
        return self._array(self._source.read(size), state["dtype"], shape, state["order"])

    def _array(self, data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
        if self._array_read:
            raise _Refused("more than one array")
        dtype, shape = _checked_dtype(dtype), _checked_shape(shape)
        if type(data) is not bytes:
            raise _Refused(f"array data that is a {type(data).__name__}")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise _Refused(f"an array of shape {shape} declared over {len(data)} bytes")
        if type(order) is not str or order not in ("C", "F"):
            raise _Refused("an array order other than C and F")
        if dtype.kind == "b" and data.translate(None, b"\x00\x01"):
            raise _Refused("a boolean array with bytes other than 0 and 1")
        self._array_read = True
        flat = np.frombuffer(data, dtype=dtype) if data else np.empty(0, dtype)
        flat = flat.astype(dtype.newbyteorder("="), copy=True)
        return flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)

    dispatch = _Opcodes(
        {
            code[0]: pickle._Unpickler.dispatch[code[0]]
            for code in (
                *(pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK),
                *(pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE),
                *(pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1),
                *(pickle.SHORT_BINUNICODE, pickle.BINUNICODE, pickle.BINUNICODE8),
                *(pickle.SHORT_BINBYTES, pickle.BINBYTES, pickle.BINBYTES8),
                *(pickle.EMPTY_LIST, pickle.EMPTY_DICT, pickle.EMPTY_TUPLE),
                *(pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3),
                *(pickle.BINGET, pickle.LONG_BINGET),
                *(pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE),
                *(pickle.GLOBAL, pickle.STACK_GLOBAL),
            )
        }
    )
    dispatch |= {
        pickle.REDUCE[0]: _load_reduce,
        pickle.NEWOBJ[0]: _load_newobj,
        pickle.BUILD[0]: _load_build,
        pickle.BYTEARRAY8[0]: _load_bytearray8,
        pickle.APPEND[0]: _load_append,
        pickle.APPENDS[0]: _load_appends,
        pickle.SETITEM[0]: _load_setitem,
        pickle.SETITEMS[0]: _load_setitems,
    }


def _dtype_code(arguments: tuple) -> str:
    code = arguments[0] if arguments else None
    if type(code) is not str:
        raise _Refused("a dtype without a code")
    if code.startswith("O"):
        raise _Refused("an array of dtype object")
    if code.startswith("V"):
        raise _Refused("an array of a structured dtype")
    if not DTYPE_CODE.fullmatch(code):
        raise _Refused(f"a dtype {ascii(code[:20])} that is not boolean, integer or floating")
    if any(type(flag) not in (bool, int) for flag in arguments[1:]):
        raise _Refused("a dtype with fields or metadata")
    return code


def _built_dtype(target: _Dtype, state: Any) -> np.dtype:
    if target.dtype is not None:
        raise _Refused("a dtype built twice")
    if type(state) is not tuple or len(state) != 8:
        raise _Refused("a dtype with metadata, or of an unknown layout")
    if any(part is not None for part in state[2:5]):
        raise _Refused("a dtype with a base, names or fields")
    rest = [state[0], *state[5:]]
    if any(type(part) is not int for part in rest) or rest not in ([3, -1, -1, 0], [4, -1, -1, 0]):
        raise _Refused("a dtype of an unknown layout")
    order = state[1]
    if type(order) is not str or order not in ("<", ">", "|", "="):
        raise _Refused("a dtype of an unknown byte order")
    return np.dtype(order + target.code)


def _checked_dtype(dtype: Any) -> np.dtype:
    if type(dtype) is not _Dtype or dtype.dtype is None:
        raise _Refused("an array without a dtype")
    return dtype.dtype


def _checked_shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is not tuple or any(type(length) is not int for length in shape):
        raise _Refused("an array shape that is not a tuple of integers")
    if len(shape) > MAX_DIMENSIONS or any(length < 0 for length in shape):
        raise _Refused("an array shape with a negative length or too many dimensions")
    return shape
