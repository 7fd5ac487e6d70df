"""A new model answers 100 questions per scenario; what would it have scored on all of them?

The benchmark is bundled, so this runs offline. The new model is simulated, so its full score is
known here and can be compared.
"""

import numpy as np

from benchmarks_registry import load_benchmark
from sklearn_irt.kernels.logistic import response_probabilities

tiny = load_benchmark("helm-lite")
print(tiny, "\n")

# A model of the same strength as a known one, but with answers of its own to all 3,504 items.
irt = tiny.estimator.irt_
known = list(tiny.estimator.training_models_).index("meta/llama-2-70b")
probability = response_probabilities(irt.ability_[[known]], irt.discrimination_, irt.difficulty_)
everything = (np.random.default_rng(1).random(probability.shape) < probability).astype(float)[0]

# What you would do: ask the model these items only, and hand in {item id: score}.
responses = dict(zip(tiny.items["item"], everything, strict=True))
answers = {item: responses[item] for item in tiny.anchors()}
table = tiny.estimate(answers)

truth = tiny.items.assign(score=everything).groupby(["scenario", "subscenario"], dropna=False)
truth = truth["score"].mean().groupby("scenario").mean()
truth["(all)"] = truth.mean()
table["true"] = truth
print(f"{len(answers)} of {len(everything)} questions asked; scores in percent:\n")
figures = ["naive", "pirt", "gpirt", "std_error", "low", "high", "true"]
print((100 * table[figures]).round(1).to_string())
print("\nIt resembles:", table["relatives"].iloc[0])
