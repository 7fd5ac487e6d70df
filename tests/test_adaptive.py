"""AdaptiveSession: asking, telling, stopping, resuming; and its simulation."""

import json
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from benchmarks_registry._benchmark import TinyBenchmark
from sklearn_irt import (
    AdaptiveSession,
    AnchorSelector,
    GPIRTEstimator,
    IRTRegressor,
    simulate_adaptive,
)
from sklearn_irt.datasets import make_responses

N_KNOWN = 50


class Bench:
    def __init__(self, width=1.0, **params):
        data = make_responses(
            N_KNOWN + 8, n_dims=2, random_state=1, **{"n_items": 120, "scenarios": None, **params}
        )
        self.responses = width * data.responses
        self.known, self.new = self.responses.iloc[:N_KNOWN], self.responses.iloc[N_KNOWN:]
        labels = data["items"]["scenario"].tolist() if params.get("scenarios") else None
        self.estimator = GPIRTEstimator(
            n_dims=2, scenarios=labels, response_range=(0, width), random_state=0
        ).fit(self.known)
        members = pd.Series(self.estimator._scenarios.index, self.known.columns)
        self.scores = self.new.T.groupby(members).mean().T


@pytest.fixture(scope="module")
def one():
    return Bench()


@pytest.fixture(scope="module")
def several():
    return Bench(scenarios={"a": 50, "b": 40, "c": 30})


@pytest.fixture(scope="module")
def percent():
    return Bench(width=100.0, response="fractional")


def run(session, answers, n):
    for _ in range(n):
        (item,) = session.ask()
        session.tell(item, answers[item])
    return session


@pytest.fixture(params=["one", "several", "percent"])
def bench(request):
    return request.getfixturevalue(request.param)


def test_a_session_estimates_as_the_estimator_does(bench):
    answers = bench.new.iloc[0]
    session = run(AdaptiveSession(bench.estimator), answers, 20)
    assert session.n_asked == len(session.history) == len(set(dict(session.history))) == 20
    asked = dict(session.history)
    assert asked == answers[list(asked)].to_dict()
    table = session.estimate()
    row = pd.DataFrame([answers.where(answers.index.isin(list(asked)))])
    expected = bench.estimator.set_params(estimate="pirt").predict_table(row)
    bench.estimator.set_params(estimate="gpirt")
    expected = expected.droplevel("model")
    assert list(table.index) == list(expected.index)
    np.testing.assert_allclose(table["pirt"], expected["pirt"], rtol=1e-9)
    np.testing.assert_allclose(table["std_error"], expected["std_error"], rtol=1e-9)
    np.testing.assert_array_equal(table["gpirt"], table["pirt"])
    assert table["naive"].isna().all()
    narrow = session.estimate(coverage=0.5)
    assert (narrow["high"] - narrow["low"] <= table["high"] - table["low"]).all()


def test_trace_follows_the_estimate(bench):
    width = bench.estimator._bounds.width
    session = AdaptiveSession(bench.estimator)
    answers = bench.new.iloc[1]
    for n in range(1, 26):
        run(session, answers, 1)
        row = session.trace.iloc[-1]
        table = session.estimate().iloc[-1]
        assert session.trace.index[-1] == n
        assert (row["item"], row["score"]) == session.history[-1]
        assert row["estimate"] == pytest.approx(table["pirt"], abs=0.02 * width)
        assert row["std_error"] == pytest.approx(table["std_error"], rel=0.1, abs=0.002 * width)


def test_the_first_std_is_the_priors_and_it_falls(one):
    found = simulate_adaptive(one.estimator, one.new, 60)
    spread = one.known.mean(axis=1).std()
    assert 0.5 * spread < found.std[:, 0].mean() < 1.5 * spread
    mean = found.std.mean(axis=0)
    assert (mean[[9, 19, 39, 59]] < mean[[0, 9, 19, 39]]).all()
    assert mean[-1] < 0.4 * mean[0]


@pytest.mark.slow
def test_fewer_answers_say_as_much():
    responses = make_responses(N_KNOWN + 80, 120, n_dims=2, random_state=1).responses
    known, new = responses.iloc[:N_KNOWN], responses.iloc[N_KNOWN:]  # 80: a few would be noise
    estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(known)
    truth = new.mean(axis=1).to_numpy()
    adaptive = np.abs(simulate_adaptive(estimator, new, 30).final_score - truth)
    asked = np.random.RandomState(0).random_sample(new.shape).argsort(axis=1) < 30
    random = np.abs(estimator.predict(new.where(asked)) - truth)
    assert adaptive.mean() < 0.85 * random.mean()


@pytest.mark.parametrize("scenario", [None, "b"])
@pytest.mark.parametrize("relatives", ["auto", False])
def test_simulation_equals_one_by_one(several, scenario, relatives):
    estimator = pickle.loads(pickle.dumps(several.estimator)).set_params(relatives=relatives)
    X = several.new.copy()
    X.iloc[0, 50:75] = np.nan
    found = simulate_adaptive(estimator, X, 30, scenario=scenario)
    names = several.known.columns
    for row in range(len(X)):
        session = AdaptiveSession(estimator, scenario)
        items, n_before = [], 0
        while not session.done(max_items=30):
            (item,) = session.ask()
            session.tell(item, X.iloc[row][item])
            if session.n_asked > n_before:
                items.append(item)
            n_before = session.n_asked
        n = len(items)
        assert list(names[found.items[row, :n]]) == items
        assert (found.items[row, n:] == -1).all() and np.isnan(found.score[row, n:]).all()
        np.testing.assert_array_equal(found.score[row, :n], session.trace["estimate"])
        np.testing.assert_array_equal(found.std[row, :n], session.trace["std_error"])
        table = session.estimate().loc[scenario or "(all)"]
        assert found.final_score[row] == table["pirt"]
        assert found.final_std[row] == table["std_error"]


def test_one_scenario_asks_its_items_only(several):
    session = AdaptiveSession(several.estimator, "b")
    names = several.known.columns
    first = names[:10]  # of scenario a: they inform, and are not counted
    session.tell(first, several.new.iloc[0][first])
    run(session, several.new.iloc[0], 40)
    assert set(dict(session.history)) == set(names[50:90]) | set(first)
    assert session.done() and session.ask() == []
    table = session.estimate()
    assert list(table.index) == ["b"] and table.loc["b", "answered"] == 40
    truth = several.new.iloc[0].iloc[50:90].mean()
    assert table.loc["b", "pirt"] == pytest.approx(truth)
    assert session.trace["estimate"].iloc[-1] == pytest.approx(truth, abs=1e-5)


def test_all_scenarios_are_asked(several):
    session = run(AdaptiveSession(several.estimator), several.new.iloc[0], 40)
    assert (session.estimate().iloc[:3]["answered"] > 3).all()
    assert session.estimate().index[-1] == "(all)"


def test_everything_asked_is_known_exactly(one):
    session = AdaptiveSession(one.estimator)
    while not session.done():
        items = session.ask(7)
        session.tell(items, [one.new.iloc[2][item] for item in items])
    assert session.n_asked == 120
    assert session.estimate().loc["all", "pirt"] == pytest.approx(one.new.iloc[2].mean())
    assert session.trace["std_error"].iloc[-1] < 1e-3


def test_asking_again_returns_the_same(one):
    session = AdaptiveSession(one.estimator)
    first = session.ask(3)
    assert len(set(first)) == 3
    assert session.ask(3) == first and session.ask(1) == first[:1]
    five = session.ask(5)
    assert five[:3] == first
    session.tell(first[1], 1)
    assert session.ask(4) == [first[0], first[2], *five[3:]]
    session.tell(dict.fromkeys(session.ask(4), 0))
    assert not set(session.ask(10)) & set(five)


def test_any_start_and_any_order(one):
    answers = one.new.iloc[3]
    start = answers.iloc[[5, 3, 60]]
    a, b, c = (AdaptiveSession(one.estimator) for _ in range(3))
    a.tell(start)
    b.tell(start.to_dict())
    for item in start.index:
        c.tell(item, start[item])
    assert a.history == b.history == c.history
    assert a.ask(4) == b.ask(4) == c.ask(4)
    assert not set(a.ask(4)) & set(start.index)


def test_what_cannot_be_asked_is_not_asked_again(one):
    session = AdaptiveSession(one.estimator)
    before = repr(session)
    missing = session.ask(2)
    session.tell(missing, [np.nan, None])
    assert session.n_asked == 0 and len(session.trace) == 0 and repr(session) == before
    assert [item for item, _ in session.history] == missing
    assert np.isnan([score for _, score in session.history]).all()
    assert not set(session.ask(118)) & set(missing)
    assert len(session.ask(200)) == 118
    assert session.estimate().loc["all", "answered"] == 0


def test_done(one):
    session = AdaptiveSession(one.estimator)
    assert not session.done() and session.done(max_items=0) and session.done(target_std=10.0)
    target = 0.04
    while not session.done(target_std=target):
        (item,) = session.ask()
        session.tell(item, one.new.iloc[4][item])
    stds = session.trace["std_error"]
    assert stds.iloc[-1] <= target and (stds.iloc[:-1] > target).all()
    assert session.done(max_items=session.n_asked)
    assert not session.done(max_items=session.n_asked + 1)


@pytest.mark.parametrize("costs", [False, True])
def test_a_saved_session_goes_on_exactly(several, costs, tmp_path):
    params = {"costs": np.linspace(1, 2, 120), "budget": 40.0} if costs else {}
    answers = several.new.iloc[5]
    session = AdaptiveSession(several.estimator, "a", **params)
    session.tell(answers.iloc[[3, 70]])
    session.tell(session.ask(), np.nan)
    run(session, answers, 6)
    session.ask(2)
    path = tmp_path / "session.json"
    assert session.save(path) == path
    again = AdaptiveSession.load(path, pickle.loads(pickle.dumps(several.estimator)))
    for _ in range(12):
        assert str(again.history) == str(session.history)
        assert again.spent == session.spent
        pd.testing.assert_frame_equal(again.trace, session.trace, check_exact=True)
        pd.testing.assert_frame_equal(again.estimate(), session.estimate(), check_exact=True)
        assert again.ask(3) == session.ask(3)
        for item in session.ask(3):
            again.tell(item, answers[item])
            session.tell(item, answers[item])
    again.save(path)  # replaces
    assert [p.name for p in tmp_path.iterdir()] == ["session.json"]


def test_a_session_is_not_resumed_on_another_benchmark(one, several, tmp_path):
    path = AdaptiveSession(one.estimator).save(tmp_path / "session.json")
    for other in (
        several.estimator,
        GPIRTEstimator(n_dims=2, random_state=0).fit(one.known.iloc[:-1]),
        pickle.loads(pickle.dumps(one.estimator)).set_params(relatives=False),
    ):
        with pytest.raises(ValueError, match="another benchmark, another fit of it, or other"):
            AdaptiveSession.load(path, other)
    AdaptiveSession.load(path, one.estimator)


def test_files_that_are_no_sessions(one, tmp_path):
    path = AdaptiveSession(one.estimator).save(tmp_path / "session.json")
    good = json.loads(path.read_text())
    for text in ("{", "[]", '{"format": "other"}', "\x00"):
        path.write_text(text)
        with pytest.raises(ValueError, match="no session that AdaptiveSession.save wrote"):
            AdaptiveSession.load(path, one.estimator)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="no session"):
        AdaptiveSession.load(path, one.estimator)
    path.write_text(json.dumps({**good, "format_version": 2}))
    with pytest.raises(ValueError, match="format version 2, not 1; upgrade"):
        AdaptiveSession.load(path, one.estimator)
    item = one.known.columns[0]
    for wrong in (
        {"history": [["?", 1.0, True]]},
        {"history": [[item, 3.0, True]]},
        {"history": [[item, 1.0, True], [item, 1.0, True]]},
        {"history": [[item, 1.0]]},
        {"history": [[item, [], True]]},
        {"history": [[item, 1.0, True]], "pending": [item]},
        {"pending": [item, item]},
        {"pending": 3},
        {"scenario": "?"},
        {"costs": [1.0]},
        {"costs": None, "budget": 3.0},
    ):
        path.write_text(json.dumps({**good, **wrong}))
        with pytest.raises(ValueError, match="is damaged"):
            AdaptiveSession.load(path, one.estimator)
    del good["pending"]
    path.write_text(json.dumps(good))
    with pytest.raises(ValueError, match="is damaged"):
        AdaptiveSession.load(path, one.estimator)
    with pytest.raises(FileNotFoundError):
        AdaptiveSession.load(tmp_path / "none.json", one.estimator)


def test_costs_and_budget(one):
    costs = pd.Series(np.random.RandomState(0).lognormal(size=120), one.known.columns)
    session = AdaptiveSession(one.estimator, costs=costs[::-1], budget=15.0)
    free = costs.idxmax()
    session.tell(free, one.new.iloc[0][free])  # known already: costs nothing
    assert session.spent == 0.0
    while not session.done():
        items = session.ask(3)
        assert session.spent + costs[items].sum() <= 15.0 + 1e-9
        session.tell(items[0], np.nan)  # neither does what could not be asked
        if items[1:]:
            session.tell(one.new.iloc[0][items[1:]])
    assert 15.0 - costs.min() < session.spent <= 15.0 or session.spent > 14.0
    assert session.ask() == []
    found = simulate_adaptive(one.estimator, one.new, 60, costs=costs, budget=15.0)
    asked = found.items >= 0
    spent = np.where(asked, costs.to_numpy()[found.items], 0.0).sum(axis=1)
    assert (spent <= 15.0 + 1e-9).all() and (spent > 14.0).all()
    plain = simulate_adaptive(one.estimator, one.new, 60)
    assert asked.sum(axis=1).mean() > (
        (np.cumsum(costs.to_numpy()[plain.items], axis=1) <= 15.0).sum(axis=1).mean()
    )
    at = np.maximum((np.cumsum(costs.to_numpy()[plain.items], axis=1) <= 15.0).sum(axis=1) - 1, 0)
    assert found.final_std.mean() < plain.std[np.arange(len(at)), at].mean()


def test_percent_is_the_same_in_another_unit(percent):
    unit = GPIRTEstimator(n_dims=2, random_state=0).fit(percent.known / 100)
    for scale, estimator in ((1.0, unit), (100.0, percent.estimator)):
        session = run(AdaptiveSession(estimator), percent.new.iloc[0] * scale / 100, 25)
        figures = session.trace[["score", "estimate", "std_error"]].to_numpy() / scale
        if scale == 1.0:
            expected = figures
    np.testing.assert_allclose(figures, expected, rtol=1e-6)


def test_shares_on_a_wide_scale_are_suspicious(percent):
    session = AdaptiveSession(percent.estimator)
    session.tell(session.ask(4), [1, 0, 0.5, 1])
    with pytest.warns(UserWarning, match="are they shares of it"):
        session.tell(session.ask(), 1)


def test_scores_outside_a_learned_range_are_clipped(one):
    with pytest.warns(UserWarning, match="their range"):
        estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(one.known * 4 + 1)
    session = AdaptiveSession(estimator)
    item = session.ask()[0]
    with pytest.warns(UserWarning, match=re.escape("outside the range [1, 5]")):
        session.tell(item, 6)
    assert session.history == [(item, 6.0)]
    assert np.isfinite(session.estimate()["pirt"]).all()


def test_threshold_models():
    bench = Bench(response="fractional")
    irt = IRTRegressor(n_dims=2, response_model="threshold", random_state=0)
    estimator = GPIRTEstimator(irt=irt, random_state=0).fit(bench.known)
    session = run(AdaptiveSession(estimator), bench.new.iloc[0], 15)
    last = session.trace.iloc[-1]
    assert last["estimate"] == pytest.approx(session.estimate().loc["all", "pirt"], abs=0.01)


def test_sources(one):
    pipe = make_pipeline(
        AnchorSelector(k=30, n_dims=2, random_state=0), GPIRTEstimator(random_state=0)
    ).fit(one.known)
    items = pd.DataFrame({"item": one.known.columns, "scenario": "all"})
    for source in (pipe, pipe[-1], TinyBenchmark(pipe[-1], items, {"name": "tiny"})):
        session = run(AdaptiveSession(source), one.new.iloc[0], 25)
        assert set(dict(session.history)) <= set(one.known.columns)
        assert not set(dict(session.history)) <= set(pipe[0].get_feature_names_out())
        assert abs(session.estimate().loc["all", "pirt"] - one.scores.iloc[0, 0]) < 0.15
    assert pipe[-1].estimate == "gpirt" and pipe[-1].mixing == "robust"  # not changed


def test_without_names_items_are_positions(one, tmp_path):
    estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(one.known.to_numpy())
    session = run(AdaptiveSession(estimator), one.new.iloc[0].to_numpy(), 5)
    named = run(AdaptiveSession(one.estimator), one.new.iloc[0], 5)
    assert [one.known.columns[i] for i, _ in session.history] == [i for i, _ in named.history]
    session.tell(np.int64(119) if 119 not in dict(session.history) else 118, True)
    path = session.save(tmp_path / "session.json")
    assert AdaptiveSession.load(path, estimator).history == session.history
    with pytest.raises(ValueError, match="items are positions from 0 to 119"):
        session.tell(120, 1)
    found = simulate_adaptive(estimator, one.new.to_numpy(), 5)
    np.testing.assert_array_equal(found.items[0], [i for i, _ in session.history[:5]])


def test_no_training_models_and_no_relatives_are_the_same(one, tmp_path):
    bare = pickle.loads(pickle.dumps(one.estimator))
    for name in ("responses", "abilities", "scores", "noise"):
        array = getattr(bare, f"training_{name}_")
        setattr(bare, f"training_{name}_", array[:0])
    bare.training_models_ = bare.training_models_[:0]
    off = pickle.loads(pickle.dumps(one.estimator)).set_params(relatives=False)
    a, b = (simulate_adaptive(e, one.new, 20) for e in (bare, off))
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"scenario": "x"}, "there is no scenario 'x'; the scenarios are ['a', 'b', 'c']"),
        ({"budget": 3}, "budget needs costs"),
        ({"costs": np.ones(120), "budget": 0}, "budget must be a positive number, got 0"),
        ({"costs": np.ones(120), "budget": np.nan}, "budget must be a positive number"),
        ({"costs": np.ones(120), "budget": "3"}, "budget must be a positive number"),
        ({"costs": np.ones(120), "budget": 0.5}, "below the cheapest item"),
        ({"costs": np.ones(5)}, "costs has shape (5,)"),
        ({"costs": -np.ones(120)}, "costs has -1 for item"),
    ],
)
def test_bad_parameters(several, params, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        AdaptiveSession(several.estimator, **params)


def test_bad_sources(one):
    for source in ("helm-lite", AnchorSelector(), make_pipeline(AnchorSelector())):
        with pytest.raises(ValueError, match="source must be a loaded benchmark, a fitted"):
            AdaptiveSession(source)
    with pytest.raises(NotFittedError):
        AdaptiveSession(GPIRTEstimator())


@pytest.mark.parametrize(
    ("items", "scores", "message"),
    [
        ("?", 1, "there is no item '?'; ids look like"),
        ([[]], [1], "there is no item []"),
        ("FIRST", 2, "the score 2 of the item 'FIRST' is outside the response range [0, 1]"),
        ("FIRST", -0.1, "is outside the response range"),
        ("FIRST", np.inf, "is infinite"),
        ("FIRST", "x", "must be a number, got 'x'"),
        (["SECOND", "SECOND"], [1, 1], "told before, or is given twice"),
        ("TOLD", 1, "told before"),
        (["SECOND", "FIRST"], [1], "there are 2 items but 1 scores"),
        (["SECOND", "FIRST"], None, "one score per item"),
        ("FIRST", None, "one score per item"),
        (["SECOND", "FIRST"], 1, "one score per item"),
        ({"SECOND": 1}, 1, "scores must be left out"),
        (["SECOND", "?"], [1, 1], "there is no item '?'"),
    ],
)
def test_bad_answers_change_nothing(one, items, scores, message):
    session = AdaptiveSession(one.estimator)
    names = dict(zip(("FIRST", "SECOND", "TOLD"), one.known.columns, strict=False))
    session.tell(names["TOLD"], 1)
    session.ask(2)
    before = session.history, session.ask(3), repr(session)

    def real(name):
        return names.get(name, name) if isinstance(name, str) else name

    if isinstance(items, dict):
        items = {real(name): score for name, score in items.items()}
    elif isinstance(items, list):
        items = [real(name) for name in items]
    else:
        items = real(items)
    for alias, name in names.items():
        message = message.replace(alias, name)
    with pytest.raises(ValueError, match=re.escape(message)):
        session.tell(items, scores)
    assert (session.history, session.ask(3), repr(session)) == before


def test_other_bad_calls(one):
    session = AdaptiveSession(one.estimator)
    for n in (0, -1, 1.5, "1", True):
        with pytest.raises(ValueError, match="n must be an integer of at least 1"):
            session.ask(n)
    for n in (-1, 1.5, True):
        with pytest.raises(ValueError, match="max_items must be an integer"):
            session.done(max_items=n)
    for std in (0, -1.0, np.nan, "x", True):
        with pytest.raises(ValueError, match="target_std must be a positive number"):
            session.done(target_std=std)
    with pytest.raises(ValueError, match="coverage must be a number"):
        session.estimate(coverage=1.0)
    for k in (0, 121, 2.5, True):
        with pytest.raises(ValueError, match="k must be an integer from 1 to the number of items"):
            simulate_adaptive(one.estimator, one.new, k)
    with pytest.raises(ValueError, match="X has no column for 20 of the 120 items"):
        simulate_adaptive(one.estimator, one.new.iloc[:, 20:], 3)
    with pytest.raises(ValueError, match="one column for each of the 120 items"):
        simulate_adaptive(one.estimator, one.new.to_numpy()[:, 20:], 3)
    wrong = one.new.copy()
    wrong.iloc[2, 7] = np.inf
    with pytest.raises(ValueError, match=f"X is infinite at .*{one.known.columns[7]}"):
        simulate_adaptive(one.estimator, wrong, 3)
    wrong.iloc[2, 7] = 2
    with pytest.raises(ValueError, match="outside the response range"):
        simulate_adaptive(one.estimator, wrong, 3)


def test_columns_of_a_simulation_are_matched_by_name(one):
    a = simulate_adaptive(one.estimator, one.new, 5)
    b = simulate_adaptive(one.estimator, one.new.iloc[:, ::-1], 5)
    np.testing.assert_array_equal(a.items, b.items)
    np.testing.assert_array_equal(a.score, b.score)


@pytest.mark.parametrize("item", [3.5, np.array(3.5), -1.0])
def test_a_number_that_is_no_item_is_named(item):
    data = make_responses(n_models=20, n_items=25, n_dims=1, random_state=0)
    session = AdaptiveSession(GPIRTEstimator(random_state=0).fit(data.responses.to_numpy()))
    with pytest.raises(ValueError, match="there is no item"):
        session.tell(item, 1)
    assert session.n_asked == 0


def test_items_may_come_from_any_iterable():
    data = make_responses(n_models=20, n_items=25, n_dims=1, random_state=0)
    session = AdaptiveSession(GPIRTEstimator(random_state=0).fit(data.responses.to_numpy()))
    told = {3: 1.0, 7: 0.0}
    session.tell(told.keys(), list(told.values()))
    session.tell((item for item in (1, 2)), [1.0, 0.0])
    assert session.history == [(3, 1.0), (7, 0.0), (1, 1.0), (2, 0.0)]
