"""Response probabilities of the two-parameter logistic model, and abilities given the items."""

import functools
from typing import NamedTuple

import numpy as np
from scipy.special import expit

# Elements of the (rows x items) workspace that one block of rows may take.
BLOCK_ELEMENTS = 1_000_000
MAX_STEP = 2.0


class ItemModel(NamedTuple):
    """Items of one or several scenarios, and the prior of the abilities that they share.

    With several scenarios the abilities of all are stacked, and an item loads on those of its
    own scenario only.

    Attributes
    ----------
    discrimination : ndarray of shape (n_items, n_abilities)
    difficulty : ndarray of shape (n_items,)
    prior_precision : ndarray of shape (n_abilities, n_abilities)
    """

    discrimination: np.ndarray
    difficulty: np.ndarray
    prior_precision: np.ndarray


class Abilities(NamedTuple):
    """Abilities of some models, and how their estimation went.

    Attributes
    ----------
    ability : ndarray of shape (n_models, n_dims)
    covariance : ndarray of shape (n_models, n_dims, n_dims)
        Posterior covariance at the mode (Laplace); for maximum likelihood, the inverse of the
        ridged information.
    n_iter : int
        Newton steps of the slowest row.
    converged : ndarray of shape (n_models,), bool
    bounded : ndarray of shape (n_models,), bool
        Rows whose ability was held at the bound of the norm (maximum likelihood only).
    """

    ability: np.ndarray
    covariance: np.ndarray
    n_iter: int
    converged: np.ndarray
    bounded: np.ndarray


def response_probabilities(
    ability: np.ndarray, discrimination: np.ndarray, difficulty: np.ndarray
) -> np.ndarray:
    """Probability that each model answers each item right.

    Parameters
    ----------
    ability : ndarray of shape (n_models, n_dims)
    discrimination : ndarray of shape (n_items, n_dims)
    difficulty : ndarray of shape (n_items,)
        On the logit scale: the negative log-odds of a right answer at ability zero.

    Returns
    -------
    ndarray of shape (n_models, n_items)
        sigmoid(ability @ discrimination.T - difficulty).

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, equation 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.logistic import response_probabilities
    >>> response_probabilities(np.array([[0.0], [2.0]]), np.array([[1.0]]), np.array([2.0]))
    array([[0.11920292],
           [0.5       ]])
    """
    return expit(ability @ discrimination.T - difficulty)


def row_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of rows whose (rows x columns) workspace stays within BLOCK_ELEMENTS."""
    step = max(1, BLOCK_ELEMENTS // max(1, n_columns))
    return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]


# Finding them takes longer than using them where there are few rows.
_upper = functools.lru_cache(maxsize=16)(np.triu_indices)


def pack(outer: np.ndarray) -> np.ndarray:
    """Upper triangles of symmetric matrices, (..., p, p) -> (..., p(p+1)/2)."""
    upper = _upper(outer.shape[-1])
    return outer[..., upper[0], upper[1]]


def unpack(packed: np.ndarray, size: int) -> np.ndarray:
    """Symmetric matrices from their upper triangles, the inverse of `pack`."""
    upper = _upper(size)
    matrix = np.empty(packed.shape[:-1] + (size, size), dtype=packed.dtype)
    matrix[..., upper[0], upper[1]] = packed
    matrix[..., upper[1], upper[0]] = packed
    return matrix


def _objective(logit, responses, observed, deviation, precision, ridge):
    """Log posterior of every row, up to a constant."""
    likelihood = np.where(observed, responses * logit - np.logaddexp(0.0, logit), 0.0).sum(axis=1)
    penalty = np.einsum("ld,ld->l", deviation @ precision, deviation)
    return likelihood - 0.5 * (penalty + ridge * np.einsum("ld,ld->l", deviation, deviation))


def _items_by_dimensions(loadings):
    """Items that load on the same dimensions: their positions, those dimensions, outer products.

    With several scenarios an item loads on its own scenario's few dimensions out of many.
    """
    used = loadings != 0.0
    if used.all():
        return [(slice(None), np.arange(loadings.shape[1]), _outer(loadings))]
    patterns, group = np.unique(used, axis=0, return_inverse=True)
    found = []
    for number, pattern in enumerate(patterns):
        items, own = np.flatnonzero(group.ravel() == number), np.flatnonzero(pattern)
        found.append((items, own, _outer(loadings[np.ix_(items, own)])))
    return found


def _outer(loadings):
    return pack(loadings[:, :, None] * loadings[:, None, :])


def _newton(responses, loadings, difficulty, mean, precision, ridge, start, max_iter, tol):
    """Damped Newton for a block of rows; a row that has converged is left alone.

    `ridge` (n_rows,) is added to the diagonal of `precision` row by row.
    """
    n_dims = loadings.shape[1]
    observed = ~np.isnan(responses)
    responses = np.where(observed, responses, 0.0)
    groups = _items_by_dimensions(loadings)
    identity = np.eye(n_dims)
    steepest = np.linalg.norm(loadings, axis=1).max(initial=1.0)

    def information(probability, rows):
        weights = probability * (1.0 - probability) * observed[rows]
        matrix = precision + ridge[rows, None, None] * identity
        for items, own, outer in groups:
            matrix[:, own[:, None], own] += unpack(weights[:, items] @ outer, len(own))
        return matrix

    ability = start.copy()
    converged = np.zeros(len(start), dtype=bool)
    active = np.arange(len(start))
    n_iter = 0
    while active.size and n_iter < max_iter:
        n_iter += 1
        theta, seen, scores = ability[active], observed[active], responses[active]
        logit = theta @ loadings.T - difficulty
        probability = expit(logit)
        deviation = theta - mean
        gradient = ((scores - probability) * seen) @ loadings - deviation @ precision
        gradient -= ridge[active, None] * deviation
        step = np.linalg.solve(information(probability, active), gradient[:, :, None])[:, :, 0]
        length = np.linalg.norm(step, axis=1)
        step *= np.minimum(1.0, MAX_STEP / np.maximum(length, 1e-300))[:, None]
        # Only steps that move a logit far can overshoot: halve those until the objective rises.
        rows = np.flatnonzero(length * steepest > 0.5)
        if rows.size:
            before = _objective(
                logit[rows],
                scores[rows],
                seen[rows],
                deviation[rows],
                precision,
                ridge[active[rows]],
            )
        while rows.size:
            candidate = theta[rows] + step[rows]
            after = _objective(
                candidate @ loadings.T - difficulty,
                scores[rows],
                seen[rows],
                candidate - mean,
                precision,
                ridge[active[rows]],
            )
            worse = (after < before) & (np.linalg.norm(step[rows], axis=1) > 1e-8)
            rows, before = rows[worse], before[worse]
            step[rows] *= 0.5
        ability[active] = theta + step
        done = np.linalg.norm(step, axis=1) < tol * (1.0 + np.linalg.norm(ability[active], axis=1))
        converged[active[done]] = True
        active = active[~done]
    everyone = np.arange(len(start))
    final = information(expit(ability @ loadings.T - difficulty), everyone)
    return ability, np.linalg.inv(final), n_iter, converged


def map_abilities(
    responses: np.ndarray,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    *,
    prior_mean: np.ndarray | None = None,
    prior_precision: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> Abilities:
    """Most probable abilities of models given fixed items (maximum a posteriori).

    Maximises, for every row, the log-likelihood of its observed responses minus
    ``(theta - mean) @ precision @ (theta - mean) / 2`` by damped Newton, all rows at once.
    Fractional responses enter as a quasi-likelihood. A row without any observed response gets
    the prior mean and the prior covariance.

    Parameters
    ----------
    responses : ndarray of shape (n_models, n_items)
        In [0, 1], NaN where not asked.
    discrimination : ndarray of shape (n_items, n_dims)
    difficulty : ndarray of shape (n_items,)
    prior_mean : ndarray of shape (n_dims,), default zero
    prior_precision : ndarray of shape (n_dims, n_dims), default identity
    max_iter : int
        Newton steps at most.
    tol : float
        A row is done when a step is shorter than ``tol * (1 + norm of the ability)``.

    Returns
    -------
    Abilities

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.2 (there without the prior).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.logistic import map_abilities
    >>> items = np.ones((4, 1)), np.zeros(4)
    >>> fit = map_abilities(np.array([[1.0, 1, 1, 1], [1, np.nan, np.nan, 0]]), *items)
    >>> fit.ability.round(3)
    array([[1.043],
           [0.   ]])
    """
    n_dims = discrimination.shape[1]
    mean = np.zeros(n_dims) if prior_mean is None else np.asarray(prior_mean, dtype=float)
    precision = np.eye(n_dims) if prior_precision is None else np.asarray(prior_precision, float)
    return _by_blocks(responses, discrimination, difficulty, mean, precision, max_iter, tol)


def mle_abilities(
    responses: np.ndarray,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    *,
    max_norm: float = 10.0,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> Abilities:
    """Maximum-likelihood abilities of models given fixed items, as in the paper.

    The likelihood of a model that answers every item right (or is otherwise separable) has no
    maximum, so the norm of an ability is held at `max_norm` and the row is flagged in `bounded`.

    Parameters
    ----------
    responses, discrimination, difficulty, max_iter, tol
        As in `map_abilities`.
    max_norm : float
        Largest Euclidean norm of an ability, in standard deviations of the training abilities.

    Returns
    -------
    Abilities

    References
    ----------
    Maia Polo et al. (2024), tinyBenchmarks, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.logistic import mle_abilities
    >>> fit = mle_abilities(np.ones((1, 3)), np.ones((3, 1)), np.zeros(3))
    >>> float(fit.ability[0, 0].round(6)), bool(fit.bounded[0])
    (10.0, True)
    """
    ridge = np.full(responses.shape[0], 1e-8)  # regular where a dimension is not asked
    mean, precision = np.zeros(discrimination.shape[1]), np.zeros((discrimination.shape[1],) * 2)
    problem = discrimination, difficulty, mean, precision, max_iter, tol
    fit = _by_blocks(responses, *problem, ridge=ridge)
    norm = np.linalg.norm(fit.ability, axis=1)
    # Steep items that separate are certain long before the bound, where the ridge ends the climb.
    far = fit.ability * (max_norm / np.maximum(norm, 1e-300))[:, None]
    flat = _likelihood(responses, problem, far) >= _likelihood(responses, problem, fit.ability)
    flat &= (norm > 1e-6) & (norm <= max_norm)
    fit.ability[flat] = far[flat]
    fit.converged[flat] = True
    fit = fit._replace(bounded=flat)
    rows = np.flatnonzero(norm > max_norm)
    if not rows.size:
        return fit
    # The maximum within the ball is that of a ridge just strong enough (its multiplier).
    low, high = np.full(rows.size, -8.0), np.full(rows.size, 4.0)
    for _ in range(40):
        middle = 0.5 * (low + high)
        inner = _by_blocks(responses[rows], *problem, ridge=10.0**middle)
        outside = np.linalg.norm(inner.ability, axis=1) > max_norm
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    inner = _by_blocks(responses[rows], *problem, ridge=10.0**high)
    fit.bounded[rows] = True
    fit.ability[rows], fit.covariance[rows] = inner.ability, inner.covariance
    fit.converged[rows] = inner.converged
    return fit


def _likelihood(responses, problem, ability):
    """Log-likelihood of every row at its ability."""
    discrimination, difficulty, mean, precision = problem[:4]
    value = np.empty(len(ability))
    for rows in row_blocks(*responses.shape):
        block = np.asarray(responses[rows], dtype=float)
        observed = ~np.isnan(block)
        logit = ability[rows] @ discrimination.T - difficulty
        block = np.where(observed, block, 0.0)
        value[rows] = _objective(logit, block, observed, ability[rows] - mean, precision, 0.0)
    return value


def estimate_abilities(
    kind: str,
    responses: np.ndarray,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    prior_precision: np.ndarray,
) -> Abilities:
    """`map_abilities` (kind "map") or `mle_abilities` (kind "mle").

    The likelihood alone knows nothing of what was not asked, so the covariance is that with the
    prior in both.
    """
    if kind == "mle":
        fit = mle_abilities(responses, discrimination, difficulty)
        information = np.linalg.inv(fit.covariance)
        return fit._replace(covariance=np.linalg.inv(information + prior_precision))
    return map_abilities(responses, discrimination, difficulty, prior_precision=prior_precision)


def _by_blocks(responses, discrimination, difficulty, mean, precision, max_iter, tol, ridge=None):
    """Run `_newton` over blocks of rows and on the columns that anyone was asked."""
    n_rows, n_dims = responses.shape[0], discrimination.shape[1]
    ridge = np.zeros(n_rows) if ridge is None else ridge
    ability = np.empty((n_rows, n_dims))
    covariance = np.empty((n_rows, n_dims, n_dims))
    converged = np.empty(n_rows, dtype=bool)
    n_iter = 0
    loadings = np.asarray(discrimination, dtype=float)
    difficulty = np.asarray(difficulty, dtype=float)
    for rows in row_blocks(n_rows, max(responses.shape[1], n_dims**2)):
        block = np.asarray(responses[rows], dtype=float)
        asked = ~np.isnan(block).all(axis=0)
        start = np.broadcast_to(mean, (block.shape[0], n_dims))
        ability[rows], covariance[rows], steps, converged[rows] = _newton(
            block[:, asked],
            loadings[asked],
            difficulty[asked],
            mean,
            precision,
            ridge[rows],
            start,
            max_iter,
            tol,
        )
        n_iter = max(n_iter, steps)
    return Abilities(ability, covariance, n_iter, converged, np.zeros(n_rows, dtype=bool))
