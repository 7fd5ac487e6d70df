"""The command ``sklearn-irt``: a tiny benchmark and its scores without writing Python."""

import sys
from collections.abc import Sequence

MISSING = 'sklearn-irt: error: the command needs click and rich: pip install "sklearn-irt[cli]"'


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    arguments : sequence of str, default=None
        None: those of the process.

    Returns
    -------
    int
        Exit status: 0; 1 where `gate` finds a model worse; 2 for bad input, with one line on the
        standard error that says why; 130 where it was interrupted; 141 where nobody reads the
        output any more.

    Examples
    --------
    >>> from benchmarks_registry.cli import main
    >>> main(["anchors", "arc-challenge", "--format", "lm-eval"])  # doctest: +SKIP
    """
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 2
    try:
        from benchmarks_registry.cli._app import run

        return run(arguments)
    except KeyboardInterrupt:  # while the command itself was being imported
        return 130
