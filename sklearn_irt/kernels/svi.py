"""Stochastic variational inference for the IRT model, in Pyro: needs torch and pyro-ppl.

Both are imported when a function runs, so that this module imports without them.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from sklearn_irt.kernels.cavi import (
    MEAN_VARIANCE,
    WISHART_SCALE,
    CaviFit,
    _augment,
    _doubled,
    _kappa,
    _make_fit,
    _moments,
    _polya_gamma,
    _read_groups,
    _second_moment,
    _standardise,
    _update_hyper,
)
from sklearn_irt.kernels.logistic import pack, row_blocks, unpack

# Cells of a gradient step; rows that are read at a time, and cells of them at most.
BATCH_CELLS = 2**18
STRIP_ROWS = 512
STRIP_CELLS = 2**23
# A round has as many steps as a pass over the responses, within these limits.
ROUND_STEPS = (10, 100)
LEARNING_RATE = 0.05
DECAYS = (0.9, 0.99)  # of Adam's two moments
HALVED_EVERY = 20  # rounds
# Rounds whose mean bound is compared with that of as many before.
SMOOTHING = 20
START_VARIANCE = 0.1
ABILITY_SWEEPS = 10
SKETCH_EXTRA = 8
SKETCH_PASSES = 3

# Pyro's parameters and handlers and torch's random numbers are global to the process.
_PYRO_LOCK = threading.RLock()


def import_pyro() -> tuple[Any, Any]:
    """The modules torch and pyro.

    Returns
    -------
    tuple of module

    Raises
    ------
    ImportError
        Naming the extra to install.
    """
    try:
        with warnings.catch_warnings():  # theirs at import, which concern no user of ours
            warnings.simplefilter("ignore")
            import pyro
            import torch
    except ImportError as error:
        raise ImportError(
            f'solver="svi" needs torch and Pyro ({error}): pip install "sklearn-irt[svi]"'
        ) from error
    return torch, pyro


def irt_model(
    responses: Any,
    n_dims: int,
    *,
    groups: Any = None,
    n_groups: int = 1,
    rows: Any = None,
    columns: Any = None,
    shape: tuple[int, int] | None = None,
) -> None:
    """The hierarchical model of `fit_cavi` and `fit_svi`, as a Pyro model.

    Any of Pyro's guides or samplers runs on it. Its sites are "mean" (n_groups, d + 1), "ability"
    (n_models, 1, d), "item" (n_items, d + 1; discriminations, then difficulty), the observed
    "response" (n_models, n_items), and "square" and "below": the squared diagonal of A and what
    is below it, where A A' / 2 is the items' prior precision (Bartlett's form of a Wishart).

    Parameters
    ----------
    responses : Tensor of shape (n_models, n_items)
        In [0, 1], NaN where not asked; the rows and columns of the batch only.
    n_dims : int
    groups : Tensor of shape (n_items,), int64
        Group of each item of the batch; the items of a group share their prior mean. None: one.
    n_groups : int
    rows, columns : Tensor of int64
        Positions of the batch in the whole matrix. None: it is the whole matrix.
    shape : (int, int)
        Models and items of the whole matrix. None: those of `responses`.

    Examples
    --------
    >>> import pyro, torch
    >>> from sklearn_irt.kernels.svi import irt_model
    >>> answers = torch.tensor([[1.0, 0.0, 1.0], [1.0, float("nan"), 0.0]])
    >>> trace = pyro.poutine.trace(irt_model).get_trace(answers, n_dims=1)
    >>> trace.nodes["item"]["value"].shape
    torch.Size([3, 2])
    """
    torch, pyro = import_pyro()
    dist, sample = pyro.distributions, pyro.sample
    size, (n_models, n_items) = n_dims + 1, shape or responses.shape
    zeros = responses.new_zeros(size)
    means = dist.Normal(zeros, MEAN_VARIANCE**0.5, validate_args=False).expand([n_groups, size])
    mean = sample("mean", means.to_event(2))
    # Precisions of dimensions that are not needed are large: their roots want double precision.
    like = {"dtype": torch.float64, "device": zeros.device}
    degrees = size + 2.0 - torch.arange(size, **like)
    square = sample("square", dist.Chi2(degrees, validate_args=False).to_event(1))
    noise = dist.Normal(torch.zeros(size * (size - 1) // 2, **like), 1.0, validate_args=False)
    below = sample("below", noise.to_event(1))
    factor = _lower(torch, square.sqrt(), below)
    covariance = torch.cholesky_inverse(factor) * WISHART_SCALE
    root = torch.linalg.cholesky(covariance).to(zeros.dtype)
    of_models = pyro.plate("models", n_models, subsample=rows, dim=-2)
    of_items = pyro.plate("items", n_items, subsample=columns, dim=-1)
    with of_models:
        ability = sample("ability", dist.Normal(zeros[:-1], 1.0, validate_args=False).to_event(1))
    with of_items:
        centre = mean[0] if n_groups == 1 else mean[groups]
        prior = dist.MultivariateNormal(centre, scale_tril=root, validate_args=False)
        item = sample("item", prior)
    logits = ability[:, 0] @ item[:, :-1].mT - item[:, -1]
    chance = dist.Bernoulli(logits=logits, validate_args=False)
    missing = torch.isnan(responses)
    if missing.any():
        chance, responses = chance.mask(~missing), torch.nan_to_num(responses)
    with of_models, of_items:
        sample("response", chance, obs=responses)


def _lower(torch, diagonal, below):
    """The lower triangular matrix of a diagonal and what is below it, row by row."""
    size = diagonal.shape[-1]
    where = torch.tril_indices(size, size, offset=-1, device=diagonal.device)
    matrix = diagonal.diag_embed()
    matrix[..., where[0], where[1]] = below
    return matrix


class _Guide:
    """Gaussian posteriors with full covariances of abilities and items, as a Pyro guide.

    Those of the hyperparameters are held in `hyper`: given the items they have a closed form.
    """

    def __init__(self, torch, pyro, device, mean, covariance, ability, ability_cov, hyper):
        self._torch, self._pyro, self._device = torch, pyro, device
        self._set_hyper(hyper)
        for name, centre, spread in (
            ("ability", ability[:, None], ability_cov[:, None]),
            ("item", mean, covariance),
        ):
            pyro.param(f"{name}_mean", self._tensor(centre))
            pyro.param(f"{name}_root", self._tensor(_free(np.linalg.cholesky(spread))))

    def __call__(self, responses, n_dims, *, groups, n_groups, rows, columns, shape):
        dist, sample, plate = self._pyro.distributions, self._pyro.sample, self._pyro.plate
        mean, density = self._draw(self._mean, self._mean_root)
        sample("mean", dist.Delta(mean, density.sum(), event_dim=2))
        self._draw_precision()
        for name, place, among, count, dim in (
            ("ability", "models", rows, shape[0], -2),
            ("item", "items", columns, shape[1], -1),
        ):
            centre, free = self._pyro.param(f"{name}_mean"), self._pyro.param(f"{name}_root")
            value, density = self._draw(centre[among], self._root(free[among]))
            with plate(place, count, subsample=among, dim=dim):
                sample(name, dist.Delta(value, density, event_dim=1))

    def _draw_precision(self):
        """A = root B, where B is a factor of the posterior Wishart distribution of scale I."""
        torch, dist = self._torch, self._pyro.distributions
        size = self._wishart_root.shape[0]
        order = torch.arange(size, dtype=torch.float64, device=self._device)
        squares = dist.Chi2(self._degrees - order, validate_args=False)
        square, noise = (
            squares.sample(),
            torch.randn(size * (size - 1) // 2, dtype=torch.float64, device=self._device),
        )
        factor = self._wishart_root @ _lower(torch, square.sqrt(), noise)
        scale = self._wishart_root.diagonal().log()
        where = torch.tril_indices(size, size, offset=-1, device=self._device)
        density = squares.log_prob(square).sum() - 2.0 * scale.sum()
        self._pyro.sample("square", dist.Delta(factor.diagonal() ** 2, density, event_dim=1))
        density = -0.5 * (noise**2 + np.log(2.0 * np.pi)).sum() - (order * scale).sum()
        self._pyro.sample("below", dist.Delta(factor[where[0], where[1]], density, event_dim=1))

    def _draw(self, mean, root):
        """A draw of Gaussians, and their expected log-densities: less noise than those of it."""
        noise = self._torch.randn_like(mean)
        scale = root.diagonal(dim1=-2, dim2=-1).log().sum(dim=-1)
        value = mean + (root @ noise[..., None])[..., 0]
        return value, -scale - 0.5 * mean.shape[-1] * (1.0 + np.log(2.0 * np.pi))

    def _root(self, free):
        """Cholesky factors from parameters without constraints, the inverse of `_free`."""
        identity = self._torch.eye(free.shape[-1], dtype=free.dtype, device=free.device)
        diagonal = free.diagonal(dim1=-2, dim2=-1).exp()
        return diagonal[..., None] * (free.tril(-1) + identity)

    def _tensor(self, array, dtype=None):
        kind = dtype or self._torch.float32
        return self._torch.as_tensor(np.array(array), dtype=kind, device=self._device)

    def _set_hyper(self, hyper):
        self.hyper = hyper
        self._mean = self._tensor(hyper.mean)
        self._mean_root = self._tensor(np.linalg.cholesky(hyper.mean_covariance))
        self._degrees = float(hyper.degrees)
        scale = WISHART_SCALE * np.linalg.inv(hyper.inverse_scale)
        self._wishart_root = self._tensor(np.linalg.cholesky(scale), self._torch.float64)

    def posteriors(self):
        """Means and covariances of the items, then of the abilities."""
        found = []
        for name in ("item", "ability"):
            root = self._root(self._pyro.param(f"{name}_root").detach().double()).cpu().numpy()
            centre = self._pyro.param(f"{name}_mean").detach().double().cpu().numpy()
            found += [centre, root @ root.swapaxes(-2, -1)]
        return found[0], found[1], found[2][:, 0], found[3][:, 0]

    def standardise(self, members):
        """Abilities to mean zero and second moment I, where it helps; hyperparameters anew."""
        mean, covariance, ability, ability_cov, hyper, _ = _standardise(
            *self.posteriors(), members, self.hyper
        )
        self._set_hyper(hyper)
        new = {
            "item_mean": mean,
            "item_root": _free(np.linalg.cholesky(covariance)),
            "ability_mean": ability[:, None],
            "ability_root": _free(np.linalg.cholesky(ability_cov))[:, None],
        }
        with self._torch.no_grad():  # in place: the optimiser goes on
            for name, array in new.items():
                self._pyro.param(name).copy_(self._tensor(array))


def _free(root):
    """Parameters without constraints of Cholesky factors: log-diagonal, and rows relative to it."""
    diagonal = np.diagonal(root, axis1=-2, axis2=-1)
    return np.tril(root / diagonal[..., None], -1) + np.log(diagonal)[..., None] * np.eye(
        root.shape[-1]
    )


def fit_svi(
    responses: Any,
    n_dims: int,
    *,
    groups: np.ndarray | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    random_state: np.random.RandomState | int | None = None,
    device: str | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> CaviFit:
    """Fit the model of `fit_cavi` by stochastic gradients of the lower bound, in Pyro.

    A step looks at a random batch of models and items. The learning rate of Adam is halved every
    20 rounds, and the fit has converged when the mean bound of 20 rounds is hardly higher than
    that of the 20 before. The items' prior has a closed form given the items and is set anew
    every round. Pyro's parameters and torch's random numbers are left as they were; fits in
    several threads wait for each other.

    Parameters
    ----------
    responses : array-like of shape (n_models, n_items)
        In [0, 1], NaN where not asked. Only `shape`, `dtype` and indexing by rows are used, and
        512 rows are held at a time, so it may lie in a file.
    n_dims : int
    groups : ndarray of shape (n_items,), int
        Group of each item; the items of a group share their prior mean. None: one group.
    max_iter : int
        Rounds at most. A round is a pass over the responses, but 10 to 100 steps.
    tol : float
        The fit has converged when the smoothed bound rises by less than `tol` per observed
        response and round. 0: `max_iter` rounds.
    random_state : RandomState or int
        The same seed gives the same fit, on the same device and number of threads.
    device : str
        Such as "cpu" or "cuda". None: "cpu".
    callback : callable
        Called with (round, lower bound per response) after every round.

    Returns
    -------
    CaviFit
        `lower_bounds` are means over the steps of a round, noisy, and of the logistic
        likelihood itself, which is above the Polya-Gamma bound of `fit_cavi`. The abilities are
        those of coordinate ascent given the items.

    Raises
    ------
    ImportError
        Without torch and Pyro.
    ValueError
        Where there is no such device.

    References
    ----------
    Hoffman, Blei, Wang & Paisley (2013), Stochastic variational inference, JMLR 14.
    Bingham et al. (2019), Pyro: deep universal probabilistic programming, JMLR 20.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_irt.kernels.svi import fit_svi
    >>> rng = np.random.default_rng(0)
    >>> ability, difficulty = rng.normal(size=(200, 1)), rng.normal(size=50)
    >>> right = rng.random((200, 50)) < 1 / (1 + np.exp(difficulty - 1.5 * ability))
    >>> fit = fit_svi(right.astype(float), n_dims=1, random_state=0, max_iter=20)
    >>> bool(np.corrcoef(fit.ability[:, 0], ability[:, 0])[0, 1] > 0.95)
    True
    """
    torch, pyro = import_pyro()
    device = find_device(torch, device)
    dtype = np.float32 if responses.dtype == np.float32 else np.float64
    random = check_random_state(random_state)
    group, members = _read_groups(groups, responses.shape[1])
    with _isolated(torch, pyro, device, int(random.randint(2**31 - 1))):
        answered, *start = _start(responses, n_dims, random)
        hyper = _update_hyper(_moments(start[0], start[1], members))
        guide = _Guide(torch, pyro, device, *start, hyper)
        bounds, converged = _climb(
            torch,
            pyro,
            guide,
            _batches(torch, responses, random, device),
            {"n_dims": n_dims, "n_groups": len(members), "shape": tuple(responses.shape)},
            torch.as_tensor(group, device=device),
            members,
            max(int(answered.sum()), 1),
            (max_iter, tol, callback),
        )
        mean, covariance, ability, _ = guide.posteriors()
        hyper = guide.hyper
    unanswered = answered == 0  # their posterior is the prior
    mean[unanswered] = hyper.mean[group[unanswered]]
    covariance[unanswered] = np.linalg.inv(hyper.precision)
    ability, ability_cov = _abilities(responses, mean, covariance, ability)
    return _make_fit(mean, covariance, ability, ability_cov, hyper, bounds, converged, dtype)


def _abilities(responses, mean, covariance, ability):
    """Abilities given the items' posteriors, by the updates of coordinate ascent.

    Free of the noise of the last steps, and good for models that few steps have seen.
    """
    n_dims = ability.shape[1]
    second = pack(_second_moment(mean, covariance))
    ability = ability.copy()
    ability_cov = np.tile(np.eye(n_dims) * START_VARIANCE, (len(ability), 1, 1))
    for rows in row_blocks(*responses.shape):
        kappa, observed = _kappa(responses[rows], np.float64)
        linear = kappa @ mean[:, :-1]
        for _ in range(ABILITY_SWEEPS):
            packed = _doubled(pack(_augment(ability[rows], ability_cov[rows])))
            weights, _ = _polya_gamma(packed @ second.T, observed)
            quadratic = unpack(weights @ second, n_dims + 1)
            ability_cov[rows] = np.linalg.inv(quadratic[:, :-1, :-1] + np.eye(n_dims))
            ability[rows] = np.einsum(
                "lde,le->ld", ability_cov[rows], linear + quadratic[:, :-1, -1]
            )
    return ability, ability_cov


def find_device(torch: Any, name: str | None) -> Any:
    """The torch device of a name; a ValueError says what to do where there is none."""
    try:
        device = torch.device(name or "cpu")
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f'device={name!r} cannot be used: {reason}; use device="cpu"') from None
    return device


@contextlib.contextmanager
def _isolated(torch, pyro, device, seed):
    """Pyro and torch for one thread, with parameters and random numbers of our own."""
    on_cuda = device.type == "cuda"
    with (
        _PYRO_LOCK,
        pyro.get_param_store().scope(),
        torch.random.fork_rng(devices=[device] if on_cuda else []),
        torch.inference_mode(False),
        torch.enable_grad(),
    ):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would set every device
        if on_cuda:
            with torch.cuda.device(device):
                torch.cuda.manual_seed(seed)
        yield


def _climb(torch, pyro, guide, batches, sizes, group, members, n_observed, limits):
    """Steps in rounds until the smoothed bound no longer rises; the rounds' bounds, converged."""
    max_iter, tol, callback = limits
    n_steps = int(np.clip(n_batches(*sizes["shape"]), *ROUND_STEPS))
    decay = 0.5 ** (1.0 / (HALVED_EVERY * n_steps))
    optimiser = pyro.optim.ClippedAdam(
        {"lr": LEARNING_RATE, "lrd": decay, "betas": DECAYS, "clip_norm": np.inf}
    )
    svi = pyro.infer.SVI(irt_model, guide, optimiser, pyro.infer.Trace_ELBO())
    bounds: list[float] = []
    for n_iter in range(1, max_iter + 1):
        loss = 0.0
        for _ in range(n_steps):
            rows, columns, part = next(batches)
            loss += svi.step(part, rows=rows, columns=columns, groups=group[columns], **sizes)
        bounds.append(-loss / (n_steps * n_observed))
        guide.standardise(members)
        if callback is not None:
            callback(n_iter, bounds[-1])
        if has_settled(bounds, tol):
            return bounds, True
    return bounds, False


def has_settled(bounds: list[float], tol: float) -> bool:
    """Whether the smoothed lower bound rose by less than `tol` a round."""
    if len(bounds) < 2 * SMOOTHING or tol == 0:
        return False
    rise = np.mean(bounds[-SMOOTHING:]) - np.mean(bounds[-2 * SMOOTHING : -SMOOTHING])
    return bool(rise < SMOOTHING * tol)


def _strip_rows(n_models, n_items):
    most = max(1, min(n_models, STRIP_ROWS, STRIP_CELLS // n_items))
    n_strips = -(-n_models // most)
    return -(-n_models // n_strips)


def n_batches(n_models: int, n_items: int) -> int:
    """Batches of a pass over the responses."""
    height = _strip_rows(n_models, n_items)
    return -(-n_models // height) * min(n_items, -(-height * n_items // BATCH_CELLS))


def _batches(torch, responses, random, device) -> Iterator[tuple[Any, Any, Any]]:
    """Random batches without end: rows, columns and responses; each cell once in a pass.

    Some rows are read and held, all their columns in random parts, then the next rows.
    """
    n_models, n_items = responses.shape
    height = _strip_rows(n_models, n_items)
    n_strips = -(-n_models // height)
    n_parts = n_batches(n_models, n_items) // n_strips
    held = None

    def positions(array):
        return torch.as_tensor(np.sort(array), device=device)

    while True:
        for rows in np.array_split(random.permutation(n_models), n_strips):
            rows = np.sort(rows)
            if held is None or n_strips > 1:
                held = torch.as_tensor(responses[rows].astype(np.float32), device=device)
            for columns in np.array_split(random.permutation(n_items), n_parts):
                columns = positions(columns)
                part = held if n_parts == 1 else held[:, columns]
                yield positions(rows), columns, part


def _start(responses, n_dims, random):
    """Answers of every item; means and covariances of items and abilities to start from.

    Difficulties are the items' log-odds, abilities the first left singular vectors of the
    standardised residuals, by a random sketch in a few passes over blocks of rows.
    """
    n_models, n_items = responses.shape
    height = _strip_rows(n_models, n_items)
    strips = [slice(at, min(at + height, n_models)) for at in range(0, n_models, height)]
    answered, total = np.zeros(n_items), np.zeros(n_items)
    for rows in strips:
        part = responses[rows]
        answered += (~np.isnan(part)).sum(axis=0)
        total += np.nansum(part, axis=0, dtype=np.float64)
    share = (total + 0.5) / (answered + 1.0)
    scale = np.sqrt(share * (1.0 - share))

    def residuals(rows):
        return np.nan_to_num((responses[rows] - share) / scale)

    rank = min(n_dims, n_models, n_items)
    width = min(rank + SKETCH_EXTRA, n_models, n_items)
    sketch = random.normal(size=(n_items, width))
    for _ in range(SKETCH_PASSES):
        basis = np.linalg.qr(np.concatenate([residuals(rows) @ sketch for rows in strips]))[0]
        sketch = sum(residuals(rows).T @ basis[rows] for rows in strips)
    # responses ~ basis sketch', whose left singular vectors are those of sketch' turned by basis.
    turn = np.linalg.svd(sketch, full_matrices=False)[2].T[:, :rank]
    ability = np.zeros((n_models, n_dims))
    ability[:, :rank] = basis @ turn * np.sqrt(n_models)
    mean = np.zeros((n_items, n_dims + 1))
    mean[:, -1] = np.log1p(-share) - np.log(share)
    mean[:, :rank] = np.clip(sketch @ turn / (np.sqrt(n_models) * scale[:, None]), -3.0, 3.0)
    covariance = np.tile(np.eye(n_dims + 1) * START_VARIANCE, (n_items, 1, 1))
    ability_cov = np.tile(np.eye(n_dims) * START_VARIANCE, (n_models, 1, 1))
    return answered, mean, covariance, ability, ability_cov
