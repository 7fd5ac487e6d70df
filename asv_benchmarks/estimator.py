"""GPIRTEstimator: what it learns from left-out models (the mixing and the rest), and estimates."""

from asv_benchmarks._data import simulated, sized
from sklearn_irt import AnchorSelector, GPIRTEstimator


class Learn:
    """From the anchors and the IRT model of the selector: bias, mixing, relatives, calibration."""

    params = (sized([(100, 1000), (395, 14_042)], [(20, 60)]), [5])
    param_names = ("shape", "n_dims")
    timeout = 600

    def setup(self, shape, n_dims):
        selector = AnchorSelector(k=sized(100, 5), method="random", n_dims=n_dims, random_state=0)
        self.training = selector.fit_transform(simulated(*shape, 5))

    def time_fit(self, shape, n_dims):
        GPIRTEstimator(random_state=0).fit(self.training)

    def peakmem_fit(self, shape, n_dims):
        GPIRTEstimator(random_state=0).fit(self.training)


class Predict:
    """Scores of new models from 100 anchors of 4,000 items; two ways of mixing."""

    params = (sized([1, 100], [2]), ["robust", "paper"])
    param_names = ("models", "mixing")
    timeout = 300

    def setup(self, models, mixing):
        responses = simulated(*sized((300, 4000), (20, 60)), 5)
        selector = AnchorSelector(k=sized(100, 5), random_state=0)
        n_known = len(responses) - sized(100, 2)
        training = selector.fit_transform(responses[:n_known])
        self.estimator = GPIRTEstimator(mixing=mixing, random_state=0).fit(training)
        self.answers = selector.transform(responses[n_known:][:models])

    def time_predict(self, models, mixing):
        self.estimator.predict(self.answers, return_std=True)

    def time_predict_table(self, models, mixing):
        self.estimator.predict_table(self.answers)
