"""Files read line by line: compressed, with byte order marks, cut off."""

import gzip

import pytest

from sklearn_irt.logs import _reading


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}\n{"a": 2}\n',
        '{"a": 1}\r\n{"a": 2}',
        '\ufeff{"a": 1}\n\n \n{"a": 2}\n',
        '[{"a": 1}, {"a": 2}]',
    ],
    ids=["plain", "crlf", "bom and blank lines", "list"],
)
def test_records(tmp_path, name, text):
    data = gzip.compress(text.encode()) if name.endswith("gz") else text.encode()
    path = write(tmp_path / name, data)
    assert [record["a"] for _, record in _reading.read_records(path)] == [1, 2]


def test_records_say_where_they_stand(tmp_path):
    path = write(tmp_path / "a.jsonl", '{"a": 1}\n\n{"a": 2}\n')
    assert [where for where, _ in _reading.read_records(path)] == [
        f"{path}, line 1",
        f"{path}, line 3",
    ]
    path = write(tmp_path / "b.jsonl", '[{"a": 1},\n {"a": 2}]\n')
    assert [where for where, _ in _reading.read_records(path)] == [
        f"{path}, entry 1",
        f"{path}, entry 2",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{path}: the file is empty"),
        ("\n \n", "{path}: the file is empty"),
        ('{"a": 1}\n{"a": ', "{path}, line 2: not JSON: *; is the file cut off?"),
        ('{"a": \n{"a": 1}\n', "{path}, line 1: not JSON: *"),
        ("hello\n", "{path}, line 1: not JSON: *"),
        ('{"a": 1}\n[1]\n', "{path}, line 2: expected a JSON object, got a list"),
        ('{"a": 1}\n3\n', "{path}, line 2: expected a JSON object, got a number"),
        (b'{"a": 1}\n{"a": "\xff"}\n', "{path}, line 2: not UTF-8 text: *"),
        ('[{"a": 1}, {"a"', "{path}, line 1: not JSON: *; is the file cut off?"),
        ('[{"a": 1},\n 2]', "{path}, entry 2: expected a JSON object, got a number"),
        ("[]", "{path}: the list is empty"),
        ("[" * 100_000, "{path}: not JSON: *"),
        ('{"a":' * 100_000, "{path}, line 1: not JSON: *"),
    ],
)
def test_bad_records(tmp_path, text, message):
    path = write(tmp_path / "a.jsonl", text)
    with pytest.raises(ValueError) as error:
        list(_reading.read_records(path))
    start, _, end = message.format(path=path).partition("*")
    assert str(error.value).startswith(start) and str(error.value).endswith(end)


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(b'{"a": 1}\n' * 1000)
    for data in (whole[:-20], whole[:30] + b"\0\0\0\0" + whole[34:]):
        path = write(tmp_path / "a.jsonl.gz", data)
        with pytest.raises(ValueError, match="the gzip data are damaged or cut off"):
            list(_reading.read_records(path))
        assert _reading.head(path) == ""


def test_json_error_names_the_line(tmp_path):
    path = write(tmp_path / "a.json", '{\n"a": 1,\n"b": x}')
    with pytest.raises(ValueError, match=r"a\.json, line 3: not JSON: .*column 6"):
        _reading.read_json(path)
    path = write(tmp_path / "a.json", b'{\n"a": "\xff"}')
    with pytest.raises(ValueError, match=r"a\.json, line 2: not UTF-8 text"):
        _reading.read_json(path)


def test_files_below_a_folder(tmp_path):
    for name in ("b/c.txt", "a.txt", ".hidden/d.txt", ".e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert _reading.list_files(tmp_path) == [tmp_path / "a.txt", tmp_path / "b" / "c.txt"]
    both = [tmp_path / "a.txt", str(tmp_path)]
    assert _reading.list_files(both) == [tmp_path / "a.txt", tmp_path / "b" / "c.txt"]


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no such file or folder"):
        _reading.list_files(tmp_path / "absent")
    with pytest.raises(ValueError, match="the folder is empty"):
        _reading.list_files(tmp_path)
    with pytest.raises(ValueError, match="no path is given"):
        _reading.list_files([])


@pytest.mark.parametrize("value", [float("inf"), "1", [1], 10**400])
def test_not_a_score(value):
    with pytest.raises(ValueError, match="file, line 3: acc is .*, which is not a finite number"):
        _reading.as_score(value, "file, line 3", "acc")
