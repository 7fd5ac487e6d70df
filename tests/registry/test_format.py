"""The benchmark file: what is written comes back, and nothing else comes in."""

import hashlib
import io
import json
import os
import pickle
import random
import stat
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks_registry import _format
from benchmarks_registry._format import (
    BenchmarkFileError,
    read_benchmark_file,
    write_benchmark_file,
)

ARRAYS = {
    "difficulty": np.array([0.5, np.nan, -np.inf]),
    "discrimination": np.arange(6, dtype=np.float32).reshape(2, 3) / 7,
    "anchors": np.array([3, 1, 2]),
    "binary": np.array([[True], [False]]),
    "names": np.array(["é", "a longer name", "😀", ""]),
    "scalar": np.array(7, dtype=np.uint8),
    "none": np.empty((0, 4)),
}
META = {
    "name": "tïny 😀",
    "items": ["a", "b"],
    "nested": {"x": [1, None, True, -0.5]},
    "big": 2**64 - 1,
}


def same(arrays, expected):
    return arrays.keys() == expected.keys() and all(
        arrays[name].dtype == expected[name].dtype
        and np.array_equal(arrays[name], expected[name], equal_nan=arrays[name].dtype.kind == "f")
        for name in expected
    )


def run(script, *arguments, **kwargs):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, **kwargs)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tiny.npz"


@pytest.fixture
def small(path):
    """A small valid file: its path, its bytes, its content."""
    arrays, meta = {"w": np.array([0.25, 0.75]), "s": np.array(["a", "é"])}, {"name": "small"}
    write_benchmark_file(path, arrays, meta)
    return path, path.read_bytes(), arrays, meta


# Round trips


def test_round_trip(path):
    assert write_benchmark_file(path, ARRAYS, META) == path
    arrays, meta = read_benchmark_file(path)
    assert same(arrays, ARRAYS)
    assert meta == META
    assert list(arrays) == sorted(ARRAYS)
    assert not any(array.flags.writeable for array in arrays.values())
    assert all(array.flags.aligned and array.flags.c_contiguous for array in arrays.values())


def test_numpy_reads_the_arrays(path):
    write_benchmark_file(path, ARRAYS, META)
    with np.load(path, allow_pickle=False) as loaded:
        assert set(loaded.files) == ARRAYS.keys() | {"meta.json", "checksum"}
        assert same({name: loaded[name] for name in ARRAYS}, ARRAYS)
        assert json.loads(loaded["meta.json"])["benchmark"] == META


def test_members_are_as_documented(path):
    write_benchmark_file(path, ARRAYS, META)
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        raw = archive.read("meta.json")
        document = json.loads(raw)
        digests = {n: hashlib.sha256(archive.read(n)).hexdigest() for n in names}
        assert archive.read("checksum").decode() == hashlib.sha256(raw).hexdigest()
        assert {i.date_time for i in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert names == sorted(names)
    assert document["format"] == "sklearn-irt-benchmark"
    assert document["format_version"] == 1
    assert list(document) == sorted(document)
    for name, entry in document["arrays"].items():
        assert entry["sha256"] == digests[f"{name}.npy"]
        assert tuple(entry["shape"]) == ARRAYS[name].shape
        assert np.dtype(entry["dtype"]) == ARRAYS[name].dtype


def test_equal_content_gives_equal_bytes(path, tmp_path):
    other = tmp_path / "other"
    write_benchmark_file(path, ARRAYS, META)
    write_benchmark_file(other, dict(reversed(ARRAYS.items())), dict(reversed(META.items())))
    assert path.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_round_trip_in_another_process(path):
    write_benchmark_file(path, ARRAYS, META)
    before = path.read_bytes()
    script = (
        "import sys; from benchmarks_registry._format import *\n"
        "write_benchmark_file(sys.argv[2], *read_benchmark_file(sys.argv[1]))"
    )
    again = path.with_name("again.npz")
    with run(script, path, again) as process:
        assert process.wait(60) == 0
    assert again.read_bytes() == before


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=">i4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12.0)[::-3],
        np.array(["b", "ä"], dtype=">U1"),
    ],
)
def test_layout_is_normalised(path, array):
    write_benchmark_file(path, {"a": array}, {})
    read = read_benchmark_file(path)[0]["a"]
    assert np.array_equal(read, array)
    assert read.dtype == array.dtype.newbyteorder("<")
    assert read.flags.c_contiguous


def test_many_ids_are_fast(path):
    ids = [f"mmlu:subject={i % 57},method=multiple_choice_joint:id{i}" for i in range(28_659)]
    write_benchmark_file(path, {}, {"items": ids})
    start = time.process_time()
    assert read_benchmark_file(path)[1]["items"] == ids
    assert time.process_time() - start < 5


def test_what_compresses_well_is_readable(path):
    arrays = {"zeros": np.zeros((1000, 1000))}
    write_benchmark_file(path, arrays, {})
    assert same(read_benchmark_file(path)[0], arrays)


def test_deepest_meta_is_readable(path):
    deep = {}
    for _ in range(_format._MAX_DEPTH - 2):
        deep = {"d": deep}
    write_benchmark_file(path, {}, deep)
    assert read_benchmark_file(path)[1] == deep
    with pytest.raises(BenchmarkFileError, match="nested deeper"):
        write_benchmark_file(path, {}, {"d": deep})


# Writing: what is refused


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([{}]), "dtype object"),
        (np.zeros(2, dtype=[("a", "f8")]), "dtype"),
        (np.zeros(2, dtype=np.float16), "dtype float16"),
        (np.zeros(2, dtype=complex), "dtype complex128"),
        (np.array([b"a"]), "dtype"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "dtype datetime64"),
        (np.array(["\ud800"]), "invalid Unicode"),
        ([1, 2], "is a list"),
        (np.ma.array([1, 2], mask=[0, 1]), "is a MaskedArray"),
    ],
)
def test_bad_arrays_are_refused(path, array, message):
    with pytest.raises(BenchmarkFileError, match=rf"tiny\.npz: array 'a'.*{message}"):
        write_benchmark_file(path, {"a": array}, {})
    assert not path.exists()


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", "é", "a\n", "a.npy", "meta.json", "checksum", "x" * 129, 1]
)
def test_bad_array_names_are_refused(path, name):
    with pytest.raises(BenchmarkFileError, match="no array can be called"):
        write_benchmark_file(path, {name: np.zeros(1)}, {})


RECURSIVE = []
RECURSIVE.append(RECURSIVE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (float("nan"), r"meta\['k'\]\[1\] is nan.*None"),
        (float("inf"), "is inf"),
        (np.float64("-inf"), "is -inf"),
        ("\udc00", "lone surrogate"),
        (2**64, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ({1: 2}, "has the key 1"),
        ({"\ud800": 2}, "has the key"),
        (np.int64(1), "is a int64.*tolist"),
        (b"x", "is a bytes"),
        ({1}, "is a set"),
        (RECURSIVE, "nested deeper than"),
    ],
)
def test_bad_meta_is_refused(path, value, message):
    with pytest.raises(BenchmarkFileError, match=message):
        write_benchmark_file(path, {}, {"k": [0, value]})
    assert not path.exists()


def test_wrong_containers_are_refused(path):
    for arrays, meta in [([], {}), ({}, []), ({}, None)]:
        with pytest.raises(BenchmarkFileError, match="must be dicts"):
            write_benchmark_file(path, arrays, meta)
    with pytest.raises(BenchmarkFileError, match="too many"):
        write_benchmark_file(path, dict.fromkeys(map(str, range(255)), np.zeros(1)), {})


def test_size_limits_hold_on_both_sides(path, monkeypatch):
    with pytest.raises(BenchmarkFileError, match="meta takes over"):
        write_benchmark_file(path, {}, {"x": "a" * _format._MAX_META_SIZE})
    write_benchmark_file(path, {"a": np.arange(1000)}, {})
    with pytest.raises(BenchmarkFileError, match="max_size"):
        read_benchmark_file(path, max_size=8000)
    monkeypatch.setattr(_format, "_MAX_SIZE", 8000)
    with pytest.raises(BenchmarkFileError, match="arrays take over"):
        write_benchmark_file(path, {"a": np.arange(1000)}, {})


# Paths, permissions, interruptions


def test_paths(tmp_path, monkeypatch):
    class Like:
        def __fspath__(self):
            return str(tmp_path / "like")

    for path in (tmp_path / "x.npz", str(tmp_path / "no suffix"), Like()):
        assert write_benchmark_file(path, {}, META) == Path(path)
        assert Path(path).is_file()
        assert read_benchmark_file(path) == ({}, META)
    monkeypatch.chdir(tmp_path)
    assert write_benchmark_file("relative", {}, META) == Path("relative")
    assert read_benchmark_file("relative") == ({}, META)


def test_missing_paths_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such benchmark file.*absent"):
        read_benchmark_file(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match="Create the folder.*absent"):
        write_benchmark_file(tmp_path / "absent" / "x.npz", {}, {})
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        read_benchmark_file(tmp_path)
    with pytest.raises(IsADirectoryError, match="this is a folder"):
        write_benchmark_file(tmp_path, {}, {})
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_are_neither_opened_nor_replaced(path):
    os.mkfifo(path)
    with pytest.raises(BenchmarkFileError, match="pipe"):
        read_benchmark_file(path)
    with pytest.raises(BenchmarkFileError, match="pipe"):
        write_benchmark_file(path, {}, {})
    assert stat.S_ISFIFO(path.stat().st_mode)


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permissions_are_those_of_open(path):
    before = os.umask(0o027)
    try:
        write_benchmark_file(path, {}, {})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    write_benchmark_file(path, {}, META)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_are_followed(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write_benchmark_file(link, {}, META)
    assert link.is_symlink()
    assert read_benchmark_file(path)[1] == META


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failures_leave_the_old_file_alone(small, monkeypatch, step, error):
    path, before, *_ = small

    def fail(*args):
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        write_benchmark_file(path, ARRAYS, META)
    with pytest.raises(type(error)):
        write_benchmark_file(path.with_name("new.npz"), ARRAYS, META)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == before


@pytest.mark.slow
def test_killed_before_the_replacement(small):
    path, before, *_ = small
    script = (
        "import os, sys, time; from benchmarks_registry._format import *\n"
        "def stall(*args): print('writing', flush=True); time.sleep(60)\n"
        "os.fsync = stall; write_benchmark_file(sys.argv[1], {}, {})"
    )
    with run(script, path) as process:
        assert process.stdout.readline() == "writing\n"
        process.kill()
    assert path.read_bytes() == before
    left = [name for name in os.listdir(path.parent) if name != path.name]
    assert all(name.startswith(".sklearn-irt-") and name.endswith(".tmp") for name in left)


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.02])
def test_killed_at_any_moment(path, delay):
    script = (
        "import sys; import numpy as np; from benchmarks_registry._format import *\n"
        "arrays = [{'a': np.random.default_rng(i).random(200_000)} for i in range(2)]\n"
        "for i in range(10_000):\n"
        "    write_benchmark_file(sys.argv[1], arrays[i % 2], {'i': i % 2})\n"
        "    print(i, flush=True)"
    )
    with run(script, path) as process:
        for _ in range(2):
            process.stdout.readline()
        time.sleep(delay)
        process.kill()
    arrays, meta = read_benchmark_file(path)
    assert np.array_equal(arrays["a"], np.random.default_rng(meta["i"]).random(200_000))


# Reading: damage


def refused(path, data, match=None):
    path.write_bytes(data)
    with pytest.raises(BenchmarkFileError, match=match) as caught:
        read_benchmark_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 600 + len(str(path))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_refused_or_harmless(small, mask):
    path, data, arrays, meta = small
    harmless = 0
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= mask
        path.write_bytes(damaged)
        try:
            read = read_benchmark_file(path)
        except BenchmarkFileError:
            continue
        harmless += 1
        assert same(read[0], arrays) and read[1] == meta, position
    # Dates, attributes and the like, which no reader needs.
    assert harmless < len(data) / 4


def test_every_truncation_is_refused(small):
    path, data, *_ = small
    for length in range(len(data)):
        refused(path, data[:length])


def test_added_bytes_and_comments_are_refused(small):
    path, data, *_ = small
    for changed in (data + b"\0", data + b"x" * 100, b"x" + data, b"PK\x03\x04" + data):
        refused(path, changed)
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"hello"
    refused(path, path.read_bytes(), "bytes added")


# Reading: hostile files


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(descr="'<f8'", shape="(2,)", payload=b"\0" * 16, fortran=False, version=1):
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + payload


def entry(member, dtype="<f8", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "sha256": hashlib.sha256(member).hexdigest()}


def forged(raw=None, members=(), **changes):
    """A file whose checksum is right, so that only the later checks can refuse it."""
    document = {
        "format": "sklearn-irt-benchmark",
        "format_version": 1,
        "arrays": {},
        "benchmark": {},
    }
    document = {k: v for k, v in (document | changes).items() if v is not ...}
    raw = json.dumps(document).encode() if raw is None else raw
    checksum = hashlib.sha256(raw).hexdigest()
    return zipped([("meta.json", raw), ("checksum", checksum), *members])


def forged_array(member, dtype="<f8", shape=(2,)):
    return forged(members=[("a.npy", member)], arrays={"a": entry(member, dtype, shape)})


def forged_json(text):
    raw = '{"format":"sklearn-irt-benchmark","format_version":1,"arrays":{},"benchmark":{"x":%s}}'
    return forged((raw % text).encode())


def patched(data, at_local, at_central, value):
    """Overwrite a header field of the first member in both places."""
    data = bytearray(data)
    central = data.index(b"PK\x01\x02")
    for start in ([at_local] if at_local else []) + [central + at_central]:
        data[start : start + len(value)] = value
    return bytes(data)


def saved(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def hidden_zip64():
    data = zipped([("meta.json", b"{}"), ("checksum", b"0" * 64)])
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    locator = b"PK\x06\x07" + struct.pack("<LQL", 0, 0, 1)
    size = end - start + len(locator)
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, size, start, 0)
    return data[:end] + locator + tail


def many_members():
    return zipped([(f"{i}.npy", b"") for i in range(5000)])


def zip_bomb():
    member = npy(shape="(25_000_000,)", payload=bytes(200_000_000))
    return forged_array(member, shape=(25_000_000,))


VALID = npy()
HUGE = "(1_000_000_000, 1_000_000_000, 1_000_000_000)"

HOSTILE = {
    "empty": (b"", "not a benchmark"),
    "text": (b"PK but not really", "not a benchmark"),
    "pickle": (lambda: pickle.dumps({"a": np.zeros(3)}), "not a benchmark"),
    "npy": (VALID, "not a benchmark"),
    "empty zip": (lambda: zipped([]), "not a benchmark"),
    "npz": (lambda: saved(a=np.zeros(3)), "without meta.json"),
    "npz of objects": (lambda: saved(a=np.array([{}], dtype=object)), "without meta.json"),
    "bomb": (zip_bomb, "zip bomb"),
    "bomb in meta": (lambda: forged_json('"%s"' % ("a" * 200_000_000)), "wrong size|bomb"),
    "lying size": (lambda: patched(forged(), 22, 24, b"\xff\xff\xff\x7f"), "wrong size|bomb"),
    "small lie": (lambda: patched(forged(), 22, 24, b"\x01\0\0\0"), "damaged"),
    "many members": (many_members, "members"),
    "hidden zip64": (hidden_zip64, "bytes added"),
    "encrypted": (lambda: patched(forged(), 6, 8, b"\x01\0"), "encrypted"),
    "bzip2": (
        lambda: zipped([("meta.json", b"{}"), ("checksum", b"0" * 64)], zipfile.ZIP_BZIP2),
        "deflate",
    ),
    "outside": (lambda: patched(forged(), 0, 42, b"\xff\xff\xff\x7f"), "outside"),
    "no checksum": (lambda: zipped([("meta.json", b"{}")]), "without meta.json and checksum"),
    "wrong checksum": (
        lambda: zipped([("meta.json", forged_meta()), ("checksum", b"0" * 64)]),
        "does not match",
    ),
    "unlisted array": (lambda: forged(members=[("a.npy", VALID)]), "not the arrays"),
    "absent array": (lambda: forged(arrays={"a": entry(VALID)}), "not the arrays"),
    "not utf-8": (lambda: forged(b"\xff\xfe{\0}\0"), "damaged"),
    "no json": (lambda: forged(b"{"), "damaged"),
    "list": (lambda: forged(b"[]"), "does not say"),
    "number": (lambda: forged(b"1"), "does not say"),
    "other format": (lambda: forged(format="other"), "does not say"),
    "newer": (lambda: forged(format_version=2), "format version 2 is too new; upgrade sklearn-irt"),
    "no version": (lambda: forged(format_version=...), "no valid format_version"),
    "version 0": (lambda: forged(format_version=0), "no valid format_version"),
    "version True": (lambda: forged(format_version=True), "no valid format_version"),
    "version 1.0": (lambda: forged(format_version=1.0), "no valid format_version"),
    "version list": (lambda: forged(format_version=[1]), "no valid format_version"),
    "no arrays": (lambda: forged(arrays=...), "entries"),
    "array list": (lambda: forged(arrays=[]), "entries"),
    "no benchmark": (lambda: forged(benchmark=...), "entries"),
    "benchmark list": (lambda: forged(benchmark=[]), "entries"),
    "more entries": (lambda: forged(more=1), "entries"),
    "array entry": (lambda: forged(members=[("a.npy", VALID)], arrays={"a": 1}), "not what"),
    "deep json": (lambda: forged_json("[" * 100_000 + "]" * 100_000), "damaged"),
    "deeper json": (lambda: forged_json('{"a":' * 70 + "1" + "}" * 70), "nested deeper"),
    "huge int": (
        lambda: forged_json("".join(random.Random(0).choices("123", k=2_000_000))),
        "not allowed",
    ),
    "int": (lambda: forged_json("99999999999999999999"), "beyond 64 bits"),
    "nan": (lambda: forged_json("NaN"), "not allowed"),
    "overflow": (lambda: forged_json("1e999"), "is inf"),
    "surrogate": (lambda: forged_json(r'"\ud800"'), "lone surrogate"),
    "objects": (lambda: forged_array(npy("'|O'", payload=pickle.dumps([1, 2]))), "dtype|object"),
    "structured": (lambda: forged_array(npy("[('a', '<f8')]")), "not C-order"),
    "sub-array": (lambda: forged_array(npy("('<f8', (2,))", "(1,)")), "not C-order|damaged"),
    "big-endian": (lambda: forged_array(npy("'>f8'")), "not C-order"),
    "fortran": (lambda: forged_array(npy(fortran=True)), "not C-order"),
    "huge shape": (lambda: forged_array(npy(shape=HUGE)), "another size"),
    "2**64 elements": (lambda: forged_array(npy(shape="(2**64 + 2,)")), "damaged"),
    "wrapping shape": (lambda: forged_array(npy(shape="(18446744073709551618,)")), "another size"),
    "negative shape": (lambda: forged_array(npy(shape="(-1, -2)")), "damaged"),
    "short": (lambda: forged_array(npy(payload=b"\0" * 15)), "another size"),
    "long": (lambda: forged_array(npy(payload=b"\0" * 17)), "another size"),
    "other dtype": (lambda: forged_array(npy("'<i8'")), "not what"),
    "other shape": (lambda: forged_array(npy(shape="(1, 2)")), "not what"),
    "no npy": (lambda: forged_array(b"x" * 100), "damaged"),
    "npy 3.0": (lambda: forged_array(npy(version=3)), "npy version"),
    "long header": (lambda: forged_array(npy(shape="(2,)" + " " * 5000)), "damaged"),
    "deep header": (lambda: forged_array(npy(shape="(" * 450 + ")" * 450)), "damaged"),
    "code": (lambda: forged_array(npy(shape="__import__('os').getpid()")), "damaged"),
    "bad bool": (lambda: forged_array(npy("'|b1'", payload=b"\1\2"), "|b1"), "booleans"),
    "bad text": (lambda: forged_array(npy("'<U1'", payload=b"\xff" * 8), "<U1"), "Unicode"),
}


def forged_meta():
    with zipfile.ZipFile(io.BytesIO(forged())) as archive:
        return archive.read("meta.json")


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_are_refused_at_once(path, case):
    data, message = HOSTILE[case]
    path.write_bytes(data() if callable(data) else data)
    del data
    tracemalloc.start()
    start = time.process_time()
    try:
        with pytest.raises(BenchmarkFileError, match=message) as caught:
            read_benchmark_file(path)
        elapsed, (_, peak) = time.process_time() - start, tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith(f"{path}: ")
    assert elapsed < 5
    assert peak < 16 * 2**20


@pytest.mark.parametrize(
    "name",
    [
        "../x.npy",
        "/etc/x.npy",
        "a/b.npy",
        "a\\b.npy",
        "é.npy",
        "x.py",
        "x.npy\n",
        "x.npy\0.py",
        ".npy",
    ],
)
def test_bad_member_names_are_refused(path, name):
    data = forged(members=[("Z" * len(name.encode()), VALID)])
    refused(path, data.replace(b"Z" * len(name.encode()), name.encode()), "member|damaged")


def test_two_members_of_one_name_are_refused(path):
    data = forged(members=[("a.npy", VALID), ("b.npy", VALID)], arrays={"a": entry(VALID)})
    refused(path, data.replace(b"b.npy", b"a.npy"), "two members")


def test_files_of_other_writers_are_read(path):
    """Stored members, spaces in the JSON, escapes, any order, npy 2.0 and unpadded headers."""
    member = npy(version=2, payload=np.array([1.0, 2.0]).tobytes())
    document = {
        "benchmark": {"name": "\N{GRINNING FACE}"},
        "format_version": 1,
        "format": "sklearn-irt-benchmark",
        "arrays": {"a": entry(member)},
    }
    raw = json.dumps(document, indent=2).encode()
    checksum = hashlib.sha256(raw).hexdigest()
    members = [("meta.json", raw), ("a.npy", member), ("checksum", checksum)]
    path.write_bytes(zipped(members, zipfile.ZIP_STORED))
    arrays, meta = read_benchmark_file(path)
    assert arrays["a"].tolist() == [1.0, 2.0] and arrays["a"].flags.aligned
    assert meta == {"name": "😀"}


def test_unreadable_files_stay_os_errors(small, monkeypatch):
    def fail(*args, **kwargs):
        raise PermissionError(13, "Permission denied", str(args[0]))

    monkeypatch.setattr("builtins.open", fail)
    with pytest.raises(PermissionError):
        read_benchmark_file(small[0])
