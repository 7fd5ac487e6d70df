"""The two solvers of IRTRegressor compared: the figures of docs/svi.rst.

    python examples/svi.py
    python examples/svi.py --datasets mmlu --seed 1
    python examples/svi.py --nuts

Three quarters of the models train, the others are new. --nuts compares both solvers with a long run
of Hamiltonian Monte Carlo on a small simulated matrix instead. Needs the extra svi; the data is
downloaded once and cached.
"""

import argparse
import time

import numpy as np
from scipy.special import expit

from sklearn_irt import IRTRegressor
from sklearn_irt.datasets import fetch_helm_lite, fetch_open_llm, make_responses

FETCHERS = {"gsm": fetch_helm_lite, "mmlu": fetch_helm_lite, "ifeval": fetch_open_llm}
SOLVERS = ["cavi", "svi"]
N_DIMS = 5
N_ASKED = 100
N_DRAWS = 20


def probabilities(irt: IRTRegressor) -> np.ndarray:
    """Chances of the training models at the posterior means."""
    return expit(irt.ability_ @ irt.discrimination_.T - irt.difficulty_)


def averaged(irt: IRTRegressor) -> np.ndarray:
    """Chances of the training models averaged over the posteriors (a logit's variance, probit)."""
    z = np.column_stack([irt.ability_, -np.ones(len(irt.ability_))])
    a, spread = irt.discrimination_, irt.item_covariance_
    variance = np.einsum("lp,ipq,lq->li", z, spread, z)
    loadings = spread[:, :-1, :-1] + a[:, :, None] * a[:, None, :]
    variance += np.einsum("lde,ide->li", irt.ability_covariance_, loadings)
    return expit((irt.ability_ @ a.T - irt.difficulty_) / np.sqrt(1 + np.pi * variance / 8))


def pirt_error(irt: IRTRegressor, new: np.ndarray) -> float:
    """Mean error of p-IRT, in points, from random items; the same items for every solver."""
    errors = []
    for draw in range(N_DRAWS):
        asked = np.random.RandomState(draw).permutation(new.shape[1])[:N_ASKED]
        known = np.full(new.shape, np.nan)
        known[:, asked] = new[:, asked]
        completed = np.where(np.isnan(known), irt.predict_responses(known), known)
        errors.append(np.abs(completed.mean(axis=1) - new.mean(axis=1)).mean())
    return 100 * float(np.mean(errors))


def agreement(name: str, seed: int) -> None:
    responses = FETCHERS[name](name).responses.to_numpy()
    order = np.random.RandomState(seed).permutation(len(responses))
    new, train = np.split(responses[order], [len(responses) // 4])
    fits, rows = {}, []
    for solver in SOLVERS:
        start = time.process_time()
        fits[solver] = IRTRegressor(N_DIMS, solver=solver, random_state=seed).fit(train)
        seconds = time.process_time() - start
        irt = fits[solver]
        rows.append((solver, seconds, irt.n_iter_, irt.score(new), pirt_error(irt, new)))
    pairs = [
        [probabilities(fits[solver]) for solver in SOLVERS],
        [fits[solver].predict_responses(new) for solver in SOLVERS],
    ]
    of_training, of_new = (np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in pairs)
    print(f"{name}, {len(train)} training models, {train.shape[1]} items, seed {seed}")
    print(f"correlation of the chances: training models {of_training:.4f}, new ones {of_new:.4f}")
    print("solver  cpu s  rounds   score  p-IRT error")
    for solver, seconds, n_iter, score, error in rows:
        print(f"{solver:6s}{seconds:7.1f}{n_iter:8d}{score:8.4f}{error:13.2f}")
    print(flush=True)


def draws_of_nuts(responses: np.ndarray, n_draws: int, seed: int) -> dict[str, np.ndarray]:
    """Posterior draws of Pyro's NUTS."""
    import pyro
    import torch
    from pyro.infer import MCMC, NUTS

    from sklearn_irt.kernels.svi import irt_model

    pyro.set_rng_seed(seed)
    kernel = NUTS(irt_model, target_accept_prob=0.9, max_tree_depth=7)
    chain = MCMC(kernel, num_samples=n_draws, warmup_steps=n_draws // 2, disable_progbar=True)
    chain.run(torch.tensor(responses), n_dims=1)
    return {name: value.numpy() for name, value in chain.get_samples().items()}


def against_nuts(n_models: int, n_items: int, n_draws: int, seed: int) -> None:
    data = make_responses(n_models, n_items, n_dims=1, random_state=seed)
    responses = data.responses.to_numpy()
    draws = draws_of_nuts(responses, n_draws, seed)
    ability, item = draws["ability"][:, :, 0], draws["item"]
    logits = ability @ item[:, :, :-1].swapaxes(1, 2) - item[:, None, :, -1]
    chances, difficulty = expit(logits), item[:, :, -1]
    halves = [half.mean(axis=0) for half in np.array_split(chances, 2)]
    noise = np.sqrt(((halves[0] - halves[1]) ** 2).mean())
    print(f"{n_models} x {n_items}, d = 1, seed {seed}: {n_draws} draws of NUTS; its two halves")
    print(f"differ by {noise:.4f} in the chances. Root mean square distance of each solver:")
    print("solver  chances  averaged  sd of difficulty / NUTS")
    for solver in SOLVERS:
        irt = IRTRegressor(1, solver=solver, random_state=seed).fit(responses)
        away, mean = (
            np.sqrt(((found - chances.mean(axis=0)) ** 2).mean())
            for found in (probabilities(irt), averaged(irt))
        )
        spread = np.sqrt(irt.item_covariance_[:, -1, -1]) / difficulty.std(axis=0)
        print(f"{solver:6s}{away:9.4f}{mean:10.4f}{spread.mean():25.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", default=",".join(FETCHERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nuts", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--size", type=int, nargs=2, default=(30, 40), metavar=("MODELS", "ITEMS"))
    options = parser.parse_args()
    if options.nuts:
        against_nuts(*options.size, options.draws, options.seed)
        return
    for name in options.datasets.split(","):
        agreement(name, options.seed)


if __name__ == "__main__":
    main()
