"""The AlpacaEval table, derived from the annotations that the repository publishes."""

import gzip
import json
import shutil

import numpy as np
import pytest

from sklearn_irt.datasets import _alpaca, _files, fetch_alpaca_eval

REAL = ["gpt4_gamed", "text_davinci_001"]


def annotations(shared, model):
    name = _alpaca.ANNOTATIONS.format(model=model)
    return (shared / "data" / "alpaca_eval_2" / name).read_bytes()


@pytest.fixture
def reference(shared):
    """All 805 instructions in the pinned order (gpt4_gamed answered every one)."""
    return _alpaca.parse_annotations(annotations(shared, "gpt4_gamed"))


@pytest.fixture
def published_lines(shared):
    path = shared / "data" / "alpaca_eval_2" / "win_probability.csv.gz"
    return gzip.decompress(path.read_bytes()).decode().splitlines(keepends=True)


def test_item_ids_are_positions_in_the_whole_file(shared, reference, published_lines):
    header = ",".join(["model", *_alpaca.item_ids(reference)]) + "\n"
    assert header == published_lines[0]
    assert _files.digest(header.encode()) == _alpaca.HEADER_SHA256


@pytest.mark.parametrize("model", REAL)
def test_rows_of_the_real_files(shared, reference, published_lines, model):
    order = [instruction for instruction, _, _ in reference]
    parsed = _alpaca.parse_annotations(annotations(shared, model))
    line = _alpaca.table_row(model, parsed, order, _alpaca.ROW_SHA256[model])
    assert line in published_lines
    cells = [float(cell) if cell else np.nan for cell in line.rstrip("\n").split(",")[1:]]
    exact = {instruction: value for instruction, _, value in parsed}
    expected = [exact.get(instruction, np.nan) for instruction in order]
    np.testing.assert_allclose(cells, np.round(expected, 6), atol=1e-9)


def test_every_row_is_pinned(published_lines):
    digests = {line.split(",")[0]: _files.digest(line.encode()) for line in published_lines[1:]}
    assert digests == _alpaca.ROW_SHA256
    assert list(digests) == list(_alpaca.ROW_SHA256) and len(digests) == 58
    assert _files.digest("".join(published_lines).encode()) == _alpaca.PLAIN.sha256


@pytest.fixture
def two_models(monkeypatch, published_lines):
    """The derivation, cut down to the two models whose files are at hand."""
    lines = [line for line in published_lines[1:] if line.split(",")[0] in REAL]
    table = "".join([published_lines[0], *lines]).encode()
    plain = _files.PublicFile(_alpaca.PLAIN.name, _files.digest(table))
    monkeypatch.setattr(_alpaca, "PLAIN", plain)
    monkeypatch.setattr(_alpaca, "ROW_SHA256", {m: _alpaca.ROW_SHA256[m] for m in REAL})
    monkeypatch.setattr(_alpaca, "REFERENCE_MODEL", "gpt4_gamed")
    return table


@pytest.fixture
def downloads(monkeypatch, shared):
    """Published files by address; the list of the addresses that were asked for."""
    asked = []
    start = f"{_files.BASE_URL}/tatsu-lab/alpaca_eval/{_alpaca.COMMIT}/"

    def fetch(url):
        asked.append(url)
        assert url.startswith(start)
        return (shared / "data" / "alpaca_eval_2" / url.removeprefix(start)).read_bytes()

    monkeypatch.setattr(_files, "fetch_unpinned", fetch)
    return asked


def test_derive_verify_and_cache(tmp_path, two_models, downloads):
    data = fetch_alpaca_eval(data_home=tmp_path)
    assert data.responses.shape == (2, 805)
    assert data.responses.index.tolist() == REAL
    assert data.responses.loc["text_davinci_001"].isna().sum() == 2
    assert len(downloads) == 3
    folder = tmp_path / "alpaca_eval_2"
    assert [path.name for path in folder.iterdir()] == ["win_probability.csv"]
    assert (folder / "win_probability.csv").read_bytes() == two_models
    again = fetch_alpaca_eval(data_home=tmp_path, download_if_missing=False)
    assert again.responses.equals(data.responses)
    assert len(downloads) == 3


def test_annotations_in_the_cache_are_used(tmp_path, shared, two_models, downloads):
    shutil.copytree(
        shared / "data" / "alpaca_eval_2" / "results", tmp_path / "alpaca_eval_2" / "results"
    )
    assert fetch_alpaca_eval(data_home=tmp_path).responses.shape == (2, 805)
    assert downloads == []


def test_damaged_annotations_in_the_cache_are_not_used(tmp_path, shared, two_models, downloads):
    name = _alpaca.ANNOTATIONS.format(model="text_davinci_001")
    path = tmp_path / "alpaca_eval_2" / name
    path.parent.mkdir(parents=True)
    entries = json.loads(annotations(shared, "text_davinci_001"))
    entries[5]["preference"] = 1.9
    path.write_text(json.dumps(entries))
    data = fetch_alpaca_eval(data_home=tmp_path)
    assert data.responses.loc["text_davinci_001"].iloc[5] != 0.9
    assert [url for url in downloads if url.endswith(name)] != []


def test_altered_downloads_are_refused(tmp_path, shared, two_models, monkeypatch):
    def fetch(url):
        model = url.split("/results/")[1].split("/")[0]
        entries = json.loads(annotations(shared, model))
        if model == "text_davinci_001":
            entries[5]["preference"] = 1.9
        return json.dumps(entries).encode()

    monkeypatch.setattr(_files, "fetch_unpinned", fetch)
    with pytest.raises(OSError, match="annotations of text_davinci_001 do not give"):
        fetch_alpaca_eval(data_home=tmp_path)
    assert list(tmp_path.rglob("*.csv*")) == []


def test_offline_says_what_is_wanted(tmp_path, monkeypatch):
    def fetch(url):
        raise OSError(f"no route to {url}")

    monkeypatch.setattr(_files, "fetch_unpinned", fetch)
    with pytest.raises(OSError, match="no route to") as caught:
        fetch_alpaca_eval(data_home=tmp_path)
    for part in (_alpaca.COMPRESSED.sha256, _alpaca.COMMIT, "SKLEARN_IRT_DATA", "58 files"):
        assert part in str(caught.value)


def test_a_cache_that_cannot_be_written(tmp_path, two_models, downloads):
    home = tmp_path / "home"
    home.write_text("a file, not a folder")
    with pytest.warns(UserWarning, match="could not be written"):
        assert fetch_alpaca_eval(data_home=home).responses.shape == (2, 805)
    assert len(downloads) == 3


@pytest.mark.parametrize("cell", ["0.000122", "0.000123"])
def test_ties_may_be_rounded_either_way(cell):
    line = f"m,{cell},,0.25\n"
    rows = [("b", "x", 0.25), ("a", "x", 1.0001225 - 1)]
    digest = _files.digest(line.encode())
    assert _alpaca.table_row("m", rows, ["a", "c", "b"], digest) == line
    other = _files.digest(b"m,0.000124,,0.25\n")
    assert _alpaca.table_row("m", rows, ["a", "c", "b"], other) is None


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({}, "list of objects"),
        ([1], "list of objects"),
        ([{"instruction": "a", "preference": 1.0}], "lacks"),
        ([{"instruction": "a", "dataset": "x", "preference": "1"}], "not a number"),
        ([{"instruction": "a", "dataset": "x", "preference": 1.0}] * 2, "twice"),
    ],
)
def test_odd_annotations_are_refused(entries, message):
    with pytest.raises(ValueError, match=message):
        _alpaca.parse_annotations(json.dumps(entries).encode())


def test_a_null_preference_is_a_missing_cell():
    entry = {"instruction": "a", "dataset": "x", "preference": None}
    (row,) = _alpaca.parse_annotations(json.dumps([entry]).encode())
    assert row[:2] == ("a", "x") and np.isnan(row[2])
