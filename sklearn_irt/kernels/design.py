"""Which items to ask: by what they leave unknown of the score."""

from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import expit

from sklearn_irt.kernels.logistic import pack, unpack
from sklearn_irt.kernels.relatives import CLIP, DISTANCES, Relatives, copy_probabilities
from sklearn_irt.kernels.scores import weighted_sums
from sklearn_irt.kernels.threshold import is_right_or_wrong

# Of the simulated design: new models, abilities that stand for "no relative", training models, and
# items looked at in each step. More of any changes the anchors' error by less than its noise.
N_SIMULATED = 1500
N_ABILITIES = 150
MAX_TRAINING = 400
MAX_CANDIDATES = 1000
# Prior probability of a relative.
SHARE = 0.7


def unknown_after(
    asked: np.ndarray, spread: np.ndarray, discrimination: np.ndarray, weights: np.ndarray
) -> float:
    """Expected standard error of p-IRT after asking some items.

    Parameters
    ----------
    asked : ndarray of shape (n_asked,), int
        Positions of the items that are asked.
    spread : ndarray of shape (n_models, n_items)
        Variance p (1 - p) of the responses at the abilities to average over.
    discrimination : ndarray of shape (n_items, n_dims)
    weights : ndarray of shape (n_items,)
        Weights of the items in the score.

    Returns
    -------
    float
        Mean over the models of the root of ``g @ inv(I + H) @ g`` plus the noise of the items
        not asked, where H is the information of those asked and g the gradient of the rest of
        the score in the ability.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.design import unknown_after
    >>> spread, items, weights = np.full((1, 3), 0.25), np.array([[0.0], [1], [3]]), np.ones(3) / 3
    >>> bool(
    ...     unknown_after(np.array([2]), spread, items, weights)
    ...     < unknown_after(np.array([0]), spread, items, weights)
    ... )
    True
    """
    n_dims = discrimination.shape[1]
    weights = weights.copy()
    weights[asked] = 0.0  # of the rest of the score
    outer = pack(discrimination[asked, :, None] * discrimination[asked, None, :])
    precision = unpack(spread[:, asked] @ outer, n_dims) + np.eye(n_dims)
    gradient = spread @ (weights[:, None] * discrimination)
    explained = np.linalg.solve(precision, gradient[:, :, None])[:, :, 0]
    variance = (gradient * explained).sum(axis=1) + spread @ weights**2
    return float(np.sqrt(np.maximum(variance, 0.0)).mean())


def information_order(
    spread: np.ndarray,
    discrimination: np.ndarray,
    weights: np.ndarray,
    logit_variance: np.ndarray | None = None,
) -> Iterator[np.ndarray]:
    """Greedy c-optimal design for the score: gains of all items, step by step.

    Parameters
    ----------
    spread : ndarray of shape (n_models, n_items)
        Variance p (1 - p) of the responses at the abilities to average over.
    discrimination : ndarray of shape (n_items, n_dims)
    weights : ndarray of shape (n_items,)
        Weights of the items in the score.
    logit_variance : ndarray of shape (n_models, n_items), optional
        Posterior variance of the logits that the items' parameters leave; an item that is badly
        known says less.

    Yields
    ------
    ndarray of shape (n_items,)
        By how much asking each item lowers the posterior variance of the score, averaged over
        the models. Send back the item that is asked.
    """
    loadings = np.asarray(discrimination, dtype=np.float32)
    spread = np.asarray(spread, dtype=np.float32)
    gradient = (spread * weights.astype(np.float32)) @ loadings
    known = spread
    if logit_variance is not None:
        known = spread / (1.0 + spread * logit_variance.astype(np.float32))
        del logit_variance
    n_models, n_dims = gradient.shape
    covariance = np.broadcast_to(np.eye(n_dims, dtype=np.float32), (n_models, n_dims, n_dims))
    covariance = covariance.copy()
    # S alpha_i . alpha_i of every item, kept up to date by rank-one steps.
    own = np.broadcast_to((loadings**2).sum(axis=1), spread.shape).copy()
    along = gradient @ loadings.T  # alpha_i . S g
    del spread
    while True:
        gain = along**2
        gain *= known
        unexplained = known * own
        unexplained += 1.0
        gain /= unexplained
        gain = gain.mean(axis=0, dtype=np.float64)
        del unexplained
        item = yield gain
        direction = covariance @ loadings[item]
        shrink = known[:, item] / (1.0 + known[:, item] * own[:, item])
        across = direction @ loadings.T
        along -= (shrink * along[:, item])[:, None] * across
        own -= shrink[:, None] * across**2
        covariance -= shrink[:, None, None] * direction[:, :, None] * direction[:, None, :]


def simulated_order(
    relatives: Relatives,
    discrimination: np.ndarray,
    difficulty: np.ndarray,
    item_covariance: np.ndarray,
    weights: np.ndarray,
    random_state: np.random.RandomState,
    candidates: np.ndarray,
    fractional: bool | None = None,
) -> Iterator[np.ndarray]:
    """Greedy Bayesian design for the score of simulated new models.

    New models are drawn from the prior: copies of a training model at some distance, or of an
    ability drawn from N(0, I). Each step yields, for every item, how much the answer is expected
    to lower the posterior variance of the score, then takes the answers to the one that is asked.

    Parameters
    ----------
    relatives : Relatives
        The training models on all items.
    discrimination, difficulty : ndarray of shape (n_items, n_dims) and (n_items,)
    item_covariance : ndarray of shape (n_items, n_dims + 1, n_dims + 1)
    weights : ndarray of shape (n_items,)
        Weights of the items in the score.
    random_state : RandomState
    candidates : ndarray of shape (n_items,), bool
        Items that may be asked.
    fractional : bool, optional
        Whether answers are other than right or wrong; None: whether the responses are.

    Yields
    ------
    ndarray of shape (n_items,)
        Expected decrease of the variance; minus infinity for items that were not looked at. Send
        back the item that is asked.
    """
    rng = random_state
    n_training = len(relatives.prior)
    if n_training > MAX_TRAINING:
        order = np.argsort(weighted_sums(relatives.probabilities, weights), kind="stable")
        chosen = np.sort(order[np.linspace(0, n_training - 1, MAX_TRAINING).round().astype(int)])
        prior = relatives.prior[chosen]
        relatives = Relatives(
            relatives.responses[chosen], relatives.probabilities[chosen], prior / prior.sum()
        )
        n_training = MAX_TRAINING
    n_items, n_dims = discrimination.shape
    abilities = rng.normal(size=(N_ABILITIES, n_dims))
    if fractional is None:
        fractional = not is_right_or_wrong(relatives.responses)
    rest = np.empty((N_ABILITIES, n_items), dtype=np.float32)
    for own in np.array_split(np.arange(N_ABILITIES), 10):
        rest[own] = expit(abilities[own] @ discrimination.T - difficulty)
    np.clip(rest, CLIP, 1.0 - CLIP, out=rest)

    by_distance = np.empty((len(DISTANCES), n_training), dtype=np.float32)
    for own in np.array_split(np.arange(n_training), 10):
        copies = _copies(relatives, models=own)
        by_distance[:, own] = copies @ weights.astype(np.float32)
    score = np.concatenate([by_distance.ravel(), rest @ weights.astype(np.float32)])
    score -= score.mean()
    prior = np.concatenate(
        [
            np.tile(SHARE * relatives.prior / len(DISTANCES), len(DISTANCES)),
            np.full(N_ABILITIES, (1.0 - SHARE) / N_ABILITIES),
        ]
    )
    component = rng.choice(len(prior), N_SIMULATED, p=prior / prior.sum())
    kin = component < n_training * len(DISTANCES)
    parent = np.where(kin, component % max(n_training, 1), 0)
    distance = np.where(kin, DISTANCES[np.minimum(component // max(n_training, 1), 2)], 1.0)
    theta = rng.normal(size=(N_SIMULATED, n_dims))
    nearby = _nearest(relatives, weights, discrimination, difficulty, theta, kin, parent)
    posterior = np.tile(prior.astype(np.float32), (N_SIMULATED, 1))
    root = np.linalg.cholesky(item_covariance + 1e-9 * np.eye(n_dims + 1))

    def answers(item: int) -> np.ndarray:
        """The simulated models' answers to an item."""
        copied = rng.random_sample(N_SIMULATED) >= distance
        if fractional:
            # Drawn from models alike: Bernoulli draws would spread more than such answers do.
            other = nearby[np.arange(N_SIMULATED), rng.randint(nearby.shape[1], size=N_SIMULATED)]
            drawn = relatives.responses[other, item]
        else:
            shift = rng.normal(size=(N_SIMULATED, n_dims + 1)) @ root[item].T
            logit = theta @ discrimination[item] - difficulty[item]
            logit = logit + (theta * shift[:, :-1]).sum(axis=1) - shift[:, -1]
            p = np.where(kin, relatives.probabilities[parent, item], expit(logit))
            drawn = rng.random_sample(N_SIMULATED) < p
        given = relatives.responses[parent, item]
        if not fractional:  # what a training model was not asked is drawn, too
            given = rng.random_sample(N_SIMULATED) < given
        return np.where(copied, given, drawn)

    def chances(items: np.ndarray) -> np.ndarray:
        """Of copies at each distance, then of models without a relative; too large to be kept."""
        copies = _copies(relatives, items=items)
        return np.concatenate([copies.reshape(-1, len(items)), rest[:, items]])

    open_items = np.array(candidates, dtype=bool)
    while True:
        looked = np.flatnonzero(open_items)
        if len(looked) > MAX_CANDIDATES:
            looked = np.sort(rng.choice(looked, MAX_CANDIDATES, replace=False))
        part = chances(looked)
        right = posterior @ part
        sum_right = (posterior * score) @ part
        mean = posterior @ score
        sum_wrong = mean[:, None] - sum_right
        gain = np.full(n_items, -np.inf)
        explained = sum_right**2 / right + sum_wrong**2 / np.maximum(1.0 - right, 1e-6)
        gain[looked] = explained.mean(axis=0, dtype=np.float64) - np.mean(
            mean.astype(np.float64) ** 2
        )
        item = yield gain
        open_items[item] = False
        given = answers(item).astype(np.float32)[:, None]
        column = chances(np.array([item]))[:, 0]
        if fractional:
            posterior *= np.exp(given * np.log(column) + (1.0 - given) * np.log1p(-column))
        else:
            posterior *= np.where(given > 0.5, column, 1.0 - column)
        posterior /= posterior.sum(axis=1, keepdims=True)


def _copies(relatives, models=slice(None), items=slice(None)):
    """Chances of copies of the training models, (n_distances, n_training, n_items), float32."""
    responses, probabilities = (
        array[models][:, items] for array in (relatives.responses, relatives.probabilities)
    )
    some = Relatives(responses, probabilities, relatives.prior)
    return np.array([copy_probabilities(some, e) for e in DISTANCES], dtype=np.float32)


def _nearest(relatives, weights, discrimination, difficulty, theta, kin, parent, n_nearest=10):
    """Training models whose expected score is nearest to that of each simulated model."""
    expected = weighted_sums(relatives.probabilities, weights)
    if not len(expected):
        return np.zeros((len(theta), 1), dtype=int)
    own = np.concatenate(
        [
            expit(some @ discrimination.T - difficulty) @ weights
            for some in np.array_split(theta, 100)
        ]
    )
    target = np.where(kin, expected[parent], own)
    order = np.argsort(expected, kind="stable")
    width = min(n_nearest, len(order))
    first = np.searchsorted(expected[order], target) - width // 2
    first = np.clip(first, 0, len(order) - width)
    return order[first[:, None] + np.arange(width)]


def greedy(
    gains: Iterator[np.ndarray],
    k: int,
    allowed: np.ndarray,
    costs: np.ndarray | None = None,
    budget: float = np.inf,
    callback: Callable[[int], None] | None = None,
) -> list[int]:
    """Ask one item after the other, each the one with the largest gain (for its cost).

    Parameters
    ----------
    gains : generator
        `information_order` or `simulated_order`.
    k : int
        Items at most.
    allowed : ndarray of shape (n_items,), bool
    costs : ndarray of shape (n_items,), optional
        Positive; the gain counts per cost, and the sum never exceeds `budget`.
    budget : float
    callback : callable
        Called with the number of items chosen so far.

    Returns
    -------
    list of int
        In the order of asking.
    """
    allowed, asked = allowed.copy(), []
    gain = next(gains)
    while len(asked) < k:
        if costs is not None:
            allowed &= costs <= budget
        if not allowed.any():
            break
        worth = gain if costs is None else gain / costs
        item = int(np.argmax(np.where(allowed, worth, -np.inf)))
        asked.append(item)
        allowed[item] = False
        if costs is not None:
            budget -= costs[item]
        if callback is not None:
            callback(len(asked))
        if len(asked) < k and allowed.any():
            gain = gains.send(item)
    return asked


def fill_up(
    chosen: list[int],
    order: np.ndarray,
    k: int,
    costs: np.ndarray | None = None,
    budget: float = np.inf,
) -> list[int]:
    """Add the first items of an order that are not chosen yet and can be afforded.

    Parameters
    ----------
    chosen : list of int
    order : ndarray of int
    k : int
        Items at most, with those chosen.
    costs : ndarray of shape (n_items,), optional
    budget : float
        Of all, with those chosen.

    Returns
    -------
    list of int
        Those chosen, then those added.
    """
    found, taken = list(chosen), set(chosen)
    if costs is not None:
        budget -= costs[found].sum()
    for item in order:
        if len(found) >= k:
            break
        if item in taken or (costs is not None and costs[item] > budget):
            continue
        found.append(int(item))
        if costs is not None:
            budget -= costs[item]
    return found
