"""The cache: verified on every read, filled atomically, clear about what it lacks."""

import http.server
import os
import subprocess
import sys
import threading
import time
import types

import pytest

from sklearn_irt.datasets import _files, get_data_home

CONTENTS = os.urandom(200_000)
FILE = _files.PublicFile("folder/data.bin", _files.digest(CONTENTS), "owner/repo/commit/data.bin")


@pytest.fixture
def server(monkeypatch):
    """A local source of files, slow enough for downloads to overlap."""
    pages = {"/owner/repo/commit/data.bin": CONTENTS}
    requests = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            requests.append(self.path)
            body = pages.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            for start in range(0, len(body or b""), 50_000):
                self.wfile.write(body[start : start + 50_000])
                time.sleep(0.02)

        def log_message(self, *arguments):
            del arguments

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{httpd.server_address[1]}"
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(_files, "BASE_URL", url)
        monkeypatch.setattr(_files, "RETRIES", 0)
        yield types.SimpleNamespace(url=url, pages=pages, requests=requests)
        httpd.shutdown()
        thread.join()


def contents(folder):
    return sorted(path.name for path in (folder / "folder").iterdir())


def test_download_once(tmp_path, server):
    assert _files.read_file(FILE, tmp_path, True) == CONTENTS
    assert _files.read_file(FILE, tmp_path, True) == CONTENTS
    assert _files.read_file(FILE, tmp_path, False) == CONTENTS
    assert len(server.requests) == 1
    assert contents(tmp_path) == ["data.bin"]
    assert (tmp_path / FILE.name).stat().st_mode & 0o444 == 0o444


def test_many_processes_from_an_empty_cache(tmp_path, server):
    code = f"""
import importlib.util, pathlib, sys
# The module alone: eight imports of the whole package would take most of the test's time.
spec = importlib.util.spec_from_file_location("_files", {_files.__file__!r})
_files = sys.modules["_files"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(_files)
_files.BASE_URL, _files.RETRIES = {server.url!r}, 0
file = _files.PublicFile({FILE.name!r}, {FILE.sha256!r}, {FILE.url_path!r})
print("ready", flush=True)
sys.stdin.readline()
data = _files.read_file(file, pathlib.Path({str(tmp_path)!r}), True)
sys.exit(_files.digest(data) != file.sha256)
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 8
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, outputs
    assert len(server.requests) > 1
    assert contents(tmp_path) == ["data.bin"]
    assert (tmp_path / FILE.name).read_bytes() == CONTENTS


def test_a_damaged_file_is_downloaded_again(tmp_path, server):
    path = tmp_path / FILE.name
    path.parent.mkdir()
    path.write_bytes(CONTENTS[:-1])
    with pytest.warns(UserWarning, match="damaged.*again"):
        assert _files.read_file(FILE, tmp_path, True) == CONTENTS
    assert path.read_bytes() == CONTENTS


def test_a_damaged_file_is_never_used(tmp_path, server):
    server.pages.clear()
    path = tmp_path / FILE.name
    path.parent.mkdir()
    path.write_bytes(b"other")
    with pytest.raises(OSError, match="damaged.*download_if_missing=False"):
        _files.read_file(FILE, tmp_path, False)
    with pytest.warns(UserWarning), pytest.raises(OSError, match="damaged"):
        _files.read_file(FILE, tmp_path, True)
    with pytest.warns(UserWarning, match="not used"):
        assert _files.read_cached(FILE, tmp_path) is None
    assert path.read_bytes() == b"other"


def test_a_huge_file_in_the_cache_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "MAX_BYTES", 1000)
    path = tmp_path / FILE.name
    path.parent.mkdir()
    path.write_bytes(CONTENTS)
    with pytest.raises(OSError, match="damaged or another file"):
        _files.read_file(FILE, tmp_path, False)


def test_a_wrong_download_leaves_nothing(tmp_path, server):
    server.pages["/owner/repo/commit/data.bin"] = b"hostile"
    with pytest.raises(_files.DatasetUnavailableError, match="(?i)hash"):
        _files.read_file(FILE, tmp_path, True)
    assert contents(tmp_path) == []


def check_message(error, folder):
    message = str(error)
    for part in (FILE.name, FILE.sha256, FILE.url, str(folder / FILE.name), "SKLEARN_IRT_DATA"):
        assert part in message


def test_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # Port 9 is "discard"; nothing listens there.
    monkeypatch.setattr(_files, "BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(_files, "RETRIES", 0)
    with pytest.raises(OSError, match="the download failed") as caught:
        _files.read_file(FILE, tmp_path, True)
    check_message(caught.value, tmp_path)


def test_download_not_wanted(tmp_path):
    with pytest.raises(OSError, match="does not exist and download_if_missing=False") as caught:
        _files.read_file(FILE, tmp_path, False)
    check_message(caught.value, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_made(tmp_path, server):
    (tmp_path / "home").write_text("a file, not a folder")
    with pytest.raises(_files.DatasetUnavailableError) as caught:
        _files.read_file(FILE, tmp_path / "home", True)
    check_message(caught.value, tmp_path / "home")
    assert server.requests == []


def test_a_read_only_cache_is_only_read(tmp_path, monkeypatch):
    path = tmp_path / FILE.name
    path.parent.mkdir()
    path.write_bytes(CONTENTS)
    path.chmod(0o444)
    path.parent.chmod(0o555)

    def forbidden(*arguments, **keywords):
        raise PermissionError(arguments, keywords)

    # The superuser may write anyway: forbid it by other means too.
    for name in ("temporary_folder", "publish", "_download"):
        monkeypatch.setattr(_files, name, forbidden)
    try:
        assert _files.read_file(FILE, tmp_path, True) == CONTENTS
    finally:
        path.parent.chmod(0o755)


def test_unpinned_contents(server):
    assert _files.fetch_unpinned(f"{server.url}/owner/repo/commit/data.bin") == CONTENTS
    with pytest.raises(OSError, match="404"):
        _files.fetch_unpinned(f"{server.url}/nothing")


def test_unpinned_contents_are_bounded(server, monkeypatch):
    monkeypatch.setattr(_files, "MAX_BYTES", 1000)
    with pytest.raises(OSError, match="larger than 1000 bytes"):
        _files.fetch_unpinned(f"{server.url}/owner/repo/commit/data.bin")


@pytest.mark.parametrize("tty", [True, False])
@pytest.mark.parametrize("tqdm", [True, False])
def test_progress_bar_only_on_a_terminal_with_tqdm(tmp_path, server, monkeypatch, tty, tqdm):
    import pooch

    seen = []

    class Downloader(pooch.HTTPDownloader):
        def __init__(self, progressbar=False, **keywords):
            seen.append(progressbar)
            super().__init__(progressbar=False, **keywords)

    find_spec = _files.importlib.util.find_spec
    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    monkeypatch.setattr(
        _files.importlib.util,
        "find_spec",
        lambda name, *rest: (True if tqdm else None) if name == "tqdm" else find_spec(name, *rest),
    )
    monkeypatch.setattr(_files.sys.stderr, "isatty", lambda: tty, raising=False)
    _files.read_file(FILE, tmp_path, True)
    assert seen == [tty and tqdm]


def test_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("SKLEARN_IRT_DATA", str(tmp_path))
    assert get_data_home() == tmp_path
    assert get_data_home(tmp_path / "other") == tmp_path / "other"
    assert get_data_home("~/x") == _files.Path.home() / "x"
    monkeypatch.delenv("SKLEARN_IRT_DATA")
    default = get_data_home()
    assert default.is_absolute() and "sklearn-irt" in str(default)
    monkeypatch.setenv("SKLEARN_IRT_DATA", "")
    assert get_data_home() == default
