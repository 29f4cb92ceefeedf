"""What a YAML, TOML or JSON task file may read by itself, and what only the command line or the caller can allow.

Such a file may come from a stranger. By itself it opens the folders of the datasets it names and roots
inside its own folder, and it sets limits up to those of the default policy. Everything else needs a ``Grants``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, cast

from mmprompt.datasets.readers.folder import files_of
from mmprompt.datasets.readers.patterns import Walk
from mmprompt.errors import TaskError, shown
from mmprompt.errors.findings import Note
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.real_path import blobs_folder
from mmprompt.targets.json_files import FILE
from mmprompt.tasks.config import DatasetSection, MediaSection, TaskConfig

_HOSTILE = "hostile"
_LONGEST_PATH = 4096
_LISTED = 10


class Grants(NamedTuple):
    """What the command line or the caller allows. The fields are those of ``MediaPolicy``.

    ``decided`` is True if the caller gave a whole policy. The requests of the task file are then ignored. ``within``
    is the only folder whose files the task may open, where another file, and not the caller, names the task.
    """

    preset: str | None = None
    roots: tuple[str, ...] = ()
    fetch: bool = False
    allow_domains: tuple[str, ...] = ()
    read_also: tuple[str, ...] = ()
    decided: bool = False
    within: str | None = None


class OutsideError(TaskError):
    """A file names another one outside the only folder that it may open."""


def require_inside(names: Iterable[str], folder: str) -> None:
    """Refuse files, folders and patterns outside a folder, links followed.

    Raises:
        OutsideError: one lies outside.
    """
    for name in names:
        if not is_inside(_parent(name) if any(mark in name for mark in "*?[") else name, [folder]):
            raise OutsideError(f"{shown(name)} lies outside {shown(folder)}", "name it yourself")


class _Request(NamedTuple):
    """Something that a task file asks for and cannot allow by itself, and the option that allows it."""

    what: str
    option: str


def granted_config(config: TaskConfig, named: DatasetSection, folder: str, grants: Grants) -> TaskConfig:
    """Return the settings of a task file of data that count; ``folder`` is its own, ``named`` the datasets it names.

    Under ``--policy hostile``, and if the caller gave a policy, requests that are not allowed are left out.

    Raises:
        TaskError: it asks for more than ``grants`` allows. The message prints the options that allow it.
    """
    media = config.media
    own = [folder or os.curdir, *_dataset_folders(named)]
    hosts = _hosts(grants.allow_domains)
    roots = [root for root in media["roots"] if not is_inside(root, [*own, *grants.roots])]
    domains = [host for host in media["allow_domains"] if not _hosts([host]) <= hosts]
    formats = [name for name in media["read_also"] if name not in grants.read_also]
    higher = [] if grants.preset is not None else list(_higher(media))
    if grants.decided or grants.preset == _HOSTILE:
        kept = {
            "roots": [root for root in media["roots"] if root not in roots],
            "allow_domains": [host for host in media["allow_domains"] if host not in domains],
            "fetch": media["fetch"] and grants.fetch,
            "read_also": [name for name in media["read_also"] if name not in formats],
            "policy": "default" if media["policy"] == "trusted" else media["policy"],
            "limits": {key: value for key, value in media["limits"].items() if key not in higher},
        }
        media = cast("MediaSection", {**media, **kept})
    else:
        asked = [_Request(f"media.roots {shown(root)}", f"--media-root {_word(root)}") for root in roots]
        asked += [_Request(f"media.allow_domains {shown(host)}", f"--allow-domain {_word(host)}") for host in domains]
        asked += [_Request(f"media.read_also {name}", f"--read-also {name}") for name in formats]
        asked += [_Request("media.fetch", "--fetch")] if media["fetch"] and not grants.fetch else []
        if media["policy"] == "trusted" and grants.preset is None:
            higher = ["policy: trusted"]
        asked += [_Request(f"media.{key}", "--policy trusted") for key in higher]
        _refuse(asked)
    if not grants.decided and _HOSTILE in (grants.preset, media["policy"]):
        outside = [d for d in own[1:] if not is_inside(d, [own[0], *grants.roots])]
        _refuse([_Request(f"media of the dataset in {shown(d)}", f"--media-root {_word(d)}") for d in outside])
    return config._replace(media=media, is_data=True)


def check_files(files: Iterable[str], config: TaskConfig, folder: str, grants: Grants) -> None:
    """Refuse the files of a dataset to which a link leads out of what is allowed.

    That is ``grants.within`` or, under ``--policy hostile``, the task's own ``folder`` and the roots of ``grants``.

    Raises:
        TaskError: there is one; an ``OutsideError`` if it lies outside ``grants.within``.
    """
    if grants.within is not None:
        for path in _files_outside(files, [grants.within]):
            raise OutsideError(f"{shown(path)} lies outside {shown(grants.within)}", "name it yourself")
    if grants.decided or _HOSTILE not in (grants.preset, config.media["policy"]):
        return
    allowed = [os.path.realpath(name) for name in (folder or os.curdir, *grants.roots)]
    allowed += filter(None, [blobs_folder(os.path.join(name, "")) for name in allowed])
    outside = dict.fromkeys(map(os.path.dirname, _files_outside(files, allowed)))
    _refuse([_Request(f"the dataset's file in {shown(name)}", f"--media-root {_word(name)}") for name in outside])


def _files_outside(names: Iterable[str], folders: Sequence[str]) -> list[str]:
    """Return the real paths of files, those of patterns and folders too, that lie in none of ``folders``."""
    walk = Walk()
    found = [path for name in names if name != "-" for path in walk.files(name)]
    files = [path for name in found for path in (files_of(name).files if os.path.isdir(name) else [name])]
    return [os.path.realpath(path) for path in files if not is_inside(path, folders)]


def folder_notes(named: DatasetSection, folder: str, opened: Iterable[str]) -> Iterator[Note]:
    """Yield a note for each folder outside the task's own whose media may be read too.

    ``named`` are the datasets that the task names, ``opened`` the folders in which they were found.
    """
    for dataset in dict.fromkeys(map(os.path.realpath, [*_dataset_folders(named), *opened])):
        if not is_inside(dataset, [folder or os.curdir]):
            what = f"the task names a dataset outside its own folder, so media below {dataset} may be read"
            yield Note("MM206", what)


def _refuse(asked: list[_Request]) -> None:
    if not asked:
        return
    what = ", ".join(request.what for request in asked[:_LISTED]) + (", …" if len(asked) > _LISTED else "")
    options = " ".join(dict.fromkeys(request.option for request in asked[:_LISTED]))
    config = ", in a runner's config media_root=" if "--media-root" in options else ""
    raise TaskError(f"a task file cannot allow by itself: {what}", f"pass {options}; in Python give policy={config}")


def _higher(media: MediaSection) -> Iterator[str]:
    """Yield the limits of the section that are looser than those of the default policy."""
    most = MediaPolicy()
    for key, value in media["limits"].items():
        if not is_tighter(key, value, getattr(most, key)) and value != getattr(most, key):
            yield key


def is_tighter(name: str, value: float | None, most: float | None) -> bool:
    """Return whether a task's limit is stricter than a policy's; None means no limit."""
    if name == "isolate":
        return bool(value and not most)
    return value is not None and (most is None or value < most)


def _dataset_folders(named: DatasetSection) -> list[str]:
    """Return the folders of the datasets and of the files that are joined with them."""
    return [path if os.path.isdir(path) else _parent(path) for path in dataset_paths(named)]


def dataset_paths(named: DatasetSection) -> list[str]:
    """Return the files, folders and patterns of the datasets, and the files that are joined with them."""
    values = [named[key] for key in ("path", "train") if key in named]
    paths = [path for value in values for path in ([value] if isinstance(value, str) else value) if path != "-"]
    return paths + [name.rpartition(":")[0] for name in named.get("join", ())]


def _parent(path: str) -> str:
    """Return the folder of a file; of a pattern the one above its first wildcard."""
    folder = os.path.dirname(path)
    while not os.path.lexists(path) and any(mark in folder for mark in "*?["):
        folder = os.path.dirname(folder)
    return folder or os.curdir


def is_special(path: str) -> bool:
    """Return whether a path names a pipe, a device or a socket: reading it may never end."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


def refuse_pipes(paths: Iterable[str]) -> None:
    """Refuse datasets that a file names and that are pipes or devices: reading them may never end.

    Raises:
        TaskError: one is.
    """
    for path in filter(FILE, paths):
        if is_special(path):
            raise TaskError(f"the dataset {shown(path)} is no regular file", "name it yourself: --dataset FILE")


def is_inside(path: str, folders: Iterable[str]) -> bool:
    """Return whether a path lies in one of the folders, links followed."""
    if not FILE(str(path)) or len(os.fsencode(path)) > _LONGEST_PATH:  # following links takes time in its square
        return False
    real = os.path.join(os.path.realpath(path), "")
    return any(real.startswith(os.path.join(os.path.realpath(folder), "")) for folder in folders)


def _hosts(names: Iterable[str]) -> set[str]:
    return set(MediaPolicy(allow_domains=tuple(names)).allow_domains)


def _word(text: str) -> str:
    """Return a text as a word of a command, if it is not too long to be typed."""
    import shlex  # noqa: PLC0415  # only for a hint

    return shlex.quote(text) if len(text) <= _LONGEST_PATH else "…"
