"""A pickle machine that builds plain values and numeric arrays, and can do nothing else.

A pickle is a program. This machine has only the instructions which build such values: every other
opcode or global is refused, by name, before anything happens, and no global is ever imported or
called. Array bytes are read here, not by NumPy's code.
"""

import math
import pickle
import pickletools
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

MAX_DIMENSIONS = 32
DTYPE_CODE = re.compile(r"b1|[iu][1248]|f[248]")
OPCODE_NAMES = {ord(opcode.code): opcode.name for opcode in pickletools.opcodes}


class UntrustedFileError(ValueError):
    """A file holds something other than the few kinds of values that its reader admits.

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


class Refused(Exception):
    """A reason to refuse, raised where the file's name is not known."""


class Source:
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


class Global:
    """Stands for an admitted global; it can be named in the file and cannot do anything."""


NDARRAY, DTYPE, RECONSTRUCT, FROMBUFFER = (Global() for _ in range(4))
ARRAY_GLOBALS = {
    ("numpy", "ndarray"): NDARRAY,
    ("numpy", "dtype"): DTYPE,
    ("numpy.core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): RECONSTRUCT,
    ("numpy.core.numeric", "_frombuffer"): FROMBUFFER,
    ("numpy._core.numeric", "_frombuffer"): FROMBUFFER,
}


class Dtype:
    """A dtype being read: its code, then, once built, the dtype."""

    def __init__(self, code: str):
        self.code = code
        self.dtype: np.dtype | None = None


class Unbuilt:
    """An array from `_reconstruct`: without a value until its state has been read."""

    def __init__(self) -> None:
        self.value: np.ndarray | None = None


class Opcodes(dict):
    """The admitted opcodes."""

    def __missing__(self, code: int) -> Any:
        raise Refused(f"refused opcode {OPCODE_NAMES.get(code, hex(code))}")


# The Python implementation: the C one allocates what a file declares before it reads it.
class RestrictedUnpickler(pickle._Unpickler):
    """Reads the bytes of one pickle; a subclass may admit more globals and opcodes.

    Parameters
    ----------
    data : bytes
    name : str
        What to call them in errors.
    """

    admitted: ClassVar[Mapping[tuple[str, str], Global]] = ARRAY_GLOBALS

    def __init__(self, data: bytes, name: str):
        self._source = Source(data)
        self._name = name
        self._array_bytes, self._max_array_bytes = 0, len(data)
        super().__init__(self._source)

    def load(self) -> Any:
        """Read the value.

        Raises
        ------
        UntrustedFileError
            Whatever is wrong.
        """
        try:
            value = super().load()
            frame = self._unframer.current_frame
            if self._source.remaining or (frame is not None and frame.read(1)):
                raise Refused("bytes after the end of the pickle")
        except UntrustedFileError:
            raise
        except Refused as reason:
            raise UntrustedFileError(self._name, str(reason)) from None
        except Exception as error:
            # Whatever the damage, the caller sees one kind of error.
            reason = f"damaged ({type(error).__name__}: {str(error)[:80]})"
            raise UntrustedFileError(self._name, reason) from error
        return value

    def find_class(self, module: str, name: str) -> Global:
        try:
            return self.admitted[module, name]
        except KeyError:
            refused = ascii(f"{module}.{name}"[:200])[1:-1]
            raise UntrustedFileError(
                self._name, f"refused global {refused}; nothing was executed", refused
            ) from None

    def _load_reduce(self) -> None:
        arguments = self.stack.pop()
        function = self.stack.pop()
        if type(arguments) is not tuple:
            raise Refused("a call without a tuple of arguments")
        self.append(self._called(function, arguments))

    def _called(self, function: Any, arguments: tuple) -> Any:
        """What the file means by this call."""
        if function is DTYPE:
            return Dtype(_dtype_code(arguments))
        if function is RECONSTRUCT:
            if len(arguments) != 3 or arguments[0] is not NDARRAY:
                raise Refused("an array of a class other than numpy.ndarray")
            return Unbuilt()
        if function is FROMBUFFER:
            if len(arguments) != 4:
                raise Refused("an array buffer without data, dtype, shape and order")
            return self._array(*arguments)
        raise Refused(f"a call of a {type(function).__name__}")

    def _load_build(self) -> None:
        state = self.stack.pop()
        self.stack[-1] = self._built(self.stack[-1], state)

    def _built(self, target: Any, state: Any) -> Any:
        """The target with its state set."""
        if type(target) is Dtype:
            target.dtype = _built_dtype(target, state)
            return target
        if type(target) is not Unbuilt or target.value is not None:
            raise Refused(f"a state set on a {type(target).__name__}")
        if type(state) is not tuple or len(state) != 5:
            raise Refused("an array state that is not of five parts")
        _, shape, dtype, fortran, data = state
        target.value = self._array(data, dtype, shape, "F" if fortran is True else "C")
        return target.value

    def _load_get(self) -> None:
        self._recall(self.read(1)[0])

    def _load_long_get(self) -> None:
        self._recall(int.from_bytes(self.read(4), "little"))

    def _recall(self, position: int) -> None:
        value = self.memo[position]
        # The memo holds an array as it was before its state was read.
        built = type(value) is Unbuilt and value.value is not None
        self.append(value.value if built else value)

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
            raise Refused(f"items appended to a {type(self.stack[-1]).__name__}")
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
            raise Refused("items set on something other than a dict with str keys")
        target.update(zip(pairs[::2], pairs[1::2], strict=True))

    def _array(self, data: Any, dtype: Any, shape: Any, order: Any) -> np.ndarray:
        dtype, shape = checked_dtype(dtype), checked_shape(shape)
        if type(data) is not bytes:
            raise Refused(f"array data that is a {type(data).__name__}")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise Refused(f"an array of shape {shape} declared over {len(data)} bytes")
        if type(order) is not str or order not in ("C", "F"):
            raise Refused("an array order other than C and F")
        if dtype.kind == "b" and data.translate(None, b"\x00\x01"):
            raise Refused("a boolean array with bytes other than 0 and 1")
        # The same bytes, recalled again and again, would fill the memory with arrays.
        self._array_bytes += len(data)
        if self._array_bytes > self._max_array_bytes:
            raise Refused("arrays that are larger together than the file")
        flat = np.frombuffer(data, dtype=dtype) if data else np.empty(0, dtype)
        flat = flat.astype(dtype.newbyteorder("="), copy=True)
        return flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)

    dispatch = Opcodes(
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
                *(pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE),
                *(pickle.GLOBAL, pickle.STACK_GLOBAL),
            )
        }
    )
    dispatch |= {
        pickle.REDUCE[0]: _load_reduce,
        pickle.BUILD[0]: _load_build,
        pickle.BINGET[0]: _load_get,
        pickle.LONG_BINGET[0]: _load_long_get,
        pickle.BYTEARRAY8[0]: _load_bytearray8,
        pickle.APPEND[0]: _load_append,
        pickle.APPENDS[0]: _load_appends,
        pickle.SETITEM[0]: _load_setitem,
        pickle.SETITEMS[0]: _load_setitems,
    }


def _dtype_code(arguments: tuple) -> str:
    code = arguments[0] if arguments else None
    if type(code) is not str:
        raise Refused("a dtype without a code")
    if code.startswith("O"):
        raise Refused("an array of dtype object")
    if code.startswith("V"):
        raise Refused("an array of a structured dtype")
    if not DTYPE_CODE.fullmatch(code):
        raise Refused(f"a dtype {ascii(code[:20])} that is not boolean, integer or floating")
    if any(type(flag) not in (bool, int) for flag in arguments[1:]):
        raise Refused("a dtype with fields or metadata")
    return code


def _built_dtype(target: Dtype, state: Any) -> np.dtype:
    if target.dtype is not None:
        raise Refused("a dtype built twice")
    if type(state) is not tuple or len(state) != 8:
        raise Refused("a dtype with metadata, or of an unknown layout")
    if any(part is not None for part in state[2:5]):
        raise Refused("a dtype with a base, names or fields")
    rest = [state[0], *state[5:]]
    if any(type(part) is not int for part in rest) or rest not in ([3, -1, -1, 0], [4, -1, -1, 0]):
        raise Refused("a dtype of an unknown layout")
    order = state[1]
    if type(order) is not str or order not in ("<", ">", "|", "="):
        raise Refused("a dtype of an unknown byte order")
    return np.dtype(order + target.code)


def checked_dtype(dtype: Any) -> np.dtype:
    if type(dtype) is not Dtype or dtype.dtype is None:
        raise Refused("an array without a dtype")
    return dtype.dtype


def checked_shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is not tuple or any(type(length) is not int for length in shape):
        raise Refused("an array shape that is not a tuple of integers")
    if len(shape) > MAX_DIMENSIONS or any(length < 0 for length in shape):
        raise Refused("an array shape with a negative length or too many dimensions")
    return shape


_SCALAR, _ENCODE = Global(), Global()


class _PlainUnpickler(RestrictedUnpickler):
    """Also reads numbers, several arrays, and bytes as pickle protocol 2 spells them."""

    admitted = ARRAY_GLOBALS | {
        ("numpy.core.multiarray", "scalar"): _SCALAR,
        ("numpy._core.multiarray", "scalar"): _SCALAR,
        ("_codecs", "encode"): _ENCODE,
    }

    def _called(self, function: Any, arguments: tuple) -> Any:
        if function is _SCALAR:
            if len(arguments) != 2:
                raise Refused("a number without a dtype and bytes")
            dtype, data = checked_dtype(arguments[0]), arguments[1]
            if type(data) is not bytes or len(data) != dtype.itemsize:
                raise Refused("a number of other bytes than its dtype has")
            if dtype.kind == "b" and data not in (b"\x00", b"\x01"):
                raise Refused("a boolean other than 0 and 1")
            return np.frombuffer(data, dtype)[0].item()
        if function is _ENCODE:
            text = arguments[0] if arguments else None
            if type(text) is not str or arguments[1:] != ("latin1",):
                raise Refused("bytes that are not spelled as a latin1 string")
            return text.encode("latin1")
        return super()._called(function, arguments)

    dispatch = Opcodes(
        RestrictedUnpickler.dispatch
        | {
            opcode[0]: pickle._Unpickler.dispatch[opcode[0]]
            for opcode in (pickle.BINFLOAT, pickle.LONG4)
        }
    )


def read_plain_pickle(data: bytes, name: str) -> Any:
    """Value of a pickle of numbers, strings, plain containers and numeric arrays.

    Parameters
    ----------
    data : bytes
    name : str
        What to call it in errors.

    Returns
    -------
    dict, list, tuple, str, int, float, bool, None or ndarray
        NumPy's scalars become Python's numbers.

    Raises
    ------
    UntrustedFileError
        If there is anything else in it, named in the message, or if it is damaged.
    """
    return _PlainUnpickler(data, name).load()
