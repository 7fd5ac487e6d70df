"""The file of an adaptive session: JSON, and a fingerprint of the benchmark that it is about."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np

from sklearn_irt._atomic import replace_atomically
from sklearn_irt._gpirt import GPIRTEstimator

FORMAT, FORMAT_VERSION = "sklearn-irt-session", 1


def write_session(path: str | os.PathLike[str], document: dict) -> Path:
    """Write a session's document, atomically.

    Parameters
    ----------
    path : path-like
    document : dict
        What JSON can hold.

    Returns
    -------
    Path
        The path that was given.
    """
    about = {"format": FORMAT, "format_version": FORMAT_VERSION}
    text = json.dumps(about | document, ensure_ascii=False, allow_nan=False, indent=1)
    replace_atomically(Path(path), text.encode())
    return Path(path)


def read_session(path: str | os.PathLike[str]) -> dict:
    """Read a session's document.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    dict

    Raises
    ------
    ValueError
        Where the file is no session, or of a newer version.
    """
    try:
        document = json.loads(Path(path).read_bytes().decode())
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is no session that AdaptiveSession.save wrote")
    if document.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has the format version {document.get('format_version')!r}, not "
            f"{FORMAT_VERSION}; upgrade sklearn-irt"
        )
    return document


def fingerprint(estimator: GPIRTEstimator, names: list | None) -> str:
    """Hash of all that the choice of items and the estimates depend on."""
    irt = estimator.irt_
    thresholds = np.empty(0) if irt.thresholds_ is None else irt.thresholds_
    about = [
        names,
        list(estimator.scenarios_),
        [float(estimator._bounds.low), float(estimator._bounds.high)],
        estimator._relative_share(),
        estimator.ability,
        estimator.aggregate,
    ]
    digest = hashlib.sha256(json.dumps(about).encode())
    for array in (
        irt.discrimination_,
        irt.difficulty_,
        irt.prior_precision_,
        thresholds,
        estimator.item_weights_,
        estimator._scenarios.index,
        estimator.anchors_,
        estimator.training_abilities_,
        estimator.training_responses_,
        estimator.training_scores_,
        estimator.training_noise_,
        estimator.calibration_,
    ):
        array = np.ascontiguousarray(array, dtype="<f8")
        digest.update(repr(array.shape).encode())
        digest.update(array)
    return digest.hexdigest()
