"""
Item response theory without benchmarks
=======================================

For those who come from psychometrics: ``IRTRegressor`` fits the multidimensional two-parameter
logistic model to any matrix of persons and items. Curves, the Wright map, information, the number
of dimensions, and an item with a wrong key.
"""

# %%
# A test of 60 items and 500 persons, one ability, a tenth of the answers missing. One item has the
# wrong key: right counts as wrong.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV

from sklearn_irt import IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import ItemCurvesDisplay, LowerBoundDisplay, WrightMapDisplay

data = make_responses(n_models=500, n_items=60, n_dims=1, missing=0.1, random_state=0)
responses = data.responses.set_axis([f"item {i}" for i in range(60)], axis=1)
responses["item 7"] = 1 - responses["item 7"]

# %%
# The fit
# -------
# Coordinate ascent on a lower bound of the evidence, which never falls; missing answers need
# nothing special. The sign of an ability is not identified; here it is turned so that more is
# better.

irt = IRTRegressor(n_dims=1).fit(responses)
sign = np.sign(irt.discrimination_.sum())
ability = sign * irt.ability_[:, 0]
print(f"{irt.n_iter_} rounds, converged: {irt.converged_}")
print(f"correlation with the true ability: {np.corrcoef(ability, data.ability[:, 0])[0, 1]:.3f}")
_ = LowerBoundDisplay.from_estimator(irt)

# %%
# Item characteristic curves
# --------------------------
# The discrimination of the item with the wrong key is negative: better persons do worse. That is
# how a wrong key shows in any matrix.

items = pd.DataFrame(
    {"discrimination": sign * irt.discrimination_[:, 0], "difficulty": irt.difficulty_},
    index=responses.columns,
)
print(items.nsmallest(3, "discrimination").round(2).to_string())
_ = ItemCurvesDisplay.from_estimator(irt, items=["item 7", "item 0", "item 1", "item 2"])

# %%
# Wright map
# ----------
# Persons and items on one scale: are there items where the persons are?

# sphinx_gallery_thumbnail_number = 3
_ = WrightMapDisplay.from_estimator(irt)

# %%
# Information
# -----------
# What the test as a whole tells about an ability, and the standard error that follows from it. The
# prior, worth one unit of information, is not counted.

grid = np.linspace(-3, 3, 121)
information = irt.item_information(grid[:, None]).sum(axis=1)
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
axes[0].plot(sign * grid, information)
axes[0].set(xlabel="ability", ylabel="information", ylim=(0, None))
axes[1].plot(sign * grid, 1 / np.sqrt(information))
_ = axes[1].set(xlabel="ability", ylabel="standard error of an ability", ylim=(0, None))

# %%
# How many dimensions?
# --------------------
# By the likelihood of held-out answers, of persons that were left out of the fit: ``score``
# estimates their abilities from half of their answers and judges the other half. One dimension
# suffices here, and further ones do little harm, as they shrink to zero.

search = GridSearchCV(IRTRegressor(), {"n_dims": [1, 2, 3]}, cv=3).fit(responses)
pd.DataFrame(
    {
        "held-out log-likelihood": search.cv_results_["mean_test_score"],
        "over folds": search.cv_results_["std_test_score"],
    },
    index=pd.Index([1, 2, 3], name="dimensions"),
).round(4)
