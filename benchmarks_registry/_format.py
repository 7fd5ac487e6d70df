"""The file of a tiny benchmark: a zip of ``.npy`` arrays and one JSON document.

Reading executes nothing, allocates in proportion to the file, and verifies what it returns.
``docs/file_format.rst`` describes the format for readers in other languages.
"""

import errno
import hashlib
import io
import json
import math
import os
import re
import struct
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from sklearn_irt._atomic import replace_atomically

__all__ = ["BenchmarkFileError", "read_benchmark_file", "write_benchmark_file"]

FORMAT, FORMAT_VERSION = "sklearn-irt-benchmark", 1

_META, _CHECKSUM = "meta.json", "checksum"
# numpy.load offers each member also without ".npy", so names must not clash there.
_ARRAY_NAME = re.compile(r"(?!.*\.npy\Z|meta\.json\Z|checksum\Z)[A-Za-z0-9_.-]{1,128}")
_MEMBER_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}\.npy|meta\.json|checksum")
_DTYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[48]|<U[1-9][0-9]*")
_DTYPES = "bool, int8-64, uint8-64, float32, float64 or fixed-width str"
_SURROGATE = re.compile("[\ud800-\udfff]")

# Below the 2 GiB where zipfile turns to zip64, which the reader refuses.
_MAX_SIZE = 2_000_000_000
_MAX_META_SIZE = 16 * 2**20
_MAX_MEMBERS = 256
_MAX_DEPTH = 64

_Members = dict[str, zipfile.ZipInfo]
_NPY_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
# Where a zip64 locator would be, then the end record.
_END = struct.Struct("<20s4s4H2LH")
_AGAIN = "download it or save it again"
_OTHER = "give the path of a file that save_benchmark wrote"


class BenchmarkFileError(ValueError):
    """Content that is no benchmark; the message names the file, the fault and the remedy."""


def write_benchmark_file(
    path: str | os.PathLike[str], arrays: dict[str, np.ndarray], meta: dict[str, Any]
) -> Path:
    """Write arrays and JSON metadata to one file, atomically.

    An interrupted write leaves the previous file as it was. The same content gives the same bytes
    (with the same zlib), and :func:`numpy.load` reads the arrays too.

    Parameters
    ----------
    path : str or path-like
        Where to write, taken as it is (no suffix is added). Its folder must exist. A file there is
        replaced and its permissions kept; a new one has those of the umask.
    arrays : dict of str to ndarray
        Arrays of bool, int, uint, float32, float64 or fixed-width unicode, by name (letters,
        digits, ``_``, ``.`` and ``-``). They are written in C order and little-endian.
    meta : dict
        What JSON can hold: dicts with string keys, lists (tuples become lists), strings, integers
        of 64 bits, finite floats, booleans and None.

    Returns
    -------
    Path
        The path that was given.

    Raises
    ------
    BenchmarkFileError
        If the content does not fit the format.
    OSError
        If the file cannot be written: FileNotFoundError when the folder does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from benchmarks_registry._format import read_benchmark_file, write_benchmark_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     arrays = {"weights": np.array([0.25, 0.75])}
    ...     path = write_benchmark_file(f"{folder}/tiny.npz", arrays, {"name": "tiny"})
    ...     read_benchmark_file(path)
    ({'weights': array([0.25, 0.75])}, {'name': 'tiny'})
    """
    path = Path(path)
    # A link is followed, as open() would, not replaced.
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "Create the folder of this file first", str(path))
    if target.exists():
        _check_is_file(path)
    try:
        data = _to_bytes(arrays, meta)
    except BenchmarkFileError as error:
        raise BenchmarkFileError(f"{path}: {error}.") from None
    replace_atomically(target, data)
    return path


def read_benchmark_file(
    path: str | os.PathLike[str], *, max_size: int = _MAX_SIZE
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the metadata of a benchmark file, executing nothing.

    Structure, sizes, types and SHA-256 sums are verified: a damaged or hostile file is refused.

    Parameters
    ----------
    path : str or path-like
        The file.
    max_size : int, default=2_000_000_000
        The largest uncompressed size accepted, in bytes. Above 1 MiB, a hundred times the
        size of the file is a limit too.

    Returns
    -------
    arrays : dict of str to ndarray
        The arrays, sorted by name and read-only (copy one to change it).
    meta : dict
        The metadata, as plain dicts, lists, strings, numbers, booleans and None.

    Raises
    ------
    BenchmarkFileError
        If the file is damaged, hostile, of a newer version, or something else than a benchmark.
    OSError
        If the file cannot be opened: FileNotFoundError when it does not exist.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from benchmarks_registry._format import read_benchmark_file, write_benchmark_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_benchmark_file(f"{folder}/tiny.npz", {"anchors": np.arange(3)}, {})
    ...     arrays, meta = read_benchmark_file(path)
    >>> arrays["anchors"].flags.writeable
    False
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "No such benchmark file; check the path", str(path))
    _check_is_file(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_end(file, size)
            with zipfile.ZipFile(file) as archive:
                members = _check_members(archive, size, max_size)
                raw_meta = _read_member(archive, members[_META])
                meta = _parse_meta(raw_meta)
                return _READERS[meta["format_version"]](archive, members, raw_meta, meta)
    except BenchmarkFileError as error:
        raise BenchmarkFileError(f"{path}: {error}.") from None
    except OSError:
        raise
    # On hostile bytes zipfile, zlib, json and numpy raise a dozen types, not all documented.
    except Exception as error:
        cause = f"{type(error).__name__}: {str(error)[:200]}"
        text = f"{path}: it is damaged or exceeds the memory ({cause}); {_AGAIN}."
        raise BenchmarkFileError(text) from error


def _check_is_file(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "Give a file; this is a folder", str(path))
    # Opening a pipe would wait for ever, and replacing a device would remove it.
    if not path.is_file():
        raise BenchmarkFileError(f"{path}: it is a device or a pipe; give the path of a file.")


def _to_bytes(arrays: dict[str, np.ndarray], meta: dict[str, Any]) -> bytes:
    if not isinstance(arrays, dict) or not isinstance(meta, dict):
        raise BenchmarkFileError("arrays and meta must be dicts; pass {} for none")
    if len(arrays) + 2 > _MAX_MEMBERS:
        raise BenchmarkFileError(f"{len(arrays)} arrays are too many; join to {_MAX_MEMBERS - 2}")
    # One level down, where the document holds it.
    if problem := _json_problem(meta, depth=1):
        raise BenchmarkFileError(f"meta{problem}")
    members, described = {}, {}
    for name, array in arrays.items():
        member = members[f"{name}.npy"] = _encode_array(name, array)
        # Decoding what was encoded keeps both ends to one set of rules.
        described[name] = _describe(_decode_array(name, member), member)
    document = {"format": FORMAT, "format_version": FORMAT_VERSION, "arrays": described}
    document["benchmark"] = meta
    text = json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    members[_META] = text.encode()
    members[_CHECKSUM] = hashlib.sha256(members[_META]).hexdigest().encode()
    total = sum(map(len, members.values()))
    if len(members[_META]) > _MAX_META_SIZE:
        raise BenchmarkFileError(f"meta takes over {_MAX_META_SIZE:,} bytes; move lists to arrays")
    if total > _MAX_SIZE:
        raise BenchmarkFileError(f"the arrays take over {_MAX_SIZE:,} bytes; write several files")
    data = _zip(members, zipfile.ZIP_DEFLATED)
    return _zip(members, zipfile.ZIP_STORED) if _is_bomb(total, len(data)) else data


def _zip(members: dict[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members):
            # Clock, platform and mode would make equal content differ.
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, members[name], compress_type=compression)
    return buffer.getvalue()


def _is_bomb(total: int, file_size: int) -> bool:
    # Deflate reaches 1,032:1; what would pass 100:1 is stored by the writer, so never needed.
    return total > max(2**20, 100 * file_size)


def _check_end(file: BinaryIO, size: int) -> None:
    """Bound the zip directory before zipfile reads it: one archive, nothing around it."""
    if file.read(4) != b"PK\x03\x04":
        raise BenchmarkFileError(f"it is not a benchmark file; {_OTHER}")
    file.seek(max(0, size - _END.size))
    locator, magic, *_, count, length, start, comment = _END.unpack(file.read().rjust(_END.size))
    # zipfile would let a zip64 locator override the numbers that are checked here.
    zip64 = locator.startswith(b"PK\x06\x07")
    if magic != b"PK\x05\x06" or zip64 or comment or start + length != size - 22:
        raise BenchmarkFileError(f"it is cut short or has bytes added; {_AGAIN}")
    if count > _MAX_MEMBERS or length > 256 * _MAX_MEMBERS:
        raise BenchmarkFileError(f"it has more than {_MAX_MEMBERS} members; {_OTHER}")


def _check_members(archive: zipfile.ZipFile, file_size: int, max_size: int) -> _Members:
    infos = archive.infolist()
    # filename is cut at a null byte; orig_filename is what the file says.
    members = {info.orig_filename: info for info in infos}
    if _META not in members or _CHECKSUM not in members:
        raise BenchmarkFileError(f"it is a zip archive without {_META} and {_CHECKSUM}; {_OTHER}")
    problem, total = None, sum(info.file_size for info in infos)
    if len(members) != len(infos) or len(infos) > _MAX_MEMBERS:
        problem = "two members of one name, or too many"
    for name, info in members.items():
        if not _MEMBER_NAME.fullmatch(name):
            problem = f"a member of the name {name[:80]!r}"
        elif info.flag_bits & 1 or info.compress_type not in (0, zipfile.ZIP_DEFLATED):
            problem = f"member {name!r} encrypted, or not compressed by deflate"
        elif info.header_offset >= file_size:
            problem = f"member {name!r} outside the file"
    if members[_META].file_size > _MAX_META_SIZE or members[_CHECKSUM].file_size != 64:
        problem = f"{_META} or {_CHECKSUM} of a wrong size"
    if _is_bomb(total, file_size):
        problem = f"{total:,} bytes declared in a file of {file_size:,}, as a zip bomb has"
    if problem:
        raise BenchmarkFileError(f"it has {problem}; do not trust it, {_AGAIN}")
    if total > max_size:
        raise BenchmarkFileError(f"it expands to {total:,} bytes; raise max_size if you trust it")
    return members


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    with archive.open(info) as file:
        data = file.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise BenchmarkFileError(f"{info.filename} has not its declared size; {_AGAIN}")
    return data


def _parse_meta(raw: bytes) -> dict[str, Any]:
    meta = json.loads(raw.decode("utf-8"), parse_constant=_refuse_number, parse_int=_parse_int)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise BenchmarkFileError(f'{_META} does not say "format": "{FORMAT}"; {_OTHER}')
    version = meta.get("format_version")
    if type(version) is not int or version < 1:
        raise BenchmarkFileError(f"{_META} has no valid format_version; {_AGAIN}")
    if version not in _READERS:
        raise BenchmarkFileError(f"format version {version} is too new; upgrade sklearn-irt")
    if problem := _json_problem(meta):
        raise BenchmarkFileError(f"{_META}: {problem}; {_AGAIN}")
    return meta


def _parse_int(text: str) -> int:
    # int() takes quadratic time in the digits, and no 64-bit integer has more than 20 characters.
    return int(text) if len(text) <= 20 else _refuse_number(text)


def _refuse_number(text: str) -> Any:
    raise BenchmarkFileError(f"{_META} holds the number {text[:24]}, not allowed; {_AGAIN}")


def _json_problem(value: Any, depth: int = 0) -> str | None:
    """Say where and why a value cannot be JSON that every language reads, or return None."""
    if isinstance(value, str):
        bad = not value.isascii() and _SURROGATE.search(value)
        return " holds a lone surrogate, which UTF-8 cannot encode; remove it" if bad else None
    if value is None:
        return None
    if isinstance(value, int):
        return None if -(2**63) <= value < 2**64 else " is beyond 64 bits; write a string"
    if isinstance(value, float):
        return None if math.isfinite(value) else f" is {value}, which JSON cannot hold; write None"
    if not isinstance(value, dict | list | tuple):
        return f" is a {type(value).__name__}; write plain Python (.tolist()) or an array"
    if depth >= _MAX_DEPTH:
        return f" is nested deeper than {_MAX_DEPTH} levels, or in itself; flatten it"
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(value, dict) and (not isinstance(key, str) or _json_problem(key)):
            return f" has the key {key!r}; use strings (without lone surrogates) as keys"
        if problem := _json_problem(item, depth + 1):
            return f"[{key!r}]{problem}"
    return None


def _encode_array(name: str, array: np.ndarray) -> bytes:
    if not isinstance(name, str) or not _ARRAY_NAME.fullmatch(name):
        raise BenchmarkFileError(
            f"no array can be called {name!r}; use letters, digits, _, . and -"
        )
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise BenchmarkFileError(f"array {name!r} is a {type(array).__name__}; pass an ndarray")
    dtype = array.dtype.str.replace(">", "<")
    if not _DTYPE.fullmatch(dtype):
        raise BenchmarkFileError(f"array {name!r} has dtype {array.dtype}; use {_DTYPES}")
    buffer, header = io.BytesIO(), {"descr": dtype, "fortran_order": False, "shape": array.shape}
    npy.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + array.astype(dtype, copy=False).tobytes()


def _decode_array(name: str, member: bytes) -> np.ndarray:
    file = io.BytesIO(member)
    read = _NPY_READERS.get(version := npy.read_magic(file))
    if read is None:
        raise BenchmarkFileError(f"array {name!r} has .npy version {version}; {_AGAIN}")
    shape, fortran_order, dtype = read(file, max_header_size=1024)
    if fortran_order or not _DTYPE.fullmatch(dtype.str):
        raise BenchmarkFileError(f"array {name!r} is {dtype}, not C-order {_DTYPES}; {_AGAIN}")
    # Slicing also aligns the payload, whatever the length of the header.
    payload = member[file.tell() :]
    if math.prod(shape) * dtype.itemsize != len(payload):
        raise BenchmarkFileError(f"array {name!r} declares another size than it has; {_AGAIN}")
    if dtype.kind == "b" and payload.translate(None, b"\x00\x01"):
        raise BenchmarkFileError(f"array {name!r} has booleans other than 0 and 1; {_AGAIN}")
    if dtype.kind == "U":
        codes = np.ndarray(len(payload) // 4, "<u4", buffer=payload)
        if np.any((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes <= 0xDFFF))):
            raise BenchmarkFileError(f"array {name!r} has invalid Unicode; remove lone surrogates")
    return np.ndarray(shape, dtype, buffer=payload)


def _describe(array: np.ndarray, member: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(member).hexdigest()
    return {"dtype": array.dtype.str, "shape": list(array.shape), "sha256": digest}


def _read_v1(
    archive: zipfile.ZipFile, members: _Members, raw_meta: bytes, meta: dict[str, Any]
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if _read_member(archive, members[_CHECKSUM]) != hashlib.sha256(raw_meta).hexdigest().encode():
        raise BenchmarkFileError(f"{_META} does not match {_CHECKSUM}; {_AGAIN}")
    described, benchmark = meta.get("arrays"), meta.get("benchmark")
    if len(meta) != 4 or not isinstance(described, dict) or not isinstance(benchmark, dict):
        raise BenchmarkFileError(f"{_META} has not the entries of format version 1; {_AGAIN}")
    if {f"{name}.npy" for name in described} != members.keys() - {_META, _CHECKSUM}:
        raise BenchmarkFileError(f"its members are not the arrays that {_META} lists; {_AGAIN}")
    arrays = {}
    for name in sorted(described):
        member = _read_member(archive, members[f"{name}.npy"])
        arrays[name] = _decode_array(name, member)
        if described[name] != _describe(arrays[name], member):
            raise BenchmarkFileError(f"array {name!r} is not what {_META} says; {_AGAIN}")
    return arrays, benchmark


# A new version adds its reader here; old ones stay.
_READERS = {1: _read_v1}
