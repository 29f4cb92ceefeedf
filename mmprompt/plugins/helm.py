"""HELM: a request as its ``MultimediaObject``, whose media are files."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from mmprompt.datasets.writers.output_file import keep_medium
from mmprompt.datasets.writers.stored_media import suffix_of
from mmprompt.messages import MediaPart, TextPart
from mmprompt.plugins.bridge.single_prompt import single_prompt
from mmprompt.render.request import Request

if TYPE_CHECKING:
    from helm.common.media_object import MultimediaObject


def to_helm(request: Request, folder: str | os.PathLike[str]) -> MultimediaObject:
    """Return a request as a ``MultimediaObject``, its parts in order.

    The media are written below ``folder``, each under its SHA-256. The right answers are not part of the object:
    ``request.answers`` holds them for HELM's ``Reference``.

    Raises:
        TargetError: the request has other turns, or media that go by a URL.
        OSError: a medium cannot be written.
    """
    from helm.common.media_object import MediaObject, MultimediaObject  # noqa: PLC0415  # absent unless installed

    objects = []
    for part in single_prompt(request, "HELM", ("image", "audio", "video")).parts:
        if isinstance(part, TextPart):
            objects.append(MediaObject(content_type="text/plain", text=part.text))
        elif isinstance(part, MediaPart):
            name = hashlib.sha256(part.data).hexdigest() + suffix_of(part)
            path = os.path.join(os.path.abspath(folder), name)
            keep_medium(os.fspath(folder), name, part.data)
            objects.append(MediaObject(content_type=part.media_type, location=path))
    return MultimediaObject(objects)
