"""write_report: one self-contained, safe, legible page."""

import hashlib
import re
import shutil
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import benchmarks_registry
from benchmarks_registry import _report_figures, load_benchmark, save_benchmark, write_report
from benchmarks_registry._format import read_benchmark_file, write_benchmark_file
from sklearn_irt import AnchorSelector, GPIRTEstimator
from sklearn_irt.datasets import make_responses
from sklearn_irt.kernels.logistic import response_probabilities
from sklearn_irt.logs import read_table

pytest.importorskip("jinja2", reason="the extra cli is not installed")
pytest.importorskip("matplotlib", reason="the extra cli is not installed")

VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "it's & $x_1^{2$ {{ 7*7 }}",
    "</style></svg></table>",
    "x" * 150,
    "\x00\x1b control",
]


class Page(HTMLParser):
    """What a test wants to know of a page; unbalanced tags are refused."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.text, self.tables = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes, list(self.open)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append({"caption": False, "rows": []})
        elif tag == "caption":
            self.tables[-1]["caption"] = True
        elif tag == "tr":
            self.tables[-1]["rows"].append([])
        elif tag in ("td", "th"):
            self.tables[-1]["rows"][-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes), list(self.open)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.text.append(data)
        if ("td" in self.open or "th" in self.open) and "svg" not in self.open:
            self.tables[-1]["rows"][-1][-1] += data.strip()

    def words(self):
        return " ".join(" ".join(self.text).split())

    def named(self, *tags):
        return [(tag, attributes) for tag, attributes, _ in self.tags if tag in tags]

    def table(self, *header):
        """Rows below the header of the table that has these columns."""
        for table in self.tables:
            if set(header) <= set(table["rows"][0]):
                return [dict(zip(table["rows"][0], row, strict=False)) for row in table["rows"][1:]]
        raise AssertionError(f"no table with {header}")


def check_page(page):
    """What holds for every page."""
    ids = [attributes["id"] for _, attributes, _ in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert dict(page.named("html"))["html"]["lang"] == "en"
    assert "viewport" in {a.get("name") for _, a in page.named("meta")}
    assert not page.named("script", "img", "iframe", "object", "embed", "base", "form")
    for tag, attributes, _ in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        target = attributes.get("href", "")
        if target.startswith("#"):
            assert target[1:] in ids
        elif tag != "a":
            assert target == "" or target.startswith("data:")
        else:
            assert target.startswith(("https://", "http://"))
        for name in re.findall(r"url\(([^)]*)\)", " ".join(map(str, attributes.values()))):
            assert name[:1] == "#" and name[1:] in ids
        if attributes.get("aria-labelledby"):
            assert attributes["aria-labelledby"] in ids
    for _, attributes in page.named("svg"):
        assert attributes["role"] == "img" and len(attributes["aria-label"]) > 5
    levels = [int(tag[1]) for tag, _ in page.named("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    assert all(table["caption"] for table in page.tables)
    assert all(attributes.get("scope") for _, attributes in page.named("th"))
    for tag, attributes, above in page.tags:
        if tag == "table":
            assert above[-1] == "div"
        if attributes.get("class") == "scroll":
            assert attributes["tabindex"] == "0" and attributes["aria-label"]
    return page


def read(path):
    return check_page(Page(path.read_text("utf-8")))


def number(cell):
    return float(cell.replace("−", "-").replace("%", ""))


@pytest.fixture(scope="module")
def data():
    sizes = {"left": {"a": 30, "b": 60}, "right": 80}
    return make_responses(n_models=50, scenarios=sizes, random_state=3)


@pytest.fixture(scope="module")
def pipe(data):
    labels = data["items"][["scenario", "subscenario"]]
    selector = AnchorSelector(k=15, n_dims=2, scenarios=labels, random_state=0)
    return make_pipeline(selector, GPIRTEstimator(random_state=0)).fit(data.responses[:40])


@pytest.fixture(scope="module")
def saved(pipe, tmp_path_factory):
    heldout = {figure: {"left": 1.5, "right": 2.5} for figure in ("mean", "worst")}
    path = tmp_path_factory.mktemp("report") / "mine.npz"
    return save_benchmark(
        pipe, path, name="mine", source="see https://example.org/x", heldout=heldout, metric="acc"
    )


@pytest.fixture(scope="module")
def tiny(saved):
    return load_benchmark(saved)


@pytest.fixture(scope="module")
def evil(data, tmp_path_factory):
    """A benchmark whose every name is markup, and answers of models named alike."""
    responses = data.responses.copy()
    responses.columns = [
        f"<i>{item}</i>" if i % 2 else f'"><img src=x onerror={item}>'
        for i, item in enumerate(responses.columns)
    ]
    responses.index = [f"{EVIL[i % 5]} {i}" for i in range(len(responses))]
    labels = data["items"][["scenario", "subscenario"]].replace({"left": EVIL[0], "a": EVIL[1]})
    pipe = make_pipeline(
        AnchorSelector(k=15, n_dims=2, scenarios=labels, random_state=0),
        GPIRTEstimator(random_state=0),
    ).fit(responses[:40])
    about = {"source": 'https://example.org/"onclick="alert(1) <script>', "licence": EVIL[3]}
    path = tmp_path_factory.mktemp("evil") / "evil.npz"
    tiny = load_benchmark(save_benchmark(pipe, path, name=EVIL[1], **about))
    return tiny, responses[40:46].set_axis(EVIL)[tiny.anchors()]


@pytest.fixture(scope="module")
def comparison():
    rng = np.random.default_rng(0)
    rows = [
        (strategy, k, split, f"m{model}", "all", true, true + error, 0.02, true - 0.03, true + 0.03)
        for strategy, size in (("random/naive", 0.06), ("design/default", 0.02), (EVIL[0], 0.04))
        for k in (30, 100)
        for split in range(2)
        for model in range(6)
        for true, error in [(0.3 + 0.08 * model, size * rng.normal())]
    ]
    names = "strategy k split model scenario true estimated std low high"
    return pd.DataFrame(rows, columns=names.split())


@pytest.fixture
def without_plots(monkeypatch):
    """For tests of what else is on the page: drawing takes most of the time."""
    monkeypatch.setattr(_report_figures, "benchmark_figures", lambda *_: None)


def test_one_model(saved, tiny, data, tmp_path):
    row = data.responses.iloc[45][tiny.anchors()]
    truth = data.responses.iloc[45].groupby(data["items"]["scenario"].to_numpy()).mean()
    path = write_report(tmp_path / "one.html", saved, row, true=truth.to_dict(), date="2030-01-31")
    assert path == tmp_path / "one.html"
    page, table = read(path), tiny.estimate(row)
    for shown, scenario in zip(
        page.table("naive", "gp-IRT"), ["left", "right", "(all)"], strict=True
    ):
        expected = table.loc[scenario]
        for name, column in (
            ("naive", "naive"),
            ("p-IRT", "pirt"),
            ("gp-IRT", "gpirt"),
            ("std. error", "std_error"),
            ("low", "low"),
            ("high", "high"),
        ):
            assert number(shown[name]) == pytest.approx(100 * expected[column], abs=0.051)
        assert int(shown["answered"]) == expected["answered"]
        true = truth.mean() if scenario == "(all)" else truth[scenario]
        assert number(shown["true"]) == pytest.approx(100 * true, abs=0.051)
    words = page.words()
    assert f"{data.responses.index[45]} on mine" in words
    assert "2030-01-31" in words and "Ranking" not in words
    assert page.named("h1") and "15 questions" in words
    sha = hashlib.sha256(saved.read_bytes()).hexdigest()
    assert sha in words and "see https://example.org/x" in words
    assert "2.00 points of 100, the mean over the scenarios" in words
    sizes = page.table("effective", "held-out error")
    assert [row["held-out error"] for row in sizes] == ["1.50", "2.50"]
    assert [row["asked"] for row in sizes] == ["15", "15"]
    questions = [row for row in page.table("id", "weight")]
    weights = tiny.items.set_index("item")["anchor_weight"]
    assert [q["id"] for q in questions] == tiny.anchors("left")
    for question in questions:
        assert number(question["weight"]) == pytest.approx(100 * weights[question["id"]], abs=0.006)
        assert float(question["answer"]) == row[question["id"]]
        assert question["subscenario"] in ("a", "b")
    kin = tiny.estimator.relatives_of(row.to_frame().T).droplevel("model")
    told = {r["training model"]: number(r["probability"]) for r in page.table("training model")}
    for name, weight in told.items():
        name = "(none)" if name == "none of them" else name
        assert weight == pytest.approx(100 * kin.loc[name, "weight"], abs=0.51)


def test_several_models_are_ranked_and_paired(tiny, data, tmp_path, without_plots):
    answers = data.responses[40:46][tiny.anchors()]
    page = read(write_report(tmp_path / "r.html", tiny, answers))
    rows = page.table("rank", "model")
    table = tiny.estimate(answers).xs("(all)", level="scenario").sort_values("gpirt")[::-1]
    assert [row["model"] for row in rows] == list(table.index)
    first, second = (answers.loc[[name]] for name in table.index[:2])
    compared = tiny.compare(first, second).iloc[-1]
    difference, low, high = re.findall(r"[−+]?[\d.]+", rows[1]["behind the first"])
    assert number(difference) == pytest.approx(100 * compared["difference"], abs=0.051)
    assert number(low) == pytest.approx(100 * compared["low"], abs=0.051)
    assert number(high) == pytest.approx(100 * compared["high"], abs=0.051)
    better = next(value for name, value in rows[0].items() if name.startswith("better"))
    assert number(better) == pytest.approx(100 * (1 - compared["probability_lower"]), abs=0.51)
    close = "Not clearly behind" in page.words()
    assert close == bool((tiny.compare(first, answers.loc[table.index[1:]])["low"] <= 0).any())
    bars = [a for tag, a, above in page.tags if tag == "svg" and above[-1] == "td"]
    assert len(bars) == len(answers) * (1 + 3)
    assert f"{100 * table['gpirt'].iloc[0]:.1f}" in bars[0]["aria-label"]


def test_benchmark_alone(tmp_path):
    page = read(write_report(tmp_path / "b.html", "open-llm-v2"))
    words = page.words()
    assert "The tiny benchmark open-llm-v2" in words and "200 questions stand for 1,297" in words
    assert "Estimates" not in words and "Nothing was found" in words
    sections = [a["href"] for tag, a, above in page.tags if tag == "a" and "nav" in above]
    assert sections == ["#care", "#plots", "#asked", "#provenance"]
    assert len(page.table("id")) == 100 and "answer" not in page.table("id")[0]


def test_markup_in_names_is_text(evil, comparison, tmp_path):
    tiny, answers = evil
    true = {(model, "right"): 0.5 for model in EVIL[:3]}
    path = write_report(
        tmp_path / "evil.html", tiny, answers, comparison=comparison, true=true, title=EVIL[0]
    )
    page = read(path)  # no script, image or handler
    words = page.words()
    for name in [*EVIL[:4], EVIL[4]]:
        assert name in words
    assert not page.named("i", "b")
    assert "\ufffd\ufffd control" in words
    for item in tiny.anchors():
        assert item in words
    plot_text = "".join(
        text for text in re.findall(r"<text[^>]*>(.*?)</text>", path.read_text("utf-8"))
    )
    assert "&lt;script&gt;" in plot_text and "<script" not in plot_text
    read(write_report(tmp_path / "one.html", tiny, answers.iloc[1], title=EVIL[1]))


@pytest.mark.slow
def test_same_input_same_bytes(tiny, data, comparison, tmp_path):
    answers = data.responses[40:43][tiny.anchors()]
    options = {"comparison": comparison, "date": "2030-01-31"}
    first = write_report(tmp_path / "1.html", tiny, answers, **options).read_bytes()
    assert write_report(tmp_path / "2.html", tiny, answers, **options).read_bytes() == first
    other = write_report(tmp_path / "2.html", tiny, answers, **{**options, "date": "2031"})
    assert other.read_bytes().replace(b"Written 2031", b"Written 2030-01-31") == first


def test_the_fingerprint_is_that_of_the_content(tiny, saved, tmp_path, without_plots):
    def fingerprint(benchmark):
        words = read(write_report(tmp_path / "r.html", benchmark)).words()
        return re.search(r"fingerprint ([0-9a-f]{64})", words).group(1)

    again = save_benchmark(tiny, tmp_path / "again.npz", name="another name")
    assert fingerprint(again) == fingerprint(saved) == fingerprint(tiny)
    other = load_benchmark(saved)
    other.estimator.irt_.difficulty_ = other.estimator.irt_.difficulty_ + 1e-9
    assert fingerprint(other) != fingerprint(tiny)


def test_the_date_is_today(tiny, tmp_path, without_plots):
    words = read(write_report(tmp_path / "r.html", tiny)).words()
    assert f"Written {pd.Timestamp.now():%Y-%m-}" in words


def test_released_parameters(saved, tmp_path):
    arrays, meta = read_benchmark_file(saved)
    for name in ("training_noise", "usual_bias", "dispersion", "calibration", "pairing"):
        del arrays[name]
    for name in ("ability", "training_scores", "training_responses"):
        arrays[name] = arrays[name][:0]
    meta = {key: value for key, value in meta.items() if key != "share"}
    meta["training_models"] = []
    meta["estimator"] = {"estimate": "gpirt", "mixing": "paper", "ability": "mle"}
    write_benchmark_file(tmp_path / "released.npz", arrays, meta)
    path = tmp_path / "released.npz"
    ones = dict.fromkeys(load_benchmark(path).anchors(), 1)
    words = read(write_report(tmp_path / "r.html", path, ones)).words()
    assert "Released parameters" in words and "none kept; as released" in words
    assert "not told: the benchmark holds no training models' answers" in words
    assert "Warning of the estimate. 1 of 1 models have no finite" in words
    several = np.random.default_rng(0).integers(0, 2, (3, 30))
    words = read(write_report(tmp_path / "r.html", path, several)).words()
    assert "row_2" in words and "Ranking" in words


def test_ratings_keep_their_unit(tmp_path, without_plots):
    data = make_responses(n_models=30, n_items=60, response="fractional", random_state=0)
    X = 1 + 9 * data.responses
    estimator = GPIRTEstimator(response_range=(1, 10), random_state=0).fit(X[:25])
    path = save_benchmark(estimator, tmp_path / "ratings.npz", name="ratings")
    answers = X[25:28].copy()
    answers.iloc[:, 30:] = np.nan
    page = read(write_report(tmp_path / "r.html", path, answers, true=X[25:28].mean(axis=1)))
    table = load_benchmark(path).estimate(answers)["gpirt"].max()
    assert f"{table:.2f}" in page.words() and "Scores from 1 to 10" in page.words()
    tiny = load_benchmark(path)
    tiny.estimator.set_params(aggregate="mean_win_rate")
    page = read(write_report(tmp_path / "r.html", tiny, answers.iloc[0]))
    rate = tiny.estimate(answers.iloc[0]).loc["(all)", "gpirt"]
    assert f"{100 * rate:.1f}\xa0%" in page.words() or f"{100 * rate:.1f} %" in page.words()
    assert "mean win rate" in page.words()


def test_what_to_be_careful_about(pipe, tiny, data, tmp_path, without_plots):
    answers = data.responses[40:43][tiny.anchors()].copy()
    left, right = ([tiny.anchors().index(i) for i in tiny.anchors(s)] for s in ("left", "right"))
    answers.iloc[0, left[5:]] = np.nan
    answers.iloc[1, right] = np.nan
    a, b, _ = answers.index
    words = read(write_report(tmp_path / "r.html", tiny, answers)).words()
    assert (
        f"Few answers. Fewer than half of the questions were answered: {a} in left (5 of 15)."
        in (words)
    )
    assert f"Scores guessed from the other scenarios: {b} in right." in words
    ones = dict.fromkeys(tiny.anchors(), 1)
    words = read(write_report(tmp_path / "r.html", tiny, ones)).words()
    assert "Estimated above every training model: left, right." in words
    ordinary = data.responses.iloc[10][tiny.anchors()]
    words = read(write_report(tmp_path / "r.html", tiny, ordinary)).words()
    assert "Nothing was found" in words
    path = save_benchmark(pipe, tmp_path / "m.npz", name="m")
    words = read(write_report(tmp_path / "r.html", path, ordinary)).words()
    assert "Accuracy not recorded" in words


def test_unusual_answers_are_named(tiny, data, tmp_path, without_plots, monkeypatch):
    answers = data.responses[40:43][tiny.anchors()]
    table = tiny.estimate(answers)
    odd = table.index.get_level_values("model") == answers.index[1]
    monkeypatch.setattr(tiny, "estimate", lambda *_, **__: table.assign(unusual=odd))
    page = read(write_report(tmp_path / "r.html", tiny, answers))
    marked = [row["model"] for row in page.table("rank") if "(unusual answers)" in row["model"]]
    assert marked == [f"{answers.index[1]}(unusual answers)"]
    words = page.words()
    assert f"Unusual answers. {answers.index[1]}: the answers are unlike" in words


def test_where_the_answers_come_from(tiny, data, tmp_path, without_plots):
    wide = data.responses[40:42][tiny.anchors()].rename_axis("model").reset_index()
    wide.to_csv(tmp_path / "scores.csv", index=False)
    (tmp_path / "notes.txt").write_text("x")
    table = read_table(tmp_path)
    table.attrs["provenance"][0]["metric"] = "acc_norm"
    words = read(write_report(tmp_path / "r.html", tiny, table)).words()
    assert "Where the answers come from" in words and "a file that is no table" in words
    assert "scored by acc_norm, the benchmark's responses by acc" in words
    assert str(tmp_path) not in words


def test_strategies_compared(tiny, comparison, tmp_path, without_plots):
    page = read(write_report(tmp_path / "r.html", tiny, comparison=comparison))
    rows = page.table("strategy", "mean error")
    errors = (comparison["true"] - comparison["estimated"]).abs()
    mean = errors.groupby([comparison["strategy"], comparison["k"]]).mean()
    assert len(rows) == len(mean)
    for row in rows:
        expected = 100 * mean[row["strategy"], int(row["anchors"])]
        assert number(row["mean error"]) == pytest.approx(expected, abs=0.0051)
    labels = [a["aria-label"] for _, a in page.named("svg")]
    assert any("with 100 anchors, best first: design/default" in label for label in labels)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"answers": {"nonsense": 1}}, ValueError, "no item 'nonsense'"),
        ({"benchmark": "no-such-benchmark"}, ValueError, "no benchmark and no file"),
        ({"benchmark": GPIRTEstimator()}, TypeError, "must be a TinyBenchmark.*GPIRTEstimator"),
        ({"title": 3}, ValueError, "title must be a string"),
        ({"true": 0.5}, ValueError, "give answers too"),
        ({"comparison": {"strategy": []}}, TypeError, "must be the DataFrame of"),
        (
            {"comparison": pd.DataFrame({"strategy": ["a"]})},
            ValueError,
            "comparison has no column 'k'",
        ),
        ({"answers": np.ones(30), "true": {"middle": 1}}, ValueError, "true has .*'middle'"),
        ({"answers": np.ones(30), "true": {"left": "high"}}, ValueError, "true must be numbers"),
        ({"answers": np.ones(30), "true": [0.5]}, ValueError, "true must be a number.* got list"),
        ({"answers": np.ones(30), "true": np.ones(1)}, ValueError, "true must be .* got ndarray"),
        ({"answers": np.ones(30), "true": {(): 1}}, ValueError, r"true has \(\), but the models"),
        (
            {"answers": np.ones(30), "true": {("the model",): 1}},
            ValueError,
            "true has .'the model',",
        ),
        ({"answers": np.ones(30), "true": "0.5"}, ValueError, "true must be numbers.*'0.5'"),
        (
            {"answers": np.ones(30), "true": {"left": [1, 2]}},
            ValueError,
            "true must be numbers.*1, 2",
        ),
        ({"answers": np.ones(30), "true": 10**400}, ValueError, "true must be numbers"),
        ({"answers": np.ones(30), "true": True}, ValueError, "true must be numbers.*True"),
        ({"answers": np.ones(30), "true": 50}, ValueError, r"true has the score 50 .*\[0, 1\]"),
        ({"answers": np.ones(30), "true": {"left": -0.1}}, ValueError, "score -0.1 .* 'left'"),
        ({"answers": np.ones(30), "true": -np.inf}, ValueError, "true has the score -inf"),
        (
            {"answers": np.ones(30), "true": pd.Series([0.1, 0.2], ["left", "left"])},
            ValueError,
            "true has 'left' more than once",
        ),
    ],
)
def test_bad_input_is_named_and_leaves_the_old_page(saved, tmp_path, arguments, error, message):
    path = tmp_path / "r.html"
    path.write_text("old")
    options = {"benchmark": saved, **arguments}
    with pytest.raises(error, match=message):
        write_report(path, options.pop("benchmark"), **options)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": None}, r"comparison has no value \(NaN\) in the column 'k'"),
        ({"estimated": "0.5"}, "comparison has '0.5' in the column 'estimated'"),
        ({"scenario": "left"}, "comparison has no row of the scenario 'all'"),
    ],
)
def test_wrong_cells_of_the_comparison(saved, comparison, tmp_path, change, words):
    with pytest.raises(ValueError, match=words):
        write_report(tmp_path / "r.html", saved, comparison=comparison.assign(**change))
    with pytest.raises(ValueError, match="comparison has no rows"):
        write_report(tmp_path / "r.html", saved, comparison=comparison.iloc[:0])
    assert not list(tmp_path.iterdir())


def test_true_scores_that_are_not_known(saved, tmp_path, without_plots):
    def words(**options):  # of a fixed date: a minute may end between two pages
        path = write_report(tmp_path / "r.html", saved, np.ones(30), date="2030-01-31", **options)
        return read(path).words()

    for true in ({}, {"left": None}, {"left": pd.NA}, np.array(np.nan)):
        assert words(true=true) == words()
    assert "100.0" in words(true=np.array(1))


def test_models_of_one_name_and_bad_folders(tiny, data, tmp_path):
    twice = data.responses.iloc[[40, 40]][tiny.anchors()]
    with pytest.raises(ValueError, match="more than once; rename"):
        write_report(tmp_path / "r.html", tiny, twice)
    with pytest.raises(FileNotFoundError, match="Create the folder"):
        write_report(tmp_path / "none" / "r.html", tiny)
    with pytest.raises(IsADirectoryError, match="file name"):
        write_report(tmp_path, tiny)
    assert not list(tmp_path.iterdir())


def test_without_the_extra(tiny, tmp_path, monkeypatch):
    for missing in ("jinja2", "matplotlib"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, missing, None)
            with pytest.raises(ImportError, match=rf"needs {missing} .*sklearn-irt\[cli\]"):
                write_report(tmp_path / "r.html", tiny)
    code = (
        "import sys, benchmarks_registry; benchmarks_registry.write_report\n"
        "print(sorted({'jinja2', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_many_models_stay_small(tmp_path):
    tiny = load_benchmark("helm-lite")
    irt = tiny.estimator.irt_
    probability = response_probabilities(irt.ability_[:30], irt.discrimination_, irt.difficulty_)
    answers = (np.random.default_rng(0).random(probability.shape) < probability).astype(float)
    answers = pd.DataFrame(answers, [f"org/model-{i}" for i in range(30)], tiny.items["item"])
    path = write_report(tmp_path / "r.html", tiny, answers[tiny.anchors()])
    assert path.stat().st_size < 2e6
    read(path)


def luminance(colour):
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_contrast():
    folder = Path(benchmarks_registry.__file__).parent / "templates"
    css = (folder / "report.css").read_text("utf-8")
    themes = [
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", block))
        for block in re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)
    ]
    assert len(themes) == 3  # light, dark, print
    pairs = [
        ("text", "page", 4.5),
        ("text", "soft", 4.5),
        ("muted", "page", 4.5),
        ("muted", "soft", 4.5),
        ("accent", "page", 4.5),
        ("care-text", "care", 4.5),
        ("care-line", "page", 2.4),
    ]
    for theme in themes:
        for front, back, least in pairs:
            high, low = sorted((luminance(theme[front]), luminance(theme[back])), reverse=True)
            assert (high + 0.05) / (low + 0.05) >= least, (front, back)


@pytest.mark.slow
def test_in_a_browser(evil, comparison, tmp_path):
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if browser is None:
        pytest.skip("no chromium is installed")
    tiny, answers = evil
    path = write_report(tmp_path / "r.html", tiny, answers, comparison=comparison)
    text = path.read_text("utf-8")
    expected = Page(text)
    # A window is at least 500 pixels wide, a frame is not; its page is looked at from outside.
    probe = (
        "const page = frames[0].document, root = page.documentElement;"
        "document.body.textContent = 'found ' + [frames[0].innerWidth, root.scrollWidth, "
        "...['svg', 'script,img,b', 'main table'].map(s => page.querySelectorAll(s).length)]"
        ".join(' ') + ' end';"
    )
    for width in (360, 1200):
        frame = f'<iframe width="{width}" height="800" style="border:0" srcdoc="{escape(text)}">'
        around = tmp_path / "around.html"
        around.write_text(f'<body onload="{escape(probe)}">{frame}</iframe></body>', "utf-8")
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1300,900"]
        done = subprocess.run(
            [*command, "--dump-dom", around.as_uri()], capture_output=True, text=True, timeout=120
        )
        found = re.search(r"found ([\d ]+) end", done.stdout)
        assert found, done.stderr[-2000:]
        inner, scroll, svgs, foreign, tables = map(int, found.group(1).split())
        assert inner == width and scroll <= inner  # wide tables scroll in their own boxes
        assert svgs == len(expected.named("svg")) and foreign == 0
        assert tables == len(expected.tables)
