"""Splitters of models."""

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
        assert "dates must hold dates" in message(split(["soon"] * 40))


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
