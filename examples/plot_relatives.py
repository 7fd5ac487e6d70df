"""
Whom does a new model resemble?
===============================

Most new models are fine-tunes, merges or successors of models that were run already, and answer
many questions exactly as these did. The estimator finds out from the answers to the anchors whom a
model resembles, and uses it.
"""

# %%
# Sixty known models and a benchmark of 400 questions, of which 50 are asked.

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline

from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import RelativesDisplay

data = make_responses(n_models=61, n_items=400, random_state=0)
known, stranger = data.responses[:60], data.responses[60:].set_axis(["stranger"])
pipe = make_pipeline(AnchorSelector(50, random_state=0), GPIRTEstimator(random_state=0))
pipe.fit(known)
anchors, estimator = pipe[0].get_feature_names_out(), pipe[1]

# %%
# A fine-tune
# -----------
# It has the answers of the eighth model but for one in ten.

rng = np.random.default_rng(0)
changed = rng.random(400) < 0.1
tuned = known.iloc[[7]].set_axis(["tuned"])
tuned.loc[:, changed] = 1 - tuned.loc[:, changed]
_ = RelativesDisplay.from_estimator(pipe, tuned[anchors])

# %%
# A stranger
# ----------
# A model of its own resembles nobody much, and the probability of "none" is shared with models that
# happen to answer alike. Its interval is wider.

# sphinx_gallery_thumbnail_number = 2
_ = RelativesDisplay.from_estimator(pipe, stranger[anchors])

# %%
# Both in figures, and what relatives change. The same as a table: ``estimator.relatives_of``.

both = pd.concat([tuned, stranger])
table = estimator.predict_table(both[anchors]).droplevel("scenario")
table["true"] = both.mean(axis=1)
table["gpirt, relatives off"] = estimator.set_params(relatives=False).predict(both[anchors])
_ = estimator.set_params(relatives="auto")  # read at predict time
table[["gpirt", "std_error", "gpirt, relatives off", "true", "relatives"]].round(3)

# %%
# A model of yours becomes a relative
# -----------------------------------
# You have run one checkpoint in full. Add it, without a refit, and the next ones have a relative.

_ = estimator.add_models(stranger)
changed = rng.random(400) < 0.1
successor = stranger.set_axis(["successor"])
successor.loc[:, changed] = 1 - successor.loc[:, changed]
estimator.predict_table(successor[anchors])[["gpirt", "std_error", "relatives"]].round(3)
