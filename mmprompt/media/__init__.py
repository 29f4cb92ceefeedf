"""Media: the only package that opens what a sample names.

sources.py classifies a source without opening it, policy.py is the permission to read, files.py opens files, fetch/
fetches URLs, and reader.py puts these together. request_reader.py bounds the media of one request. media_types.py and
base64_text.py hold the one table of types and the one codec. image/, audio/ and video/ inspect and change media;
ffmpeg.py guards the files that FFmpeg opens. engine.py makes changes, through cache/ (results made before) and sandbox/
(decoders in child processes).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mmprompt.media.policy import MediaPolicy
    from mmprompt.media.reader import MediaReader, read_messages
    from mmprompt.media.sources import Source, classify

__all__ = ["MediaPolicy", "MediaReader", "Source", "classify", "read_messages"]

_HOME_OF = {
    "MediaPolicy": "policy",
    "MediaReader": "reader",
    "Source": "sources",
    "classify": "sources",
    "read_messages": "reader",
}


def __getattr__(name: str) -> object:
    """Load a public name from its home. A child process starts in half the time without the reader."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'mmprompt.media' has no attribute '{name}'")
    import importlib  # noqa: PLC0415  # paid by the first use

    value = getattr(importlib.import_module(f"mmprompt.media.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
