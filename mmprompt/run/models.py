"""The model that a run asks, found by its name."""

from __future__ import annotations

import os
from typing import NamedTuple

from mmprompt.errors import TaskError, nearest, shown
from mmprompt.media.policy import MediaPolicy
from mmprompt.run.address import BASE_URL, server_access
from mmprompt.run.model import Model
from mmprompt.tasks.config import TaskConfig
from mmprompt.tasks.task import Task

_BUILTIN = "builtin:"
_SHAPES = "builtin:shapes"
_PATHS = ("./", "../", "/", "~")
"""How a path begins that is not the name of a model."""


class ServerSettings(NamedTuple):
    """How a server is asked.

    ``target`` is what it accepts, by default that of its address. ``timeout`` is in seconds, for one attempt.
    ``concurrency`` is the most requests at once. ``key_variable`` is the environment variable that holds the key, and
    ``headers`` are further ones as ``NAME=VARIABLE``.
    """

    target: str | None = None
    timeout: float | None = None
    concurrency: int | None = None
    key_variable: str | None = None
    headers: tuple[str, ...] = ()


class LocalSettings(NamedTuple):
    """How a local model is asked: where it computes, how many requests make a batch, and the limits of decoding."""

    device: str = "cpu"
    batch: int | None = None
    policy: MediaPolicy | None = None


class ModelSettings(NamedTuple):
    """Which model is asked and how, as plain data; see ``model_for``. It holds no key: each process takes its own."""

    name: str | None = None
    base_url: str | None = None
    server: ServerSettings = ServerSettings()
    local: LocalSettings = LocalSettings()

    def model(self, task: Task) -> Model:
        """Return the model.

        Raises:
            MMPromptError: it is not known, or must not be asked.
        """
        return model_for(self.name, self.base_url, task.config, self.server, self.local)


def model_for(
    name: str | None,
    base_url: str | None,
    config: TaskConfig,
    settings: ServerSettings = ServerSettings(),  # noqa: B008  # immutable
    local: LocalSettings = LocalSettings(),  # noqa: B008  # immutable
) -> Model:
    """Return a model: that of a server, the one in a folder, or the built-in one.

    Args:
        name: the model's name on the server, its folder, or ``builtin:shapes``; by default what the task names.
        base_url: the server's address; by default what the task names, else ``MMPROMPT_BASE_URL``.
        config: the task's settings.
        settings: how a server is asked.
        local: how a local model is asked.

    Raises:
        TaskError: neither the caller nor the task names a model, or it is not known.
        ServerError: the server must not be asked, or it needs a key that is not there.
    """
    if name is not None and name.startswith(_BUILTIN):
        return _builtin(name)
    if base_url is None and name is None and config.model_path is not None:
        return _local(config.model_path, local)
    if base_url is None and name is not None and config.base_url is None and os.path.isdir(name):
        return _local(name, local)
    asked = name or config.model_name
    if asked is None:
        raise TaskError("no model is given", f"give --model NAME, a folder, or {_SHAPES}")
    if asked.startswith(_PATHS) and not (base_url or config.base_url or os.environ.get(BASE_URL)):
        hint = "give the folder of a local model, or the address of the server that has it: --base-url URL"
        raise TaskError(f"there is no folder {shown(asked)}", hint)
    return _served(asked, base_url, config, settings)


def model_here(name: str) -> Model:
    """Return a model that needs no server: ``builtin:shapes``, or the one in a folder.

    Raises:
        TaskError: there is none of this name.
    """
    if name.startswith(_BUILTIN):
        return _builtin(name)
    if not os.path.isdir(name):
        raise TaskError(f"there is no model {shown(name)}", f"give {_SHAPES}, or the folder of a local model")
    return _local(name)


def _served(name: str, base_url: str | None, config: TaskConfig, settings: ServerSettings) -> Model:
    from mmprompt.run.client import TIMEOUT  # noqa: PLC0415  # loads for servers
    from mmprompt.run.server_model import CONCURRENCY, ServerModel  # noqa: PLC0415  # loads for servers

    own, of_stranger = (None, config.base_url) if config.is_data else (config.base_url, None)
    access = server_access(base_url or own, of_stranger, key_variable=settings.key_variable, headers=settings.headers)
    return ServerModel(
        access.base_url,
        name,
        api_key=access.key,
        headers=access.headers,
        target=settings.target,
        timeout=TIMEOUT if settings.timeout is None else settings.timeout,
        concurrency=settings.concurrency or CONCURRENCY,
    )


def _builtin(name: str) -> Model:
    if name != _SHAPES:
        raise TaskError(f"unknown model {shown(name)}", nearest(name, (_SHAPES,)))
    from mmprompt.run.shapes.model import ShapesModel  # noqa: PLC0415  # loads NumPy

    return ShapesModel()


def _local(folder: str, local: LocalSettings = LocalSettings()) -> Model:  # noqa: B008  # immutable
    from mmprompt.run.local_model import BATCH, LocalModel  # noqa: PLC0415  # loads for local models

    return LocalModel(folder, device=local.device, batch=local.batch or BATCH, policy=local.policy)
