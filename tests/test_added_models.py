"""GPIRTEstimator.add_models: relatives without a refit."""

import pickle

import numpy as np
import pytest
from gpirt_benches import kind


def test_an_added_model_is_the_relative_of_its_copies(families):
    estimator = kind(families.estimator, "gpirt")
    added = families.new.iloc[[2]].rename(index={"new 2": "ours"})
    rng = np.random.RandomState(4)
    copy = added.to_numpy()[0].copy()
    flipped = rng.permutation(len(copy))[:5]
    copy[flipped] = 1 - copy[flipped]
    answers = copy[None, families.selector.anchors_]
    before, before_std = estimator.predict(answers, return_std=True)
    assert estimator.add_models(added) is estimator
    table = estimator.relatives_of(answers, n=1)
    assert table.index[0][1] == "ours" and table["weight"].iloc[0] > 0.5
    assert table["score"].iloc[0] == pytest.approx(added.to_numpy().mean())
    after, after_std = estimator.predict(answers, return_std=True)
    assert abs(after[0] - copy.mean()) <= abs(before[0] - copy.mean())
    assert len(estimator.training_models_) == 41 and estimator.training_models_[-1] == "ours"
    assert families.estimator.training_scores_.shape == (40, 1)  # another estimator


def test_a_model_that_was_fitted_and_one_that_was_added_say_the_same(families):
    """Without the last training model and with it added: scores and noise from its responses."""
    estimator, full = kind(families.estimator, "gpirt"), families.estimator
    for name in ("models", "responses", "abilities", "scores", "noise"):
        name = f"training_{name}_"
        setattr(estimator, name, getattr(estimator, name)[:-1])
    estimator.add_models(families.train.iloc[[-1]])
    np.testing.assert_array_equal(estimator.training_models_, full.training_models_)
    np.testing.assert_array_equal(estimator.training_responses_, full.training_responses_)
    np.testing.assert_allclose(estimator.training_scores_, full.training_scores_, atol=1e-12)
    # Its ability by the most probable value, not by a posterior mean.
    np.testing.assert_array_equal(estimator.training_abilities_[:-1], full.training_abilities_[:-1])
    np.testing.assert_allclose(estimator.training_noise_, full.training_noise_, rtol=0.15)
    expected = full.predict(families.answers)
    np.testing.assert_allclose(estimator.predict(families.answers), expected, atol=0.01)


def test_added_models_may_have_answered_a_part(families):
    estimator = kind(families.estimator, "gpirt")
    columns = list(families.train.columns[::-2])
    estimator.add_models(families.new[columns], names=list("abcd"))
    given = families.new.copy()
    given[[c for c in families.train.columns if c not in columns]] = np.nan
    other = kind(families.estimator, "gpirt").add_models(given.to_numpy(), list("abcd"))
    np.testing.assert_array_equal(estimator.training_scores_, other.training_scores_)
    np.testing.assert_array_equal(estimator.training_responses_, other.training_responses_)
    anchors = estimator.training_responses_[-4:]
    np.testing.assert_array_equal(anchors, given.to_numpy()[:, estimator.anchors_])
    error = estimator.training_scores_[-4:, 0] - families.new.mean(axis=1)
    assert np.abs(error).max() < 0.08
    assert np.isfinite(estimator.predict(families.answers, return_std=True)).all()
    # Half of the answers say less than all of the parent's.
    weights = estimator.relatives_of(families.answers, 1000)["weight"]
    for model, ours in zip(families.new.index, "abcd", strict=True):
        assert weights[(model, ours)] == weights[model].drop("(none)").nlargest(2).loc[ours]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f.new.to_numpy(), None), "names must be given"),
        (lambda f: (f.new, ["a"]), "names has 1 entries, but responses 4 rows"),
        (lambda f: (f.train.iloc[:1], None), "training model's name already"),
        (lambda f: (f.new, ["a", "b", "a", "c"]), "names has 'a'"),
        (lambda f: (f.new.to_numpy()[:, :-1], list("abcd")), "the benchmark has 160 items"),
        (lambda f: (f.new.rename(columns={f.new.columns[0]: "x"}), None), "the item 'x'"),
        (lambda f: (f.new * 2, None), "outside the response range"),
        (lambda f: (f.new.replace(1.0, np.inf), None), "infinite"),
        (lambda f: (f.new * np.nan, None), "'new 0' are all missing"),
        (lambda f: (f.new.replace(1.0, "right"), None), "right"),
    ],
)
def test_bad_models_are_not_added(change, message, families):
    estimator = kind(families.estimator, "gpirt")
    before = pickle.dumps(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.add_models(*change(families))
    assert pickle.dumps(estimator) == before


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [(0, [], "responses has no rows"), (1, [""], "no name for row 0"), (1, [None], "no name")],
)
def test_models_without_a_name_or_answers_are_not_added(families, rows, names, message):
    before = len(families.estimator.training_models_)
    responses = np.zeros((rows, len(families.estimator.item_weights_)))
    with pytest.raises(ValueError, match=message):
        families.estimator.add_models(responses, names)
    assert len(families.estimator.training_models_) == before


@pytest.mark.parametrize("form", [lambda x: x, list, dict, np.array])
def test_one_models_responses_are_a_row(families, form):
    one = families.new.iloc[0]
    with pytest.raises(ValueError, match=r"must be 2-d, a row per model; .*series.to_frame\(\).T"):
        families.estimator.add_models(form(one), ["one"])
    frame = kind(families.estimator, "gpirt").add_models(one.to_frame().T)
    array = kind(families.estimator, "gpirt").add_models(one.to_numpy()[None], [one.name])
    np.testing.assert_array_equal(frame.training_scores_, array.training_scores_)
    assert frame.training_models_[-1] == array.training_models_[-1] == one.name
