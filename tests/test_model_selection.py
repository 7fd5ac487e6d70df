"""Splitters of models."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from sklearn_irt import IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.model_selection import (
    HeldOutGroupsSplit,
    NewestModelsSplit,
    RandomModelsSplit,
    StrongestModelsSplit,
)


@pytest.fixture
def responses():
    rng = np.random.default_rng(0)
    return (rng.random((40, 30)) < np.linspace(0.2, 0.9, 40)[:, None]).astype(float)


class TestRandomModelsSplit:
    def test_splits_a_quarter_off_and_covers_all(self, responses):
        splits = list(RandomModelsSplit(20, random_state=0).split(responses))
        assert len(splits) == 20
        for train, new in splits:
            assert len(new) == 10
            assert sorted([*train, *new]) == list(range(40))
        assert len({tuple(new) for _, new in splits}) > 15

    def test_the_same_seed_gives_the_same_splits(self, responses):
        first, second = (
            [tuple(new) for _, new in RandomModelsSplit(3, random_state=5).split(responses)]
            for _ in range(2)
        )
        assert first == second

    def test_equal_rows_stay_together_also_with_missing_answers(self, responses):
        responses[:, 3] = np.nan
        responses[7] = responses[30] = responses[31]
        for _, new in RandomModelsSplit(30, random_state=0).split(responses):
            assert len({7, 30, 31} & set(new)) in (0, 3)

    def test_rows_of_one_name_stay_together_and_row_numbers_are_no_names(self, responses):
        names = [f"m{i}" for i in range(40)]
        names[11] = names[12]
        for _, new in RandomModelsSplit(30, random_state=0).split(pd.DataFrame(responses, names)):
            assert len({11, 12} & set(new)) in (0, 2)
        plain = pd.DataFrame(responses)
        assert len(next(RandomModelsSplit(1, random_state=0).split(plain))[1]) == 10

    def test_groups_and_equal_rows_join(self, responses):
        responses[4] = responses[5]
        groups = [None] * 40
        groups[5] = groups[6] = "org"
        for _, new in RandomModelsSplit(30, random_state=0).split(responses, groups=groups):
            assert len({4, 5, 6} & set(new)) in (0, 3)

    def test_a_group_larger_than_the_share_is_not_split(self, responses):
        groups = ["a"] * 20 + ["b"] * 20
        for train, new in RandomModelsSplit(5, random_state=0).split(responses, None, groups):
            assert len(train) == len(new) == 20

    def test_says_what_is_wrong(self, responses, message):
        same = np.ones((4, 3))
        assert "no two models that differ" in message(lambda: list(RandomModelsSplit().split(same)))
        assert "test_size must be" in message(
            lambda: list(RandomModelsSplit(test_size=1.5).split(responses))
        )
        assert "leaves none of 40 models" in message(
            lambda: list(RandomModelsSplit(test_size=40).split(responses))
        )
        assert "n_splits must be" in message(lambda: list(RandomModelsSplit(0).split(responses)))
        assert "groups has 3 labels, but X has 40 models" in message(
            lambda: list(RandomModelsSplit().split(responses, groups=[1, 2, 3]))
        )
        for wrong in (np.zeros((40, 2)), "a", [["a"], ["b", "c"]] * 20):
            assert "groups must" in message(
                lambda wrong=wrong: list(RandomModelsSplit().split(responses, groups=wrong))
            )

    def test_is_a_cv_of_scikit_learn(self):
        data = make_responses(n_models=40, n_items=60, n_dims=1, random_state=0)
        scores = cross_val_score(
            IRTRegressor(1), data.responses, cv=RandomModelsSplit(3, random_state=0)
        )
        assert scores.shape == (3,)
        assert (scores > -0.7).all()
        assert "n_splits=2" in repr(RandomModelsSplit(2))


class TestNewestModelsSplit:
    def test_the_newest_are_new_and_the_undated_are_nowhere(self, responses):
        dates = pd.Series(pd.date_range("2024-01-01", periods=40, freq="D")[::-1])
        dates[3] = pd.NaT
        ((train, new),) = NewestModelsSplit(dates, test_size=0.25).split(responses)
        assert new.tolist() == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
        assert train.tolist() == list(range(11, 40))
        assert NewestModelsSplit(dates).get_n_splits() == 1

    def test_no_day_is_on_both_sides(self, responses):
        dates = ["2024-01-01"] * 20 + ["2024-01-02 08:00"] * 10 + ["2024-01-02 20:00"] * 10
        ((train, new),) = NewestModelsSplit(dates, test_size=10).split(responses)
        assert (len(train), len(new)) == (20, 20)

    def test_dates_are_matched_by_name(self, responses):
        X = pd.DataFrame(responses, [f"m{i}" for i in range(40)])
        dates = pd.Series(pd.date_range("2024-01-01", periods=40), X.index)
        expected = next(NewestModelsSplit(dates, 5).split(X))
        found = next(NewestModelsSplit(dates.sample(frac=1, random_state=0), 5).split(X))
        assert found[1].tolist() == expected[1].tolist() == [35, 36, 37, 38, 39]

    def test_says_what_is_wrong(self, responses, message):
        def split(dates):
            return lambda: list(NewestModelsSplit(dates).split(responses))

        assert "dates has 2 dates, but X has 40" in message(split(["2024-01-01", "2024-01-02"]))
        assert "fewer than two different days" in message(split(["2024-01-01"] * 40))
        for wrong in ("soon", "2024-13-01", 1.7e9, 2024.5, np.inf, -5, True, [1], object()):
            text = message(split([None, wrong, *["2024-01-01"] * 38]))
            assert "dates must hold dates" in text and "for row 1 (model)" in text
            assert repr(wrong) in text and "\n" not in text
        many = np.vstack([responses, responses])
        text = message(lambda: list(NewestModelsSplit([[1]] * 80).split(many)))
        assert "got [1] for row 0 (model)" in text
        for wrong in (None, "2024-01-01", 2024, {"m0": "2024-01-01"}, iter(["2024"])):
            assert "dates must be a sequence" in message(split(wrong))
        assert "dates must have shape" in message(split(np.zeros((40, 2))))
        named = pd.DataFrame(responses, [f"m{i}" for i in range(40)])
        text = message(lambda: list(NewestModelsSplit(["soon"] * 40).split(named)))
        assert "got 'soon' for model 'm0'" in text

    @pytest.mark.parametrize("kind", [int, float, str, object, "Int64", np.int16])
    def test_years(self, responses, kind):
        years = pd.Series([2023] * 20 + [2024] * 10 + [2022] * 10).astype(kind)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for given in (years, years.to_numpy(), years.tolist()):
                ((train, new),) = NewestModelsSplit(given).split(responses)
                assert new.tolist() == list(range(20, 30)) and len(train) == 30

    def test_years_among_dates_and_missing_ones(self, responses):
        years = np.full(40, 2023.0)
        years[:5], years[7] = 2024, np.nan
        ((train, new),) = NewestModelsSplit(years).split(responses)
        assert new.tolist() == [0, 1, 2, 3, 4] and 7 not in train
        mixed = [2024, "2024-01-02", None, "", pd.NA, pd.NaT, "nan", *[2023] * 33]
        ((train, new),) = NewestModelsSplit(mixed, 2).split(responses)
        assert new.tolist() == [0, 1] and train.tolist() == list(range(7, 40))

    @pytest.mark.parametrize("unit", ["D", "s", "ns"])
    def test_days_of_numpy(self, responses, unit):
        days = np.datetime64("2024-01-01") + np.arange(40)
        days = days.astype(f"datetime64[{unit}]")
        days[39] = np.datetime64("NaT")
        for given in (days, pd.DatetimeIndex(days), list(days)):
            ((train, new),) = NewestModelsSplit(given, 2).split(responses)
            assert new.tolist() == [37, 38] and len(train) == 37

    def test_months(self, responses):
        months = pd.period_range("2021-01", periods=40, freq="M")
        for given in (months, pd.Series(months), list(months)):
            ((_, new),) = NewestModelsSplit(given, 2).split(responses)
            assert new.tolist() == [38, 39]

    def test_models_that_the_series_lacks_are_left_out(self, responses):
        X = pd.DataFrame(responses, [f"m{i}" for i in range(40)])
        dates = pd.Series(pd.date_range("2024-01-01", periods=40), X.index)
        some = dates.drop(["m39", "m0"]).sample(frac=1, random_state=0)
        some["other"] = pd.Timestamp("2030-01-01")
        ((train, new),) = NewestModelsSplit(some, 2).split(X)
        assert new.tolist() == [37, 38] and train.tolist() == list(range(1, 37))
        long = pd.concat([some, pd.Series(pd.Timestamp("2023-01-01"), ["x", "y", "z"])])
        assert next(NewestModelsSplit(long, 2).split(X))[1].tolist() == [37, 38]

    def test_row_numbers_are_no_names(self, responses):
        X = pd.DataFrame(responses, [f"m{i}" for i in range(40)])
        days = pd.date_range("2024-01-01", periods=40)
        for dates in (pd.Series(days), pd.Series(days, X.index)):
            for table in (X, responses, X.reset_index(drop=True)):
                ((_, new),) = NewestModelsSplit(dates, 2).split(table)
                assert new.tolist() == [38, 39]

    def test_numbered_models_in_another_order(self, responses):
        dates = pd.Series(pd.date_range("2024-01-01", periods=40))
        order = np.random.default_rng(0).permutation(40)
        ((_, new),) = NewestModelsSplit(dates, 2).split(pd.DataFrame(responses).iloc[order])
        assert set(order[new]) == {38, 39}
        ((_, new),) = NewestModelsSplit(dates.iloc[order], 2).split(pd.DataFrame(responses))
        assert new.tolist() == [38, 39]

    def test_names_that_do_not_match(self, responses, message):
        X = pd.DataFrame(responses, [f"m{i}" for i in range(40)])
        days = pd.Series(pd.date_range("2024-01-01", periods=40), X.index)
        other = days.set_axis([f"n{i}" for i in range(40)])
        text = message(lambda: list(NewestModelsSplit(other).split(X)))
        assert "dates has none of the models of X (the first is 'm0')" in text
        twice = pd.concat([days, days.iloc[3:5]])
        text = message(lambda: list(NewestModelsSplit(twice).split(X)))
        assert "dates has the model 'm3' more than once" in text


class TestStrongestModelsSplit:
    def test_the_weakest_train_and_the_strongest_are_new(self, responses):
        ((train, new),) = StrongestModelsSplit().split(responses)
        mean = responses.mean(axis=1)
        assert (len(train), len(new)) == (20, 12)
        assert mean[train].max() <= mean[new].min()

    def test_y_is_the_strength(self, responses):
        ((train, new),) = StrongestModelsSplit(3, 2).split(responses, np.arange(40)[::-1])
        assert (train.tolist(), new.tolist()) == ([37, 38, 39], [0, 1])

    def test_says_what_is_wrong(self, responses, message):
        assert "lower one of them" in message(
            lambda: list(StrongestModelsSplit(0.8, 0.3).split(responses))
        )
        for y in (
            ["high"] * 40,
            ["0.5"] * 40,
            np.ones((40, 1)),
            0.5,
            [10**400] * 40,
            [[1], [1, 2]],
        ):
            assert "y must be the strength of each model" in message(
                lambda y=y: list(StrongestModelsSplit().split(responses, y))
            )
        assert "row 3 (model) is NaN" in message(
            lambda: list(StrongestModelsSplit().split(responses, [1, 2, 3, None] * 10))
        )
        responses[2] = np.nan
        assert "row 2 (model) is NaN" in message(
            lambda: list(StrongestModelsSplit().split(responses))
        )


class TestHeldOutGroupsSplit:
    makers = ["a", "b", "c", "d"] * 10

    def test_a_sequence_is_one_split_and_sequences_are_several(self, responses):
        one = HeldOutGroupsSplit(["a", "b"])
        ((train, new),) = one.split(responses, groups=self.makers)
        assert {self.makers[i] for i in new} == {"a", "b"}
        assert len(train) == 20
        several = HeldOutGroupsSplit([["a"], ["b", "c"]])
        sizes = [len(new) for _, new in several.split(responses, groups=self.makers)]
        assert sizes == [10, 20]
        assert (one.get_n_splits(), several.get_n_splits()) == (1, 2)

    def test_a_mask_of_special_models(self, responses):
        special = np.arange(40) < 6
        ((train, new),) = HeldOutGroupsSplit([True]).split(responses, groups=special)
        assert new.tolist() == list(range(6))

    def test_says_what_is_wrong(self, responses, message):
        def split(out, groups=self.makers):
            return lambda: list(HeldOutGroupsSplit(out).split(responses, groups=groups))

        assert "groups must be given" in message(split(["a"], None))
        assert "names 'e', but no model" in message(split(["e"]))
        assert "holds every model out" in message(split(list("abcd")))
        assert "must be a sequence of group labels" in message(split("a"))
        assert "mixes labels" in message(split(["a", ["b"]]))
        assert "groups_out names no group for split 0" in message(split([[]]))
        assert "groups_out names no group for split 1" in message(split([["a"], ()]))
        assert "must be a sequence of group labels" in message(split(np.array(5)))
        assert "groups must have shape (n_models,)" in message(split(["a"], np.zeros((40, 2))))
        assert "groups must have shape (n_models,)" in message(split(["a"], "abcd"))
        assert "one label for each model, got ['a'] for row 0 (model)" in message(
            split(["a"], [["a"], ["b", "c"]] * 20)
        )
