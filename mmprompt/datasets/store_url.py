"""Objects of a store, such as ``s3://bucket/data.jsonl``, that the command line names; ``fsspec`` opens them.

What a row or a task file names is a plain string, and is never opened here.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, BinaryIO, cast

from mmprompt.errors import DatasetError, shown

_URL = re.compile(r"([a-z][a-z0-9+.-]*)://(?!.*::)")
_NOT_A_STORE = ("http", "https", "ftp")
_STATES = (
    *("ETag", "etag", "md5Hash", "checksum", "generation", "VersionId", "version_id"),
    *("mtime", "LastModified", "last_modified", "updated", "modified", "created"),
)
"""What stores call the state of an object, the surest first."""

_INSTALL = "pip install fsspec, and the package of the store, such as s3fs or gcsfs"


class StoreURL(str):
    """The URL of an object that the command line names."""

    __slots__ = ()


def as_named(name: str) -> str:
    """Return a name of the command line, as a ``StoreURL`` if it is one."""
    found = _URL.match(name)
    return StoreURL(name) if found is not None and found[1] not in _NOT_A_STORE else name


def opened_object(url: StoreURL) -> BinaryIO:
    """Open an object for reading.

    Raises:
        DatasetError: it cannot be opened, or ``fsspec`` or the package of the store is missing.
    """
    store, path = _store_of(url)
    try:
        return cast("BinaryIO", store.open(path, "rb"))
    except Exception as error:  # noqa: BLE001  # each store has exceptions of its own
        raise _refused(url, error, "read") from None


def object_state(url: StoreURL) -> list[object]:
    """Return the size of an object, and what its store says of its content: a hash or a version, else the time.

    Raises:
        DatasetError: there is no such object, or ``fsspec`` or the package of the store is missing.
    """
    store, path = _store_of(url)
    try:
        facts = store.info(path)
    except Exception as error:  # noqa: BLE001  # each store has exceptions of its own
        raise _refused(url, error, "read") from None
    told = next((str(facts[name]) for name in _STATES if facts.get(name) is not None), None)
    return [facts.get("size"), told]


def put_object(file: str, url: StoreURL) -> None:
    """Copy a file to an object.

    Raises:
        DatasetError: it cannot be written, or ``fsspec`` or the package of the store is missing.
    """
    store, path = _store_of(url)
    try:
        store.put_file(file, path)
    except Exception as error:  # noqa: BLE001  # each store has exceptions of its own
        raise _refused(url, error, "write") from None


def _store_of(url: StoreURL) -> tuple[Any, str]:
    try:
        store, path = import_module("fsspec").core.url_to_fs(str(url))
    except (ImportError, ValueError) as error:
        what = f"{shown(url)} needs a package that is not there: {error}"
        raise DatasetError(what, _INSTALL, code="MM903") from None
    return store, path


def _refused(url: str, error: Exception, verb: str) -> DatasetError:
    if isinstance(error, FileNotFoundError):
        return DatasetError(f"no such object: {shown(url)}", "check the URL")
    return DatasetError(f"cannot {verb} {shown(url)}: {error or type(error).__name__}", "check the URL and its access")
