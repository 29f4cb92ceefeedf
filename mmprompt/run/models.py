"""The model that a run asks, found by its name."""

from __future__ import annotations

import os
from collections.abc import Iterable

from mmprompt.errors import ServerError, TaskError, nearest, shown
from mmprompt.run.address import BASE_URL, server_access
from mmprompt.run.model import Model
from mmprompt.tasks.config import TaskConfig

BUILTIN = "builtin:"
_SHAPES = "builtin:shapes"


def model_for(
    name: str | None,
    base_url: str | None = None,
    *,
    config: TaskConfig | None = None,
    target: str | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    key_variable: str | None = None,
    headers: Iterable[str] = (),
) -> Model:
    """Return a model: that of a server, the one in a folder, or the built-in one.

    Args:
        name: the model's name on the server, its folder, or ``builtin:shapes``; by default what the task names.
        base_url: the server's address; by default what the task names, else ``MMPROMPT_BASE_URL``.
        config: the task's settings.
        target: what the server accepts; by default that of its address.
        timeout: seconds that one attempt may take.
        concurrency: the most requests at once.
        key_variable: the environment variable that holds the server's key.
        headers: further headers as ``NAME=VARIABLE``.

    Raises:
        TaskError: neither the caller nor the task names a model, or it is not known.
        ServerError: the server must not be asked, or it needs a key that is not there.
    """
    in_task = (None, None, None) if config is None else (config.model_name, config.base_url, config.model_path)
    served, task_url, folder = in_task
    if name is not None and name.startswith(BUILTIN):
        return _builtin(name)
    if name is None and base_url is None and folder is not None:
        return _local(folder)
    if name is not None and base_url is None and task_url is None and os.path.isdir(name):
        return _local(name)
    asked = name or served
    if asked is None:
        raise TaskError("no model is given", "give --model NAME, a folder, or builtin:shapes")
    stranger = config is not None and config.is_data
    try:
        access = server_access(
            base_url or (None if stranger else task_url),
            task_url if stranger else None,
            key_variable=key_variable,
            headers=headers,
        )
    except ServerError as error:
        if base_url or task_url or os.environ.get(BASE_URL):
            raise
        hint = f"{error.hint}; a local model is given by its folder, and {shown(asked)} is not one"
        raise ServerError(error.what, hint) from None
    from mmprompt.run.client import TIMEOUT  # noqa: PLC0415  # loads for servers
    from mmprompt.run.server_model import CONCURRENCY, ServerModel  # noqa: PLC0415  # loads for servers

    return ServerModel(
        access.base_url,
        asked,
        api_key=access.key,
        headers=access.headers,
        target=target,
        timeout=timeout or TIMEOUT,
        concurrency=concurrency or CONCURRENCY,
    )


def _builtin(name: str) -> Model:
    if name != _SHAPES:
        raise TaskError(f"unknown model {shown(name)}", nearest(name, (_SHAPES,)))
    from mmprompt.run.shapes.model import ShapesModel  # noqa: PLC0415  # loads NumPy

    return ShapesModel()


def _local(folder: str) -> Model:
    from mmprompt.run.local_model import LocalModel  # noqa: PLC0415  # loads torch

    return LocalModel(folder)
