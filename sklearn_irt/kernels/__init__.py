"""Pure functions on arrays: they know no estimator, no DataFrame and no file."""
