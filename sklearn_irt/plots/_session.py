"""The course of an adaptive session."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from sklearn_irt._adaptive import AdaptiveSession
from sklearn_irt._reports import check_coverage
from sklearn_irt.plots._style import (
    COLOURS,
    MOST_MARKERS,
    add_legend,
    number_by_integers,
    open_axes,
    read_unit,
)


class SessionDisplay:
    """Course of an adaptive session: the estimate with its interval after every answer.

    Parameters
    ----------
    estimate : ndarray of shape (n_answers,)
        Score after each answer, in the unit of the responses.
    std_error : ndarray of shape (n_answers,)
        Its standard error.
    coverage : float in (0, 1), default=0.9
        Of the interval that is drawn.
    response_range : (low, high), default=None
        None: [0, 1] where all estimates lie in it.
    true : float, default=None
        The model's score, where it is known.
    scenario : str, default=None
        Whose score it is; None: the benchmark's.

    Attributes
    ----------
    low, high : ndarray of shape (n_answers,)
        The interval.
    line_ : Line2D
    band_ : PolyCollection
    ax_ : Axes
    figure_ : Figure

    Examples
    --------
    >>> from sklearn_irt import AdaptiveSession, GPIRTEstimator
    >>> from sklearn_irt.datasets import make_responses
    >>> from sklearn_irt.plots import SessionDisplay
    >>> data = make_responses(n_models=41, random_state=0).responses
    >>> session = AdaptiveSession(GPIRTEstimator(random_state=0).fit(data.iloc[:40]))
    >>> for _ in range(10):
    ...     (item,) = session.ask()
    ...     session.tell(item, data.iloc[40][item])
    >>> display = SessionDisplay.from_session(session)
    >>> len(display.estimate)
    10
    """

    def __init__(
        self, estimate, std_error, *, coverage=0.9, response_range=None, true=None, scenario=None
    ):
        self.estimate = estimate
        self.std_error = std_error
        self.coverage = coverage
        self.response_range = response_range
        self.true = true
        self.scenario = scenario

    @property
    def low(self) -> np.ndarray:
        """Lower ends of the interval."""
        return self._end(-1.0)

    @property
    def high(self) -> np.ndarray:
        """Upper ends of the interval."""
        return self._end(1.0)

    def _end(self, side: float) -> np.ndarray:
        end = self.estimate + side * ndtri(0.5 * (1.0 + self.coverage)) * self.std_error
        return end if self.response_range is None else np.clip(end, *self.response_range)

    @classmethod
    def from_session(
        cls,
        session: AdaptiveSession,
        *,
        coverage: float = 0.9,
        true: float | None = None,
        ax: Any = None,
    ) -> "SessionDisplay":
        """Draw a session.

        Parameters
        ----------
        session : AdaptiveSession
            With one answer at least.
        coverage : float in (0, 1), default=0.9
            Of the interval, by the normal approximation, inside the response range.
        true : float, default=None
            The model's score, where it is known.
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        SessionDisplay

        Raises
        ------
        ValueError
            Where the session has no answer yet.
        TypeError
            Where it is no session.
        """
        if not isinstance(session, AdaptiveSession):
            raise TypeError(f"session must be an AdaptiveSession, got {type(session).__name__}")
        check_coverage(coverage)
        trace = session.trace
        if not len(trace):
            raise ValueError("the session has no answer yet: tell it some first")
        bounds = session._estimator._bounds
        display = cls(
            trace["estimate"].to_numpy(dtype=float),
            trace["std_error"].to_numpy(dtype=float),
            coverage=coverage,
            response_range=(bounds.low, bounds.low + bounds.width),
            true=true,
            scenario=session.scenario,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> "SessionDisplay":
        """Draw.

        Parameters
        ----------
        ax : Axes, default=None
            None: a new figure.

        Returns
        -------
        SessionDisplay
            Itself.
        """
        ax, _ = open_axes(ax)
        unit = read_unit(self.response_range, self.estimate)
        answers = np.arange(1, len(self.estimate) + 1)
        self.band_ = ax.fill_between(
            answers,
            self.low,
            self.high,
            color=COLOURS[0],
            alpha=0.2,
            linewidth=0,
            label=f"{self.coverage:.0%} interval",
        )
        marker = "o" if len(answers) <= MOST_MARKERS else ""
        (self.line_,) = ax.plot(
            answers, self.estimate, color=COLOURS[0], marker=marker, markersize=3, label="estimate"
        )
        if self.true is not None:
            ax.axhline(self.true, color=COLOURS[1], linestyle="--", label="true score")
        name = "score" if self.scenario is None else f"score on {self.scenario}"
        ax.set(xlabel="answers", ylabel=unit.label(name))
        unit.format(ax.yaxis)
        number_by_integers(ax.xaxis)
        ax.grid(alpha=0.3)
        add_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
