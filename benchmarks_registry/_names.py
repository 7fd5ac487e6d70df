"""Names of benchmarks and where their files are; nothing heavy is imported for them."""

import os
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

BUNDLED_FOLDER = Path(__file__).parent / "parameters"
FOLDER_VARIABLE = "SKLEARN_IRT_BENCHMARKS"
ENTRY_POINT_GROUP = "sklearn_irt.benchmarks"


class Known(NamedTuple):
    """A benchmark that can be named, and how its path is found."""

    name: str
    kind: str  # bundled, folder, package
    path: Callable[[], str | os.PathLike]


class Released(NamedTuple):
    """One public benchmark of the authors' release."""

    bench: str  # its key in the released file
    scenarios: tuple[str, ...] | None  # spellings of the one that is meant; None: all of the bench
    metric: str  # what the answers of the training models were scored with
    aliases: tuple[str, ...] = ()  # of lm-evaluation-harness and Hugging Face


TRUTHFULQA = ("truthfulqa", "harness_truthfulqa_mc_0")
RELEASED = {
    "tinyMMLU": Released("mmlu", None, "acc"),
    "tinyArc": Released("lb", ("arc",), "acc_norm", ("tinyAI2_arc",)),
    "tinyHellaswag": Released("lb", ("hellaswag",), "acc_norm"),
    "tinyGSM8k": Released("lb", ("gsm8k",), "acc"),
    "tinyTruthfulQA": Released("lb", TRUTHFULQA, "mc2", ("tinyTruthfulQA_mc1",)),
    "tinyWinogrande": Released("lb", ("winogrande",), "acc"),
    "tinyAlpacaEval": Released("alpaca", None, "win rate"),
    "tinyHelmLite": Released("helm_lite", None, "that of each HELM Lite scenario"),
    "tinyBenchmarks": Released(
        "lb",
        None,
        "truthfulqa mc2, gsm8k acc, winogrande acc, arc acc_norm, hellaswag acc_norm, mmlu acc",
    ),
}
_SPELLINGS = {
    spelling.lower(): name
    for name, released in RELEASED.items()
    for spelling in (name, *released.aliases)
}


def canonical_name(name: str) -> str | None:
    """Find a released benchmark by any of its spellings.

    Parameters
    ----------
    name : str
        As lm-evaluation-harness ("tinyArc") or Hugging Face ("tinyBenchmarks/tinyAI2_arc") spell
        it, without regard to case.

    Returns
    -------
    str or None
        The name in `RELEASED`; None where it is none of them.

    Examples
    --------
    >>> from benchmarks_registry._names import canonical_name
    >>> canonical_name("tinyBenchmarks/tinyAI2_arc"), canonical_name("tinymmlu")
    ('tinyArc', 'tinyMMLU')
    """
    lowered = name.strip().lower()
    owner, slash, rest = lowered.partition("/")
    return _SPELLINGS.get(rest if slash and owner == "tinybenchmarks" else lowered)


def known_files() -> dict[str, Known]:
    """Benchmark files by lower-case name; the first of a name counts."""
    found = [Known(path.stem, "bundled", lambda path=path: path) for path in _files(BUNDLED_FOLDER)]
    for folder in filter(None, os.environ.get(FOLDER_VARIABLE, "").split(os.pathsep)):
        found += [Known(p.stem, "folder", lambda p=p: p) for p in _files(Path(folder))]
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        found.append(Known(entry_point.name, "package", lambda e=entry_point: _announced_path(e)))
    known: dict[str, Known] = {}
    for entry in found:
        known.setdefault(entry.name.lower(), entry)
    return known


def is_name(text: str) -> bool:
    """Whether a text names a benchmark, known file or released one."""
    return text.lower() in known_files() or canonical_name(text) is not None


def _announced_path(entry_point) -> str | os.PathLike:
    """What a package's entry point stands for: a path, or a function that returns one."""
    found = entry_point.load()
    return found() if callable(found) else found


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.npz"))
