"""How many times longer peers take, each on the same data in the same process.

All comparisons run once, then their figures are reported. Peers that are not installed are skipped.
``python -m asv_benchmarks.ratios`` makes one table of the same.
"""

from asv_benchmarks.comparisons import COMPARISONS, Comparison, measure


class Versus:
    """A peer's seconds over ours: the median of some pairs of runs, and their extremes."""

    params = (list(COMPARISONS),)
    param_names = ("comparison",)
    timeout = 1800

    def setup_cache(self):
        return {name: measure(name) for name in COMPARISONS}

    setup_cache.timeout = 1800

    def setup(self, found, name):
        if not isinstance(found[name], Comparison):
            raise NotImplementedError(found[name])

    def track_ratio_median(self, found, name):
        return found[name].ratio

    def track_ratio_lowest(self, found, name):
        return float(found[name].ratios.min())

    def track_ratio_highest(self, found, name):
        return float(found[name].ratios.max())

    def track_likelihood_gain(self, found, name):
        """Held-out log-likelihood of a response, ours less the peer's; NaN where it is no fit."""
        return found[name].likelihood_gain

    track_ratio_median.unit = track_ratio_lowest.unit = track_ratio_highest.unit = "ratio"
    track_likelihood_gain.unit = "nats"
