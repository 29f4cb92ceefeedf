from __future__ import annotations

import base64
from pathlib import Path

import pytest

from mmprompt import MediaPolicy, SourceError
from mmprompt.media.files import GuardedFiles


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        (
            "none.jpg",
            r"begin at a media root, as a rule the dataset's folder; --media-root DIR, media: \{roots: \[DIR\]\} or MediaPolicy\(roots=\[DIR\]\) adds one$",
        ),
        ("a, b.jpg", r"adds one$"),
        ("pics\\a.jpg", "write / for the backslashes"),
        (" a.jpg", "it begins or ends with a blank"),
        ('"a.jpg"', "take the quotes off"),
        ("~/a.jpg", "write the folder out: ~ means nothing here"),
        ("$HOME/a.jpg", r"write the folder out: \$ means nothing here"),
        ("base64," + "/9j/4AAQ" * 50, "if it is base64, write nothing before or behind it"),
        ("a.jpg,b.png", r'several names are a list: \["a.jpg", "b.jpg"\]'),
        ("a.jpg; b.png", "several names are a list"),
        ("a.jpg|b.png", "several names are a list"),
        ("a.jpg b.png", "several names are a list"),
    ],
)
def test_what_is_odd_about_a_missing_name_is_told(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(SourceError, match=f"^no such file: .*{hint}"):
        GuardedFiles(MediaPolicy([tmp_path])).read(name)


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        (
            b"<!DOCTYPE html><html><body>Not Found</body></html>",
            "MM205",
            "68 characters are an HTML page in base64; dow",
        ),
        (b"<html>" + b"x" * 9000, "MM205", "12008 characters are an HTML page in base64; download the file again"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146",
            "MM203",
            "a Git LFS pointer, not the file",
        ),
        (bytes(range(128, 256)), "MM201", "^no such file"),
        (b"a short text", "MM201", "^no such file"),
    ],
)
def test_a_page_in_base64_is_no_missing_file(tmp_path: Path, data: bytes, code: str, message: str) -> None:
    with pytest.raises(SourceError, match=message) as error:
        GuardedFiles(MediaPolicy([tmp_path])).read(base64.b64encode(data).decode())
    assert error.value.code == code
