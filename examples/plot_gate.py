"""
Is the new checkpoint worse? A gate in CI
=========================================

Every night a checkpoint comes out of training. It must not be released if it is worse than the one
in use. Both are asked the same 100 questions, and what counts is the interval of the difference.
"""

# %%
# The benchmark, and the model in use. It is simulated here: a known model's strength, answers of
# its own to all 1,172 questions of the ARC challenge.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from benchmarks_registry import load_benchmark

tiny = load_benchmark("arc-challenge")
irt = tiny.estimator.irt_
rng = np.random.default_rng(0)


def answer(ability):
    """Answers of a simulated model to all questions."""
    probability = 1 / (1 + np.exp(irt.difficulty_ - irt.discrimination_ @ ability))
    return pd.Series((rng.random(len(probability)) < probability).astype(float), tiny.items["item"])


known = np.argsort(tiny.estimator.training_scores_[:, 0])[120]
released = answer(irt.ability_[known])

# %%
# Three checkpoints
# -----------------
# Each has most answers of the model in use, as checkpoints do, and has lost or gained some others.


def checkpoint(lost, gained):
    """The released model's answers, but for a share of the right and of the wrong ones."""
    drawn = rng.random(len(released))
    changed = np.where(released == 1, drawn < lost, drawn < gained)
    return released.where(~changed, 1 - released)


models = pd.DataFrame(
    {
        "released": released,
        "monday": checkpoint(lost=0.03, gained=0.06),
        "tuesday": checkpoint(lost=0.10, gained=0.06),
        "wednesday": checkpoint(lost=0.25, gained=0.04),
    }
).T
models.mean(axis=1).rename("true score").to_frame().round(3)

# %%
# The gate
# --------
# Only the anchors are asked. The interval is of the difference, and is narrower than two separate
# intervals would suggest, because models that answer alike have errors alike.

asked = models[tiny.anchors()]
table = tiny.compare(asked[1:], asked[:1])
table = table.droplevel(["b", "scenario"])
table["true"] = models.mean(axis=1)[1:] - models.mean(axis=1)["released"]
(100 * table[["difference", "low", "high", "probability_lower", "true"]]).round(1)

# %%
figure, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
points = 100 * table[["difference", "low", "high", "true"]]
rows = np.arange(len(points))
ax.hlines(rows, points["low"], points["high"], color="C0", lw=2)
ax.plot(points["difference"], rows, "o", color="C0", label="estimate, 90 % interval")
ax.plot(points["true"], rows, "x", color="C1", ms=8, mew=2, label="on all questions")
ax.axvline(0, color="0.5", lw=1)
ax.set(yticks=rows, yticklabels=points.index, xlabel="better or worse than released (points)")
ax.margins(y=0.2)
ax.invert_yaxis()
_ = ax.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)

# %%
# What the job in CI does
# -----------------------
# It fails where the checkpoint is worse with a probability of 95 %. Anything less clear passes: if
# that is too lax, ask more questions rather than move the limit, which would stop good checkpoints.

for name, row in table.iterrows():
    worse = row["probability_lower"]
    print(f"{name:10} worse with {worse:4.0%}: {'stop' if worse > 0.95 else 'pass'}")

# %%
# How small a drop can be seen? A gate at 95 % stops every other checkpoint that is worse by 1.64
# standard errors of the difference; in points of 100:

print((1.64 * 100 * table["std_error"]).round(1).to_string())
