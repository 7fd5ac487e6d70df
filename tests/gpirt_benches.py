"""Simulated benchmarks on which several files test GPIRTEstimator."""

import pickle

import numpy as np
import pandas as pd

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses

# The estimator of the paper: the IRT model alone, and one share of the anchors' mean.
PAPER = {"relatives": False, "mixing": "paper"}
DEFAULT = {"relatives": "auto", "mixing": "robust"}


class Bench:
    """A simulated benchmark, anchors and an estimator, and new models' partial answers."""

    def __init__(self, labels, data, method, response=None):
        self.labels, self.train = labels, data.responses.iloc[:90]
        self.new, self.truth = data.responses.iloc[90:].to_numpy(), data.scores.to_numpy()[90:]
        self.selector = AnchorSelector(
            k=12, method=method, n_dims=2, scenarios=labels, random_state=0
        )
        anchored = self.selector.fit_transform(self.train)
        self.estimator = GPIRTEstimator(**PAPER, random_state=0).fit(anchored)
        answers = self.new[:, self.selector.anchors_]
        self.all_answers = answers
        self.answers = answers.copy()
        asked = np.random.RandomState(1).rand(*answers.shape) < 0.7
        asked[0] = True
        self.answers[~asked] = np.nan
        self.index = np.zeros(data.responses.shape[1], dtype=int)
        if labels is not None:
            self.index = pd.factorize(np.asarray(labels, dtype=object)[:, 0])[0]
        self.n_scenarios = self.index.max() + 1


def one_scenario(method):
    return Bench(None, make_responses(110, 90, n_dims=2, random_state=0), method)


def several_scenarios(method):
    data = make_responses(
        110, n_dims=2, scenarios={"a": {"x": 30, "y": 10}, "b": 50, "c": 25}, random_state=0
    )
    pairs = data["items"][["scenario", "subscenario"]]
    return Bench(pairs, data, method)


def kind(estimator, name, **params):
    """The same fitted estimator with other parameters of predict time."""
    return pickle.loads(pickle.dumps(estimator)).set_params(estimate=name, **params)


class Families:
    """Training models, of which some are twins, and new models that are near copies of them."""

    def __init__(self, n_items=160, k=50):
        data = make_responses(40, n_items, n_dims=2, random_state=0)
        self.train = data.responses.copy()
        self.train.iloc[7] = self.train.iloc[3]
        rng = np.random.RandomState(0)
        parents = np.array([3, 12, 20, 33])
        copied = self.train.to_numpy()[parents]
        drawn = (rng.rand(*copied.shape) < copied.mean(axis=1, keepdims=True)) * 1.0
        self.new = pd.DataFrame(
            np.where(rng.rand(*copied.shape) < 0.9, copied, drawn),
            [f"new {i}" for i in range(4)],
            self.train.columns,
        )
        self.parents = self.train.index[parents]
        self.selector = AnchorSelector(k, method="random", n_dims=2, random_state=0)
        anchored = self.selector.fit_transform(self.train)
        self.estimator = GPIRTEstimator(random_state=0).fit(anchored)
        self.answers = self.new[self.selector.get_feature_names_out()]
