"""The fetchers, on the published files."""

import pickle
import re
import shutil

import joblib
import numpy as np
import pandas as pd
import pytest

from sklearn_irt.datasets import (
    _fetch,
    _files,
    fetch_alpaca_eval,
    fetch_glue,
    fetch_helm_lite,
    fetch_open_llm,
)

COMMIT = "2e98c82ea45bed58f54c9e8894ca42e776bf32a9"


def check_bunch(data, shape):
    responses = data.responses
    assert responses.shape == shape
    assert (responses.dtypes == np.float64).all()
    assert responses.index.is_unique and responses.columns.is_unique
    assert np.nanmin(responses) >= 0 and np.nanmax(responses) <= 1
    assert data["items"]["item"].tolist() == responses.columns.tolist()
    assert list(data["items"].columns) == ["item", "scenario", "subscenario"]
    assert data.models["model"].tolist() == responses.index.tolist()
    assert data.scores.index.equals(responses.index)
    assert data.scores.between(0, 1).all()
    for part in ("Source:", "at commit", "Licence:", "Citation:", "Dropped:"):
        assert part in data.DESCR
    assert pickle.loads(pickle.dumps(data)).responses.equals(responses)


@pytest.mark.parametrize(
    ("fetch", "scenario", "shape"),
    [
        (fetch_helm_lite, "commonsense", (83, 500)),
        (fetch_helm_lite, "gsm", (83, 1000)),
        (fetch_helm_lite, "math", (83, 437)),
        (fetch_helm_lite, "med_qa", (83, 1000)),
        (fetch_helm_lite, "mmlu", (83, 567)),
        (fetch_open_llm, "arc_challenge", (218, 1172)),
        (fetch_open_llm, "ifeval", (448, 541)),
        (fetch_open_llm, "musr", (448, 756)),
        (fetch_glue, "rte", (87, 277)),
        (fetch_glue, "mrpc", (87, 408)),
        (fetch_glue, "sst2", (87, 872)),
    ],
)
def test_one_scenario(real_data, fetch, scenario, shape):
    data = fetch(scenario)
    check_bunch(data, shape)
    assert data.responses.columns[12] == f"{scenario}/00012"
    assert set(data["items"]["scenario"]) == {scenario}
    expected = joblib.load(real_data / "benchmark_prediction" / f"{scenario}.jbl")
    np.testing.assert_array_equal(data.responses, expected)
    X, y = fetch(scenario, return_X_y=True)
    pd.testing.assert_frame_equal(X, data.responses)
    pd.testing.assert_series_equal(y, data.scores)
    if data["items"]["subscenario"].isna().all():
        np.testing.assert_allclose(y, expected.mean(axis=1))


def test_helm_lite_together(real_data):
    data = fetch_helm_lite()
    check_bunch(data, (83, 3504))
    parts = [fetch_helm_lite(name) for name in ("commonsense", "gsm", "math", "med_qa", "mmlu")]
    assert data.responses.columns.tolist() == [c for p in parts for c in p.responses.columns]
    np.testing.assert_allclose(data.scores, np.mean([part.scores for part in parts], axis=0))
    assert data.models["organisation"].nunique() == 18
    assert data.responses.index[0] == "01-ai/yi-34b"
    pair = fetch_helm_lite(["mmlu", "gsm"])
    assert pair.responses.columns[0] == "mmlu/00000"
    assert pair.responses.shape == (83, 1567)


def test_subscenarios_count_equally(real_data):
    data = fetch_helm_lite("mmlu")
    labels = data["items"]["subscenario"]
    sizes = labels.groupby(labels, sort=False).size()
    assert sizes.to_dict() == {
        "abstract_algebra": 111,
        "college_chemistry": 108,
        "computer_security": 111,
        "econometrics": 126,
        "us_foreign_policy": 111,
    }
    means = data.responses.T.groupby(labels.to_numpy(dtype=object)).mean().T
    np.testing.assert_allclose(data.scores, means.mean(axis=1))
    assert fetch_helm_lite("math")["items"]["subscenario"].nunique() == 7
    assert fetch_open_llm("musr")["items"]["subscenario"].nunique() == 3


def test_open_llm_together(real_data):
    data = fetch_open_llm()
    check_bunch(data, (448, 1297))
    assert data["items"]["scenario"].unique().tolist() == ["ifeval", "musr"]
    models = data.models.set_index("model")
    repeated = models[models["duplicate_of"].notna()]
    assert len(repeated) == 19
    assert (repeated.index == repeated["duplicate_of"] + "#2").all()
    assert repeated["duplicate_of"].isin(models.index).all()
    published = joblib.load(real_data / "benchmark_prediction" / "ifeval_models.jbl")
    assert models["duplicate_of"].fillna(models.index.to_series()).tolist() == published
    assert models.loc["01-ai/Yi-1.5-34B", "date"] == pd.Timestamp("2024-06-09")
    assert models.loc["01-ai/Yi-1.5-34B", "organisation"] == "01-ai"
    assert pd.isna(models.loc["gpt2", "organisation"])
    assert models["date"].notna().mean() > 0.3


def test_glue_together_says_what_it_rests_on(real_data):
    data = fetch_glue(["rte", "sst2"])
    check_bunch(data, (87, 1149))
    assert data.responses.index[0] == "model_00"
    assert "not stated" in data.DESCR


def test_glue_row_means_correlate_as_described(real_data):
    means = [fetch_glue(name).scores for name in ("rte", "mrpc", "sst2")]
    found = np.corrcoef(means)[np.triu_indices(3, 1)]
    assert found.min() == pytest.approx(0.45, abs=0.01)
    assert found.max() == pytest.approx(0.56, abs=0.01)


def test_alpaca_eval(real_data):
    data = fetch_alpaca_eval()
    check_bunch(data, (58, 805))
    assert data.responses.isna().to_numpy().sum() == 10
    assert data.responses.columns[[0, 260, 804]].tolist() == [
        "helpful_base/000",
        "koala/260",
        "vicuna/804",
    ]
    assert data["items"]["subscenario"].isna().all()
    np.testing.assert_allclose(data.scores, data.responses.mean(axis=1))
    assert data.scores["NullModel"] == pytest.approx(0.77, abs=0.005)
    dates = data.models.set_index("model")["date"]
    assert dates.notna().all() and dates["NullModel"] == pd.Timestamp("2024-10-23")


def test_models_of_mean_zero_are_kept(real_data):
    for name in ("ifeval", "musr"):
        expected = joblib.load(real_data / "benchmark_prediction" / f"{name}.jbl")
        assert len(fetch_open_llm(name).scores) == len(expected)


@pytest.fixture
def bare_cache(shared, tmp_path):
    """A cache with the downloadable files only."""
    folder = tmp_path / "benchmark_prediction"
    folder.mkdir()
    for name in ("gsm", "ifeval", "ifeval_models"):
        shutil.copy(shared / "data" / "benchmark_prediction" / f"{name}.jbl", folder)
    alpaca = tmp_path / "alpaca_eval_2"
    alpaca.mkdir()
    shutil.copy(shared / "data" / "alpaca_eval_2" / "win_probability.csv.gz", alpaca)
    return tmp_path


def test_without_the_optional_tables(bare_cache):
    helm = fetch_helm_lite("gsm", data_home=bare_cache, download_if_missing=False)
    check_bunch(helm, (83, 1000))
    assert helm.responses.index[[0, 82]].tolist() == ["helm_lite_00", "helm_lite_82"]
    assert helm.models["organisation"].isna().all()
    open_llm = fetch_open_llm("ifeval", data_home=bare_cache, download_if_missing=False)
    alpaca = fetch_alpaca_eval(data_home=bare_cache, download_if_missing=False)
    for data in (open_llm, alpaca):
        assert data.models["date"].isna().all()
        assert data.models["date"].dtype.kind == "M"
    for data in (helm, open_llm, alpaca):
        assert "is not in the cache" in data.DESCR


def test_a_damaged_optional_table_is_not_used(bare_cache):
    path = bare_cache / "benchmark_prediction" / "helm_lite_models.csv"
    path.write_text("model,organisation\n" + "evil,evil\n" * 83)
    with pytest.warns(UserWarning, match="helm_lite_models.csv.*not used"):
        data = fetch_helm_lite("gsm", data_home=bare_cache)
    assert data.responses.index[0] == "helm_lite_00"


@pytest.mark.parametrize(
    "fetch", [fetch_helm_lite, fetch_open_llm, lambda **k: fetch_glue("rte", **k)]
)
def test_nothing_in_the_cache(tmp_path, fetch):
    with pytest.raises(OSError, match=f"sha256 [0-9a-f]{{64}}.*{COMMIT}/data/scores/"):
        fetch(data_home=tmp_path, download_if_missing=False)


def test_nothing_in_the_cache_for_alpaca_eval(tmp_path):
    with pytest.raises(OSError, match="win_probability.csv.gz.*annotations.json"):
        fetch_alpaca_eval(data_home=tmp_path, download_if_missing=False)


def test_hostile_files_are_not_even_parsed(tmp_path, monkeypatch):
    path = tmp_path / "benchmark_prediction" / "rte.jbl"
    path.parent.mkdir()
    path.write_bytes(b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x031/0\x85R.")
    monkeypatch.setattr(_fetch, "read_joblib", lambda *a, **k: pytest.fail("it was parsed"))
    with pytest.raises(OSError, match="damaged or another file"):
        fetch_glue("rte", data_home=tmp_path, download_if_missing=False)


def test_every_file_is_pinned(shared):
    folder = shared / "data" / "benchmark_prediction"
    for name, sha256 in _fetch.SHA256.items():
        assert _files.digest((folder / f"{name}.jbl").read_bytes()) == sha256
    for file in (_fetch.HELM_MODELS, _fetch.OPEN_LLM_DATES, _fetch.ALPACA_DATES):
        assert _files.digest((shared / "data" / file.name).read_bytes()) == file.sha256
    assert re.fullmatch(rf"socialfoundations/benchmark-prediction/{COMMIT}/.*", _fetch.SOURCE)


@pytest.mark.parametrize(
    ("fetch", "scenario", "message"),
    [
        (fetch_helm_lite, "hellaswag", 'scenario must be one or a list of "commonsense".*hella'),
        (fetch_helm_lite, [], "scenario must be"),
        (fetch_helm_lite, 3, "scenario must be"),
        (fetch_helm_lite, ["gsm", "gsm"], "scenario must not name one twice"),
        (fetch_open_llm, ["arc_challenge", "ifeval"], "arc_challenge"),
        (fetch_glue, None, "scenario must be"),
        (fetch_glue, [["rte"]], "scenario must be"),
    ],
)
def test_bad_scenarios(tmp_path, fetch, scenario, message):
    with pytest.raises(ValueError, match=message):
        fetch(scenario, data_home=tmp_path, download_if_missing=False)
