"""Relatives of one model."""

import copy

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from benchmarks_registry import load_benchmark
from sklearn_irt import AnchorSelector, GPIRTEstimator, IRTRegressor
from sklearn_irt.datasets import make_responses
from sklearn_irt.plots import RelativesDisplay

matplotlib.use("Agg")
DATA = make_responses(n_models=32, n_items=60, random_state=0)
NEW = DATA.responses.iloc[30]


@pytest.fixture(scope="module")
def pipe():
    selector = AnchorSelector(k=20, n_dims=1, random_state=0)
    estimator = GPIRTEstimator(relatives=0.5, random_state=0)
    return make_pipeline(selector, estimator).fit(DATA.responses[:30])


@pytest.fixture(scope="module")
def tiny():
    return load_benchmark("arc-challenge")


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def widths(display: RelativesDisplay) -> list[float]:
    return [bar.get_width() for bar in display.bars_]


def labels(display: RelativesDisplay) -> list[str]:
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_bars_are_the_relatives_table(pipe):
    names = pipe[0].get_feature_names_out()
    table = pipe[1].relatives_of(DATA.responses.iloc[[30]][names], n=3)
    display = RelativesDisplay.from_estimator(pipe, NEW[names], n=3)
    assert widths(display) == table["weight"].tolist()
    assert display.table.index.tolist() == table.index.get_level_values("relative").tolist()
    expected = [f"{name} ({100 * score:.1f})" for name, score in display.table["score"].items()]
    assert labels(display) == [*expected[:-1], "none of them"]


def test_answers_of_every_form_are_the_same(pipe):
    names = pipe[0].get_feature_names_out()
    values = NEW[names].to_numpy()
    tidy = pd.DataFrame({"model": "a", "item": names, "score": values})
    forms = [values, values[None], values.tolist(), NEW, NEW.to_dict(), tidy]
    forms += [DATA.responses.iloc[[30]], NEW[names[::-1]], pd.DataFrame([values])]
    found = [widths(RelativesDisplay.from_estimator(pipe, form)) for form in forms]
    assert all(row == found[0] for row in found)


def test_items_left_out_are_not_asked(pipe):
    names = pipe[0].get_feature_names_out()
    partial = pd.DataFrame([NEW[names]], columns=names)
    partial.iloc[:, 5:] = np.nan
    expected = pipe[1].relatives_of(partial)["weight"].tolist()
    assert widths(RelativesDisplay.from_estimator(pipe, NEW[names[:5]])) == expected


def test_items_without_names(message):
    estimator = GPIRTEstimator(n_dims=1, relatives=0.5, random_state=0)
    estimator.fit(DATA.responses[:30].to_numpy())
    values = NEW.to_numpy()
    expected = estimator.relatives_of(values[None])["weight"].tolist()
    assert widths(RelativesDisplay.from_estimator(estimator, values)) == expected
    assert widths(RelativesDisplay.from_estimator(estimator, pd.DataFrame([values]))) == expected
    text = message(RelativesDisplay.from_estimator, estimator, dict(enumerate(values)))
    assert "items have no names" in text


def test_loaded_benchmark_by_id_and_in_order(tiny):
    anchors, estimator = tiny.anchors(), tiny.estimator
    copy = pd.DataFrame(
        estimator.training_responses_, columns=tiny.items["item"].iloc[estimator.anchors_]
    ).iloc[7]
    by_id = RelativesDisplay.from_estimator(tiny, copy.to_dict())
    in_order = RelativesDisplay.from_estimator(tiny, copy[anchors].to_numpy())
    assert widths(by_id) == widths(in_order)
    assert estimator.training_models_[7] in by_id.table.index[0]
    assert by_id.table["weight"].iloc[0] > 0.3


def test_twins_are_named_by_the_first():
    index = pd.Index(["a = b = c", "(none)"], name="relative")
    table = pd.DataFrame({"weight": [0.7, 0.3], "score": [0.5, np.nan]}, index)
    assert labels(RelativesDisplay(table).plot()) == ["a (+2 equal) (50.0)", "none of them"]


def test_refused(pipe, tiny, message):
    show = RelativesDisplay.from_estimator
    assert "2 models: choose one of them" in message(show, pipe, DATA.responses.iloc[:2])
    assert "anchors are needed" in message(show, pipe, np.ones((2, 20)))
    assert "anchors are needed" in message(show, tiny, [1, 0])
    assert "no item 'x'; ids look like" in message(show, pipe, {"x": 1})
    assert "more than once" in message(show, pipe, pd.concat([NEW, NEW[:1]]))
    assert "n must be" in message(show, pipe, NEW, n=0)
    tidy = pd.DataFrame({"model": ["a", "b"], "item": NEW.index[:2], "score": 1})
    assert "2 models" in message(show, pipe, tidy)
    with pytest.raises(TypeError, match="got IRTRegressor"):
        show(IRTRegressor(n_dims=1).fit(DATA.responses), NEW)
    off = copy.copy(pipe[1]).set_params(relatives=False)
    assert "relatives are off" in message(show, off, NEW)
    assert not plt.get_fignums()
