"""Mean win rate against its definition, and its standard error against simulation."""

import numpy as np
import pytest

from sklearn_irt.metrics import mean_win_rate, win_rate_error


def loop_win_rate(scores, reference=None):
    rates = []
    for row, mine in enumerate(scores):
        per_scenario = []
        for s, score in enumerate(mine):
            if reference is None:
                others = [scores[other][s] for other in range(len(scores)) if other != row]
            else:
                others = [other[s] for other in reference]
            others = [other for other in others if not np.isnan(other)]
            if np.isnan(score) or not others:
                continue
            wins = [1.0 if score > other else 0.5 if score == other else 0.0 for other in others]
            per_scenario.append(np.mean(wins))
        rates.append(np.mean(per_scenario) if per_scenario else np.nan)
    return np.array(rates)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_win_rate_is_its_definition(missing):
    rng = np.random.default_rng(0)
    scores, reference = rng.integers(0, 6, (12, 4)) / 5, rng.integers(0, 6, (9, 4)) / 5
    scores[rng.random(scores.shape) < missing] = np.nan
    reference[rng.random(reference.shape) < missing] = np.nan
    scores[3] = np.nan
    np.testing.assert_allclose(mean_win_rate(scores), loop_win_rate(scores))
    np.testing.assert_allclose(mean_win_rate(scores, reference), loop_win_rate(scores, reference))


def test_win_rates_of_all_average_one_half():
    scores = np.random.default_rng(1).integers(0, 4, (20, 3))
    assert mean_win_rate(scores).mean() == pytest.approx(0.5)


def test_error_of_a_win_rate_equals_simulation():
    rng = np.random.default_rng(2)
    scores, reference = rng.random((10, 3)), rng.random((25, 3))
    stds = rng.uniform(0.02, 0.15, (10, 3))
    draws = [
        mean_win_rate(scores + stds * rng.normal(size=scores.shape), reference) for _ in range(4000)
    ]
    np.testing.assert_allclose(win_rate_error(scores, stds, reference), np.std(draws, 0), rtol=0.06)
    assert win_rate_error(scores, 0 * stds, reference).max() < 1e-6


def test_bad_scores_are_named():
    with pytest.raises(ValueError, match="scores must have shape"):
        mean_win_rate([1.0, 2.0])
    with pytest.raises(ValueError, match="reference has 1 scenarios"):
        mean_win_rate([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ValueError, match="reference is infinite at row 0 and column 1"):
        mean_win_rate([[1.0, 2.0]], [[1.0, np.inf]])
