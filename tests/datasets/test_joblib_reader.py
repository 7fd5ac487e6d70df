"""The restricted reader reads what joblib reads, and refuses everything else unexecuted."""

import io
import os
import pickle
import struct
import time
from pathlib import Path

import joblib
import numpy as np
import pytest

from sklearn_irt.datasets._joblib_reader import UntrustedFileError, read_joblib

MATRICES = "arc_challenge commonsense gsm ifeval math med_qa mmlu mrpc musr rte sst2".split()
NAMES = ["arc_challenge_models", "ifeval_models", "musr_models"]


def dumped(value, **parameters) -> bytes:
    stream = io.BytesIO()
    joblib.dump(value, stream, **parameters)
    return stream.getvalue()


@pytest.mark.parametrize("name", MATRICES)
def test_real_matrices(shared, name):
    path = shared / "data" / "benchmark_prediction" / f"{name}.jbl"
    array, expected = read_joblib(path), joblib.load(path)
    assert type(array) is np.ndarray
    assert array.dtype == expected.dtype
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize("name", NAMES)
def test_real_names(shared, name):
    path = shared / "data" / "benchmark_prediction" / f"{name}.jbl"
    assert read_joblib(path) == joblib.load(path)


ARRAYS = [
    np.eye(3),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.zeros((0, 3)),
    np.array([True, False]),
    np.arange(3, dtype=">i4"),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_arrays_as_joblib_writes_them(array, protocol):
    read = read_joblib(dumped(array, protocol=protocol))
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype.newbyteorder("=")
    assert read.flags.writeable or read.size == 0


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype.str}{array.shape}")
@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize("layout", [b"numpy.core", b"numpy._core"])
def test_plain_pickles_of_both_numpy_layouts(array, protocol, layout):
    data = pickle.dumps(array, protocol=protocol)
    for old in (b"numpy._core", b"numpy.core"):
        for module in (b".multiarray", b".numeric"):
            data = renamed(data, old + module, layout + module)
    np.testing.assert_array_equal(read_joblib(data), array)


def renamed(data: bytes, old: bytes, new: bytes) -> bytes:
    """Rename a module, in the length of its string and of the frame too."""
    data = data.replace(b"c" + old + b"\n", b"c" + new + b"\n")
    old_string, new_string = (b"\x8c" + bytes([len(name)]) + name for name in (old, new))
    if old_string in data:
        data = data.replace(old_string, new_string)
        (size,) = struct.unpack("<Q", data[3:11])
        data = data[:3] + struct.pack("<Q", size + len(new) - len(old)) + data[11:]
    return data


def test_lists_of_strings():
    names = ["a", "b/c", "é", "a"]
    assert read_joblib(dumped(names)) == names
    assert read_joblib(dumped([])) == []


class Reduced:
    """Pickles as a call of any function."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def refuse(data: bytes) -> UntrustedFileError:
    start = time.process_time()
    with pytest.raises(UntrustedFileError) as caught:
        read_joblib(data, name="bad.jbl")
    assert time.process_time() - start < 10  # what grows without bound takes minutes
    assert str(caught.value).startswith("bad.jbl: ")
    return caught.value


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_command_does_not_run(tmp_path, protocol):
    mark = tmp_path / "ran"
    data = pickle.dumps(Reduced(os.system, (f"touch {mark}",)), protocol=protocol)
    error = refuse(data)
    assert error.refused in ("posix.system", "nt.system")
    assert error.refused in str(error)
    assert not mark.exists()
    pickle.loads(data)  # the file is as dangerous as it looks
    assert mark.exists()


@pytest.mark.parametrize(
    ("call", "refused"),
    [
        ((eval, ("1/0",)), "eval"),
        ((getattr, ("", "join")), "getattr"),
        ((pickle.loads, (b"",)), "_pickle.loads"),
        ((np.load, ("x",)), "load"),
        ((np.fromfile, ("/etc/passwd",)), "fromfile"),
        ((Path, ("x",)), "Path"),
        ((bytearray, (10**12,)), "bytearray"),
        ((np.ndarray, ((10**9,),)), None),
        ((np.dtype, (Reduced(eval, ("1/0",)),)), "eval"),
    ],
)
def test_calls_are_refused_by_name(call, refused):
    for value in (Reduced(*call), ["name", Reduced(*call)], (Reduced(*call),)):
        error = refuse(pickle.dumps(value, protocol=4))
        if refused is None:
            assert "a call" in str(error)
        else:
            assert error.refused.endswith(refused)


def stack_global(module: bytes, name: bytes) -> bytes:
    return b"".join(b"\x8c" + bytes([len(part)]) + part for part in (module, name)) + b"\x93"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (b"numpy", b"ndarray.tofile"),
        (b"numpy.core.multiarray", b"scalar"),
        (b"joblib.numpy_pickle", b"NumpyArrayWrapper.read"),
        (b"joblib.numpy_pickle", b"NDArrayWrapper"),
        (b"joblib.numpy_pickle", b"load"),
        (b"numpy\x1b[31m", b"ndarray"),
    ],
)
def test_near_misses_of_the_admitted_globals(module, name):
    error = refuse(b"\x80\x04" + stack_global(module, name) + b")R.")
    assert error.refused is not None
    assert "\x1b" not in str(error)


DTYPE = stack_global(b"numpy", b"dtype")
NDARRAY = stack_global(b"numpy", b"ndarray")
WRAPPER = stack_global(b"joblib.numpy_pickle", b"NumpyArrayWrapper")
RECONSTRUCT = stack_global(b"numpy.core.multiarray", b"_reconstruct")
FROMBUFFER = stack_global(b"numpy._core.numeric", b"_frombuffer")
STATE = b"(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00t"


def text(value: str) -> bytes:
    return b"\x8c" + bytes([len(value)]) + value.encode()


def dtype(code: str = "f8", state: bytes = STATE) -> bytes:
    return DTYPE + text(code) + b"\x89\x88\x87R" + state + b"b"


def wrapped(shape: bytes, payload: bytes = b"", code: bytes | None = None) -> bytes:
    state = text("subclass") + NDARRAY + text("shape") + shape + text("order") + text("C")
    state += text("dtype") + (dtype() if code is None else code)
    return b"\x80\x04" + WRAPPER + b")\x81}(" + state + b"ub" + payload + b"."


def array_state(shape: bytes, data: bytes) -> bytes:
    empty = RECONSTRUCT + NDARRAY + b"K\x00\x85C\x01b\x87R"
    return b"\x80\x04" + empty + b"(K\x01" + shape + dtype() + b"\x89" + data + b"tb."


def in_a_frame(data: bytes) -> bytes:
    return data[:2] + b"\x95" + struct.pack("<Q", len(data) - 2) + data[2:]


def test_the_handmade_arrays_are_readable():
    payload = struct.pack("<2d", 1.0, 2.0)
    for data in (wrapped(b"K\x02\x85", payload), array_state(b"K\x02\x85", b"C\x10" + payload)):
        np.testing.assert_array_equal(read_joblib(data), [1.0, 2.0])


@pytest.mark.parametrize(
    "shape",
    [
        b"J\xff\xff\xff\x7f\x85",  # 2**31 - 1
        b"\x8a\x08" + b"\xff" * 7 + b"\x7f\x85",  # 2**63 - 1
        b"\x8a\x09" + b"\x00" * 8 + b"\x01J\xff\xff\xff\x7f\x86",  # 2**64 by 2**31
        b"J\xff\xff\xff\xff\x85",  # -1
        b"\x88\x85",  # True
        b"(" + b"K\x01" * 40 + b"t",  # 40 dimensions
        b"K\x03\x85",  # one more than there is
        b"K\x01\x85",  # one fewer
    ],
)
def test_shapes_must_fit_the_file(shape):
    refuse(wrapped(shape, struct.pack("<2d", 1.0, 2.0)))


@pytest.mark.parametrize(
    "opcode",
    [
        b"r\xff\xff\xff\x7f",  # LONG_BINPUT: a memo of two thousand million entries
        b"\x8e" + struct.pack("<Q", 2**40),  # BINBYTES8
        b"\x96" + struct.pack("<Q", 2**40),  # BYTEARRAY8
        b"\x8d" + struct.pack("<Q", 2**40),  # BINUNICODE8
        b"\x95" + struct.pack("<Q", 2**40),  # FRAME
        b"B" + struct.pack("<I", 2**31),  # BINBYTES
    ],
)
def test_declared_lengths_are_not_allocated(opcode):
    import tracemalloc

    tracemalloc.start()
    refuse(b"\x80\x05N" + opcode + b".")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


def test_object_arrays_are_refused():
    array = np.array([Reduced(eval, ("1/0",))], dtype=object)
    assert "object" in str(refuse(dumped(array)))
    assert "object" in str(refuse(pickle.dumps(np.array([None]), protocol=4)))


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(2, dtype=[("a", "f8"), ("b", "O")]),
        np.zeros(2, dtype=[("a", "f8")]),
        np.array(["text"]),
        np.array([b"bytes"]),
        np.array(["2024-01-01"], dtype="M8[D]"),
        np.zeros(2, dtype=complex),
        np.zeros(2, dtype=np.dtype("f8", metadata={"a": 1})),
        np.ma.masked_array([1.0]),
    ],
    ids=["object field", "fields", "str", "bytes", "date", "complex", "metadata", "masked"],
)
# Older NumPy warns that it drops the metadata.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_other_arrays_are_refused(array):
    data = pickle.dumps(array, protocol=4)
    if array.dtype.metadata and b"\x8c\x01a" not in data:
        pytest.skip("this NumPy does not write metadata")
    refuse(data)


@pytest.mark.parametrize(
    "data",
    [
        b"\x80\x04" + dtype() + STATE + b"b.",  # a dtype built twice
        wrapped(b"K\x02\x85", b"\0" * 16, code=DTYPE + text("f8") + b"\x89\x88\x87R"),
        wrapped(b"K\x02\x85", b"\0" * 16, code=dtype("V8")),
        wrapped(b"K\x02\x85", b"\0" * 16, code=dtype(state=STATE.replace(b"NNN", b"NN}"))),
        wrapped(b"K\x02\x85", b"\0" * 16, code=dtype(state=STATE[:-1] + b"}t")),
        wrapped(b"K\x02\x85", b"\0" * 16, code=b"N"),
        wrapped(b"K\x02\x85", b"\x01\x02", code=dtype("b1")),  # bytes that are no booleans
        wrapped(b"K\x02\x85", b"\0" * 16) + b"N.",  # bytes after the end
        wrapped(b"K\x02\x85", b"\0" * 16 + b"}b"),  # BUILD on an array
        wrapped(b"K\x02\x85", b"\0" * 16 + b"N\x61"),  # APPEND to an array
        wrapped(b"K\x02\x85", b"\0" * 16 + b"K\x00Ns"),  # SETITEM on an array
        wrapped(b"K\x02\x85", b"\0" * 16 + wrapped(b"K\x02\x85", b"\0" * 16)[2:-1] + b"\x86"),
        b"\x80\x04" + WRAPPER + b")\x81.",  # a wrapper without a state
        b"\x80\x04" + WRAPPER + b")\x81}b.",  # with an empty one
        b"\x80\x04" + WRAPPER + b")R.",  # called
        b"\x80\x04" + NDARRAY + b")\x81.",  # an object of another class
        b"\x80\x04" + NDARRAY + b".",
        b"\x80\x04" + RECONSTRUCT + NDARRAY + b"K\x00\x85C\x01b\x87R.",
        b"\x80\x04" + RECONSTRUCT + DTYPE + b"K\x00\x85C\x01b\x87R.",
        b"\x80\x04" + DTYPE + b"]R.",  # a call without a tuple
        b"\x80\x04" + DTYPE + b"}\x85R.",  # a dtype without a code
        b"\x80\x04" + DTYPE + text("f8") + b"}\x86R.",  # with a dict for a flag
        b"\x80\x04" + FROMBUFFER + b"C\x00\x85R.",
        array_state(b"K\x01\x85", b"C\x08" + b"\0" * 8)[:-3] + b"}b.",
        array_state(b"K\x02\x85", b"C\x08" + b"\0" * 8),  # more than the data
        array_state(b"J\xff\xff\xff\x7f\x85", b"C\x00"),
        array_state(b"K\x01\x85", b"]"),  # a list for data
        in_a_frame(wrapped(b"K\x01\x85", b"\0" * 8)),
        b"\x80\x04]}b.",  # BUILD on a list
        b"\x80\x04]N\x85R.",  # a list called
        b"\x80\x04]\x94h\x00a.",  # a list in itself
        b"\x80\x04](X\x01\x00\x00\x00aNe.",  # a list with None
        b"\x80\x04}(" + b"(" * 3 + b"ttt" + b"Nu.",  # tuples as keys
        b"\x80\x04" + b")" + b"\x85" * 200_000 + b".",  # a deep tuple
        b"\x80\x04}(" + b")" + b"\x85" * 200_000 + b"Nu.",  # hashed
        b"\x80\x02cposix\nsystem\nq\x00.",
        b"\x80\x02(S'echo'\niposix\nsystem\n.",  # INST
        b"\x80\x02U\x01x\x51.",  # persistent id
        b"\x80\x02\x82\x01.",  # an extension code
        b"cposix\nsystem\n.",  # protocol 0
        b"\x80\x04",
        b"\x80",
        b"",
        b"\x80\x04.",
        b"\x80\x09N.",
        b"\x80\x04N.",
        b"\x80\x04h\x05.",
        b"\x80\x04e.",
    ],
)
def test_tricks_are_refused(data):
    refuse(data)


def test_truncated_files_are_refused():
    for data in (dumped(np.eye(4)), dumped(["name", "other"])):
        for size in range(len(data)):
            refuse(data[:size])


def test_flipped_bits_do_no_harm():
    """Every damage gives an error of this kind, or a value of the admitted types."""
    original = dumped(np.eye(2))
    refused = 0
    for position in range(len(original)):
        for bit in range(8):
            data = bytearray(original)
            data[position] ^= 1 << bit
            try:
                value = read_joblib(bytes(data))
            except UntrustedFileError:
                refused += 1
            else:
                assert type(value) is np.ndarray and value.nbytes <= len(original)
    assert refused > len(original)


@pytest.mark.parametrize("method", ["zlib", "gzip", "bz2", "xz", "lzma"])
def test_compressed_files_are_refused(method):
    assert "compressed" in str(refuse(dumped(np.zeros(10**6), compress=(method, 9))))


def test_the_error_names_the_path(tmp_path):
    path = tmp_path / "bad.jbl"
    path.write_bytes(pickle.dumps(Reduced(eval, ("1/0",))))
    with pytest.raises(UntrustedFileError, match="bad.jbl") as caught:
        read_joblib(path)
    assert caught.value.name == str(path)
    assert isinstance(caught.value, ValueError)
