"""
Which questions are asked: anchors on the item map
==================================================

Every question has a difficulty and a discrimination: how well it tells strong models from weak
ones. The map shows where the anchors lie, for the paper's choices and for the default.
"""

# %%
# A benchmark of 400 questions. Sixty models were run already; two hundred are new, and will answer
# the anchors only.

import matplotlib.pyplot as plt
import pandas as pd
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import ItemMapDisplay

data = make_responses(n_models=260, n_items=400, random_state=0)
past, new = data.responses[:60], data.responses[60:]

# %%
# Four choices of 40 questions
# ----------------------------
# Random anchors lie where the questions lie. With ``random_share=0`` all are designed: they leave
# out what nearly all models get right or wrong, and what tells models badly apart. The default
# designs one half and draws the other at random, so that a model unlike all known ones does not
# pass unseen. The paper takes one question for each cluster of questions with alike parameters.

irt = IRTRegressor(n_dims=2)
selectors = {
    "random": AnchorSelector(40, method="random", irt=irt, random_state=0),
    "clusters (paper)": AnchorSelector(40, method="irt", irt=irt, random_state=0),
    "designed": AnchorSelector(40, random_share=0.0, irt=irt, random_state=0),
    "half designed, half random (default)": AnchorSelector(40, irt=irt, random_state=0),
}
pipes = {
    name: make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(past)
    for name, selector in selectors.items()
}
figure, axes = plt.subplots(2, 2, figsize=(10, 8), sharex=True, sharey=True, layout="constrained")
for ax, (name, pipe) in zip(axes.flat, pipes.items(), strict=True):
    ItemMapDisplay.from_estimator(pipe, ax=ax)
    ax.set_title(name)

# %%
# What each is worth
# ------------------
# Mean absolute error of the estimated scores of the new models, in points of 100: of the weighted
# mean of the anchors' answers (``naive``), and of the default estimate. Designed questions are
# unlike the others, so their mean is worth little by itself; the estimate is what they are chosen
# for. This is one simulated benchmark: :doc:`/accuracy` has real ones.

true = new.mean(axis=1).to_numpy()
errors = {}
for name, pipe in pipes.items():
    estimates = pipe[-1].predict_table(pipe[0].transform(new))
    errors[name] = {kind: 100 * abs(estimates[kind] - true).mean() for kind in ("naive", "gpirt")}
pd.DataFrame(errors).T.round(2)
