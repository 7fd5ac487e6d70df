"""What peers do, to be timed in the same run: their own calls, or their steps written down.

A peer that is not installed raises NotImplementedError, by which asv skips the benchmark. Abilities
are what each peer gives as a point estimate; logits of the fits are at these.
"""

import contextlib
import importlib
import io
import sys
import time
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

# Learning rates and seeds that py-irt is started with; the first is the paper's.
STARTS = ((0.1, 42), (0.05, 42), (0.02, 42))


class Fit(NamedTuple):
    """What a fit took, and its logits of shape (n_models, n_items), of each estimate it keeps."""

    seconds: float
    logits: tuple[np.ndarray, ...]


def require(module: str, package: str) -> Any:
    """The module, or an error that skips the benchmark."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise NotImplementedError(f"{package} is not installed ({error})") from error


def py_irt_trainer(responses: np.ndarray, n_dims: int, rate: float = 0.1) -> Any:
    """A trainer of py-irt's multidim_2pl, which the paper uses, on the cells that are not NaN."""
    training = require("py_irt.training", "py-irt")
    config, dataset = require("py_irt.config", "py-irt"), require("py_irt.dataset", "py-irt")
    n_models, n_items = responses.shape
    models, items = np.nonzero(~np.isnan(responses))
    model_names, item_names = list(map(str, range(n_models))), list(map(str, range(n_items)))
    data = dataset.Dataset(
        item_ids=set(item_names),
        subject_ids=set(model_names),
        item_id_to_ix={name: i for i, name in enumerate(item_names)},
        ix_to_item_id=dict(enumerate(item_names)),
        subject_id_to_ix={name: i for i, name in enumerate(model_names)},
        ix_to_subject_id=dict(enumerate(model_names)),
        observation_subjects=models.tolist(),
        observation_items=items.tolist(),
        observations=responses[models, items].tolist(),
        training_example=[True] * len(models),
    )
    settings = config.IrtConfig(model_type="multidim_2pl", dims=n_dims, lr=rate)
    return training.IrtModelTrainer(data_path=None, config=settings, dataset=data, verbose=False)


def py_irt_train(trainer: Any, epochs: int, seed: int = 0) -> float:
    """Seconds that so many epochs take in one thread; the trainer then holds the parameters."""
    require("pyro", "pyro-ppl").set_rng_seed(seed)
    require("torch", "torch").set_num_threads(1)
    # It says on stdout that there are no anchors, whatever its `verbose`.
    with contextlib.redirect_stdout(io.StringIO()):
        start = time.perf_counter()
        trainer.train(epochs=epochs)
        return time.perf_counter() - start


def fit_py_irt(responses: np.ndarray, n_dims: int, epochs: int) -> Fit:
    """py-irt's multidim_2pl, at the parameters of the lowest loss and at the last ones.

    A fit may end in NaN, which Pyro refuses: then the next start is tried, and the seconds are
    those of the one that went through.
    """
    for rate, seed in STARTS:
        trainer = py_irt_trainer(responses, n_dims, rate)
        try:
            seconds = py_irt_train(trainer, epochs, seed)
        except ValueError:
            message = f"py-irt: NaN in a parameter at learning rate {rate}, seed {seed}"
            print(message, file=sys.stderr, flush=True)
            continue
        kept = (trainer.best_params, trainer.last_params)
        return Fit(seconds, tuple(map(_py_irt_logits, kept)))
    raise NotImplementedError(f"py-irt ended in NaN from each of {len(STARTS)} starts")


def _py_irt_logits(parameters: dict) -> np.ndarray:
    ability, discrimination, difficulty = (
        np.array(parameters[name]) for name in ("ability", "disc", "diff")
    )
    return ability @ discrimination.T - (discrimination * difficulty).sum(axis=1)


def fit_girth(responses: np.ndarray) -> Fit:
    """girth's two-parameter model by marginal likelihood, with its expected abilities."""
    girth = require("girth", "girth")
    coded = np.where(np.isnan(responses), -1, responses).astype(int).T
    start = time.perf_counter()
    found = girth.twopl_mml(girth.tag_missing_data(coded, [0, 1]))
    seconds = time.perf_counter() - start
    logits = found["Discrimination"] * (found["Ability"][:, None] - found["Difficulty"])
    return Fit(seconds, (logits,))


def fit_mirt_em(responses: np.ndarray) -> Fit:
    """Python mirt's one-dimensional EM, without standard errors, then its expected abilities."""
    mirt = require("mirt", "mirt")
    coded = np.where(np.isnan(responses), -1, responses).astype(int)
    start = time.perf_counter()
    found = mirt.fit_mirt(coded, "2PL", compute_standard_errors=False)
    seconds = time.perf_counter() - start
    ability = np.asarray(mirt.fscores(found, coded).theta).reshape(-1)
    parameters = found.model.parameters
    logits = parameters["discrimination"] * (ability[:, None] - parameters["difficulty"])
    return Fit(seconds, (logits,))


def fit_mirt_variational(responses: np.ndarray, n_dims: int, max_iter: int) -> Fit:
    """Python mirt's Gaussian variational EM, at most so many rounds."""
    gvem = require("mirt.estimation.gvem", "mirt")
    models = require("mirt.models", "mirt")
    coded = np.where(np.isnan(responses), -1, responses).astype(int)
    model = models.TwoParameterLogistic(n_items=responses.shape[1], n_factors=n_dims)
    estimator = gvem.GVEMEstimator(max_iter=max_iter, use_gpu=False)
    start = time.perf_counter()
    estimator.fit(model, coded)
    seconds = time.perf_counter() - start
    slopes, difficulty = model.parameters["discrimination"], model.parameters["difficulty"]
    # The abilities have no public name after this fit.
    logits = estimator._mu @ slopes.T - (slopes * difficulty[:, None]).sum(axis=1)
    return Fit(seconds, (logits,))


def catsim_session(
    discrimination: np.ndarray, difficulty: np.ndarray, answers: np.ndarray, n_answers: int
) -> float:
    """Seconds of a session in catsim: the most informative item, then the ability, so many times.

    One dimension: it selects by the information on the ability and estimates the ability alone.
    """
    bank = require("catsim.item_bank", "catsim").ItemBank(
        np.column_stack([discrimination, difficulty]), validate=False
    )
    selector = require("catsim.selection", "catsim").MaxInfoSelector()
    estimator = require("catsim.estimation", "catsim").NumericalSearchEstimator()
    asked: list[int] = []
    told: list[bool] = []
    ability = 0.0
    start = time.perf_counter()
    for _ in range(n_answers):
        item = selector.select(item_bank=bank, administered_items=asked, est_theta=ability)
        asked.append(int(item))
        told.append(bool(answers[item]))
        ability = estimator.estimate(
            item_bank=bank, administered_items=asked, response_vector=told, est_theta=ability
        )
    return time.perf_counter() - start


def published_evaluate(answers: np.ndarray, bench: dict) -> dict:
    """The steps of the authors' evaluate function on a bench of their file, one scenario or more.

    It walks over Python lists of positions and searches them item by item, which is where its
    time goes; the ability is a BFGS fit.
    """
    loadings, threshold = bench["irt_parameters"]["A"][0], bench["irt_parameters"]["B"][0, 0]
    seen = bench["seen_examples"]
    n_items = max(max(positions) for positions in bench["scenarios_position"].values()) + 1
    balance = np.ones(n_items)
    for scenario, positions in bench["scenarios_position"].items():
        parts = bench["subscenarios_position"][scenario]
        for part in parts.values():
            balance[part] = len(positions) / (len(parts) * len(part))
    unseen = [i for i in range(n_items) if i not in seen]
    y = np.zeros(n_items)
    for i, position in enumerate(seen):
        y[position] = answers[i]

    def logits(theta: np.ndarray, items: list[int]) -> np.ndarray:
        return (theta[:, None] * loadings[:, items] - threshold[items]).sum(axis=0)

    def loss(theta: np.ndarray) -> float:
        p = np.clip(expit(logits(theta, seen)), 1e-10, 1 - 1e-10)
        return -(y[seen] * np.log(p) + (1 - y[seen]) * np.log(1 - p)).sum()

    theta = minimize(loss, np.zeros(len(loadings)), method="BFGS").x
    out = {}
    for scenario, positions in bench["scenarios_position"].items():
        seen_here = [i for i in seen if i in positions]
        unseen_here = [i for i in unseen if i in positions]
        naive = float((bench["examples_weights"][scenario] * y[seen_here]).sum())
        known = (balance * y)[seen_here].mean()
        rest = (balance[unseen_here] * expit(logits(theta, unseen_here))).mean()
        share = len(seen_here) / len(positions)
        pirt = float(share * known + (1 - share) * rest)
        mixing = bench["optimal_lambdas"][scenario]
        out[scenario] = {"irt": naive, "pirt": pirt, "gpirt": mixing * naive + (1 - mixing) * pirt}
    return out
