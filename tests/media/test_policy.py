"""The policy: a value that says what may be read."""

from __future__ import annotations

import copy
import dataclasses
import pathlib
import pickle

import pytest

from mmprompt.errors import PolicyError
from mmprompt.media import MediaPolicy, MediaReader


def test_a_policy_allows_nothing_by_default_and_has_limits():
    policy = MediaPolicy()
    assert policy.roots == policy.allow_domains == policy.files == ()
    assert policy.max_bytes == 64 << 20
    assert policy.max_pixels == 50_000_000
    assert policy.timeout == 30.0


def test_a_policy_is_a_value():
    policy = MediaPolicy(["a", pathlib.PurePath("b")], ["Example.COM."], max_bytes=5, max_seconds=None).with_files(
        "x.jpg"
    )
    assert policy.roots == ("a", "b")
    assert policy.allow_domains == ("example.com",)
    assert pickle.loads(pickle.dumps(policy)) == policy == copy.deepcopy(policy)
    assert hash(policy) == hash(copy.copy(policy))
    assert policy != MediaPolicy(["a", "b"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.max_bytes = 6


def test_files_are_added_to_a_copy_once():
    policy = MediaPolicy("a")
    more = policy.with_files("f.jpg", "f.jpg")
    assert (policy.files, more.files) == ((), ("f.jpg",))
    assert more.roots == ("a",)


@pytest.mark.parametrize(
    "arguments",
    [
        {"max_bytes": -1}, {"max_bytes": 0}, {"max_bytes": 1.5}, {"max_bytes": True}, {"max_pixels": None},
        {"max_seconds": -1}, {"max_seconds": float("nan")}, {"timeout": 0}, {"timeout": float("inf")}, {"timeout": "3"},
        {"roots": [""]}, {"roots": [3]}, {"roots": ["a\0"]}, {"files": [b"x"]}, {"allow_domains": ["http://x"]}, {"allow_domains": [""]},
    ],
)  # fmt: skip
def test_what_is_no_limit_or_root_is_refused_at_once(arguments):
    with pytest.raises(PolicyError):
        MediaPolicy(**arguments)


def test_a_root_that_is_no_folder_is_refused_by_the_reader(tmp_path):
    (tmp_path / "f").write_bytes(b"x")
    for root in ("missing", "f"):
        with pytest.raises(PolicyError, match="not a folder"):
            MediaReader(MediaPolicy([tmp_path / root]))
