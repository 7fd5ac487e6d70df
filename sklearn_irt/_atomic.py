"""Files that are written whole or not at all."""

import os
import shutil
import uuid
from pathlib import Path


def replace_atomically(path: Path, data: bytes) -> None:
    """Write a file such that an interruption leaves the previous one as it was.

    Parameters
    ----------
    path : Path
        A link is followed, as open() would. A file there is replaced and its permissions kept; a
        new one has those of the umask.
    data : bytes

    Raises
    ------
    OSError
        Where the path is no file: a folder, a device or a pipe.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is no file that could be replaced")
    temporary = target.with_name(f".sklearn-irt-{uuid.uuid4().hex}.tmp")
    try:
        # mkstemp would give the file 0600 whatever the umask.
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
