"""The authors' released benchmarks: their pickle read without executing it, converted once.

Bench, scenario, seen examples: the words of the release. A released benchmark is one bench of the
file, or one scenario of its bench "lb", the Open LLM Leaderboard.
"""

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from benchmarks_registry._benchmark import TinyBenchmark
from benchmarks_registry._format import BenchmarkFileError, write_benchmark_file
from benchmarks_registry._names import RELEASED, canonical_name
from benchmarks_registry._storage import _unpack, read_benchmark
from sklearn_irt import __version__ as sklearn_irt_version
from sklearn_irt.datasets._files import (
    DatasetUnavailableError,
    PublicFile,
    digest,
    get_data_home,
    read_file,
)
from sklearn_irt.datasets._restricted import UntrustedFileError, read_plain_pickle
from sklearn_irt.kernels.mixing import CLUSTER_GAIN

RELEASE = PublicFile(
    "tinyBenchmarks/tinyBenchmarks.pkl",
    "c3b6e426dfe7b100fe6d0ee960398e10a8763254bcead3be80cc6bc15abca284",
    "felipemaiapolo/tinyBenchmarks/e9a8b1031b0340571beb6c9ca3a27891be09a8fd/tinyBenchmarks/"
    "tinyBenchmarks.pkl",
    max_bytes=2**27,
)
# Of the conversion; a cached file of another version is converted again.
CONVERSION = 1
PACKAGE = "tinyBenchmarks"
LICENCE = "MIT"
CITATION = (
    "Maia Polo et al. (2024), tinyBenchmarks: evaluating LLMs with fewer examples, ICML, "
    "arXiv 2402.14992"
)


def read_release(path: str | os.PathLike) -> dict:
    """Read the authors' file, after verifying its sha256 and without executing anything in it.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict
        By bench: "lb", "mmlu", "helm_lite", "alpaca".

    Raises
    ------
    UntrustedFileError
        If it is another file.
    OSError
        If it cannot be read.
    """
    with open(path, "rb") as stream:
        data = stream.read(RELEASE.max_bytes + 1)
    found = digest(data)
    if found != RELEASE.sha256:
        raise UntrustedFileError(
            os.fspath(path),
            f"its sha256 is {found}, that of the released file {RELEASE.sha256}; it was not read",
        )
    return _parse(data, os.fspath(path))


def _parse(data: bytes, name: str) -> dict:
    value = read_plain_pickle(data, name)
    if type(value) is not dict:
        raise UntrustedFileError(name, f"holds a {type(value).__name__}, not a dict of benches")
    return value


class _Scenario(NamedTuple):
    """One scenario of a bench, of n items and k anchors."""

    positions: np.ndarray  # (n,) of its items in the bench, ascending
    strata: np.ndarray  # (n,) subscenario of each item
    subscenarios: tuple[str, ...]  # empty where there is only one
    item_weights: np.ndarray  # (n,) every subscenario counts the same; sum 1
    seen: np.ndarray  # (k,) positions of the anchors, in the order in which they are asked
    weights: np.ndarray  # (k,)
    mixing: float


class _Bench(NamedTuple):
    discrimination: np.ndarray  # (n_items, n_dims)
    difficulty: np.ndarray  # (n_items,)
    scenarios: dict[str, _Scenario]


def _fail(where: str, problem: str) -> None:
    raise BenchmarkFileError(f"{RELEASE.name}: {where} {problem}")


def _entry(mapping: dict, key: str, where: str, kind: type | None = dict) -> Any:
    if key not in mapping:
        _fail(where, f"has no {key!r}, only {sorted(map(str, mapping))[:12]}")
    value = mapping[key]
    if kind is not None and type(value) is not kind:
        _fail(f"{where}[{key!r}]", f"is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _positions(value: Any, n_items: int, where: str) -> np.ndarray:
    if isinstance(value, np.ndarray):
        good = value.ndim == 1 and value.dtype.kind in "iu"
    else:
        good = type(value) in (list, tuple) and all(type(entry) is int for entry in value)
    if not good or len(value) == 0:
        _fail(where, "is not a list of item positions")
    if min(value) < 0 or max(value) >= n_items:
        _fail(where, f"has a position outside of 0 to {n_items - 1}")
    positions = np.array(value, dtype=int)
    if len(np.unique(positions)) != len(positions):
        _fail(where, "has a position more than once")
    return positions


def _numbers(value: Any, shape: tuple, where: str) -> np.ndarray:
    """A numeric array of a shape, None in it standing for any length."""
    if type(value) in (list, tuple) and all(isinstance(entry, int | float) for entry in value):
        value = np.array(value, dtype=float)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        _fail(where, "is not a numeric array")
    same = all(want in (None, got) for want, got in zip(shape, value.shape, strict=False))
    if value.ndim != len(shape) or not same or 0 in value.shape:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        _fail(where, f"has shape {value.shape}, not ({wanted})")
    value = value.astype(float)
    if not np.isfinite(value).all():
        _fail(where, "has values that are not finite")
    return value


def _read_bench(release: dict, key: str) -> _Bench:
    """Check one bench of the release, and give it a form that needs no more checks."""
    where = f"bench {key!r}"
    bench = _entry(release, key, "the release")
    parameters = _entry(bench, "irt_parameters", where)
    loadings = _entry(parameters, "A", f"{where}['irt_parameters']", None)
    loadings = _numbers(loadings, (1, None, None), f"{where}['irt_parameters']['A']")[0].T
    n_items, n_dims = loadings.shape
    intercept = _entry(parameters, "B", f"{where}['irt_parameters']", None)
    intercept = _numbers(intercept, (1, 1, n_items), f"{where}['irt_parameters']['B']")[0, 0]
    seen = _positions(
        _entry(bench, "seen_examples", where, None), n_items, f"{where}['seen_examples']"
    )
    positions = _entry(bench, "scenarios_position", where)
    owner = np.full(n_items, -1)
    members = {}
    for s, name in enumerate(positions):
        label = f"{where}['scenarios_position'][{name!r}]"
        members[name] = np.sort(_positions(positions[name], n_items, label))
        if (owner[members[name]] >= 0).any():
            _fail(label, "has items of another scenario too")
        owner[members[name]] = s
    if not members:
        _fail(f"{where}['scenarios_position']", "is empty")
    # The published function cuts the answers into one slice per scenario, in this order.
    if (owner[seen] < 0).any() or (np.diff(owner[seen]) < 0).any():
        _fail(f"{where}['seen_examples']", "is not in the order of its 'scenarios_position'")
    scenarios = {
        name: _read_scenario(bench, where, name, members[name], seen[owner[seen] == s], n_items)
        for s, name in enumerate(members)
    }
    # The one intercept of an item is subtracted in every dimension.
    return _Bench(np.ascontiguousarray(loadings), n_dims * intercept, scenarios)


def _read_scenario(
    bench: dict, where: str, name: str, members: np.ndarray, seen: np.ndarray, n_items: int
) -> _Scenario:
    parts = {
        part: _entry(_entry(bench, part, where), name, f"{where}[{part!r}]", None)
        for part in ("examples_weights", "optimal_lambdas", "subscenarios_position")
    }
    if not len(seen):
        _fail(f"{where}['seen_examples']", f"has no item of the scenario {name!r}")
    label = f"{where}['examples_weights'][{name!r}]"
    weights = _numbers(parts["examples_weights"], (len(seen),), label)
    if (weights < 0).any() or weights.sum() <= 0:
        _fail(label, "has a negative weight, or only zeros")
    mixing = parts["optimal_lambdas"]
    number = isinstance(mixing, int | float) and not isinstance(mixing, bool)
    if not number or not 0 <= mixing <= 1:
        _fail(f"{where}['optimal_lambdas'][{name!r}]", "is not a number in [0, 1]")
    subscenarios = parts["subscenarios_position"]
    label = f"{where}['subscenarios_position'][{name!r}]"
    if type(subscenarios) is not dict or not subscenarios:
        _fail(label, "is not a dict of item positions")
    stratum = np.full(n_items, -1)
    count = 0
    for t, (sub, value) in enumerate(subscenarios.items()):
        inside = _positions(value, n_items, f"{label}[{sub!r}]")
        stratum[inside], count = t, count + len(inside)
    strata = stratum[members]
    if count != len(members) or (strata < 0).any():
        _fail(label, "does not divide the items of the scenario")
    sizes = np.bincount(strata, minlength=len(subscenarios))
    return _Scenario(
        positions=members,
        strata=strata,
        subscenarios=tuple(subscenarios) if len(subscenarios) > 1 else (),
        item_weights=1.0 / (len(subscenarios) * sizes[strata]),
        seen=seen,
        weights=weights,
        mixing=float(mixing),
    )


def _bias_of(mixing: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Bias at which `paper_mixing` gives this share, where the anchors' mean has this variance."""
    with np.errstate(divide="ignore"):
        bias = np.sqrt(mixing / (1.0 - mixing) * noise)
    # A share of 1 needs a bias beside which the noise is lost in rounding.
    return np.where(mixing < 1.0, bias, 1e9 * np.sqrt(noise))


def _content(release: dict, name: str) -> tuple[dict, dict]:
    """Arrays and metadata of the file of one released benchmark."""
    released = RELEASED[name]
    bench = _read_bench(release, released.bench)
    chosen = bench.scenarios
    if released.scenarios is not None:
        chosen = {key: value for key, value in chosen.items() if key in released.scenarios}
        if len(chosen) != 1:
            wanted = " or ".join(released.scenarios)
            _fail(f"bench {released.bench!r}", f"has no scenario {wanted}: {list(bench.scenarios)}")
    scenarios = list(chosen.values())
    positions = np.concatenate([scenario.positions for scenario in scenarios])
    index = np.repeat(np.arange(len(scenarios)), [len(s.positions) for s in scenarios])
    place = np.full(len(bench.difficulty), -1)
    place[positions] = np.arange(len(positions))
    asked = place[np.concatenate([scenario.seen for scenario in scenarios])]
    order = np.argsort(asked)
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order))
    item_weights = np.concatenate([scenario.item_weights for scenario in scenarios])
    discrimination, difficulty = bench.discrimination[positions], bench.difficulty[positions]
    n_dims = discrimination.shape[1]
    mixing = np.array([scenario.mixing for scenario in scenarios])
    # The responses of a model of average ability, as far as the items tell.
    mean = np.bincount(index, item_weights * expit(-difficulty))
    variance = np.maximum(mean * (1.0 - mean), 1e-6)
    n_anchors = np.array([len(scenario.seen) for scenario in scenarios])
    arrays = {
        "discrimination": discrimination,
        "difficulty": difficulty,
        "prior_precision": np.eye(n_dims),
        "ability": np.empty((0, n_dims)),
        "scenario": index.astype(np.int32),
        "stratum": np.concatenate([s.strata for s in scenarios]).astype(np.int32),
        "item_weights": item_weights,
        "anchors": asked[order].astype(np.int32),
        "anchor_weights": np.concatenate([s.weights for s in scenarios])[order],
        "answer_order": rank,
        "bias": _bias_of(mixing, variance / (CLUSTER_GAIN * n_anchors)),
        "variance": variance,
        "mixing": mixing,
        "training_scores": np.empty((0, len(scenarios))),
        "training_responses": np.empty((0, len(asked)), dtype=np.uint8),
    }
    ids = [f"{key}/{i:05d}" for key, s in chosen.items() for i in range(len(s.positions))]
    meta = {
        "info": {
            "name": name,
            "source": f"{RELEASE.url}, bench {released.bench!r}",
            "licence": LICENCE,
            "citation": CITATION,
            "description": "parameters, anchors, weights and mixing as the authors released them; "
            "no responses of training models are in the release",
            "metric": released.metric,
            "release": {"sha256": RELEASE.sha256, "conversion": CONVERSION},
        },
        "items": ids,
        "scenarios": list(chosen),
        "subscenarios": [list(scenario.subscenarios) for scenario in scenarios],
        "training_models": [],
        "response_range": [0.0, 1.0],
        "response_range_learned": False,
        "gain": CLUSTER_GAIN,
        "estimator": {"estimate": "gpirt", "mixing": "paper", "ability": "mle"},
        "irt": {"n_dims": n_dims, "abilities": "joint"},
        "sklearn_irt_version": sklearn_irt_version,
    }
    return arrays, meta


def convert(release: dict, name: str) -> TinyBenchmark:
    """Make one of the released benchmarks out of the authors' file.

    Parameters
    ----------
    release : dict
        From `read_release`.
    name : str
        A key of `RELEASED`.

    Returns
    -------
    TinyBenchmark
        Its anchors and answer arrays are in the published order; it has no training models.

    Raises
    ------
    BenchmarkFileError
        Where the release has not the structure that the authors' own reader expects.
    """
    return _unpack(*_content(release, name))


def load_released(
    name: str,
    data_home: str | os.PathLike | None = None,
    download_if_missing: bool = True,
) -> TinyBenchmark:
    """Load one of the authors' released benchmarks.

    It is read from the cache; if it is not there, it is converted from the authors' file, which
    is looked for in the cache, in the working folder, in an installed package tinyBenchmarks, and
    downloaded otherwise.

    Parameters
    ----------
    name : str
        In any spelling that `canonical_name` knows.
    data_home : path, default=None
        The cache folder; see :func:`sklearn_irt.datasets.get_data_home`.
    download_if_missing : bool, default=True
        Whether to download the authors' file.

    Returns
    -------
    TinyBenchmark

    Raises
    ------
    ValueError
        Where there is no such benchmark.
    OSError
        If the file can neither be found nor downloaded; says where to put it by hand.
    """
    known = canonical_name(name)
    if known is None:
        raise ValueError(f"there is no released benchmark {name!r}; they are {list(RELEASED)}")
    home = get_data_home(data_home)
    path = converted_path(known, home)
    tiny = _read_converted(path)
    if tiny is not None:
        return tiny
    content = _content(_parse(_find(known, home, download_if_missing), RELEASE.name), known)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_benchmark_file(path, *content)
    except OSError as error:
        # On Windows another process may be reading the same file, just written.
        if _read_converted(path) is None:
            warnings.warn(
                f"{known} cannot be kept in the cache, so it is converted again next time: {error}",
                UserWarning,
                stacklevel=2,
            )
    return _unpack(*content)


def converted_path(name: str, home: Path) -> Path:
    """Where the converted benchmark lies in the cache, apart from those of any other release."""
    return home / "released" / RELEASE.sha256[:16] / f"{name}.npz"


def _read_converted(path: Path) -> TinyBenchmark | None:
    if not path.is_file():
        return None
    try:
        tiny = read_benchmark(path)
    except BenchmarkFileError as error:
        warnings.warn(f"{error} Converting it again.", UserWarning, stacklevel=3)
        return None
    made_from = {"sha256": RELEASE.sha256, "conversion": CONVERSION}
    return tiny if tiny.info.get("release") == made_from else None


def _find(name: str, home: Path, download_if_missing: bool) -> bytes:
    """Bytes of the authors' file, of the pinned hash."""
    cached, name_alone = home / RELEASE.name, Path(RELEASE.name).name
    for path in (cached, *(Path(folder, name_alone) for folder in (".", *_package_folders()))):
        try:
            with open(path, "rb") as stream:
                data = stream.read(RELEASE.max_bytes + 1)
        except OSError:
            continue
        if digest(data) == RELEASE.sha256:
            return data
        if path != cached:
            warnings.warn(
                f"{path} is not the released file (its sha256 is {digest(data)}); it is not used",
                UserWarning,
                stacklevel=3,
            )
    try:
        return read_file(RELEASE, home, download_if_missing)
    except DatasetUnavailableError as error:
        bundled = sorted(path.stem for path in (Path(__file__).parent / "parameters").glob("*.npz"))
        raise DatasetUnavailableError(
            f"{name} is made from the authors' released file, which is not here. {error} A file "
            f"{name_alone} of that hash is also taken from the working folder or an installed "
            f"package {PACKAGE}. These benchmarks are bundled and work offline: "
            f"{', '.join(bundled)}."
        ) from error


def _package_folders() -> list[str]:
    """Folders of an installed package of the authors, which is not imported."""
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except (ImportError, ValueError):
        return []
    return list(spec.submodule_search_locations or []) if spec is not None else []
