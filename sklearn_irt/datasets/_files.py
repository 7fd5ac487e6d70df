"""Public files by name and hash: downloaded once, cached, verified whenever they are read."""

import contextlib
import hashlib
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA_HOME_VARIABLE = "SKLEARN_IRT_DATA"
BASE_URL = "https://raw.githubusercontent.com"
TIMEOUT = 30
RETRIES = 2
# Several times the largest file, so that a wrong one in the cache cannot fill the memory.
MAX_BYTES = 2**24


class DatasetUnavailableError(OSError):
    """A file of a data set is neither in the cache nor could it be downloaded."""


@dataclass(frozen=True)
class PublicFile:
    """A file at a fixed revision of a public repository, or derived from one.

    Attributes
    ----------
    name : str
        Its path inside the cache.
    sha256 : str
        Hash of its bytes.
    url_path : str or None
        "owner/repository/commit/path", None if it is derived and cannot be downloaded.
    max_bytes : int or None
        No more than this is read; None is `MAX_BYTES`.
    """

    name: str
    sha256: str
    url_path: str | None = None
    max_bytes: int | None = None

    @property
    def url(self) -> str | None:
        return None if self.url_path is None else f"{BASE_URL}/{self.url_path}"


def get_data_home(data_home: str | os.PathLike[str] | None = None) -> Path:
    """Find the folder in which downloaded data sets are kept.

    Parameters
    ----------
    data_home : path, default=None
        The folder. None is the environment variable `SKLEARN_IRT_DATA` or, if that is not set,
        the operating system's cache folder for "sklearn-irt".

    Returns
    -------
    Path
        The folder, absolute; it is not created.

    Examples
    --------
    >>> from sklearn_irt.datasets import get_data_home
    >>> get_data_home("my_data").name
    'my_data'
    """
    if data_home is None:
        data_home = os.environ.get(DATA_HOME_VARIABLE) or None
    if data_home is None:
        import pooch

        data_home = pooch.os_cache("sklearn-irt")
    return Path(os.path.abspath(os.path.expanduser(data_home)))


def digest(data: bytes) -> str:
    """SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_file(file: PublicFile, home: Path, download_if_missing: bool) -> bytes:
    """Read a file from the cache, after downloading it if need be.

    Parameters
    ----------
    file : PublicFile
        A file that can be downloaded.
    home : Path
        The cache.
    download_if_missing : bool
        Whether to download what the cache lacks or has damaged.

    Returns
    -------
    bytes
        Contents with the pinned hash.

    Raises
    ------
    DatasetUnavailableError
        If no contents with the pinned hash can be had.
    """
    data, problem = _read_cached(file, home)
    if data is not None:
        return data
    if not download_if_missing:
        raise unavailable(file, home, f"{problem} and download_if_missing=False")
    if (home / file.name).exists():
        warnings.warn(f"{problem}; downloading it again", UserWarning, stacklevel=4)
    try:
        with temporary_folder(home / file.name) as folder:
            _download(file.url, folder, file.sha256)
            data = (folder / "file").read_bytes()
            publish(folder / "file", home / file.name)
    # Besides OSError: pooch raises ValueError on a wrong hash.
    except (OSError, ValueError) as error:
        raise unavailable(file, home, f"{problem}, and the download failed: {error}") from error
    return data


def read_cached(file: PublicFile, home: Path) -> bytes | None:
    """Read a file if the cache has it with the pinned hash; warn if it has another one.

    Parameters
    ----------
    file : PublicFile
        Any file.
    home : Path
        The cache.

    Returns
    -------
    bytes or None
        Contents with the pinned hash.
    """
    data, problem = _read_cached(file, home)
    if data is None and (home / file.name).exists():
        warnings.warn(f"{problem}; it is not used", UserWarning, stacklevel=4)
    return data


def fetch_unpinned(url: str) -> bytes:
    """Download contents whose hash is not known: the caller must verify them.

    Parameters
    ----------
    url : str
        Where they lie.

    Returns
    -------
    bytes
        The contents, of at most 16 MiB.

    Raises
    ------
    OSError
        If they cannot be had.
    """
    with tempfile.TemporaryDirectory(prefix="sklearn-irt-") as folder:
        _download(url, Path(folder), None)
        data = _read_capped(Path(folder) / "file")
    if len(data) > MAX_BYTES:
        raise OSError(f"{url} is larger than {MAX_BYTES} bytes")
    return data


def unavailable(file: PublicFile, home: Path, problem: str) -> DatasetUnavailableError:
    """Build the error that says what was wanted, and where a file put there by hand goes."""
    source = file.url or "no address (it is derived from public files)"
    return DatasetUnavailableError(
        f"{problem}. Wanted: {file.name} with sha256 {file.sha256}, from {source}. To put it there "
        f"by hand, save it as {home / file.name}, or as {file.name} in a folder that the "
        f"environment variable {DATA_HOME_VARIABLE} names."
    )


@contextlib.contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """Make a temporary folder beside a file, so that a rename from it is atomic."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".download-", dir=target.parent) as folder:
        yield Path(folder)


def publish(source: Path, target: Path) -> None:
    """Move a complete file to its place in the cache, readable for everyone who sees the cache."""
    source.chmod(0o644)
    os.replace(source, target)


def _read_capped(path: Path, max_bytes: int | None = None) -> bytes:
    with open(path, "rb") as stream:
        return stream.read((MAX_BYTES if max_bytes is None else max_bytes) + 1)


def _read_cached(file: PublicFile, home: Path) -> tuple[bytes | None, str]:
    path = home / file.name
    try:
        # The very bytes that are verified are used: another process may replace the file.
        data = _read_capped(path, file.max_bytes)
    except (FileNotFoundError, NotADirectoryError):
        return None, f"{path} does not exist"
    except OSError as error:
        return None, f"{path} cannot be read ({error})"
    found = digest(data)
    if found != file.sha256:
        return None, f"{path} is damaged or another file (its sha256 is {found})"
    return data, ""


def _download(url: str | None, folder: Path, sha256: str | None) -> None:
    import pooch

    progress = importlib.util.find_spec("tqdm") is not None and sys.stderr.isatty()
    known_hash = None if sha256 is None else f"sha256:{sha256}"
    source = pooch.create(
        path=folder,
        base_url="",
        registry={"file": known_hash},
        urls={"file": url},
        retry_if_failed=RETRIES,
    )
    downloader = pooch.HTTPDownloader(progressbar=progress, timeout=TIMEOUT)
    source.fetch("file", downloader=downloader)
