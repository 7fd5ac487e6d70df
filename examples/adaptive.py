"""Ask a new model what says most about its score, and stop when the score is known well enough.

The models are simulated: forty independent ones, and twenty fine-tunes of some of these, which
share most answers with the one they come from. So are the new models.
"""

import numpy as np
import pandas as pd

from sklearn_irt import AdaptiveSession, GPIRTEstimator, simulate_adaptive
from sklearn_irt.datasets import make_responses

N_KNOWN, N_NEW = 60, 40


def simulate(rng):
    """Responses of known and new models, a DataFrame each."""
    data = make_responses(n_models=40, n_items=600, n_dims=2, random_state=0)
    base = data.responses.to_numpy()
    rows, names = list(base), list(data.responses.index)
    while len(rows) < N_KNOWN + N_NEW:
        parent = rng.integers(len(base))
        copied = rng.random(base.shape[1]) < 0.75
        drawn = rng.random(base.shape[1]) < data.probabilities[parent]
        rows.append(np.where(copied, base[parent], drawn))
        names.append(f"{names[parent]}-tuned-{len(rows)}")
    table = pd.DataFrame(rows, names, data.responses.columns)
    return table[:N_KNOWN], table[N_KNOWN:]


def main():
    rng = np.random.default_rng(0)
    known, new = simulate(rng)
    # Fitted on all responses, without an AnchorSelector: any item may be asked.
    estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(known)

    answers = new.iloc[0]
    session = AdaptiveSession(estimator)
    while not session.done(target_std=0.02, max_items=100):
        items = session.ask(5)  # in parallel
        session.tell(items, [answers[item] for item in items])
    row = session.estimate().loc["all"]
    print(f"{answers.name}: {session.n_asked} questions, score {100 * row['pirt']:.1f}", end=" ")
    print(f"(90 %: {100 * row['low']:.1f} to {100 * row['high']:.1f}), true", end=" ")
    print(f"{100 * answers.mean():.1f}\n")

    truth = new.mean(axis=1).to_numpy()
    adaptive = simulate_adaptive(estimator, new, 100)
    table = pd.DataFrame(index=pd.Index([10, 30, 60, 100], name="questions"))
    for k in table.index:
        hidden = np.full(new.shape, np.nan)
        for answered, full in zip(hidden, new.to_numpy(), strict=True):
            asked = rng.choice(len(full), k, replace=False)
            answered[asked] = full[asked]
        hidden = pd.DataFrame(hidden, columns=new.columns)
        table.loc[k, "mean of random"] = np.nanmean(np.abs(hidden.mean(axis=1) - truth))
        table.loc[k, "random"] = np.abs(estimator.predict(hidden) - truth).mean()
        table.loc[k, "adaptive"] = np.abs(adaptive.score[:, k - 1] - truth).mean()
    print(f"Mean absolute error of {len(new)} new models' scores, points of 100\n")
    print((100 * table).round(2).to_string())


if __name__ == "__main__":
    main()
