"""The choice of anchors by each method."""

import tempfile

from asv_benchmarks._data import simulated, sized
from sklearn_irt import AnchorSelector


class Anchors:
    """The IRT fit comes from the cache, so that what is timed is the choice."""

    params = (
        ["design", "information", "irt", "correctness", "random"],
        sized([(100, 1000), (395, 14_042)], [(20, 60)]),
    )
    param_names = ("method", "shape")
    timeout = 600

    def setup(self, method, shape):
        self.responses = simulated(*shape, 5)
        self.folder = tempfile.TemporaryDirectory()
        self.selector = AnchorSelector(
            k=sized(100, 5), method=method, memory=self.folder.name, verbose=0, random_state=0
        )
        self.selector.fit(self.responses)

    def teardown(self, method, shape):
        self.folder.cleanup()

    def time_select(self, method, shape):
        self.selector.fit(self.responses)

    def peakmem_select(self, method, shape):
        self.selector.fit(self.responses)
