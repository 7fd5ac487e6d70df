"""How much a model's score depends on the prompt, from 25 questions a prompt (paper, section 6).

A row is a (model, prompt template) pair. Some models were run with every template on all 500
items. A new model is asked 25 items with each template, other ones each time, and what is wanted
is the mean, the spread (standard deviation) and the quantiles of its score over the templates.
Of these 25 answers, chance alone spreads the mean by 9 points, more than the templates do.

The responses are simulated, so that the truth is known:

    ability(model, template) = ability(model) + effect(template) + effect(model, template)
    P(right answer) = sigmoid(discrimination . ability - difficulty)

in two dimensions; the effects of the templates are a quarter of a standard deviation of the
models' abilities each, about 7 points of score together.
"""

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupKFold

from sklearn_irt import GPIRTEstimator

N_MODELS, N_TEMPLATES, N_ITEMS = 20, 25, 500
N_ASKED = 25
QUANTILES = [0.05, 0.5, 0.95]


def simulate(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Responses of all pairs, and the model of each pair."""
    model = rng.normal(size=(N_MODELS, 1, 2))
    template = rng.normal(scale=0.25, size=(1, N_TEMPLATES, 2))
    both = rng.normal(scale=0.25, size=(N_MODELS, N_TEMPLATES, 2))
    ability = (model + template + both).reshape(-1, 2)
    # The items differ in how much they depend on what each dimension stands for.
    discrimination = rng.lognormal(sigma=0.3, size=(N_ITEMS, 2)) * [1.0, 0.5]
    difficulty = rng.normal(scale=1.2, size=N_ITEMS)
    probability = 1.0 / (1.0 + np.exp(difficulty - ability @ discrimination.T))
    responses = (rng.random(probability.shape) < probability).astype(float)
    return responses, np.repeat(np.arange(N_MODELS), N_TEMPLATES)


def ask(responses: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The answers to a few items of each row, drawn anew for each; NaN is "not asked"."""
    answers = np.full_like(responses, np.nan)
    for row, known in zip(answers, responses, strict=True):
        asked = rng.choice(len(row), N_ASKED, replace=False)
        row[asked] = known[asked]
    return answers


def summary(scores: np.ndarray, excess: float = 0.0) -> np.ndarray:
    """Mean, spread and quantiles over the prompts of one model.

    `excess` is by how much the variance of the scores exceeds that of the truth; for errors that
    are independent of the truth, their mean square. The quantiles are those of the scores drawn
    together (or apart) about their mean until they spread as much as the truth does.
    """
    mean, variance = scores.mean(), scores.var(ddof=1)
    spread = np.sqrt(max(variance - excess, 0.0))
    moved = mean + (scores - mean) * (spread / np.sqrt(variance) if variance > 0 else 0.0)
    return np.array([mean, spread, *np.quantile(np.clip(moved, 0.0, 1.0), QUANTILES)])


def calibration(estimator: GPIRTEstimator, responses: np.ndarray, rng) -> tuple:
    """Offset, slope and noise of the estimates, from the training models asked as a new one is.

    p-IRT draws each estimate towards the mean of *all* models. So its errors are no noise about
    the truth, and they are alike for all prompts of one model: they do not average out. Its
    standard errors do not mend that. Their squares subtracted, as for the naive means, correct
    what is drawn together already. Their squares added, var(estimates) + mean(std**2)
    ("widened"), are right over all pairs of all models; but most of that variance lies between
    the models, and over the prompts of one model it takes for spread what is not known. As they
    are, the estimates are drawn together by the prior and spread by chance, and which is
    stronger depends on the spread.

    So the prior's part is measured and taken out: estimate = offset + slope * truth + noise, and
    only noise is left, which is subtracted.
    """
    truth = responses.mean(axis=1)
    estimates = estimator.predict(ask(responses, rng))
    slope, offset = np.polyfit(truth, estimates, 1)
    noise = np.std(estimates - offset - slope * truth)
    return offset, slope, noise


def main() -> None:
    rng = np.random.default_rng(0)
    responses, model = simulate(rng)
    found = {}
    # Every model is new once, and then none of its pairs is among the training rows.
    for train, new in GroupKFold(4).split(responses, groups=model):
        # Fitted on full rows, all items are anchors: each row can be asked others of them.
        estimator = GPIRTEstimator("pirt", relatives=False, mixing="paper", random_state=0).fit(
            responses[train]
        )
        offset, slope, noise = calibration(estimator, responses[train], rng)
        for name in np.unique(model[new]):
            rows = responses[model == name]
            answers = ask(rows, rng)
            naive, naive_std = estimator.set_params(estimate="naive").predict(
                answers, return_std=True
            )
            pirt, pirt_std = estimator.set_params(estimate="pirt").predict(answers, return_std=True)
            found[name] = {
                "true": summary(rows.mean(axis=1)),
                "naive": summary(naive),
                # These errors are independent of each other and of the truth.
                "naive, corrected": summary(naive, (naive_std**2).mean()),
                "p-IRT": summary(pirt),
                "p-IRT, widened": summary(pirt, -(pirt_std**2).mean()),
                "p-IRT, calibrated": summary((pirt - offset) / slope, (noise / slope) ** 2),
            }
    columns = ["mean", "spread", *(f"{100 * q:.0f} %" for q in QUANTILES)]
    one = pd.DataFrame.from_dict(found[0], orient="index", columns=columns)
    print(f"One new model over {N_TEMPLATES} prompts, {N_ASKED} of {N_ITEMS} items each; percent\n")
    print((100 * one).round(1).to_string())
    errors = [
        pd.DataFrame.from_dict(figures, orient="index", columns=columns) - figures["true"]
        for figures in found.values()
    ]
    error = sum(abs(e) for e in errors).drop(index="true") / len(errors)
    print(f"\nMean absolute error over {N_MODELS} models, each new once; points of 100\n")
    print((100 * error).round(1).to_string())


if __name__ == "__main__":
    main()
