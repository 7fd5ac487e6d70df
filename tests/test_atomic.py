"""Files that are written whole or not at all."""

import os

import pytest

from sklearn_irt._atomic import replace_atomically


def test_a_file_is_replaced_through_a_link_and_keeps_its_permissions(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    replace_atomically(link, b"new")
    assert path.read_bytes() == b"new" and link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "link"]


def test_what_is_no_file_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(OSError, match="no file that could be replaced"):
            replace_atomically(path, b"new")
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]
