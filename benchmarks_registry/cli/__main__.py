"""``python -m benchmarks_registry.cli`` is ``sklearn-irt``."""

import sys

from benchmarks_registry.cli import main

if __name__ == "__main__":
    sys.exit(main())
