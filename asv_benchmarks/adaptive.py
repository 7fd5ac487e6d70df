"""Adaptive sessions at MMLU's size: the start, a step, and the final table."""

from asv_benchmarks._data import sized
from asv_benchmarks.comparisons import adaptive_estimator, ask_and_tell
from sklearn_irt import AdaptiveSession

N_BEFORE = sized(20, 3)


class Session:
    """With training models as relatives, and by the one-dimensional IRT model alone."""

    params = ([True, False],)
    param_names = ("relatives",)
    timeout = 300

    def setup(self, relatives):
        self.estimator, self.answers = adaptive_estimator(relatives)
        self.session = AdaptiveSession(self.estimator)
        ask_and_tell(self.session, self.answers, N_BEFORE)

    def time_start(self, relatives):
        AdaptiveSession(self.estimator)

    def time_hundred_steps(self, relatives):
        ask_and_tell(AdaptiveSession(self.estimator), self.answers, sized(100, 3))

    def time_estimate(self, relatives):
        self.session.estimate()
