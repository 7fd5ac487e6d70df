"""The IRT model's fit over models, items and dimensions: seconds, and the peak of memory."""

from asv_benchmarks._data import real, simulated, sized
from sklearn_irt import IRTRegressor

SHAPES = sized([(100, 1000), (100, 4000), (400, 4000), (395, 14_042)], [(20, 40)])


class Fit:
    """Simulated matrices without missing cells."""

    params = (SHAPES, sized([1, 5, 10], [2]))
    param_names = ("shape", "n_dims")
    timeout = 300

    def setup(self, shape, n_dims):
        self.responses = simulated(*shape, 5)

    def time_fit(self, shape, n_dims):
        IRTRegressor(n_dims).fit(self.responses)

    def peakmem_fit(self, shape, n_dims):
        IRTRegressor(n_dims).fit(self.responses)

    def track_rounds(self, shape, n_dims):
        return IRTRegressor(n_dims).fit(self.responses).n_iter_

    track_rounds.unit = "rounds"


class FitReal:
    """Scenarios of HELM Lite, where the shared data is there."""

    params = (sized(["commonsense", "gsm", "mmlu"], ["commonsense"]), sized([2, 10], [2]))
    param_names = ("scenario", "n_dims")

    def setup(self, scenario, n_dims):
        self.responses = real(scenario, sized(63, 12))

    def time_fit(self, scenario, n_dims):
        IRTRegressor(n_dims).fit(self.responses)

    def track_score(self, scenario, n_dims):
        """Mean held-out log-likelihood of a response."""
        return IRTRegressor(n_dims).fit(self.responses).score(self.responses)

    track_score.unit = "nats"
