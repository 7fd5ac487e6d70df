"""Fits that change nothing when they fail."""

import functools
from collections.abc import Callable


def unchanged_on_error(fit: Callable) -> Callable:
    """A method that leaves the object as it was when it raises."""

    @functools.wraps(fit)
    def wrapper(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapper
