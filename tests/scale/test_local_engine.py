"""The engine ``local`` tells the error of a shard, whatever its type."""

from __future__ import annotations

import threading

import pytest

from mmprompt import MMPromptError
from mmprompt.scale.local import run_local


class TwoArguments(Exception):
    """Pickles, but cannot be made again."""

    def __init__(self, what: str, place: str) -> None:
        super().__init__(f"{what} in {place}")


class Locked(Exception):
    """Does not pickle."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.lock = threading.Lock()


def fail(kind: str) -> dict[str, object]:
    raise TwoArguments("no picture", "row 3") if kind == "two" else Locked("no picture in row 3")


@pytest.mark.parametrize("kind", ["two", "locked"])
def test_an_error_that_does_not_pickle_is_told(kind: str) -> None:
    with pytest.raises(MMPromptError, match=r"a shard failed: .*no picture in row 3"):
        list(run_local(fail, [kind], 1))
