"""Names that can be loaded: bundled, a folder of one's own, packages, the release."""

import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from benchmarks_registry import list_benchmarks, load_benchmark, save_benchmark
from benchmarks_registry._registry import BUNDLED_FOLDER
from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses

BUNDLED = ["alpaca-eval-2", "arc-challenge", "glue", "helm-lite", "open-llm-v2"]


@pytest.fixture(scope="module")
def pipe():
    data = make_responses(n_models=20, n_items=60, random_state=0)
    return make_pipeline(AnchorSelector(10, random_state=0), GPIRTEstimator()).fit(data.responses)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_benchmarks_work_offline_and_beat_random_items(name):
    tiny = load_benchmark(name.upper())
    assert tiny.name == name
    for field in ("source", "licence", "citation", "description", "metric"):
        assert tiny.info[field]
    heldout = tiny.info["heldout"]
    assert heldout["splits"] == 5
    for scenario in tiny.estimator.scenarios_:
        assert len(tiny.anchors(scenario)) == 100
        # Five splits of one scenario leave noise of some tenths of a point.
        assert 0 < heldout["mean"][scenario] <= heldout["random_mean"][scenario] + 0.2
        assert heldout["mean"][scenario] <= heldout["worst"][scenario]
    ours, random = (np.mean(list(heldout[kind].values())) for kind in ("mean", "random_mean"))
    assert ours < 0.85 * random
    names = tiny.estimator.training_models_
    assert len(set(names)) == len(names)
    assert "NullModel" not in names
    assert len(set(tiny.items["item"])) == len(tiny.items)
    low = tiny.estimate(np.zeros(len(tiny.anchors())))["gpirt"]
    high = tiny.estimate(np.ones(len(tiny.anchors())))["gpirt"]
    assert (high - low > 0.2).all()
    assert (BUNDLED_FOLDER / f"{name}.npz").stat().st_size < 300_000


def test_left_out_rows_are_said():
    assert "NullModel" in load_benchmark("alpaca-eval-2").info["description"]
    assert "#2" in load_benchmark("open-llm-v2").info["description"]


def test_subscenarios_are_there():
    found = load_benchmark("helm-lite").items.groupby("scenario")["subscenario"].nunique()
    assert found["math"] == 7 and found["mmlu"] == 5 and found["gsm"] == 0
    found = load_benchmark("open-llm-v2").items.groupby("scenario")["subscenario"].nunique()
    assert found["musr"] == 3


def test_the_list_tells_bundled_from_downloads():
    table = list_benchmarks()
    assert table.index[table["kind"] == "bundled"].tolist() == BUNDLED
    assert set(table.index[table["kind"] == "download"]) == {
        "tinyMMLU",
        "tinyArc",
        "tinyHellaswag",
        "tinyGSM8k",
        "tinyTruthfulQA",
        "tinyWinogrande",
        "tinyAlpacaEval",
        "tinyHelmLite",
        "tinyBenchmarks",
    }
    assert (table.loc[BUNDLED, "error"] < 3).all()


def test_a_folder_of_ones_own(pipe, tmp_path, monkeypatch):
    save_benchmark(pipe, tmp_path / "Mine.npz", name="mine")
    (tmp_path / "broken.npz").write_bytes(b"no benchmark")
    monkeypatch.setenv("SKLEARN_IRT_BENCHMARKS", str(tmp_path))
    with pytest.warns(UserWarning, match="broken cannot be read"):
        table = list_benchmarks()
    assert table.loc["Mine", "kind"] == "folder"
    assert len(load_benchmark("mine").anchors()) == 10
    save_benchmark(pipe, tmp_path / "helm-lite.npz", name="impostor")
    assert load_benchmark("helm-lite").name == "helm-lite"  # a bundled name keeps its meaning
    assert load_benchmark(tmp_path / "helm-lite.npz").name == "impostor"


def test_packages_announce_benchmarks(pipe, tmp_path, monkeypatch):
    save_benchmark(pipe, tmp_path / "data.npz", name="announced")
    (tmp_path / "their_package.py").write_text(
        "from pathlib import Path\n\ndef path():\n    return Path(__file__).parent / 'data.npz'\n"
    )
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[sklearn_irt.benchmarks]\ntheirs = their_package:path\ngone = their_package:missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "their_package", raising=False)
    assert load_benchmark("theirs").name == "announced"
    with pytest.warns(UserWarning, match="gone cannot be read"):
        assert list_benchmarks().loc["theirs", "kind"] == "package"


def test_unknown_names_list_the_known(tmp_path):
    with pytest.raises(ValueError, match="'helm-heavy'.*helm-lite.*tinyMMLU"):
        load_benchmark("helm-heavy")
    with pytest.raises(OSError, match="folder"):
        load_benchmark(tmp_path)
