"""GPIRTEstimator.relatives_of: whom models resemble."""

import numpy as np
import pytest
from gpirt_benches import kind


def test_relatives_are_named_with_weights_and_scores(families):
    table = families.estimator.relatives_of(families.answers, n=3)
    assert table.index.names == ["model", "relative"]
    assert list(table.columns) == ["weight", "score"]
    names = families.train.index
    twins = f"{names[3]} = {names[7]}"
    truth = families.train.mean(axis=1)
    for model, parent in zip(families.new.index, families.parents, strict=True):
        rows = table.loc[model]
        assert len(rows) == 4 and rows.index[-1] == "(none)"
        weights = rows["weight"].to_numpy()
        assert (np.diff(weights[:-1]) <= 0).all() and weights.sum() <= 1 + 1e-9
        nearest = twins if parent == names[3] else parent
        assert rows.index[0] == nearest and weights[0] > 0.8
        assert rows["score"].iloc[0] == pytest.approx(truth[parent])
        assert np.isnan(rows["score"].iloc[-1])
    everyone = families.estimator.relatives_of(families.answers, n=1000)
    assert len(everyone) == 4 * 40  # 38 models, a pair of twins, and none
    np.testing.assert_allclose(everyone["weight"].groupby(level="model").sum(), 1.0)


def test_relatives_column_of_the_table(families):
    words = families.estimator.predict_table(families.answers)["relatives"]
    table = families.estimator.relatives_of(families.answers, n=2)
    for model in families.new.index:
        text = words[model].iloc[0]
        none = table.loc[(model, "(none)"), "weight"]
        assert text.endswith(f"none {none:.0%}")
        weight = table.loc[model, "weight"].iloc[0]
        assert f" {weight:.0%}, " in text
    first = words[families.new.index[1]].iloc[0]
    assert first.startswith(f"{families.parents[1]} ")
    off = kind(families.estimator, "gpirt", relatives=False)
    assert (off.predict_table(families.answers)["relatives"] == "off").all()


def test_relatives_of_nobody_are_refused(families):
    off = kind(families.estimator, "gpirt", relatives=False)
    with pytest.raises(ValueError, match="relatives are off: relatives=False"):
        off.relatives_of(families.answers)
    nobody = kind(families.estimator, "gpirt")
    for name in ("models", "responses", "abilities", "scores", "noise"):
        name = f"training_{name}_"
        setattr(nobody, name, getattr(nobody, name)[:0])
    with pytest.raises(ValueError, match="holds no training models"):
        nobody.relatives_of(families.answers)
    table = nobody.predict_table(families.answers)
    assert (table["relatives"] == "off: no training answers").all()
    assert "unusual" not in table
    np.testing.assert_allclose(nobody.predict(families.answers), off.predict(families.answers))


def test_relatives_are_read_at_predict_time(families):
    predicted = {
        share: kind(families.estimator, "gpirt", relatives=share).predict(families.answers)
        for share in (False, 0.0, 0.3, 0.9, "auto")
    }
    np.testing.assert_array_equal(predicted[0.0], predicted[False])
    learned = kind(families.estimator, "gpirt", relatives=families.estimator.share_)
    np.testing.assert_array_equal(predicted["auto"], learned.predict(families.answers))
    assert 0.0 < families.estimator.share_ < 1.0
    assert (predicted[0.3] != predicted[False]).any() and (predicted[0.3] != predicted[0.9]).any()
    truth = families.new.mean(axis=1)
    alone = kind(families.estimator, "gpirt", relatives=False).predict(families.answers)
    assert np.abs(predicted["auto"] - truth).mean() < np.abs(alone - truth).mean()


def test_a_twin_of_a_training_model_changes_no_other_estimate(families):
    estimator = kind(families.estimator, "gpirt")
    expected = estimator.predict(families.answers, return_std=True)
    for name in ("responses", "abilities", "scores", "noise"):
        name = f"training_{name}_"
        values = getattr(estimator, name)
        setattr(estimator, name, np.concatenate([values, values[[12]]]))
    estimator.training_models_ = np.append(estimator.training_models_, "twin")
    found = estimator.predict(families.answers, return_std=True)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    relatives = estimator.relatives_of(families.answers.iloc[[1]], n=1)
    assert relatives.index[0][1] == f"{families.parents[1]} = twin"


@pytest.mark.parametrize("n", [0, -1, 1.5, True, None])
def test_a_number_of_relatives_that_is_none_is_refused(families, n):
    with pytest.raises(ValueError, match="n must be an integer of at least 1"):
        families.estimator.relatives_of(families.answers, n=n)
