"""The course of an adaptive session."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import norm

from sklearn_irt import AdaptiveSession, GPIRTEstimator
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import SessionDisplay

matplotlib.use("Agg")
DATA = make_responses(n_models=26, n_items=60, scenarios=2, random_state=0)


@pytest.fixture(scope="module")
def estimator():
    estimator = GPIRTEstimator(
        n_dims=1, response_range=(0, 5), scenarios=DATA["items"]["scenario"], random_state=0
    )
    return estimator.fit(5 * DATA.responses[:25])


def asked(session: AdaptiveSession, n: int) -> AdaptiveSession:
    answers = 5 * DATA.responses.iloc[25]
    for _ in range(n):
        (item,) = session.ask()
        session.tell(item, answers[item])
    return session


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_it_draws_the_trace_and_its_interval(estimator):
    session = asked(AdaptiveSession(estimator), 12)
    display = SessionDisplay.from_session(session, coverage=0.8, true=2.5)
    trace = session.trace
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(x, trace.index)
    np.testing.assert_array_equal(y, trace["estimate"])
    low, high = norm.interval(0.8, trace["estimate"], trace["std_error"])
    np.testing.assert_allclose(display.low, low.clip(0, 5))
    np.testing.assert_allclose(display.high, high.clip(0, 5))
    band = display.band_.get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(display.low.min())
    assert band[:, 1].max() == pytest.approx(display.high.max())
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["80% interval", "estimate", "true score"]
    assert display.ax_.get_ylabel() == "score (unit of the responses)"


def test_scenario(estimator):
    session = asked(AdaptiveSession(estimator, "scenario_1"), 3)
    display = SessionDisplay.from_session(session)
    assert "score on scenario_1" in display.ax_.get_ylabel()


def test_refused(estimator, message):
    assert "no answer yet" in message(SessionDisplay.from_session, AdaptiveSession(estimator))
    session = asked(AdaptiveSession(estimator), 1)
    assert "coverage" in message(SessionDisplay.from_session, session, coverage=90)
    with pytest.raises(TypeError, match="AdaptiveSession, got GPIRTEstimator"):
        SessionDisplay.from_session(estimator)
    assert not plt.get_fignums()
