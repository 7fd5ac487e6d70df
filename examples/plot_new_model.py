"""
A new model on a bundled benchmark
==================================

You have a new model and want its HELM Lite scores, but not the bill for all 3,504 questions. The
bundled benchmark asks 100 in each of five scenarios, and says how sure it is of the rest.
"""

# %%
# Which questions to ask
# ----------------------
# The benchmark is part of the package. It knows which questions are worth asking, from the answers
# of the models that it was trained on.

import numpy as np
import pandas as pd

from benchmarks_registry import load_benchmark
from sklearn_irt.plots import EstimatesDisplay

tiny = load_benchmark("helm-lite")
print(tiny)
print(tiny.anchors("gsm")[:3])

# %%
# Its answers
# -----------
# Here you would run your model on ``tiny.anchors()``. A simulated model stands in for it, as strong
# as a known one but with answers of its own. It answers everything, so its true scores are known.

irt = tiny.estimator.irt_
known = list(tiny.estimator.training_models_).index("mistralai/mixtral-8x22b")
logit = irt.discrimination_ @ irt.ability_[known] - irt.difficulty_
rng = np.random.default_rng(0)
everything = pd.Series((rng.random(len(logit)) < 1 / (1 + np.exp(-logit))).astype(float))
everything.index = tiny.items["item"]

answers = everything[tiny.anchors()]
print(f"{len(answers)} answers, {answers.mean():.0%} right")

# %%
# The estimate
# ------------
# ``gpirt`` is the estimated score on all questions of a scenario, ``low`` to ``high`` its 90 %
# interval. The row "(all)" is the mean over the scenarios.

table = tiny.estimate(answers)
(100 * table[["naive", "pirt", "gpirt", "std_error", "low", "high"]]).round(1)

# %%
# The mean of the answers (``naive``) is not what to report: half of the questions were chosen
# because their answers tell much, so they are not like the others.
#
# The truth, which you would not know, beside the intervals. Subscenarios of a scenario count the
# same, whatever their sizes.

by_part = tiny.items.assign(score=everything.to_numpy())
by_part = by_part.groupby(["scenario", "subscenario"], dropna=False)["score"].mean()
true = by_part.groupby("scenario").mean()
true["(all)"] = true.mean()

_ = EstimatesDisplay.from_table(table, true=true)

# %%
# Fewer answers
# -------------
# What is missing is counted and widens the intervals; nothing has to be asked again.

few = tiny.estimate(answers.sample(100, random_state=0))
pd.DataFrame(
    {
        "answers": table["answered"],
        "std_error": 100 * table["std_error"],
        "answers (fewer)": few["answered"],
        "std_error (fewer)": 100 * few["std_error"],
    }
).round(1)
