"""
How many questions are enough?
==============================

You have a matrix of past results, and want to know what 20, 40 or 80 questions would tell about
the next model, before anyone is asked anything. Models that are left out play the new ones.
"""

# %%
# Your own matrix goes here: rows are models, columns are questions, NaN is "not asked".

from sklearn_irt.datasets import make_responses
from sklearn_irt.evaluation import compare_strategies, summarize
from sklearn_irt.model_selection import RandomModelsSplit
from sklearn_irt.plots import ModelErrorsDisplay, StrategiesDisplay

responses = make_responses(n_models=80, n_items=160, random_state=0).responses

# %%
# Strategies, each at several sizes
# ---------------------------------
# A strategy is a way to choose questions and a way to make a score of the answers. Here: the mean
# of random questions, the paper's, and what you get if you set nothing.

results = compare_strategies(
    responses,
    strategies=["random/naive", "irt/gpirt", "design/default"],
    k=(20, 40, 80),
    cv=RandomModelsSplit(2, random_state=0),
    n_dims=2,
    random_state=0,
)
results.head()

# %%
# Error by number of questions
# ----------------------------

_ = StrategiesDisplay.from_results(results)

# %%
# The same in figures. ``coverage`` is the share of the 90 % intervals that hold the true score,
# ``width`` their mean width.

summary = summarize(results)
summary.round(3)

# %%
# How to read it: find the error that you can live with on the left axis, go right to the line of
# your strategy, and down to the number of questions. If the differences that you want to see are
# smaller than the error at every size, more questions are needed than you have tried, and a gate on
# such differences would fail by chance.
#
# The mean hides the models that come out worst. Each dot is a model that was left out:

_ = ModelErrorsDisplay.from_results(results)
