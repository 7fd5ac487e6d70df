"""
Asking one question after the other
===================================

A fixed list of questions is the same for all models. A session asks each model what tells most
about it, given its answers so far, and stops when its score is known well enough.
"""

# %%
# Sixty models answered 400 questions: forty independent ones, and twenty fine-tunes of these, which
# share most answers with the one that they come from. Ten more fine-tunes are new.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sklearn_irt import AdaptiveSession, GPIRTEstimator, simulate_adaptive
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import SessionDisplay

rng = np.random.default_rng(0)
data = make_responses(n_models=40, n_items=400, random_state=0)
base = data.responses.to_numpy()
parents = rng.integers(len(base), size=30)
drawn = rng.random((30, 400)) < data.probabilities[parents]
tuned = np.where(rng.random((30, 400)) < 0.75, base[parents], drawn)
names = [f"{data.responses.index[p]}-tuned-{i}" for i, p in enumerate(parents)]
tuned = pd.DataFrame(tuned, names, data.responses.columns)
known, new = pd.concat([data.responses, tuned[:20]]), tuned[20:]

# %%
# One model
# ---------
# The estimator is fitted on all questions, without an ``AnchorSelector``: any may be asked. Five
# are asked at a time, so that they can run in parallel.

estimator = GPIRTEstimator(n_dims=2, random_state=0).fit(known)
model = new.iloc[0]
session = AdaptiveSession(estimator)
while not session.done(target_std=0.02, max_items=100):
    items = session.ask(5)
    session.tell(items, [model[item] for item in items])  # here you would ask your model
print(f"{session.n_asked} questions asked of {model.name}; true score {model.mean():.3f}")
session.estimate().drop(columns="naive").round(3)

# %%
# The running estimate, and its interval:

# sphinx_gallery_thumbnail_number = 1
_ = SessionDisplay.from_session(session, true=model.mean())

# %%
# Worth it?
# ---------
# ``simulate_adaptive`` runs the sessions of models whose answers are known. Beside it: as many
# random questions, estimated in the same way.

sizes = [10, 20, 40, 60]
true = new.mean(axis=1).to_numpy()
adaptive = simulate_adaptive(estimator, new, max(sizes))
errors = pd.DataFrame(index=pd.Index(sizes, name="questions"))
for k in sizes:
    asked = new.where(rng.random(new.shape).argsort(axis=1).argsort(axis=1) < k)
    errors.loc[k, "random"] = 100 * abs(estimator.predict(asked) - true).mean()
    errors.loc[k, "adaptive"] = 100 * abs(adaptive.score[:, k - 1] - true).mean()
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
errors.plot(ax=ax, marker="o", ylabel="mean absolute error (points)", ylim=(0, None))
errors.round(2)
