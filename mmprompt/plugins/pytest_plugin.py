"""The pytest plugin: the fixture ``vlm``, which asks a vision-language model, and datasets whose rows are tests.

    def test_cat(vlm):
        assert "cat" in vlm.ask("What is this?", image="cat.jpg")

Server and model come from the command line, the environment or the ini file, in this order. pytest always loads this
module, so it imports little, and nothing in it is collected as a test.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from mmprompt.plugins.pytest_files import add_option, pytest_collect_file  # noqa: F401  # a hook of pytest
from mmprompt.plugins.pytest_rows import pytest_configure, pytest_generate_tests  # noqa: F401  # hooks of pytest

if TYPE_CHECKING:
    from mmprompt.run.client import ChatClient
    from mmprompt.run.conversation import Asker

_CLIENT: pytest.StashKey[ChatClient] = pytest.StashKey()
_ASKER: pytest.StashKey[Asker] = pytest.StashKey()
_SETTINGS = {
    "base-url": "address of the OpenAI-compatible API, such as http://127.0.0.1:8000/v1",
    "model": "name of the model",
    "target": "what the server accepts: vllm (the default) or openai",
    "timeout": "longest time for one try, in seconds (120)",
}
_LONGEST_CHAIN = 10
_NO_SERVER = "vlm has no {what}: give --vlm-{option}, set {variable}, or write {ini} under [tool.pytest.ini_options]"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("vlm", "vision-language models (mmprompt)")
    for name, words in _SETTINGS.items():
        group.addoption(f"--vlm-{name}", metavar=name.upper(), help=f"{words}; or {_variable(name)}")
        parser.addini(_ini(name), words)
    add_option(parser)
    # only on the command line: the ini file may be a stranger's, and must not choose which variable is sent
    group.addoption("--vlm-api-key-env", metavar="NAME", help="environment variable that holds the server's key")


@pytest.fixture
def vlm(request: pytest.FixtureRequest) -> Asker:
    """A vision-language model to ask: ``vlm.ask("What is this?", image="cat.jpg")`` returns its reply.

    Media are paths, URLs, bytes or PIL images, or lists of these. Paths begin at the folder of the test file.
    ``vlm.conversation()`` asks several turns; ``vlm.send`` sends messages of ``mmprompt.testing``, or a row.
    """
    from mmprompt.run.conversation import Asker  # noqa: PLC0415  # loads with the first test that asks

    request.node.stash[_ASKER] = asker = Asker(_client(request.config), base=request.path.parent)
    return asker


@pytest.hookimpl(hookwrapper=True)  # the older form: an old pluggy must not fail at its start because of us
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Add to the report of a failed test what it asked and what the model replied."""
    asker = item.stash.get(_ASKER, None)
    if asker is not None and call.excinfo is not None and not item.config.getoption("fulltrace"):
        _end_at_the_call(call.excinfo.value)
    outcome = yield
    report = outcome.get_result()
    if report.failed and asker is not None and asker.exchanges:
        from mmprompt.run.transcript import transcript  # noqa: PLC0415  # only for a report

        add = getattr(report.longrepr, "addsection", None) or (lambda *section: report.sections.append(section))
        add("vlm", transcript(asker.exchanges))
    if asker is not None and call.when == "teardown":
        asker.exchanges.clear()  # frees their media: pytest keeps the test in memory to the end of the run


def _end_at_the_call(error: BaseException | None) -> None:
    """Cut the traceback of our errors, and of their causes, at the test's call: the text of the error is enough."""
    from mmprompt.errors import MMPromptError  # noqa: PLC0415  # only for a report

    for _ in range(_LONGEST_CHAIN):
        entry = error.__traceback__ if isinstance(error, MMPromptError) else None
        while entry is not None and entry.tb_next is not None:
            if entry.tb_next.tb_frame.f_globals.get("__name__", "").startswith("mmprompt."):
                entry.tb_next = None
            entry = entry.tb_next
        error = error and (error.__cause__ or error.__context__)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the connections."""
    client = config.stash.get(_CLIENT, None)
    if client is not None:
        client.close()


def _client(config: pytest.Config) -> ChatClient:
    """Return the client of this run. Without a server the test fails: a skipped test would go unnoticed."""
    client = config.stash.get(_CLIENT, None)
    if client is None:
        from mmprompt.errors import MMPromptError  # noqa: PLC0415  # loads with the first test that asks
        from mmprompt.errors.findings import Finding  # noqa: PLC0415  # loads with the first test that asks
        from mmprompt.run.address import key_for  # noqa: PLC0415  # loads with the first test that asks
        from mmprompt.run.client import ChatClient  # noqa: PLC0415  # loads with the first test that asks

        address = _needed(config, "base-url", "server")
        model = _needed(config, "model", "model")
        try:
            client = ChatClient(
                address,
                model,
                api_key=key_for(address, config.getoption("--vlm-api-key-env")),
                timeout=_seconds(_setting(config, "timeout") or "120"),
                target=_setting(config, "target") or "vllm",
            )
        except MMPromptError as error:
            raise pytest.fail.Exception(f"vlm: {Finding.of(error)}", pytrace=False) from None
        config.stash[_CLIENT] = client
    return client


def _needed(config: pytest.Config, name: str, what: str) -> str:
    value = _setting(config, name)
    if not value:
        pytest.fail(_NO_SERVER.format(what=what, option=name, variable=_variable(name), ini=_ini(name)), pytrace=False)
    return value


def _setting(config: pytest.Config, name: str) -> str:
    """Return a setting from the command line, else the environment, else the ini file; empty if none has it."""
    return str(config.getoption(f"--vlm-{name}") or os.environ.get(_variable(name)) or config.getini(_ini(name)) or "")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if 0 < seconds < 1e6:
        return seconds
    pytest.fail(f"vlm: the timeout {text!r} is not a number of seconds; give --vlm-timeout=120", pytrace=False)


def _variable(name: str) -> str:
    return "MMPROMPT_" + name.upper().replace("-", "_")


def _ini(name: str) -> str:
    return "vlm_" + name.replace("-", "_")
