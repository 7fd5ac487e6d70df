"""The examples run, and what they print is true."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import fetch_alpaca_eval, fetch_glue
from sklearn_irt.metrics import mean_win_rate

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
DECIMAL = re.compile(r"-?\d+\.\d+")


def output_of(name: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def words(text: str) -> list[list[str]]:
    """Words of the lines that have any, decimals replaced."""
    return [DECIMAL.sub("#", line).split() for line in text.splitlines() if line.strip()]


def decimals(text: str) -> np.ndarray:
    return np.array([float(number) for number in DECIMAL.findall(text)])


def rows_after(text: str, title: str) -> dict[str, np.ndarray]:
    """Rows of the table under a title, by their labels."""
    lines = text[text.index(title) :].splitlines()[1:]
    rows = {}
    for line in lines:
        found = DECIMAL.search(line)
        if found:
            rows[line[: found.start()].strip()] = decimals(line)
        elif rows:  # the table has ended
            break
    return rows


def test_readme_shows_what_new_model_prints():
    blocks = re.findall(r"```text\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (shown,) = [block for block in blocks if "scores in percent" in block]
    printed = output_of("new_model.py")
    assert words(printed) == words(shown)  # rows, columns, numbers of questions and models
    assert len(decimals(shown)) == 6 * 7
    np.testing.assert_allclose(decimals(printed), decimals(shown), rtol=0, atol=0.3 + 1e-9)


@pytest.mark.slow
def test_prompts():
    printed = output_of("prompts.py")
    example = runpy.run_path(str(EXAMPLES / "prompts.py"))
    responses, model = example["simulate"](np.random.default_rng(0))

    truth = responses[model == 0].mean(axis=1)
    expected = [truth.mean(), truth.std(ddof=1), *np.quantile(truth, [0.05, 0.5, 0.95])]
    figures = rows_after(printed, "One new model")
    np.testing.assert_allclose(figures["true"], 100 * np.array(expected), rtol=0, atol=0.051)

    errors = rows_after(printed, "Mean absolute error")
    assert list(errors) == list(figures)[1:]
    ours, naive = errors["p-IRT, calibrated"], errors["naive"]
    assert (ours < naive).all()  # mean, spread and every quantile
    assert ours[1] < 0.55 * naive[1]
    # The corrections are what makes it so, and p-IRT helps beyond them.
    assert errors["naive, corrected"][1] < 0.6 * naive[1]
    assert ours[:2].sum() < errors["naive, corrected"][:2].sum()
    assert ours[0] < 0.6 * errors["p-IRT"][0]
    assert errors["p-IRT, widened"][1] > 2 * ours[1]


def test_prompts_ask_other_items_of_each_row():
    example = runpy.run_path(str(EXAMPLES / "prompts.py"))
    rng = np.random.default_rng(0)
    responses, _ = example["simulate"](rng)
    answers = example["ask"](responses, rng)
    asked = ~np.isnan(answers)
    assert (asked.sum(axis=1) == 25).all()
    np.testing.assert_array_equal(answers[asked], responses[asked])
    assert len(np.unique(asked, axis=0)) == len(asked)
    assert asked.any(axis=0).all()


@pytest.mark.slow
def test_accuracy_prints_what_a_direct_computation_gives(real_data):
    options = "--datasets rte --seeds 1 --sizes 30 --methods random".split()
    printed = output_of("accuracy.py", *options)

    responses = fetch_glue("rte").responses.to_numpy()
    responses = responses[responses.any(axis=1)]
    new = np.random.RandomState(0).permutation(len(responses))[: int(0.25 * len(responses))]
    old = np.setdiff1d(np.arange(len(responses)), new)
    truth = responses[new].mean(axis=1)
    selector = AnchorSelector(30, method="random", random_state=0)
    estimator = GPIRTEstimator(random_state=0).fit(selector.fit_transform(responses[old]))
    answers = responses[new][:, selector.anchors_]
    error, covered, width = (
        rows_after(printed, title)
        for title in ("mean absolute error", "% of the new models", "mean width")
    )
    example = runpy.run_path(str(EXAMPLES / "accuracy.py"))
    assert len(error) == len(covered) == len(width) == len(example["ESTIMATES"]) == 7
    for label in error:
        estimate = label.removeprefix("random").strip()
        estimator.set_params(**example["ESTIMATES"][estimate])
        scores = answers @ selector.weights_ if estimate == "naive" else estimator.predict(answers)
        low, high = estimator.predict_interval(answers, coverage=0.9).T
        inside = (low <= truth) & (truth <= high)
        for table, figure in (
            (error, abs(scores - truth).mean()),
            (covered, inside.mean()),
            (width, (high - low).mean()),
        ):
            np.testing.assert_allclose(table[label], [100 * figure], rtol=0, atol=0.0051)


@pytest.fixture
def scenarios(real_data):
    return runpy.run_path(str(EXAMPLES / "scenarios.py"))


def test_scenarios_split_by_organisation(scenarios):
    data, labels, truth = scenarios["helm_lite"]()
    assert labels.shape == (data.responses.shape[1], 2)
    np.testing.assert_allclose(truth.mean(axis=1), data.scores)
    organisation = data.models["organisation"]
    held = set()
    for seed in range(5):
        train, new = scenarios["organisation_split"](organisation, seed)
        assert sorted([*train, *new]) == list(range(83))
        assert not set(organisation[train]) & set(organisation[new])
        sizes = organisation[new].value_counts()
        assert len(new) >= 20 > len(new) - sizes.max()
        held.add(tuple(new))
    assert len(held) > 3  # the seed matters, though two may begin with the same large ones


@pytest.mark.slow
def test_scenarios_naive_errors_are_those_of_the_answers(scenarios):
    """The naive figures need no IRT model: recomputed from the anchors alone."""
    data = fetch_alpaca_eval()
    rows = {
        (row["responses"], row["anchors"], row["estimate"]): row["error"]
        for row in scenarios["measure_alpaca"](data, 0)
    }
    assert len(rows) == 12
    keep = data.responses.index != "NullModel"
    responses, truth = data.responses[keep].to_numpy(), data.scores[keep].to_numpy()
    new = np.random.RandomState(0).permutation(57)[:14]
    old = np.setdiff1d(np.arange(57), new)
    selector = AnchorSelector(100, method="random", random_state=0).fit(responses[old])
    error = abs(np.nanmean(responses[new][:, selector.anchors_], axis=1) - truth[new]).mean()
    assert rows["fractional", "random", "naive"] == pytest.approx(error, abs=1e-9)
    assert rows["threshold", "random", "naive"] == pytest.approx(error, abs=1e-9)
    assert rows["threshold", "random", "pirt"] != pytest.approx(
        rows["fractional", "random", "pirt"], abs=1e-4
    )


@pytest.mark.slow
def test_scenarios_win_rates(scenarios, monkeypatch):
    """With the answers to all items, the win rate is that of the true scores."""
    data, labels, truth = scenarios["helm_lite"]()
    measure = scenarios["measure_win_rate"]
    monkeypatch.setitem(measure.__globals__, "K", 1.0)
    monkeypatch.setitem(measure.__globals__, "METHODS", ["random"])
    rows = measure(data, labels, truth, "organisation", 0)
    assert [row["estimate"] for row in rows] == ["naive", "gpirt"]
    assert max(row["error"] for row in rows) < 1e-2
    train, new = scenarios["organisation_split"](data.models["organisation"], 0)
    rate = mean_win_rate(truth.iloc[new], reference=truth.iloc[train])
    assert 0 <= rate.min() < rate.max() <= 1
