"""The authors' released file: read without executing it, checked, converted once, found."""

import dataclasses
import http.server
import io
import os
import pickle
import struct
import subprocess
import sys
import threading
import time
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from benchmarks_registry import BenchmarkFileError, _release
from benchmarks_registry._release import (
    RELEASED,
    canonical_name,
    convert,
    converted_path,
    load_released,
    read_release,
)
from sklearn_irt.datasets import _files
from sklearn_irt.datasets._restricted import UntrustedFileError, read_plain_pickle
from sklearn_irt.kernels.mixing import paper_mixing

LB = {
    "harness_truthfulqa_mc_0": [817],
    "gsm8k": [1319],
    "winogrande": [1267],
    "arc": [1172],
    "hellaswag": [10042],
    "mmlu": [246] * 56 + [266],  # 57 subjects, 14,042 items
}
HELM = {
    "commonsense": [500],
    "gsm": [1000],
    "legalbench": [20, 40, 60, 300, 600],
    "math": [135, 39, 38, 52, 30, 86, 57],
    "med_qa": [1000],
    "mmlu": [111, 108, 111, 126, 111],
    "narrative_qa": [355],
    "natural_qa_closed": [1000],
    "natural_qa_open": [1000],
    "wmt_14": [833, 832, 568, 832, 832],
}


def make_bench(sizes, n_dims, mixing, seed, n_seen=100, as_arrays=False):
    """A bench of the released structure, from the sizes of its subscenarios."""
    rng = np.random.default_rng(seed)
    start, positions, subscenarios, seen, weights = 0, {}, {}, [], {}
    for name, parts in sizes.items():
        ends = start + np.cumsum(parts)
        runs = [list(range(end - size, end)) for end, size in zip(ends, parts, strict=True)]
        subscenarios[name] = {f"{name}_{t}": run for t, run in enumerate(runs)}
        positions[name] = [position for run in runs for position in run]
        chosen = rng.choice(positions[name], n_seen, replace=False)
        seen.extend(chosen if as_arrays else chosen.tolist())
        share = rng.gamma(1.0, size=n_seen)
        weights[name] = share / share.sum()
        start = int(ends[-1])
    if as_arrays:
        seen = np.array(seen)
        positions = {name: np.array(run) for name, run in positions.items()}
    discrimination = rng.normal(0.4, 0.5, size=(start, n_dims))
    return {
        "seen_examples": seen,
        "examples_weights": weights,
        "irt_parameters": {
            "A": discrimination.T[None],
            "B": rng.normal(0, 1.0 / n_dims, size=(1, 1, start)),
        },
        "optimal_lambdas": dict(zip(sizes, mixing, strict=True)),
        "scenarios_position": positions,
        "subscenarios_position": subscenarios,
    }


def make_release():
    """All benches at the sizes of the real ones."""
    numpy_numbers = list(np.linspace(0.1, 1.0, 10))
    return {
        "lb": make_bench(LB, 10, [0.60, 0.92, 0.0, 1.0, 0.5, 0.31], 0),
        "mmlu": make_bench({"mmlu": LB["mmlu"]}, 10, [np.float64(0.27)], 1),
        "helm_lite": make_bench(HELM, 5, numpy_numbers, 2, as_arrays=True),
        "alpaca": make_bench({"alpaca_v2": [805]}, 2, [0.8], 3),
    }


def small_bench(**changes):
    """Two scenarios of 30 and 20 items, the second with two subscenarios."""
    bench = make_bench({"left": [30], "right": [5, 15]}, 2, [0.25, 0.75], 4, n_seen=6)
    return bench | changes


class _LayoutPickler(pickle._Pickler):
    """Pickles as a NumPy whose core is called `layout` does."""

    layout = "numpy.core"

    def save_global(self, obj, name=None):
        module = getattr(obj, "__module__", None) or ""
        for core in ("numpy.core", "numpy._core"):
            if module.startswith(core):
                self.save(self.layout + module[len(core) :])
                self.save(obj.__name__)
                self.write(pickle.STACK_GLOBAL)
                self.memoize(obj)
                return
        super().save_global(obj, name)


def dumped(value, layout="numpy._core", protocol=5):
    stream = io.BytesIO()
    pickler = _LayoutPickler(stream, protocol)
    pickler.layout = layout
    pickler.dump(value)
    return stream.getvalue()


@pytest.fixture(scope="module")
def release():
    return make_release()


@pytest.fixture(scope="module")
def released_bytes(release):
    return dumped(release)


def pin(monkeypatch, data):
    file = dataclasses.replace(_release.RELEASE, sha256=_files.digest(data))
    monkeypatch.setattr(_release, "RELEASE", file)
    return file


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache and an empty working folder, without a network."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(tmp_path / "home"))
    monkeypatch.setattr(_files, "BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(_files, "RETRIES", 0)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path / "home"


@pytest.fixture
def small(home, monkeypatch):
    """A small released file, pinned and in the working folder."""
    data = dumped({"lb": small_bench(), "alpaca": make_bench({"alpaca_v2": [50]}, 2, [0.4], 5, 9)})
    pin(monkeypatch, data)
    path = home.parent / "cwd" / "tinyBenchmarks.pkl"
    path.write_bytes(data)
    return path


def same(left, right):
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return np.array_equal(left, right)


@pytest.mark.parametrize("protocol", [4, 5])
@pytest.mark.parametrize("layout", ["numpy.core", "numpy._core"])
def test_reads_the_structure_at_real_size(release, layout, protocol, tmp_path, monkeypatch):
    data = dumped(release, layout, protocol)
    assert layout.encode() in data
    pin(monkeypatch, data)
    path = tmp_path / "tinyBenchmarks.pkl"
    path.write_bytes(data)
    found = read_release(path)
    assert same(found, release)
    assert type(found["mmlu"]["optimal_lambdas"]["mmlu"]) is float
    assert found["lb"]["irt_parameters"]["A"].shape == (1, 10, 28659)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_reads_as_this_numpy_writes(protocol):
    shared_array = np.arange(3)
    value = {"lb": small_bench(), "again": [shared_array, shared_array], "n": [2**40, -1.5, None]}
    value["scalars"] = [np.float32(1.5), np.int64(-3), np.bool_(True)]
    value["flags"] = (True, False, "é")
    found = read_plain_pickle(pickle.dumps(value, protocol), "x")
    assert same({"lb": value["lb"]}, {"lb": found["lb"]})
    assert [list(array) for array in found["again"]] == [[0, 1, 2]] * 2
    assert found["n"] == value["n"] and found["flags"] == value["flags"]
    assert found["scalars"] == [1.5, -3, True]
    assert [type(number) for number in found["scalars"]] == [float, int, bool]


@pytest.mark.parametrize("name", ["anchor", "lambds"])
@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")
def test_real_pickles_of_the_authors(shared, name):
    path = shared / "data" / "tinybenchmarks_tutorial" / f"{name}.pickle"
    found = read_plain_pickle(path.read_bytes(), path.name)
    assert same(found, pickle.loads(path.read_bytes()))
    part = found if name == "lambds" else found["anchor_weights"]
    assert list(part) == list(LB)


class Reduced:
    """Pickles as a call of any function."""

    def __init__(self, *call):
        self.call = call

    def __reduce__(self):
        return self.call


def refuse(data):
    start = time.process_time()
    with pytest.raises(UntrustedFileError) as caught:
        read_plain_pickle(data, "bad.pkl")
    assert time.process_time() - start < 10
    assert str(caught.value).startswith("bad.pkl: ")
    return caught.value


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_command_does_not_run(tmp_path, protocol):
    mark = tmp_path / "ran"
    command = Reduced(os.system, (f"touch {mark}",))
    error = refuse(pickle.dumps({"lb": small_bench(seen_examples=[command])}, protocol))
    assert error.refused in ("posix.system", "nt.system")
    assert error.refused in str(error)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("value", "refused"),
    [
        (Reduced(eval, ("1/0",)), "eval"),
        (Reduced(np.load, ("x",)), "load"),
        (Reduced(bytearray, (10**12,)), "bytearray"),
        ({1.5}, None),
        (range(3), "range"),
        (1j, "complex"),
        (np.array([None]), None),
        (np.array(["text"]), None),
        (np.str_("text"), None),
        (np.datetime64("2024-01-01"), None),
        ({1: 2}, None),
        (np.ma.masked_array([1.0]), "_mareconstruct"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_anything_else_is_refused_by_name(value, refused):
    error = refuse(pickle.dumps([value], protocol=4))
    if refused is not None:
        assert error.refused.endswith(refused)


def stack_global(module, name):
    return b"".join(b"\x8c" + bytes([len(part)]) + part for part in (module, name)) + b"\x93"


DTYPE = (
    stack_global(b"numpy", b"dtype")
    + b"\x8c\x02f8\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
)
SCALAR = stack_global(b"numpy.core.multiarray", b"scalar")
FROMBUFFER = stack_global(b"numpy._core.numeric", b"_frombuffer")
ENCODE = stack_global(b"_codecs", b"encode")


@pytest.mark.parametrize(
    "body",
    [
        SCALAR + b")R",
        SCALAR + DTYPE + b"\x85R",
        SCALAR + DTYPE + b"C\x07" + b"\0" * 7 + b"\x86R",
        SCALAR + DTYPE + b"]\x86R",
        SCALAR + DTYPE.replace(b"f8", b"O8") + b"N\x86R",
        SCALAR + DTYPE.replace(b"f8", b"b1") + b"C\x01\x02\x86R",
        ENCODE + b")R",
        ENCODE + b"\x8c\x01a\x8c\x03hex\x86R",
        ENCODE + b"C\x01a\x8c\x06latin1\x86R",
        b"\x8b\xff\xff\xff\x7f",  # LONG4 of 2 GiB
        b"X\xff\xff\xff\x7f",
        b"(" * 3 + b"i",
    ],
)
def test_tricks_are_refused(body):
    refuse(b"\x80\x04" + body + b".")


def test_the_same_bytes_do_not_fill_the_memory():
    """A thousand arrays over one string would take a thousand times the file."""
    n = 200_000
    data = b"\x80\x04B" + struct.pack("<I", 8 * n) + b"\0" * (8 * n) + b"\x94"
    data += DTYPE + b"\x94]("
    array = FROMBUFFER + b"(h\x00h\x01J" + struct.pack("<i", n) + b"\x85\x8c\x01CtR"
    data += array * 1000 + b"e."
    tracemalloc.start()
    error = refuse(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "larger together than the file" in str(error)
    assert peak < 5 * len(data)


def test_truncated_and_flipped_files():
    original = dumped({"lb": small_bench()})
    for size in range(0, len(original), 97):
        refuse(original[:size])
    rng = np.random.default_rng(0)
    for position in rng.integers(len(original), size=500):
        data = bytearray(original)
        data[position] ^= 1 << int(rng.integers(8))
        try:
            value = read_plain_pickle(bytes(data), "bad.pkl")
            _release._read_bench(value, "lb")
        except (UntrustedFileError, BenchmarkFileError):
            continue
        except (AttributeError, TypeError) as error:
            # Only where the outermost value is not a dict, which `read_release` refuses.
            assert type(value) is not dict, error


def test_another_hash_is_refused_before_reading(tmp_path, monkeypatch):
    path = tmp_path / "tinyBenchmarks.pkl"
    path.write_bytes(pickle.dumps(Reduced(os.system, (f"touch {tmp_path / 'ran'}",))))
    monkeypatch.setattr(_release, "read_plain_pickle", lambda *_: pytest.fail("it was parsed"))
    with pytest.raises(UntrustedFileError, match=f"{_release.RELEASE.sha256}; it was not read"):
        read_release(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_pinned_file_of_another_kind(tmp_path, monkeypatch):
    data = pickle.dumps([1])
    pin(monkeypatch, data)
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(UntrustedFileError, match="a list, not a dict"):
        read_release(tmp_path / "x")


def change(bench, *path):
    """Set the value at a path of keys, the last of `path`; None removes it."""
    *keys, last, value = path
    part = bench
    for key in keys:
        part = part[key]
    if value is None:
        del part[last]
    else:
        part[last] = value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (("seen_examples", None), "has no 'seen_examples'"),
        (("optimal_lambdas", None), "has no 'optimal_lambdas'"),
        (("irt_parameters", "B", None), "has no 'B'"),
        (("irt_parameters", [1]), "is a list, not a dict"),
        (("irt_parameters", "A", np.ones((1, 50))), r"shape \(1, 50\), not \(1, any, any\)"),
        (("irt_parameters", "A", np.ones((1, 0, 50))), "shape"),
        (("irt_parameters", "B", np.ones((1, 1, 49))), r"not \(1, 1, 50\)"),
        (("irt_parameters", "A", np.full((1, 2, 50), np.nan)), "not finite"),
        (("irt_parameters", "A", "text"), "not a numeric array"),
        (("irt_parameters", "A", [[1.0]]), "not a numeric array"),
        (("seen_examples", [0, 1, 50]), "outside of 0 to 49"),
        (("seen_examples", [-1, 30]), "outside"),
        (("seen_examples", [0, 0, 30]), "more than once"),
        (("seen_examples", [30, 0]), "not in the order"),
        (("seen_examples", [True, 30]), "not a list of item positions"),
        (("seen_examples", [[0], [30]]), "not a list of item positions"),
        (("seen_examples", np.array([0.0, 30.0])), "not a list of item positions"),
        (("seen_examples", []), "not a list of item positions"),
        (("seen_examples", [0, 1, 2, 3, 4, 5]), "no item of the scenario 'right'"),
        (("scenarios_position", {}), "is empty"),
        (("scenarios_position", "right", list(range(20, 50))), "items of another scenario"),
        (("scenarios_position", "right", list(range(30, 40))), "not in the order|not divide"),
        (("examples_weights", "left", np.ones(5)), r"shape \(5,\), not \(6\)"),
        (("examples_weights", "left", np.full(6, np.inf)), "not finite"),
        (("examples_weights", "left", -np.ones(6)), "negative weight"),
        (("examples_weights", "left", None), "has no 'left'"),
        (("optimal_lambdas", "left", 1.5), r"not a number in \[0, 1\]"),
        (("optimal_lambdas", "left", float("nan")), r"not a number in \[0, 1\]"),
        (("optimal_lambdas", "left", "0.5"), r"not a number in \[0, 1\]"),
        (("subscenarios_position", "left", {}), "not a dict of item positions"),
        (("subscenarios_position", "right", "right_0", [30, 31]), "does not divide"),
        (("subscenarios_position", "right", "right_0", list(range(30, 37))), "does not divide"),
    ],
)
def test_other_structures_are_refused(path, message):
    bench = small_bench()
    change(bench, *path)
    with pytest.raises(BenchmarkFileError, match=message) as caught:
        convert({"lb": bench}, "tinyBenchmarks")
    assert "tinyBenchmarks.pkl" in str(caught.value)


def test_missing_benches_and_scenarios_are_named():
    with pytest.raises(BenchmarkFileError, match="has no 'mmlu', only"):
        convert({"lb": small_bench()}, "tinyMMLU")
    with pytest.raises(BenchmarkFileError, match="no scenario arc.*left"):
        convert({"lb": small_bench()}, "tinyArc")


def test_every_released_benchmark(release):
    found = {name: convert(release, name) for name in RELEASED}
    sizes = {name: (len(tiny.items), len(tiny.anchors())) for name, tiny in found.items()}
    assert sizes == {
        "tinyMMLU": (14042, 100),
        "tinyArc": (1172, 100),
        "tinyHellaswag": (10042, 100),
        "tinyGSM8k": (1319, 100),
        "tinyTruthfulQA": (817, 100),
        "tinyWinogrande": (1267, 100),
        "tinyAlpacaEval": (805, 100),
        "tinyHelmLite": (10776, 1000),
        "tinyBenchmarks": (28659, 600),
    }
    assert list(found["tinyBenchmarks"].estimator.scenarios_) == list(LB)
    assert found["tinyTruthfulQA"].estimator.scenarios_ == ("harness_truthfulqa_mc_0",)
    for name, tiny in found.items():
        assert tiny.name == name
        assert tiny.info["source"].startswith("https://raw.githubusercontent.com/felipemaiapolo")
        np.testing.assert_allclose(
            np.bincount(tiny.estimator._scenarios.index, tiny.estimator.item_weights_), 1.0
        )


def test_parameters_anchors_and_weights_are_those_of_the_release(release):
    bench = release["lb"]
    tiny = convert(release, "tinyArc")
    start = 817 + 1319 + 1267
    seen = bench["seen_examples"][300:400]
    assert tiny.anchors() == [f"arc/{position - start:05d}" for position in seen]
    items = tiny.items.set_index("item")
    np.testing.assert_allclose(
        items.loc[tiny.anchors(), "anchor_weight"], bench["examples_weights"]["arc"]
    )
    intercept = bench["irt_parameters"]["B"][0, 0]
    np.testing.assert_allclose(items.loc[tiny.anchors(), "difficulty"], 10 * intercept[seen])
    expected = bench["irt_parameters"]["A"][0][:, start : start + 1172].T
    np.testing.assert_array_equal(tiny.estimator.irt_.discrimination_, expected)


def test_the_answers_are_in_the_published_order(release):
    tiny = convert(release, "tinyBenchmarks")
    rng = np.random.default_rng(0)
    answers = rng.integers(0, 2, size=600).astype(float)
    by_order = tiny.estimate(answers)
    by_id = tiny.estimate(dict(zip(tiny.anchors(), answers, strict=True)))
    pd.testing.assert_frame_equal(by_order, by_id, rtol=0, atol=1e-12)
    assert set(by_order["relatives"]) == {"off: no training answers"}
    for s, name in enumerate(LB):
        weights = release["lb"]["examples_weights"][name]
        naive = (weights * answers[100 * s : 100 * s + 100]).sum()
        assert by_order.loc[name, "naive"] == pytest.approx(naive, abs=1e-12)
        assert tiny.anchors(name) == tiny.anchors()[100 * s : 100 * s + 100]


@pytest.mark.parametrize("name", RELEASED)
def test_the_mixing_is_that_of_the_release(release, name):
    estimator = convert(release, name).estimator
    bench = release[RELEASED[name].bench]
    expected = [bench["optimal_lambdas"][scenario] for scenario in estimator.scenarios_]
    np.testing.assert_array_equal(estimator.mixing_, expected)
    k = np.full(len(expected), 100)
    found = paper_mixing(estimator.bias_, estimator.variance_, k, estimator._gain)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
    inside = (np.array(expected) > 0) & (np.array(expected) < 1)
    fewer = paper_mixing(estimator.bias_, estimator.variance_, k // 2, estimator._gain)
    assert (fewer[inside] < np.array(expected)[inside]).all()


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        *((name, name) for name in RELEASED),
        *((name.upper(), name) for name in RELEASED),
        ("tinyTruthfulQA_mc1", "tinyTruthfulQA"),
        ("tinyBenchmarks/tinyAI2_arc", "tinyArc"),
        ("tinyAI2_arc", "tinyArc"),
        ("tinyBenchmarks/tinyMMLU", "tinyMMLU"),
        ("tinyBenchmarks/tinyGSM8K", "tinyGSM8k"),
        ("tinyBenchmarks/tinyAlpacaEval", "tinyAlpacaEval"),
        (" tinyhellaswag ", "tinyHellaswag"),
        ("arc", None),
        ("someone/tinyMMLU", None),
        ("tinyBenchmarks/", None),
        ("", None),
    ],
)
def test_names(spelling, name):
    assert canonical_name(spelling) == name


def test_unknown_name(home):
    with pytest.raises(ValueError, match="no released benchmark 'arc'.*tinyArc"):
        load_released("arc")


def test_converted_once_and_never_read_again(small, home, monkeypatch):
    first = load_released("tinyBenchmarks/TINYBENCHMARKS")
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["tinyBenchmarks.npz"]
    small.write_bytes(b"gone")
    monkeypatch.setattr(_release, "read_plain_pickle", lambda *_: pytest.fail("read again"))
    again = load_released("tinyBenchmarks", download_if_missing=False)
    answers = np.random.default_rng(0).random(12)
    np.testing.assert_array_equal(first.estimate(answers), again.estimate(answers))
    assert again.anchors() == first.anchors()
    assert "parameters as released" in repr(again)


def test_another_release_never_mixes(small, home, monkeypatch):
    old = load_released("tinyAlpacaEval").estimator.mixing_
    data = dumped({"alpaca": make_bench({"alpaca_v2": [50]}, 2, [0.9], 6, 9)})
    pin(monkeypatch, data)
    small.write_bytes(data)
    assert old == [0.4]
    assert load_released("tinyAlpacaEval").estimator.mixing_ == [0.9]
    # Not even where a file was moved to the place of another.
    files = sorted(home.rglob("*.npz"))
    assert len(files) == 2
    mine = converted_path("tinyAlpacaEval", home)
    other = next(path for path in files if path != mine)
    mine.write_bytes(other.read_bytes())
    assert load_released("tinyAlpacaEval").estimator.mixing_ == [0.9]


def test_a_damaged_converted_file_is_converted_again(small, home):
    load_released("tinyAlpacaEval")
    path = converted_path("tinyAlpacaEval", home)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.warns(UserWarning, match="Converting it again"):
        load_released("tinyAlpacaEval")
    assert path.read_bytes() == whole


def test_found_in_the_cache(small, home):
    (home / "tinyBenchmarks").mkdir(parents=True)
    small.rename(home / "tinyBenchmarks" / "tinyBenchmarks.pkl")
    assert load_released("tinyAlpacaEval").name == "tinyAlpacaEval"


def test_found_in_the_installed_package_which_is_not_imported(small, tmp_path, monkeypatch):
    package = tmp_path / "site" / "tinyBenchmarks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    small.rename(package / "tinyBenchmarks.pkl")
    monkeypatch.syspath_prepend(package.parent)
    assert load_released("tinyAlpacaEval").name == "tinyAlpacaEval"
    assert "tinyBenchmarks" not in sys.modules


def test_nothing_found_says_what_to_do(small, home):
    small.unlink()
    with pytest.raises(OSError, match="tinyArc is made from") as caught:
        load_released("tinyArc")
    message = str(caught.value)
    for part in (
        _release.RELEASE.sha256,
        _release.RELEASE.url,
        str(home / "tinyBenchmarks" / "tinyBenchmarks.pkl"),
        "SKLEARN_IRT_DATA",
        "working folder",
        "helm-lite",
    ):
        assert part in message
    with pytest.raises(OSError, match="download_if_missing=False"):
        load_released("tinyArc", download_if_missing=False)
    assert not list(home.rglob("*.npz"))


def test_another_file_of_that_name_is_not_used(small, home):
    small.write_bytes(small.read_bytes() + b"\0")
    with (
        pytest.warns(UserWarning, match="not the released file"),
        pytest.raises(OSError, match="sha256"),
    ):
        load_released("tinyAlpacaEval")


def test_a_cache_that_cannot_be_written(small, home):
    home.write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="cannot be kept"):
        assert load_released("tinyAlpacaEval").name == "tinyAlpacaEval"


def test_downloaded_once(small, home, monkeypatch):
    data = small.read_bytes()
    small.unlink()
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments):
            del arguments

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{httpd.server_address[1]}"
        monkeypatch.setattr(_files, "BASE_URL", url)
        load_released("tinyAlpacaEval")
        load_released("tinyBenchmarks")
        httpd.shutdown()
        thread.join()
    assert requests == [f"/{_release.RELEASE.url_path}"]
    load_released("tinyAlpacaEval", download_if_missing=False)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="eight imports would take the whole time")
def test_many_processes_from_an_empty_cache(small, home):
    code = f"""
import dataclasses, multiprocessing, sys
from benchmarks_registry import _release

def load(barrier):
    barrier.wait(60)
    sys.exit(len(_release.load_released("tinyAlpacaEval").anchors()) != 9)

_release.RELEASE = dataclasses.replace(_release.RELEASE, sha256={_release.RELEASE.sha256!r})
context = multiprocessing.get_context("fork")
barrier = context.Barrier(8)
processes = [context.Process(target=load, args=(barrier,)) for _ in range(8)]
for process in processes:
    process.start()
for process in processes:
    process.join(60)
sys.exit(sum(process.exitcode != 0 for process in processes))
"""
    root = os.path.dirname(os.path.dirname(_release.__file__))
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    files = [path for path in home.rglob("*") if path.is_file()]
    assert files == [converted_path("tinyAlpacaEval", home)]
    assert len(load_released("tinyAlpacaEval", download_if_missing=False).anchors()) == 9
