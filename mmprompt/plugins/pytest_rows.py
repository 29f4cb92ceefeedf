"""The marker ``vlm_rows``: a test for each row of a task file or dataset.

@pytest.mark.vlm_rows("vqa.jsonl")
def test_row(vlm, row):
    assert row.answers[0] in vlm.send(row)
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pytest

_MARKER = "vlm_rows"
_PATHS = ("path", "dataset", "train", "media_root")
_HINT = f"write the file's name: @pytest.mark.{_MARKER}('vqa.jsonl')"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    what = "run the test once for each row of a task file or dataset, as its argument 'row'; vlm.send(row) asks it"
    config.addinivalue_line("markers", f"{_MARKER}(path, **options): {what}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a marked test the requests of its rows. Rows that cannot be sent are told in one error of the collection."""
    marker = metafunc.definition.get_closest_marker(_MARKER)
    if marker is None:
        return
    if len(marker.args) != 1 or "row" not in metafunc.fixturenames:
        told = "" if len(marker.args) == 1 else f"; {_HINT}"
        raise pytest.Collector.CollectError(f"a test with the marker {_MARKER} needs a file and the argument row{told}")
    from mmprompt.errors import MMPromptError  # noqa: PLC0415  # loads with the first marker
    from mmprompt.errors.findings import Finding  # noqa: PLC0415  # loads with the first marker
    from mmprompt.plugins.bridge.requests import request_name  # noqa: PLC0415  # loads with the first marker
    from mmprompt.plugins.bridge.row_options import asked_rows  # noqa: PLC0415  # loads with the first marker

    given = {**marker.kwargs, "path": marker.args[0]}
    try:
        requests = asked_rows(_placed(given, metafunc.definition.path.parent), "{name}={python}", scored=False).requests
    except MMPromptError as error:
        raise pytest.Collector.CollectError(f"@pytest.mark.{_MARKER}: {Finding.of(error)}") from None
    metafunc.parametrize("row", [pytest.param(request, id=str(request_name(request))) for request in requests])


def _placed(given: Mapping[str, Any], folder: os.PathLike[str]) -> dict[str, Any]:
    """Return the arguments with their paths begun at the test file's folder."""
    return {name: _path(value, folder) if name in _PATHS else value for name, value in given.items()}


def _path(value: object, folder: os.PathLike[str]) -> object:
    if isinstance(value, (list, tuple)):
        return [_path(one, folder) for one in value]
    return os.path.join(folder, value) if isinstance(value, (str, os.PathLike)) else value
