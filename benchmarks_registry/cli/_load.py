"""Benchmarks by name or file, and what is to be said about one before its figures are used."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks_registry._names import canonical_name
from benchmarks_registry.cli._output import counted

if TYPE_CHECKING:
    from benchmarks_registry import TinyBenchmark


def load(name: str) -> TinyBenchmark:
    """Load a benchmark; where it cannot be downloaded, say in short what to do.

    Parameters
    ----------
    name : str
        A name or the path of a file.

    Returns
    -------
    TinyBenchmark

    Raises
    ------
    OSError
        Where a download is needed and fails.
    """
    from benchmarks_registry import _release, load_benchmark
    from sklearn_irt.datasets._files import DatasetUnavailableError, get_data_home

    try:
        with _quiet_pooch() if canonical_name(name) else contextlib.nullcontext():
            return load_benchmark(name)
    except DatasetUnavailableError as error:
        file = _release.RELEASE
        place = get_data_home(None) / file.name
        raise OSError(
            f"{name} cannot be downloaded{_reason(error)}; download {file.url} elsewhere, save it "
            f"as {place} (or as {place.name} in the working folder), and try again"
        ) from error


def _reason(error: BaseException) -> str:
    """The kind of the innermost error, if another one is behind this."""
    first = error
    while first.__cause__ is not None:
        first = first.__cause__
    return "" if type(first) is type(error) else f" ({type(first).__name__})"


@contextlib.contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Keep pooch from writing its own lines between ours."""
    import pooch

    logger = pooch.get_logger()
    before = logger.level
    logger.setLevel("CRITICAL")
    try:
        yield
    finally:
        logger.setLevel(before)


def few_models_notes(tiny: TinyBenchmark) -> list[str]:
    """A note where intervals rest on few training models, or on none."""
    from benchmarks_registry._benchmark import FEW_MODELS

    n_models = len(tiny.estimator.training_models_)
    if n_models >= FEW_MODELS:
        return []
    if n_models == 0:
        return [
            f"note: {tiny.name} holds no training models' answers, so its intervals are not "
            "calibrated on models left out"
        ]
    return [
        f"note: {tiny.name} was trained on {counted(n_models, 'model')} only; with fewer than "
        f"{FEW_MODELS} the intervals rest on few errors and may be too narrow or too wide"
    ]


def measuring_note(tiny: TinyBenchmark, name: str) -> str:
    """How to measure the errors on held-out models that a benchmark does not record."""
    sizes = sorted({len(tiny.anchors(scenario)) for scenario in tiny.estimator.scenarios_})
    asked = " ".join(f"--k {size}" for size in sizes)
    return (
        "note: to measure its errors on held-out models: sklearn-irt compare RESULTS "
        f"{asked} --table errors.csv; then sklearn-irt report {shlex.quote(name)} "
        "--comparison errors.csv -o page.html"
    )
