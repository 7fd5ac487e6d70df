"""`evaluate` returns what the published formulas give, or says what is wrong."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from benchmarks_registry import _evaluate, _release
from benchmarks_registry._evaluate import BENCHES, evaluate
from benchmarks_registry._release import RELEASED, load_released
from sklearn_irt.datasets import _files

SUBJECTS = {f"subject_{i}": 10 + i for i in range(57)}
LB = {
    "harness_truthfulqa_mc_0": {"all": 817},
    "gsm8k": {"all": 1319},
    "winogrande": {"all": 267},
    "arc": {"all": 1172},
    "hellaswag": {"all": 2042},
    "mmlu": SUBJECTS,
}
HELM = {
    "commonsense": {"all": 500},
    "math": {"algebra": 135, "geometry": 38, "precalculus": 57},
    "wmt_14": {"cs": 568, "de": 832},
}


def make_bench(layout, n_dims, mixing, seed):
    rng = np.random.default_rng(seed)
    position, subscenarios, scenarios, seen, weights = 0, {}, {}, [], {}
    for name, sizes in layout.items():
        subscenarios[name] = {}
        for sub, size in sizes.items():
            subscenarios[name][sub] = list(range(position, position + size))
            position += size
        scenarios[name] = sum(subscenarios[name].values(), [])
        seen += [int(i) for i in rng.choice(scenarios[name], 100, replace=False)]
        weights[name] = rng.dirichlet(np.ones(100))
    return {
        "seen_examples": seen,
        "examples_weights": weights,
        "irt_parameters": {
            "A": rng.normal(0.5, 0.5, size=(1, n_dims, position)),
            "B": rng.normal(0, 1 / n_dims, size=(1, 1, position)),
        },
        "optimal_lambdas": dict(zip(layout, mixing, strict=True)),
        "scenarios_position": scenarios,
        "subscenarios_position": subscenarios,
    }


@pytest.fixture(scope="module")
def release():
    return {
        "lb": make_bench(LB, 6, [0.6, 0.92, 0.2, 1.0, 0.0, 0.31], 0),
        "mmlu": make_bench({"mmlu": SUBJECTS}, 5, [0.27], 1),
        "helm_lite": make_bench(HELM, 4, [0.3, 0.5, 0.9], 2),
        "alpaca": make_bench({"alpaca_v2": {"all": 805}}, 2, [0.8], 3),
    }


@pytest.fixture(autouse=True)
def installed(release, tmp_path, monkeypatch):
    """The released file in the cache."""
    data = pickle.dumps(release)
    pinned = dataclasses.replace(_release.RELEASE, sha256=_files.digest(data))
    monkeypatch.setattr(_release, "RELEASE", pinned)
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(tmp_path))
    (tmp_path / "tinyBenchmarks").mkdir()
    (tmp_path / "tinyBenchmarks" / "tinyBenchmarks.pkl").write_bytes(data)
    _evaluate._loaded.cache_clear()
    return tmp_path


def expected_scores(release, y, bench):
    """The published formulas, item by item."""
    key = bench if bench in release else "lb"
    part = release[key]
    names = list(part["scenarios_position"])
    seen = list(part["seen_examples"])
    if key != bench:
        names = [name for name in names if bench in name]
        (place,) = [i for i, name in enumerate(part["scenarios_position"]) if bench in name]
        seen = seen[100 * place : 100 * place + 100]
    answer = dict(zip(seen, y, strict=True))
    loadings, intercept = part["irt_parameters"]["A"][0], part["irt_parameters"]["B"][0, 0]

    def logits(theta, items):
        return (loadings[:, items] * theta[:, None] - intercept[items]).sum(axis=0)

    def loss(theta):
        z = logits(theta, seen)
        p = 1 / (1 + np.exp(-z))
        return (np.logaddexp(0, z) - y * z).sum(), loadings[:, seen] @ (p - y)

    theta = minimize(
        loss, np.zeros(len(loadings)), jac=True, method="BFGS", options={"gtol": 1e-9}
    ).x
    assert np.abs(loss(theta)[1]).max() < 1e-6
    found = {}
    for name in names:
        members, subs = part["scenarios_position"][name], part["subscenarios_position"][name]
        balance = {i: len(members) / (len(subs) * len(sub)) for sub in subs.values() for i in sub}
        asked = [i for i in seen if i in balance]
        rest = [i for i in members if i not in answer]
        data = np.mean([balance[i] * answer[i] for i in asked])
        model = np.mean(np.array([balance[i] for i in rest]) / (1 + np.exp(-logits(theta, rest))))
        share, mixing = len(asked) / len(members), part["optimal_lambdas"][name]
        naive = np.dot(part["examples_weights"][name], [answer[i] for i in asked])
        pirt = share * data + (1 - share) * model
        found[name] = {"irt": naive, "pirt": pirt, "gpirt": mixing * naive + (1 - mixing) * pirt}
    return found


def n_answers(bench):
    return {"lb": 600, "helm_lite": 300}.get(bench, 100)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bench", BENCHES)
def test_the_published_formulas(release, bench, seed):
    rng = np.random.default_rng(seed)
    y = rng.random(n_answers(bench)) if bench == "alpaca" else rng.integers(0, 2, n_answers(bench))
    found, expected = evaluate(y, bench), expected_scores(release, y, bench)
    assert list(found) == list(expected)
    for name, figures in expected.items():
        assert list(found[name]) == ["irt", "pirt", "gpirt"]
        for figure, value in figures.items():
            assert type(found[name][figure]) is float
            assert found[name][figure] == pytest.approx(value, abs=1e-6), (name, figure)


@pytest.mark.parametrize("bench", BENCHES)
def test_the_benchmark_estimates_the_same(bench):
    y = np.random.default_rng(5).integers(0, 2, n_answers(bench))
    table = load_released(BENCHES[bench]).estimate(y)
    for name, figures in evaluate(y, bench).items():
        found = table.loc[name, ["naive", "pirt", "gpirt"]].to_numpy(float)
        np.testing.assert_allclose(found, list(figures.values()), rtol=0, atol=1e-6)


def test_names():
    y = np.random.default_rng(0).integers(0, 2, 100)
    assert evaluate(y, "tinyMMLU") == evaluate(y, "MMLU") == evaluate(list(y), "mmlu")
    assert list(evaluate(y, "truthfulqa")) == ["harness_truthfulqa_mc_0"]
    with pytest.raises(ValueError, match="bench must be one of.*'winogrande'.*tinyMMLU.*'chess'"):
        evaluate(y, "chess")
    with pytest.raises(ValueError, match="bench must be one of"):
        evaluate(y, None)
    assert set(BENCHES.values()) == set(RELEASED)


def test_wrong_lengths_say_what_was_expected():
    with pytest.raises(ValueError, match=r"599 answers, but 'lb' takes 600.*gsm8k 100, wino"):
        evaluate(np.ones(599), "lb")
    with pytest.raises(ValueError, match="600 answers, but 'arc' takes 100.*: arc 100"):
        evaluate(np.ones(600), "arc")
    with pytest.raises(ValueError, match=r"the shape \(1, 100\)"):
        evaluate(np.ones((1, 100)), "arc")


def test_bad_values_are_named():
    y = np.random.default_rng(0).random(100)
    y[17] = 42
    name = load_released("tinyArc").anchors()[17]
    with pytest.raises(ValueError, match=rf"value 42 at position 17 \({name}\)"):
        evaluate(y, "arc")
    y[17] = -np.inf
    with pytest.raises(ValueError, match="value -inf at position 17"):
        evaluate(y, "arc")
    with pytest.raises(ValueError, match="y must be scores.*'yes'"):
        evaluate(["yes"] * 100, "arc")
    with pytest.raises(ValueError, match="no answer"):
        evaluate([None] * 100, "arc")


def test_answers_that_are_missing_are_left_out(release):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600).astype(float)
    y[[3, 150, 151]] = np.nan
    y[500:] = np.nan
    with pytest.warns(UserWarning, match="103 NaN among 600 values; the 497 answers are used"):
        found = evaluate(y, "lb")
    weights = release["lb"]["examples_weights"]["gsm8k"]
    some = ~np.isnan(y[100:200])
    naive = np.average(y[100:200][some], weights=weights[some])
    assert found["gsm8k"]["irt"] == pytest.approx(naive, abs=1e-12)
    assert np.isnan(found["mmlu"]["irt"])
    assert found["mmlu"]["gpirt"] == found["mmlu"]["pirt"]
    table = load_released("tinyBenchmarks").estimate(y)
    for name, figures in found.items():
        ours = table.loc[name, ["naive", "pirt", "gpirt"]].to_numpy(float)
        np.testing.assert_allclose(ours, list(figures.values()), rtol=0, atol=1e-6)
    with pytest.warns(UserWarning, match="NaN"):
        again = evaluate(pd.Series(y).astype("Float64"), "lb")
    for name in found:
        assert again[name] == pytest.approx(found[name], nan_ok=True)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("bench", ["lb", "arc"])
def test_no_maximum_is_said_and_finite(bench, value):
    with pytest.warns(UserWarning, match="no finite maximum-likelihood"):
        found = evaluate(np.full(n_answers(bench), value), bench)
    for figures in found.values():
        assert np.isfinite(list(figures.values())).all()
        assert figures["irt"] == pytest.approx(value, abs=1e-9)
        assert abs(figures["pirt"] - value) < 0.3


def test_separable_answers_have_no_maximum(release):
    """Right wherever the first ability counts for much, as a model that is certain would be."""
    bench = release["mmlu"]
    seen = bench["seen_examples"]
    direction = np.array([1.0, -0.5, 0.2, 0.0, 0.3])
    logit = direction @ bench["irt_parameters"]["A"][0][:, seen]
    with pytest.warns(UserWarning, match="no finite maximum-likelihood"):
        found = evaluate(logit > 0, "mmlu")
    assert np.isfinite(list(found["mmlu"].values())).all()


@pytest.mark.filterwarnings("error")
def test_a_large_but_finite_ability_is_not_held(release):
    """All right but a few: the maximum may lie beyond the bound of the estimator."""
    y = np.ones(100)
    y[:5] = 0
    found = evaluate(y, "mmlu")["mmlu"]
    expected = expected_scores(release, y, "mmlu")["mmlu"]
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_dimension_that_is_not_asked(release, installed, monkeypatch):
    """The published optimiser leaves it at zero, where it starts."""
    other = make_bench({"alpaca_v2": {"all": 805}}, 3, [0.5], 8)
    other["irt_parameters"]["A"][0, 1, other["seen_examples"]] = 0.0
    data = pickle.dumps({"alpaca": other})
    pinned = dataclasses.replace(_release.RELEASE, sha256=_files.digest(data))
    monkeypatch.setattr(_release, "RELEASE", pinned)
    (installed / "tinyBenchmarks" / "tinyBenchmarks.pkl").write_bytes(data)
    y = np.random.default_rng(0).random(100)
    expected = expected_scores({"alpaca": other}, y, "alpaca")["alpaca_v2"]
    assert evaluate(y, "alpaca")["alpaca_v2"] == pytest.approx(expected, abs=1e-6)


def test_the_parameters_are_read_once(installed, monkeypatch):
    y = np.random.default_rng(0).integers(0, 2, 100)
    first = evaluate(y, "arc")
    monkeypatch.setattr(_release, "load_released", lambda *_: pytest.fail("read again"))
    assert evaluate(y, "arc") == first
