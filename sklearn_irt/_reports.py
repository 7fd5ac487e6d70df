"""Tables of estimates, as people read them."""

from numbers import Real
from typing import Any

import numpy as np
import pandas as pd


def check_coverage(coverage: Any) -> None:
    """Refuse what is no share in (0, 1)."""
    if not isinstance(coverage, Real) or not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be a number in (0, 1), got {coverage!r}")


def table_of(columns: dict, models: np.ndarray | None, rows: list[str]) -> pd.DataFrame:
    """A table from (n_models, n_rows) columns; without `models`, of one model."""
    if models is None:
        index = pd.Index(rows, name="scenario")
    else:
        index = pd.MultiIndex.from_arrays(
            [np.repeat(models, len(rows)), rows * len(models)], names=["model", "scenario"]
        )
    return pd.DataFrame({name: np.ravel(value) for name, value in columns.items()}, index)
