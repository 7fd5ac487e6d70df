"""Abilities of new models from their answers."""

import numpy as np

from asv_benchmarks._data import simulated, sized
from sklearn_irt import IRTRegressor


class Abilities:
    """Some new models, each with so many answers to 14,042 items."""

    params = (sized([1, 100], [2]), sized([100, 1000, 14_042], [20]), ["map", "mle"])
    param_names = ("models", "answers", "ability")
    timeout = 300

    def setup(self, models, answers, ability):
        responses = simulated(*sized((200, 14_042), (20, 60)), 5)
        n_known = len(responses) - models
        self.irt = IRTRegressor(ability=ability).fit(responses[:n_known])
        self.answers = np.array(responses[n_known:])
        order = np.random.RandomState(0).permutation(self.answers.shape[1])
        self.answers[:, order[answers:]] = np.nan

    def time_transform(self, models, answers, ability):
        self.irt.transform(self.answers)
