"""Files that Linux opens without following links: which they are, and that nothing else of reading them changes."""

from __future__ import annotations

import ctypes  # noqa: F401  # where it is loaded, files are opened so from the first one on
import os
import pathlib
import pickle
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from leaks import held, left_behind

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media import MediaPolicy
from mmprompt.media import files as files_module
from mmprompt.media.files import GuardedFiles
from mmprompt.media.real_path import linkless_open

linkless = linkless_open()
pytestmark = pytest.mark.skipif(linkless is None or linkless(os.path.realpath(__file__)) < 0, reason="needs openat2")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    for path in ("root/a.bin", "root/sub/b.bin", "outside/a.bin"):
        (tmp_path / path).write_bytes(path.encode())
    return tmp_path / "root"


@pytest.fixture
def asked(monkeypatch):
    """The paths for which the kernel is asked for the real path of a descriptor."""
    paths = []
    real = os.readlink
    monkeypatch.setattr(os, "readlink", lambda path, **more: paths.append(path) or real(path, **more))
    return paths


def test_a_path_without_links_is_opened_and_nothing_else(root):
    (root / "file.link").symlink_to("a.bin")
    (root / "folder.link").symlink_to("sub")
    descriptor = linkless(f"{root}/sub/b.bin")
    assert os.read(descriptor, 100) == b"root/sub/b.bin"
    assert not os.get_inheritable(descriptor)
    os.close(descriptor)
    before = held()
    for path in ("file.link", "folder.link/b.bin", "none", "a.bin\0", "a.bin/x", "\udcff", "\ud800", "x" * 300):
        assert linkless(f"{root}/{path}") < 0
    assert linkless(f"/proc/self/cwd{root}/a.bin") < 0
    assert not left_behind(before)


def test_nobody_asks_where_such_a_file_lies(root, asked):
    files = GuardedFiles(MediaPolicy([root]))
    for path in ("a.bin", "sub/b.bin", str(root / "a.bin")):
        assert files.read(path) == files.read(path)
    assert asked == []
    (root / "link").symlink_to("a.bin")
    assert files.read("link") == b"root/a.bin"
    assert len(asked) == 1


def test_the_call_is_loaded_after_many_files_and_given_up_where_all_are_links(root, asked, monkeypatch):
    monkeypatch.delitem(sys.modules, "ctypes")
    (root / "link").symlink_to("a.bin")
    files = GuardedFiles(MediaPolicy([root]))
    for _ in range(2 * files_module._FILES_BEFORE):
        files.read("a.bin")
    assert len(asked) == files_module._FILES_BEFORE
    for _ in range(files_module._MOST_MISSES - 1):
        files.read("link")
    files.read("a.bin")  # not all are links
    assert files._linkless is not None
    for _ in range(files_module._MOST_MISSES):
        files.read("link")
    assert files._linkless is None
    assert files.read("a.bin") == b"root/a.bin"


def test_a_name_of_any_bytes_is_read(root):
    files = GuardedFiles(MediaPolicy([root]))
    for name in ("杯 子.bin", "a\nb", "%s %2e", os.fsdecode(b"\xff.bin")):
        (root / name).write_bytes(os.fsencode(name))
        assert files.read(name) == os.fsencode(name)
    for name in ("a.bin\0", "a.bin\0.jpg", "\ud800"):
        with pytest.raises((SourceError, PolicyError)):
            files.read(name)


def test_folders_may_be_moved_and_made_anew(root):
    files = GuardedFiles(MediaPolicy([root]))
    assert files.read("sub/b.bin") == b"root/sub/b.bin"
    shutil.move(root / "sub", root.parent / "outside" / "sub")
    with pytest.raises(SourceError, match="no such file"):
        files.read("sub/b.bin")
    (root / "sub").symlink_to(root.parent / "outside" / "sub")
    with pytest.raises(PolicyError, match="after links"):
        files.read("sub/b.bin")
    root.rename(root.parent / "old")
    with pytest.raises(SourceError, match="no such file"):
        files.read("a.bin")
    root.mkdir()
    (root / "a.bin").write_bytes(b"new")
    assert files.read("a.bin") == b"new"
    shutil.rmtree(root)
    root.symlink_to(root.parent / "outside")
    with pytest.raises(PolicyError, match="after links"):
        files.read("a.bin")


def test_a_reader_goes_to_threads_and_is_pickled(root):
    files = GuardedFiles(MediaPolicy([root]))
    copy = pickle.loads(pickle.dumps(files))
    before = held()
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(copy.read, ["sub/b.bin"] * 400)) == {b"root/sub/b.bin"}
    assert not left_behind(before)


def test_an_audit_hook_sees_what_is_opened(root):
    seen: list[str] | None = []
    sys.addaudithook(lambda event, given: seen.append(given[0]) if event == "open" and seen is not None else None)
    try:
        GuardedFiles(MediaPolicy([root])).read("sub/b.bin")
        assert seen == [str(pathlib.Path(os.path.realpath(root), "sub", "b.bin"))]
    finally:
        seen = None  # a hook stays


def test_where_the_call_cannot_be_loaded_files_are_read_and_let_go(root, monkeypatch):
    """SELinux may forbid what ``ctypes`` does when it is loaded: a MemoryError. A user may press ^C meanwhile."""
    for fault in (ImportError, MemoryError, KeyboardInterrupt):
        with monkeypatch.context() as patch:
            patch.delitem(sys.modules, "ctypes")
            patch.delitem(sys.modules, "mmprompt.media.openat2", raising=False)
            files = GuardedFiles(MediaPolicy([root]))
            patch.setattr(sys, "meta_path", [Unloadable(fault)])
            before = held()
            told = 0
            for _ in range(files_module._FILES_BEFORE + 1):
                try:
                    assert files.read("a.bin") == b"root/a.bin"
                except KeyboardInterrupt:
                    told += 1
            assert told == (fault is KeyboardInterrupt)
            assert files._linkless is None
            assert not left_behind(before)


def test_the_call_is_never_made_on_android(root, monkeypatch):
    monkeypatch.setattr(sys, "getandroidapilevel", lambda: 24, raising=False)
    assert linkless_open() is None
    assert GuardedFiles(MediaPolicy([root])).read("a.bin") == b"root/a.bin"


class Unloadable:
    def __init__(self, fault):
        self.fault = fault

    def find_spec(self, name, path, target=None):
        raise self.fault
