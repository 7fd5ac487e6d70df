"""Honest standard errors: of one model, and of the difference of two on the same anchors."""

import numpy as np

# The calibrated quantile of the errors, and how many models the prior "as computed" counts for.
LEVEL, PRIOR_MODELS = 0.9, 5.0
NORMAL_QUANTILE = 1.6448536269514722
# Models that all have the same score err by nothing, which says little about others.
LEAST_FACTOR = 0.5
# Fewer models say too little about pairs.
MIN_PAIRED = 10


def coverage_factor(error: np.ndarray, std: np.ndarray, chosen: bool = False) -> float:
    """By how much the standard errors must grow for 90 % intervals to hold 90 % of the errors.

    Parameters
    ----------
    error, std : ndarray of shape (n_models,)
    chosen : bool
        Whether the anchors were chosen by these models' responses, which makes their errors
        smaller than those of other models.

    Returns
    -------
    float
        Near 1 where there are few models; 1 where there is none.
    """
    if not len(error):
        return 1.0
    z = np.abs(error) / std
    # As in split conformal prediction, the quantile that also covers one more model.
    factor = np.quantile(z, min(1.0, LEVEL * (1.0 + 1.0 / len(z)))) / NORMAL_QUANTILE
    weight = len(z) / (len(z) + PRIOR_MODELS)
    if chosen and factor < 1.0:  # about half of what seems too wide is due to the choice
        weight *= 0.5
    return float(np.exp(weight * np.log(np.clip(factor, LEAST_FACTOR, 20.0))))


def alikeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Correlation of the unexplained part of the answers of models, rows of a by rows of b.

    Parameters
    ----------
    a, b : ndarray of shape (n_models, n_asked)
        Answers less what the IRT model expects, 0 where not answered.

    Returns
    -------
    ndarray of shape (n_models of a, n_models of b)
    """
    size = np.sqrt(np.outer((a**2).sum(axis=1), (b**2).sum(axis=1)))
    return (a @ b.T) / np.maximum(size, 1e-12)


def learn_pairing(
    error: np.ndarray, std: np.ndarray, alike: np.ndarray, chosen: bool = False
) -> np.ndarray:
    """How the errors of two models are correlated, from all pairs of models.

    Parameters
    ----------
    error, std : ndarray of shape (n_models,)
    alike : ndarray of shape (n_models, n_models)
        See `alikeness`; NaN for pairs to leave out.
    chosen : bool
        See `coverage_factor`.

    Returns
    -------
    ndarray of shape (3,)
        Intercept and slope of the correlation in `alike`, and the factor, at most 1, by which the
        standard error of a difference must change to cover 90 %.
    """
    if len(error) < MIN_PAIRED:
        return np.array([0.0, 0.0, 1.0])
    first, second = np.nonzero(np.triu(~np.isnan(alike), 1))
    if len(first) < MIN_PAIRED:
        return np.array([0.0, 0.0, 1.0])
    z = np.clip(error / std, -3.0, 3.0)
    if not z.any():
        return np.array([0.0, 0.0, 1.0])
    product, alike = z[first] * z[second] / np.mean(z**2), alike[first, second]
    slope, intercept = 0.0, 0.0
    if np.ptp(alike) > 1e-9:
        # The few pairs that are alike count most: the others' alikeness is noise.
        slope, intercept = np.polyfit(alike, product, 1, w=np.abs(alike) + 1e-3)
    slope = max(slope, 0.0)
    paired = paired_std(std[first], std[second], alike, np.array([intercept, slope, 1.0]))
    factor = coverage_factor(error[first] - error[second], paired, chosen)
    # The standard errors of both models have grown already for there being few of them.
    return np.array([intercept, slope, min(factor, 1.0)])


def paired_std(
    std_a: np.ndarray, std_b: np.ndarray, alike: np.ndarray, pairing: np.ndarray
) -> np.ndarray:
    """Standard error of the difference of two models on the same anchors.

    Parameters
    ----------
    std_a, std_b, alike : ndarray of shape (n_pairs,)
    pairing : ndarray of shape (3,)
        See `learn_pairing`.

    Returns
    -------
    ndarray of shape (n_pairs,)
    """
    correlation = np.clip(pairing[0] + pairing[1] * alike, 0.0, 0.95)
    variance = std_a**2 + std_b**2 - 2.0 * correlation * std_a * std_b
    return pairing[2] * np.sqrt(np.maximum(variance, 0.0))


def row_alikeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`alikeness` of each row of a with the same row of b, (n_pairs,)."""
    size = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    return (a * b).sum(axis=1) / np.maximum(size, 1e-12)
