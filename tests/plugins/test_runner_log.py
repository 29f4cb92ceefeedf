"""What mmprompt warns of is told in a runner's own log while the runner calls us, and our logger is left as it was."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from threading import Thread

import pytest

from mmprompt._log import log
from mmprompt.plugins.bridge.runner_log import warnings_to


@pytest.fixture
def runner(caplog: pytest.LogCaptureFixture) -> Iterator[logging.Logger]:
    """A logger that is the only one its runner listens to."""
    logger = logging.getLogger("some runner")
    logger.propagate = False
    logger.addHandler(caplog.handler)
    yield logger
    logger.removeHandler(caplog.handler)
    logger.propagate = True


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "some runner"]


def test_a_warning_is_told_while_we_are_called_and_our_logger_is_as_before_then(
    runner: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    @warnings_to(lambda: runner)
    def called() -> None:
        log.warning("a %s", "note")
        raise LookupError

    before = list(log.handlers)
    for _ in range(2):
        with pytest.raises(LookupError):
            called()
    log.warning("later")
    assert said(caplog) == ["mmprompt: a note"] * 2
    assert log.handlers == before


def test_calls_in_several_threads_tell_each_its_own(runner: logging.Logger, caplog: pytest.LogCaptureFixture) -> None:
    with warnings_to(lambda: runner):
        other = Thread(target=log.warning, args=("of nobody's call",))
        other.start()
        other.join()
        log.warning("ours")
    assert said(caplog) == ["mmprompt: ours"]


def test_a_runner_without_a_log_is_told_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    runner = logging.getLogger("a runner that does not run")
    runner.propagate = False
    with warnings_to(lambda: runner):
        log.warning("a note")
    assert capsys.readouterr() == ("", "")
