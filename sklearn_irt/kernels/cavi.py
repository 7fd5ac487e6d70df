"""Coordinate-ascent variational inference for the multidimensional two-parameter IRT model."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, solve_triangular
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import gammaln, psi

from sklearn_irt.kernels.logistic import pack, unpack

# Cells of the response matrix that are worked on at a time.
BLOCK_CELLS = 500_000
# Prior of the mean of every group of items: N(0, MEAN_VARIANCE). Prior of their precision:
# Wishart with the inverse scale WISHART_SCALE * I and d + 3 degrees of freedom.
MEAN_VARIANCE = 100.0
WISHART_SCALE = 2.0
# Numbers between 1 and 2 whose product is taken before its logarithm: 2 ** 100 is a float32.
FACTORS = 100
# Relative change at which the updates of the items' prior stop.
SETTLED = 1e-9


class CaviFit(NamedTuple):
    """A fitted model: variational posteriors, and how the fit went.

    Attributes
    ----------
    discrimination : ndarray of shape (n_items, n_dims)
    difficulty : ndarray of shape (n_items,)
    item_covariance : ndarray of shape (n_items, n_dims + 1, n_dims + 1)
        Of (discrimination, difficulty).
    ability : ndarray of shape (n_models, n_dims)
    ability_covariance : ndarray of shape (n_models, n_dims, n_dims)
    item_mean : ndarray of shape (n_groups, n_dims + 1)
        Posterior means of the items' prior means, by ascending number of the group.
    item_precision : ndarray of shape (n_dims + 1, n_dims + 1)
        Posterior mean of the items' prior precision.
    lower_bounds : ndarray of shape (n_iter,)
        Evidence lower bound per observed response, at the start of every round.
    n_iter : int
    converged : bool
    """

    discrimination: np.ndarray
    difficulty: np.ndarray
    item_covariance: np.ndarray
    ability: np.ndarray
    ability_covariance: np.ndarray
    item_mean: np.ndarray
    item_precision: np.ndarray
    lower_bounds: np.ndarray
    n_iter: int
    converged: bool


def column_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Slices of columns whose (rows x columns) workspace stays within BLOCK_CELLS."""
    step = max(1, BLOCK_CELLS // max(1, n_rows))
    return [slice(start, min(start + step, n_columns)) for start in range(0, n_columns, step)]


def fit_cavi(
    responses: np.ndarray,
    n_dims: int,
    *,
    groups: np.ndarray | None = None,
    max_iter: int = 100,
    tol: float = 1e-5,
    random_state: np.random.RandomState | int | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> CaviFit:
    """Fit abilities and items by coordinate ascent with Polya-Gamma augmentation.

    The model is ``P(y_li = 1) = sigmoid(a_i . theta_l - b_i)`` with theta_l ~ N(0, I),
    (a_i, b_i) ~ N(mu_g, inverse(Lambda)) where g is the item's group, mu_g ~ N(0, 100 I) and
    Lambda ~ Wishart. Fractional responses enter as a quasi-likelihood. All factors of the
    posterior are Gaussian with full covariances, Lambda's is Wishart; every update is in closed
    form. The responses are read in blocks of columns, once a round, so beside them only a fixed
    workspace and the items' and models' posteriors are held.

    Parameters
    ----------
    responses : array-like of shape (n_models, n_items)
        In [0, 1], NaN where not asked. float32 responses are computed in float32. Only `shape`,
        `dtype` and ``np.asarray(responses[:, columns])`` are used, so they may lie in a file.
    n_dims : int
    groups : ndarray of shape (n_items,), int
        Group of each item; the items of a group share their prior mean. None: one group.
    max_iter : int
        Rounds at most.
    tol : float
        The fit has converged when a round raises the lower bound by less than `tol` per
        observed response.
    random_state : RandomState or int
        Start vector of the truncated SVD, used above 2,000 models and items.
    callback : callable
        Called with (round, lower bound per response) after every round.

    Returns
    -------
    CaviFit
        Rotated to the principal axes of the discriminations, the largest first, each with a
        positive sum.

    References
    ----------
    Polson, Scott & Windle (2013), Bayesian inference for logistic models using Polya-Gamma
    latent variables. Durante & Rigon (2019), Conditionally conjugate mean-field variational
    Bayes for logistic models. Maia Polo et al. (2024), tinyBenchmarks, section 4.4 (the priors).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.cavi import fit_cavi
    >>> rng = np.random.default_rng(0)
    >>> ability, difficulty = rng.normal(size=(200, 1)), rng.normal(size=50)
    >>> right = rng.random((200, 50)) < 1 / (1 + np.exp(difficulty - 1.5 * ability))
    >>> fit = fit_cavi(right.astype(float), n_dims=1)
    >>> bool(np.corrcoef(fit.ability[:, 0], ability[:, 0])[0, 1] > 0.95)
    True
    """
    n_models, n_items = responses.shape
    blocks = column_blocks(n_models, n_items)
    dtype = np.float32 if responses.dtype == np.float32 else np.float64
    group, members = _read_groups(groups, n_items)
    mean, covariance, ability, ability_cov = _start(responses, n_dims, blocks, dtype, random_state)
    items = _moments(mean, covariance, members)
    hyper = _update_hyper(items)
    bound_hyper = _hyper_bound(items, _moments(ability, ability_cov), hyper)
    n_observed, lower_bounds, converged = 0, [], False
    for n_iter in range(1, max_iter + 1):
        moment = _augment(ability, ability_cov)  # E[z z'], z = (theta, -1)
        packed_z = _doubled(pack(moment)).astype(dtype)
        packed_zz = pack(moment).astype(dtype)
        z = np.concatenate([ability, -np.ones((n_models, 1))], axis=1).astype(dtype)
        curvature = np.zeros((n_models, packed_z.shape[1]), dtype=np.float64)
        linear = np.zeros((n_models, n_dims + 1), dtype=np.float64)
        bound, n_observed = 0.0, 0
        prior_linear = hyper.mean @ hyper.precision
        for block in blocks:
            kappa, observed = _kappa(responses[:, block], dtype)
            second = pack(_second_moment(mean[block], covariance[block])).astype(dtype)
            weights, log_cosh = _polya_gamma(packed_z @ second.T, observed)
            right_side = kappa.T @ z
            n_observed += kappa.size if observed is None else int(observed.sum())
            bound += float(np.einsum("ip,ip->", right_side, mean[block])) - log_cosh
            precision = unpack((weights.T @ packed_zz).astype(np.float64), n_dims + 1)
            covariance[block] = np.linalg.inv(precision + hyper.precision)
            right_side = right_side + prior_linear[group[block]]
            mean[block] = np.einsum("ipq,iq->ip", covariance[block], right_side)
            second = pack(_second_moment(mean[block], covariance[block])).astype(dtype)
            curvature += weights @ second
            linear += kappa @ mean[block].astype(dtype)
        lower_bounds.append((bound + bound_hyper) / max(n_observed, 1))
        quadratic = unpack(curvature, n_dims + 1)
        # psi = a.theta - b, so the cross moment E[a b] adds to the linear term of theta.
        ability_cov = np.linalg.inv(quadratic[:, :-1, :-1] + np.eye(n_dims))
        ability = np.einsum("lde,le->ld", ability_cov, linear[:, :-1] + quadratic[:, :-1, -1])
        mean, covariance, ability, ability_cov, hyper, bound_hyper = _standardise(
            mean, covariance, ability, ability_cov, members, hyper
        )
        if callback is not None:
            callback(n_iter, lower_bounds[-1])
        if n_iter > 1 and abs(lower_bounds[-1] - lower_bounds[-2]) < tol:
            converged = True
            break
    return _make_fit(mean, covariance, ability, ability_cov, hyper, lower_bounds, converged, dtype)


class _Hyper(NamedTuple):
    """Posterior of the items' prior: N(mean, mean_covariance) and Wishart(degrees, scale)."""

    mean: np.ndarray  # one row per group of items
    mean_covariance: np.ndarray  # one matrix per group
    precision: np.ndarray  # E[Lambda]
    log_det: float  # E[log det Lambda]
    degrees: float
    inverse_scale: np.ndarray


def _kappa(block, dtype):
    """Responses less one half, zero where missing, and the mask (None if all are observed)."""
    kappa = np.asarray(block, dtype=dtype) - dtype(0.5)
    missing = np.isnan(kappa)
    if not missing.any():
        return kappa, None
    kappa[missing] = 0.0
    return kappa, ~missing


def _polya_gamma(squared, observed):
    """E[omega] = tanh(c/2) / (2c) and the sum of log(2 cosh(c/2)), from c squared, in place.

    The logarithm is c/2 + log 2 - log(1 + tanh(c/2)), the last of products of many factors.
    """
    c = np.sqrt(np.maximum(squared, 1e-8, out=squared), out=squared)
    slope = 0.5 * c
    np.tanh(slope, out=slope)
    count = slope.size
    if observed is not None:
        slope *= observed
        count = int(observed.sum())
    factors = slope + slope.dtype.type(1)
    logs = sum(
        np.log(np.multiply.reduce(factors[rows : rows + FACTORS])).sum(dtype=np.float64)
        for rows in range(0, len(factors), FACTORS)
    )
    c *= 2.0
    weights = np.divide(slope, c, out=slope)
    if observed is not None:
        c *= observed
    total = float(0.25 * c.sum(dtype=np.float64) + count * np.log(2.0) - logs)
    return weights, total


def _second_moment(mean, covariance):
    return covariance + mean[:, :, None] * mean[:, None, :]


def _augment(ability, ability_cov):
    """E[z z'] of z = (theta, -1), shape (n, d + 1, d + 1)."""
    n_models, n_dims = ability.shape
    moment = np.empty((n_models, n_dims + 1, n_dims + 1))
    moment[:, :-1, :-1] = _second_moment(ability, ability_cov)
    moment[:, :-1, -1] = moment[:, -1, :-1] = -ability
    moment[:, -1, -1] = 1.0
    return moment


def _doubled(packed):
    """Off-diagonal elements twice, so that a dot product of packed matrices is their trace."""
    size = int((np.sqrt(8 * packed.shape[-1] + 1) - 1) / 2)
    upper = np.triu_indices(size)
    return packed * np.where(upper[0] == upper[1], 1.0, 2.0)


def _read_groups(groups, n_items):
    """Group of each item, numbered from zero, and the items of every group."""
    if groups is None:
        return np.zeros(n_items, dtype=np.intp), [slice(None)]
    labels, group = np.unique(groups, return_inverse=True)
    if len(labels) == 1:
        return group, [slice(None)]
    return group, [np.flatnonzero(group == g) for g in range(len(labels))]


class _Moments(NamedTuple):
    """What the bound needs to know of some Gaussian factors of the posterior, summed over them."""

    counts: np.ndarray  # by group
    first: np.ndarray  # sum of the means, one row per group
    second: np.ndarray  # sum of the second moments
    log_det: float  # sum of the log-determinants of the covariances

    def moved(self, change: np.ndarray, shift: np.ndarray | float = 0.0) -> "_Moments":
        """The moments of ``change @ (x - shift)``."""
        centred = self.first - self.counts[:, None] * shift
        second = self.second
        count = self.counts.sum()
        if np.ndim(shift):
            cross = np.outer(self.first.sum(axis=0), shift)
            second = second - cross - cross.T + count * np.outer(shift, shift)
        return _Moments(
            self.counts,
            centred @ change.T,
            change @ second @ change.T,
            self.log_det + 2.0 * count * np.linalg.slogdet(change)[1],
        )


def _moments(mean, covariance, members=(slice(None),)):
    return _Moments(
        np.array([len(mean[m]) for m in members]),
        np.array([mean[m].sum(axis=0) for m in members]),
        mean.T @ mean + covariance.sum(axis=0),
        float(np.linalg.slogdet(covariance)[1].sum()),
    )


def _update_hyper(items, start=None, n_sweeps=10):
    """Closed-form updates of the items' prior, precision and means in turn.

    They start from the given means and their covariances, so that the bound does not fall.
    """
    n_groups, size = items.first.shape
    degrees = size + 2.0 + items.counts.sum()
    prior_scale, prior_precision = WISHART_SCALE * np.eye(size), np.eye(size) / MEAN_VARIANCE
    if start is None or n_groups == 1:  # from where one mean converges within the sweeps
        start = items.first / items.counts[:, None], np.zeros((n_groups, size, size))
    centre, centre_cov = start
    for _ in range(n_sweeps):
        before = centre_cov
        inverse_scale = _scatter(items, centre, centre_cov) + prior_scale
        precision = degrees * np.linalg.inv(inverse_scale)
        precision = 0.5 * (precision + precision.T)
        centre_cov = np.linalg.inv(items.counts[:, None, None] * precision + prior_precision)
        centre = np.einsum("gpq,gq->gp", centre_cov, items.first @ precision)
        if np.abs(centre_cov - before).max() <= SETTLED * np.abs(centre_cov).max():
            break
    log_det = (
        psi(0.5 * (degrees - np.arange(size))).sum()
        + size * np.log(2.0)
        - np.linalg.slogdet(inverse_scale)[1]
    )
    return _Hyper(centre, centre_cov, precision, log_det, degrees, inverse_scale)


def _scatter(items, centre, centre_cov):
    """Sum over the items of E[(x - mu)(x - mu)'], mu the mean of the item's group."""
    cross = items.first.T @ centre
    squared = np.einsum("g,gpq->pq", items.counts, _second_moment(centre, centre_cov))
    return items.second - cross - cross.T + squared


def _hyper_bound(items, abilities, hyper):
    """The terms of the lower bound that do not depend on the responses."""
    n_groups, size = items.first.shape
    ability_part = 0.5 * (
        abilities.log_det
        + abilities.counts.sum() * abilities.first.shape[1]
        - np.trace(abilities.second)
    )
    scatter = _scatter(items, hyper.mean, hyper.mean_covariance)
    item_part = 0.5 * (
        items.log_det
        + items.counts.sum() * (size + hyper.log_det)
        - np.einsum("pq,pq->", hyper.precision, scatter)
    )
    centre_part = 0.5 * (
        np.linalg.slogdet(hyper.mean_covariance)[1].sum()
        + n_groups * size * (1.0 - np.log(MEAN_VARIANCE))
        - np.trace(_second_moment(hyper.mean, hyper.mean_covariance).sum(axis=0)) / MEAN_VARIANCE
    )
    prior_degrees = size + 2.0

    def log_normaliser(degrees, log_det_inverse_scale):
        return (
            0.5 * degrees * log_det_inverse_scale
            - 0.5 * degrees * size * np.log(2.0)
            - gammaln(0.5 * (degrees - np.arange(size))).sum()
            - 0.25 * size * (size - 1) * np.log(np.pi)
        )

    wishart_part = (
        log_normaliser(prior_degrees, size * np.log(WISHART_SCALE))
        - log_normaliser(hyper.degrees, np.linalg.slogdet(hyper.inverse_scale)[1])
        + 0.5 * (prior_degrees - hyper.degrees) * hyper.log_det
        - 0.5 * WISHART_SCALE * np.trace(hyper.precision)
        + 0.5 * hyper.degrees * size
    )
    return float(ability_part + item_part + centre_part + wishart_part)


def _standardise(mean, covariance, ability, ability_cov, members, hyper):
    """Abilities to mean zero and second moment I, where that raises the lower bound.

    The logits stay as they are, so this moves along a direction in which coordinate ascent is
    slow (parameter expansion). Weak dimensions can lose by it: then nothing is changed. Returns
    the four arrays, the items' covariances in place, their prior, and the part of the bound
    without the responses.
    """
    n_models, n_dims = ability.shape
    items, abilities = _moments(mean, covariance, members), _moments(ability, ability_cov)
    hyper = _update_hyper(items, (hyper.mean, hyper.mean_covariance))
    bound = _hyper_bound(items, abilities, hyper)
    shift = abilities.first[0] / n_models
    factor = np.linalg.cholesky(abilities.second / n_models - np.outer(shift, shift))
    inverse = solve_triangular(factor, np.eye(n_dims), lower=True)
    # theta = factor theta' + shift, so a' = factor' a and b' = b - a.shift
    change = np.eye(n_dims + 1)
    change[:-1, :-1] = factor.T
    change[-1, :-1] = -shift
    moved_items = items.moved(change)
    moved_hyper = _update_hyper(
        moved_items, (hyper.mean @ change.T, change @ hyper.mean_covariance @ change.T)
    )
    moved_bound = _hyper_bound(moved_items, abilities.moved(inverse, shift), moved_hyper)
    if moved_bound <= bound:
        return mean, covariance, ability, ability_cov, hyper, bound
    return (
        mean @ change.T,
        _turned(covariance, change),
        (ability - shift) @ inverse.T,
        inverse @ ability_cov @ inverse.T,
        moved_hyper,
        moved_bound,
    )


def _turned(covariance, change):
    """``change @ covariance @ change.T`` for every item, in place: they are many."""
    for block in column_blocks(change.size, len(covariance)):
        covariance[block] = change @ covariance[block] @ change.T
    return covariance


def _make_fit(
    mean, covariance, ability, ability_cov, hyper, lower_bounds, converged, dtype
) -> CaviFit:
    """The fit of either solver, in the principal axes of the loadings."""
    rotation = _principal_axes(mean[:, :-1])
    wide = np.eye(len(rotation) + 1)
    wide[:-1, :-1] = rotation
    return CaviFit(
        discrimination=(mean[:, :-1] @ rotation).astype(dtype),
        difficulty=mean[:, -1].astype(dtype),
        item_covariance=_turned(covariance, wide.T).astype(dtype, copy=False),
        ability=(ability @ rotation).astype(dtype),
        ability_covariance=(rotation.T @ ability_cov @ rotation).astype(dtype),
        item_mean=hyper.mean @ wide,
        item_precision=wide.T @ hyper.precision @ wide,
        lower_bounds=np.asarray(lower_bounds),
        n_iter=len(lower_bounds),
        converged=converged,
    )


def _principal_axes(loadings):
    """Rotation to the principal axes, the largest first, each with a positive sum of loadings."""
    _, axes = np.linalg.eigh(loadings.T.astype(np.float64) @ loadings)
    axes = axes[:, ::-1]
    signs = np.sign((loadings @ axes).sum(axis=0))
    return axes * np.where(signs == 0, 1.0, signs)


def _start(responses, n_dims, blocks, dtype, random_state):
    """Difficulties from the items' log-odds, abilities from an SVD of the residuals."""
    n_models, n_items = responses.shape
    difficulty = np.empty(n_items)
    scale = np.empty(n_items)
    for block in blocks:
        kappa, observed = _kappa(responses[:, block], dtype)
        counts = n_models if observed is None else observed.sum(axis=0)
        share = (kappa.sum(axis=0, dtype=np.float64) + 0.5 * counts + 0.5) / (counts + 1.0)
        difficulty[block] = np.log1p(-share) - np.log(share)
        scale[block] = np.sqrt(share * (1.0 - share))
    probability = 1.0 / (1.0 + np.exp(difficulty))

    def residuals(block):
        kappa, observed = _kappa(responses[:, block], dtype)
        kappa += (0.5 - probability[block]).astype(dtype)
        if observed is not None:
            kappa *= observed
        kappa /= scale[block].astype(dtype)
        return kappa

    rank = min(n_dims, n_models, n_items)
    directions = _left_singular_vectors(residuals, blocks, n_models, rank, random_state)
    ability = np.zeros((n_models, n_dims))
    ability[:, :rank] = directions * np.sqrt(n_models)
    mean = np.zeros((n_items, n_dims + 1))
    mean[:, -1] = difficulty
    for block in blocks:
        loading = residuals(block).T @ ability.astype(dtype) / (n_models * scale[block, None])
        mean[block, :-1] = np.clip(loading, -3.0, 3.0)
    covariance = np.tile(np.eye(n_dims + 1) * 0.1, (n_items, 1, 1))
    ability_cov = np.tile(np.eye(n_dims) * 0.1, (n_models, 1, 1))
    return mean, covariance, ability, ability_cov


def _left_singular_vectors(residuals, blocks, n_models, rank, random_state):
    """The first left singular vectors of the residual matrix, which is read in blocks."""
    if n_models <= 2000:
        gram = np.zeros((n_models, n_models))
        for block in blocks:
            part = residuals(block)
            gram += part @ part.T
        return eigh(gram, subset_by_index=[n_models - rank, n_models - 1])[1][:, ::-1]

    def apply(vector):
        out = np.zeros(n_models)
        for block in blocks:
            part = residuals(block)
            out += part @ (part.T @ vector.ravel().astype(part.dtype))
        return out

    operator = LinearOperator((n_models, n_models), matvec=apply, dtype=np.float64)
    rng = (
        np.random.RandomState(random_state) if not hasattr(random_state, "normal") else random_state
    )
    return eigsh(operator, k=rank, v0=rng.normal(size=n_models))[1][:, ::-1]
