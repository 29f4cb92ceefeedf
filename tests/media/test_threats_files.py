"""The rows of the threat table about files: real links, pipes, devices and caches, on the real file system.

Each bait is first taken by who reads without a guard: Pillow, soundfile, PyAV, urllib, or ``open``.
"""

from __future__ import annotations

import contextlib
import ctypes  # noqa: F401  # see ``tree``
import os
import pathlib
import shutil
import socket
import sys
import threading
import time
import urllib.request

import av
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from leaks import held, left_behind
from PIL import Image, UnidentifiedImageError
from swap_race import careless, formed, guarded, judged, race
from time_taken import processor_seconds

from mmprompt.errors import MMPromptError, PolicyError, SourceError
from mmprompt.media import MediaPolicy, MediaReader, real_path
from mmprompt.media import files as files_module
from mmprompt.media.file_errors import is_drive_path, windows_fault, windows_inside, windows_same
from mmprompt.media.files import GuardedFiles
from mmprompt.media.real_path import blobs_folder, same_file_path
from mmprompt.messages import MediaPart, MediaRef

FIXTURES = pathlib.Path(__file__).parents[2] / "fixtures"
JPEG = (FIXTURES / "tour" / "media" / "clock.jpg").read_bytes()
posix = pytest.mark.skipif(os.name == "nt", reason="POSIX files")


@pytest.fixture(params=["linkless", "judged"])
def tree(tmp_path, monkeypatch, request):
    """A root with a picture, and a picture outside of it.

    Linux opens files without following links where ``ctypes`` is loaded. Where it is not, their descriptors are judged.
    """
    if request.param == "judged":
        monkeypatch.delitem(sys.modules, "ctypes")
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "root" / "a.jpg").write_bytes(JPEG)
    (tmp_path / "root" / "sub" / "b.jpg").write_bytes(JPEG)
    (tmp_path / "outside" / "o.jpg").write_bytes(JPEG)
    return tmp_path


def reading(tree, path, **limits):
    return GuardedFiles(MediaPolicy([tree / "root"], **limits)).read(path)


def refusal(tree, path, **limits):
    with pytest.raises((PolicyError, SourceError)) as caught:
        reading(tree, path, **limits)
    return caught.value


def taken(tree, *paths):
    """Hold that bare Pillow, told to look in the root, opens each of these."""
    for path in paths:
        with Image.open(os.path.join(tree / "root", path)) as image:
            assert image.format == "JPEG"


def bounded(act, seconds=20.0):
    """Run ``act`` in a thread and fail if it hangs; return what it gave or raised."""
    result = []

    def run():
        try:
            result.append(act())
        except MMPromptError as error:
            result.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the read hangs"
    return result[0]


def test_a_file_in_the_root_is_read_by_every_spelling(tree):
    for path in (
        "a.jpg",
        "./a.jpg",
        "sub/b.jpg",
        "sub/../a.jpg",
        str(tree / "root" / "a.jpg"),
        str(tree / "root" / "sub" / ".." / "a.jpg"),
        str(tree / "outside" / ".." / "root" / "a.jpg"),
    ):
        assert reading(tree, path) == JPEG


def test_an_absolute_path_outside_is_refused(tree):
    taken(tree, str(tree / "outside" / "o.jpg"))
    error = refusal(tree, str(tree / "outside" / "o.jpg"))
    assert isinstance(error, PolicyError)
    assert "outside the media roots" in error.what
    assert "--media-root" in error.hint
    assert pathlib.Path("/etc/passwd").read_bytes()
    assert "outside" in str(refusal(tree, "/etc/passwd"))


def test_a_file_outside_is_refused_whether_it_exists_or_not(tree):
    assert refusal(tree, str(tree / "outside" / "none.jpg")).what.endswith("outside the media roots")


def test_dots_that_leave_the_root_are_refused(tree):
    ways = ("../outside/o.jpg", "sub/../../outside/o.jpg", f"{'../' * 40}{tree}/outside/o.jpg")
    taken(tree, *ways)
    for path in (*ways, "../../../../../../../../etc/passwd", "sub/../../root2/x"):
        assert "outside the media roots" in refusal(tree, path).what


def test_a_root_is_no_prefix_of_its_neighbour(tree):
    (tree / "root2").mkdir()
    (tree / "root2" / "x.jpg").write_bytes(JPEG)
    assert os.path.realpath(tree / "root2" / "x.jpg").startswith(os.path.realpath(tree / "root"))  # the careless check
    taken(tree, "../root2/x.jpg")
    assert isinstance(refusal(tree, "../root2/x.jpg"), PolicyError)
    assert isinstance(refusal(tree, str(tree / "root2" / "x.jpg")), PolicyError)


@posix
def test_a_link_to_a_file_outside_is_refused_after_links(tree):
    (tree / "root" / "link.jpg").symlink_to(tree / "outside" / "o.jpg")
    taken(tree, "link.jpg")
    error = refusal(tree, "link.jpg")
    assert isinstance(error, PolicyError)
    assert "after links" in error.what
    assert str(tree) not in str(error)
    assert "after links" in refusal(tree, str(tree / "root" / "link.jpg")).what


@posix
def test_a_link_to_a_folder_outside_is_refused(tree):
    (tree / "root" / "dir").symlink_to(tree / "outside", target_is_directory=True)
    taken(tree, "dir/o.jpg", "dir/../outside/o.jpg")
    assert "after links" in refusal(tree, "dir/o.jpg").what
    assert isinstance(refusal(tree, "dir/../outside/o.jpg"), PolicyError)


@posix
def test_a_link_inside_the_root_is_followed(tree):
    (tree / "root" / "link.jpg").symlink_to("sub/b.jpg")
    (tree / "root" / "dir").symlink_to("sub", target_is_directory=True)
    assert reading(tree, "link.jpg") == reading(tree, "dir/b.jpg") == JPEG


@posix
def test_a_root_that_is_itself_a_link_holds_its_files(tree):
    (tree / "alias").symlink_to("root", target_is_directory=True)
    files = GuardedFiles(MediaPolicy([tree / "alias"]))
    assert (
        files.read("a.jpg")
        == files.read(str(tree / "alias" / "a.jpg"))
        == files.read(str(tree / "root" / "a.jpg"))
        == JPEG
    )


@posix
def test_a_folder_swapped_for_a_link_after_the_reader_was_made_is_refused(tree):
    files = GuardedFiles(MediaPolicy([tree / "root"]))
    assert files.read("sub/b.jpg") == JPEG
    shutil.rmtree(tree / "root" / "sub")
    (tree / "root" / "sub").symlink_to(tree / "outside", target_is_directory=True)
    taken(tree, "sub/o.jpg")
    with pytest.raises(PolicyError, match="after links"):
        files.read("sub/o.jpg")


def hub(tmp_path):
    """A Hugging Face cache of two data sets, whose snapshots are links into their blobs."""
    for name in ("datasets--org--one", "datasets--org--two"):
        (tmp_path / "hub" / name / "blobs" / "deep").mkdir(parents=True)
        (tmp_path / "hub" / name / "snapshots" / "rev" / "img").mkdir(parents=True)
        (tmp_path / "hub" / name / "blobs" / "abc").write_bytes(JPEG)
        (tmp_path / "hub" / name / "blobs" / "deep" / "d").write_bytes(JPEG)
    return tmp_path / "hub" / "datasets--org--one" / "snapshots" / "rev"


@posix
def test_a_link_into_the_blobs_of_the_same_cache_repository_is_followed(tmp_path):
    root = hub(tmp_path)
    (root / "img" / "a.jpg").symlink_to("../../../blobs/abc")
    for policy in (MediaPolicy([root]), MediaPolicy([root / "img"])):
        assert GuardedFiles(policy).read("a.jpg" if policy.roots[0].endswith("img") else "img/a.jpg") == JPEG


@posix
def test_a_link_into_other_blobs_or_folders_of_the_cache_is_refused(tmp_path):
    root = hub(tmp_path)
    (root / "two.jpg").symlink_to("../../../datasets--org--two/blobs/abc")
    (root / "deep.jpg").symlink_to("../../blobs/deep/d")
    (root.parent.parent / "refs").write_bytes(JPEG)
    (root / "refs.jpg").symlink_to("../../refs")
    files = GuardedFiles(MediaPolicy([root]))
    for name in ("two.jpg", "deep.jpg", "refs.jpg"):
        with Image.open(root / name) as image:
            assert image.format == "JPEG"
        with pytest.raises(PolicyError, match="after links") as caught:
            files.read(name)
        assert "--media-root" in caught.value.hint


def test_blobs_are_found_only_beside_snapshots_of_a_cache_repository():
    assert blobs_folder("/c/datasets--a--b/snapshots/rev/img/") == "/c/datasets--a--b/blobs/"
    assert blobs_folder("/c/models--a--b/snapshots/rev/") == "/c/models--a--b/blobs/"
    assert blobs_folder("/c/mine/snapshots/rev/") == ""
    assert blobs_folder("/c/datasets--a--b/") == ""


def picture(path):
    with open(path, "rb") as file, Image.open(file) as image:  # Pillow does not close a file that it cannot rewind
        image.load()


def hangs(act, pipe):
    """Tell whether ``act`` still waits for somebody to write into a pipe after a while; let it go then."""

    def run():
        with contextlib.suppress(OSError, soundfile.SoundFileError, av.error.FFmpegError):
            act(str(pipe))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(0.2)
    waits = thread.is_alive()
    end = time.monotonic() + 20
    while thread.is_alive() and time.monotonic() < end:
        with contextlib.suppress(OSError):  # nobody reads yet, or any more
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        thread.join(0.02)
    assert not thread.is_alive()
    return waits


@pytest.mark.slow
@posix
@pytest.mark.parametrize("reader", [guarded, judged, formed])
def test_files_and_folders_swapped_for_links_while_they_are_read_leak_nothing(tmp_path, reader):
    (tmp_path / "careless").mkdir()
    (tmp_path / "guarded").mkdir()
    assert race(tmp_path / "careless", careless, 30, until_leak=True).leaked  # where the path is judged, not the file
    outcome = race(tmp_path / "guarded", reader, 2)
    assert min(outcome.given, outcome.refused) > 10
    assert not outcome.leaked


@posix
@pytest.mark.parametrize("start", ["/", "../", "a/", "\u20ac/"])
def test_a_path_of_hundreds_of_kilobytes_is_refused_before_it_is_resolved(tree, start):
    path = start * (400_000 // len(start)) + "x.jpg"
    assert processor_seconds(lambda: refusal(tree, path), enough=0.2) < 0.2
    assert "is too long" in refusal(tree, path).what


def test_a_path_has_at_most_so_many_bytes(tree):
    up = "sub/../"  # resolved before it is opened
    assert reading(tree, up * 584 + "a.jpg") == JPEG  # 4,093 bytes
    assert "is too long" in refusal(tree, up * 585 + "a.jpg").what
    assert "is too long" in refusal(tree, f"{tree}/root/" + "\u20ac" * 1400).what  # in bytes
    assert "cannot be a file name" in refusal(tree, "\ud800" * 5000).what


@posix
def test_a_fifo_is_refused_and_does_not_hang(tree):
    os.mkfifo(tree / "root" / "pipe.jpg")
    os.mkfifo(tree / "outside" / "pipe.jpg")
    for act in (picture, soundfile.read, av.open):
        assert hangs(act, tree / "root" / "pipe.jpg")
    error = bounded(lambda: reading(tree, "pipe.jpg"))
    assert isinstance(error, PolicyError)
    assert "FIFO" in error.what
    (tree / "root" / "link.jpg").symlink_to(tree / "outside" / "pipe.jpg")
    assert isinstance(bounded(lambda: reading(tree, "link.jpg")), PolicyError)
    assert isinstance(bounded(lambda: reading(tree, str(tree / "outside" / "pipe.jpg"))), PolicyError)


@posix
@pytest.mark.parametrize(
    "device", ["/dev/zero", "/dev/stdin", "/dev/tty", "/proc/self/environ", "/proc/self/mem", "/dev/fd/0"]
)
def test_devices_and_process_files_are_refused(tree, device):
    (tree / "root" / "link.jpg").symlink_to(device)
    if device in ("/dev/zero", "/proc/self/environ"):  # the others wait, or are not there without a terminal
        with open(tree / "root" / "link.jpg", "rb") as file:
            assert os.fstat(file.fileno()).st_size == 0
            assert len(file.read(1 << 20)) > (1 << 19 if device == "/dev/zero" else 0)
    assert isinstance(bounded(lambda: reading(tree, device)), PolicyError)
    assert isinstance(bounded(lambda: reading(tree, "link.jpg")), MMPromptError)


@posix
def test_a_device_outside_is_not_even_opened(tree, monkeypatch):
    opened = []
    real = os.open
    monkeypatch.setattr(os, "open", lambda path, *a, **k: opened.append(path) or real(path, *a, **k))
    refusal(tree, "/dev/zero")
    refusal(tree, "sub/../../../../../../../../dev/zero")
    assert opened == []


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_process_file_that_states_no_size_is_read_by_count():
    files = GuardedFiles(MediaPolicy(["/proc/self"], max_bytes=100_000))
    assert files.read("status").startswith(b"Name:")
    with pytest.raises(PolicyError, match="larger than max_bytes"):
        GuardedFiles(MediaPolicy(["/proc/self"], max_bytes=10)).read("status")


@posix
def test_a_socket_and_a_directory_are_named(tree, monkeypatch):
    monkeypatch.chdir(tree / "root")
    server = socket.socket(socket.AF_UNIX)
    server.bind("s.jpg")
    server.close()
    assert "socket" in refusal(tree, "s.jpg").what
    assert "directory" in refusal(tree, "sub").what
    assert "directory" in refusal(tree, ".").what


@posix
def test_missing_unreadable_looping_and_overlong_names_have_their_own_errors(tree):
    (tree / "root" / "loop").symlink_to("loop")
    assert refusal(tree, "none.jpg").what == "no such file: 'none.jpg'"
    assert "no such file" in refusal(tree, "a.jpg/x.jpg").what
    assert "loop of links" in refusal(tree, "loop").what
    assert "too long" in refusal(tree, "x" * 5000).what
    assert len(str(refusal(tree, "x" * 5000))) < 300
    if os.geteuid():
        (tree / "root" / "a.jpg").chmod(0)
        assert "permission denied" in refusal(tree, "a.jpg").what


def test_an_empty_file_is_an_error(tree):
    (tree / "root" / "e.jpg").write_bytes(b"")
    assert "empty" in refusal(tree, "e.jpg").what


@posix
@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("a\x00.jpg", "NUL"),
        ("\x00", "NUL"),
        ("C:\\p\\c.jpg", "drive"),
        ("c:/p/c.jpg", "drive"),
        ("\\\\server\\share\\x", "UNC"),
        ("\ud800.jpg", "cannot be a file name"),
        ("../\x00", "NUL"),
        ("/\x00", "NUL"),
    ],
)
def test_names_of_other_systems_are_refused_by_name(tree, path, word):
    with contextlib.suppress(ValueError, OSError):  # as a name of this system, where it is one
        (tree / "root" / path).write_bytes(JPEG)
        taken(tree, path)
    error = refusal(tree, path)
    assert isinstance(error, SourceError)
    assert word in error.what
    assert error.hint


def test_without_a_root_every_path_is_refused_and_says_so():
    with pytest.raises(PolicyError, match="no media root is set") as caught:
        GuardedFiles(MediaPolicy()).read("a.jpg")
    assert "--media-root" in caught.value.hint


def test_several_roots_are_tried_in_order(tree):
    (tree / "outside" / "a.jpg").write_bytes(b"other")
    policy = MediaPolicy([tree / "root", tree / "outside"])
    assert GuardedFiles(policy).read("a.jpg") == JPEG
    assert GuardedFiles(policy).read("o.jpg") == JPEG
    assert GuardedFiles(MediaPolicy([tree / "outside", tree / "root"])).read("a.jpg") == b"other"
    with pytest.raises(SourceError, match="no such file"):
        GuardedFiles(policy).read("none.jpg")


def test_a_file_that_the_caller_names_is_allowed_and_nothing_beside_it(tree, monkeypatch):
    (tree / "outside" / "p.jpg").write_bytes(JPEG)
    allowed = str(tree / "outside" / "o.jpg")
    files = GuardedFiles(MediaPolicy().with_files(allowed))
    assert files.read(allowed) == JPEG
    for path in (str(tree / "outside" / "p.jpg"), "p.jpg", allowed + "x"):
        with pytest.raises(PolicyError, match="outside"):
            files.read(path)
    monkeypatch.chdir(tree / "outside")
    relative = GuardedFiles(MediaPolicy([tree / "root"]).with_files("o.jpg"))
    monkeypatch.chdir(tree)
    assert relative.read("o.jpg") == relative.read("a.jpg") == JPEG


def test_max_bytes_holds_whatever_the_size_says(tree):
    assert reading(tree, "a.jpg", max_bytes=len(JPEG)) == JPEG
    assert "larger than max_bytes" in refusal(tree, "a.jpg", max_bytes=len(JPEG) - 1).what
    (tree / "root" / "sparse.jpg").touch()
    os.truncate(tree / "root" / "sparse.jpg", 1 << 40)
    assert "larger than max_bytes" in bounded(lambda: refusal(tree, "sparse.jpg")).what


@posix
@pytest.mark.parametrize("told", [0, 1, 5, len(JPEG) - 1, len(JPEG) + 1, 2 * len(JPEG)])
def test_a_size_that_is_not_the_files_changes_nothing(tree, monkeypatch, told):
    real = os.fstat

    def lying(descriptor):
        fields = list(real(descriptor))
        fields[6] = told
        return os.stat_result(fields)

    monkeypatch.setattr(files_module.os, "fstat", lying)
    assert reading(tree, "a.jpg") == JPEG
    monkeypatch.setattr(files_module.os, "fstat", real)


@posix
def test_a_file_that_grows_while_it_is_read_stays_within_the_limit(tree):
    path = tree / "root" / "grow.jpg"
    path.write_bytes(JPEG)
    stop = threading.Event()

    def grow():
        with path.open("ab") as file:
            while not stop.is_set():
                file.write(b"x" * 4096)
                if file.tell() > 1 << 24:
                    file.truncate(len(JPEG))

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(200):
            try:
                data = reading(tree, "grow.jpg", max_bytes=1 << 20)
            except PolicyError as error:
                assert "larger than max_bytes" in error.what  # either outcome is right
            else:
                assert len(data) <= 1 << 20
    finally:
        stop.set()
        writer.join()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_no_descriptor_stays_open_after_reads_and_refusals(tree):
    (tree / "root" / "link.jpg").symlink_to(tree / "outside" / "o.jpg")
    (tree / "root" / "empty.jpg").touch()
    os.mkfifo(tree / "root" / "pipe")
    reader = MediaReader(MediaPolicy([tree / "root"], max_bytes=10_000_000))
    small = GuardedFiles(MediaPolicy([tree / "root"], max_bytes=10))
    before = held()
    for path in ("a.jpg", "link.jpg", "sub", "pipe", "empty.jpg", "none", "/dev/zero", "../x", "a\x00"):
        for act in (lambda p: reader.read(MediaRef("image", p)), small.read, small.head):
            with contextlib.suppress(MMPromptError):
                act(path)
    assert not left_behind(before)


def test_percent_signs_are_decoded_in_file_urls_only(tree):
    names = ["a b.jpg", "a%20b.jpg", "#1?.jpg", "杯子.jpg", "%2e%2e"]
    for number, name in enumerate(names):
        (tree / "root" / name).write_bytes(JPEG + bytes([number]))
    reader = MediaReader(MediaPolicy([tree / "root"]))

    def read(source):
        return reader.read(MediaRef("image", source)).data[-1]

    assert read("a%20b.jpg") == 1
    assert read("file://a%20b.jpg") == 0
    assert read("file://a%2520b.jpg") == 1
    assert read("#1?.jpg") == read("file://#1?.jpg") == read("file://%231%3F.jpg") == 2
    assert read("杯子.jpg") == read("file://杯子.jpg") == read("file://%E6%9D%AF%E5%AD%90.jpg") == 3
    assert read("%2e%2e") == 4
    with urllib.request.urlopen(f"file://{tree}/root/%2e%2e/outside/o.jpg") as opened:
        assert opened.read() == JPEG
    with pytest.raises(PolicyError, match="outside"):
        read(f"file://{tree}/root/%2e%2e/outside/o.jpg")
    with pytest.raises(PolicyError, match="outside"):
        read("file://%2e%2e/outside/o.jpg")
    with pytest.raises(PolicyError, match="outside"):
        read(f"file://{tree}/outside/o.jpg")
    assert read(f"file://localhost{tree}/root/a%20b.jpg") == 0


@pytest.mark.parametrize(
    "name",
    ["-", "pipe:0", "img%03d.jpg", "subfile,,start,0,end,9,,:a.jpg", "concat:a.jpg|b.jpg", "http:a.jpg", "file:a.jpg"],
)
def test_a_name_that_a_decoder_would_obey_is_only_a_name(tree, name):
    assert "no such file" in refusal(tree, name).what


def test_the_first_folder_of_a_file_url_is_no_host(tree):
    (tree / "root" / "server").mkdir()
    (tree / "root" / "server" / "a.jpg").write_bytes(JPEG)
    reader = MediaReader(MediaPolicy([tree / "root"]))
    assert reader.read(MediaRef("image", "file://server/a.jpg")).data == JPEG
    with pytest.raises(SourceError, match="no such file"):
        reader.read(MediaRef("image", "file://elsewhere.example/a.jpg"))
    with pytest.raises(PolicyError, match="outside"):
        reader.read(MediaRef("image", "file:////elsewhere.example/share/a.jpg"))


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>", "an HTML page"),
        (b"PASSWORD=hunter2\n", "plain text"),
        (b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "plain text"),
    ],
)
def test_a_pointer_a_page_and_a_secret_named_as_a_picture_are_named_and_not_sent(tree, data, word):
    (tree / "root" / "saved.jpg").write_bytes(data)
    with pytest.raises(UnidentifiedImageError, match="cannot identify"):
        taken(tree, "saved.jpg")  # it does not say what lies there; and who only encodes the bytes sends them
    for mode in ("inline", "file", "keep"):
        reader = MediaReader(MediaPolicy([tree / "root"]), mode)
        with pytest.raises(SourceError, match=f"'saved.jpg' is {word}") as caught:
            reader.read(MediaRef("image", "saved.jpg"))
        assert "hunter2" not in str(caught.value)


@posix
def test_without_proc_a_file_is_judged_by_device_and_inode(tree, monkeypatch):
    monkeypatch.setattr(files_module, "PLATFORM", "other")
    monkeypatch.setattr(real_path, "PLATFORM", "other")
    (tree / "root" / "link.jpg").symlink_to(tree / "outside" / "o.jpg")
    assert reading(tree, "a.jpg") == JPEG
    assert "after links" in refusal(tree, "link.jpg").what
    status = os.stat(tree / "root" / "a.jpg")
    assert same_file_path(status, str(tree / "root" / "sub" / "b.jpg")) == ""
    assert same_file_path(status, str(tree / "none")) == ""


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("\\\\server\\share\\x.jpg", "UNC"), ("//server/share/x.jpg", "UNC"), ("\\\\?\\C:\\x", "UNC or device"), ("\\\\.\\pipe\\x", "device"),
        ("C:x.jpg", "relative to a drive"), ("a.jpg:hidden", "stream"), ("C:\\a.jpg:$DATA", "stream"), ("NUL", "device name"), ("nul.jpg", "device name"),
        ("img/COM1.png", "device name"), ("con ", "device name"), ("x\\lpt9.tar.gz", "device name"), ("CONIN$", "device name"), ("aux.", "device name"), ("com².jpg", "device name"),
    ],
)  # fmt: skip
def test_windows_names_that_are_no_files_are_refused(path, word):
    assert word in windows_fault(path)


@pytest.mark.parametrize(
    "path", ["a.jpg", "img\\a.jpg", "C:\\data\\a.jpg", "C:/data/a.jpg", "console.jpg", "com10.jpg", "null", "a nul.jpg"]
)
def test_windows_names_that_are_files_pass(path):
    assert windows_fault(path) == ""


def test_windows_folders_are_compared_without_case_and_long_prefix():
    assert windows_inside("C:\\Data\\Root\\a.jpg", "c:\\data\\root")
    assert windows_inside("\\\\?\\C:\\data\\root\\a.jpg", "C:\\data\\root\\")
    assert not windows_inside("C:\\data\\root2\\a.jpg", "C:\\data\\root")
    assert windows_same("\\\\?\\UNC\\Server\\s\\a", "\\\\server\\S\\a")
    assert is_drive_path("c:/x")
    assert not is_drive_path("ab:/x")


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=3 * settings().max_examples
)
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(
                ["..", ".", "root", "outside", "o.jpg", "a.jpg", "sub", "dir", "link.jpg", "", "%2e%2e", "~"]
            ),
            max_size=8,
        ).map("/".join),
    ),
    st.sampled_from(
        ["", "file://", "FILE://", "file:///", "/", "TREE/", "file://TREE/", "data:,", "data:image/png;base64,", "/9j/"]
    ),
    st.sampled_from(["image", "audio", "video"]),
)
def test_any_text_is_read_inside_the_root_or_refused(tree, text, prefix, modality):
    root = tree / "root"
    if not (root / "dir").is_symlink():
        (root / "dir").symlink_to(tree / "outside", target_is_directory=True)
        (root / "link.jpg").symlink_to(tree / "outside" / "o.jpg")
        (tree / "outside" / "o.jpg").write_bytes(JPEG + b"SECRET")
    reader = MediaReader(MediaPolicy([root]))
    source = prefix.replace("TREE", str(tree)) + text
    try:
        part = reader.read(MediaRef(modality, source))
    except MMPromptError as error:
        assert len(str(error)) < 500  # either outcome is right
    else:
        assert not isinstance(part, MediaPart) or not part.data.endswith(b"SECRET")
