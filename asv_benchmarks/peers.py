"""What peers do, written down as far as it costs time, to be timed in the same run."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


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
