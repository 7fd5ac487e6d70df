"""The column unusual: patterns of answers unlike those of the training models."""

import warnings

import numpy as np
import pytest
from gpirt_benches import kind

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import fetch_alpaca_eval, fetch_helm_lite, make_responses
from sklearn_irt.model_selection import RandomModelsSplit


def test_unusual_does_not_depend_on_what_is_read_at_predict_time(families):
    estimator, odd = families.estimator, 1 - families.answers
    found = estimator.predict_table(odd)["unusual"]
    assert found.mean() > 0.5
    other = kind(estimator, "naive", relatives=False, mixing="paper", ability="mle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert (other.predict_table(odd)["unusual"] == found).all()
    assert not estimator.predict_table(np.full(odd.shape, np.nan))["unusual"].any()


def test_unusual_with_other_units_and_a_threshold():
    data = make_responses(80, 100, n_dims=1, random_state=0)
    noisy = np.clip(data.responses * 0.8 + 0.1, 0, 1) * 9 + 1  # ratings from 1 to 10
    irt = IRTRegressor(1, response_model="threshold", random_state=0)
    estimator = GPIRTEstimator(irt=irt, response_range=(1, 10), random_state=0).fit(noisy[:60])
    new = noisy[60:]
    assert estimator.predict_table(new)["unusual"].mean() < 0.2
    assert estimator.predict_table(11 - new)["unusual"].mean() > 0.9


def flagged(responses, odd, seed, k=100):
    """Shares of new models called unusual: as they are, reversed, shuffled, and others."""
    ((train, new),) = RandomModelsSplit(1, random_state=seed).split(responses)
    selector = AnchorSelector(k, random_state=seed)
    estimator = GPIRTEstimator(random_state=seed)
    estimator.fit(selector.fit_transform(responses.iloc[train]))
    real = responses.iloc[new].to_numpy()
    shuffled = np.random.default_rng(seed).permuted(real, axis=1)
    return [
        estimator.predict_table(answers[:, selector.anchors_])["unusual"].mean()
        for answers in (real, 1 - real, shuffled, odd)
    ]


@pytest.mark.slow
def test_unusual_on_real_matrices(real_data):
    alpaca = fetch_alpaca_eval().responses
    null = alpaca.loc[["NullModel"]].to_numpy()
    found = [flagged(alpaca.drop(index="NullModel"), null, seed) for seed in range(4)]
    for name in ("gsm", "mmlu", "math", "med_qa"):
        responses = fetch_helm_lite(name).responses
        found += [flagged(responses, responses.iloc[:1].to_numpy(), seed) for seed in range(2)]
    alarms, reversed_, shuffled, odd = np.array(found).T
    assert alarms.mean() < 0.07
    assert reversed_.mean() > 0.95 and shuffled.mean() > 0.9
    assert (odd[:4] == 1).all()  # NullModel, whose answer does not depend on the question
