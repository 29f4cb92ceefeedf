"""The media of a page: whole inside it while they are few, else small pictures in it and the media in a folder."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.datasets.writers.output_file import write_medium
from mmprompt.errors import MMPromptError
from mmprompt.media.base64_text import encode_text
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.sandbox.decoders import decoder
from mmprompt.media.thumbnail import thumbnail
from mmprompt.messages import MediaPart

LARGEST_PAGE = 20 << 20
"""Bytes. A page that would be larger has its media, and then its rows, in a folder beside it."""

NAME = 20
"""Characters of a SHA-256 that name a medium."""

EXTENSIONS = {
    "image/jpeg": ".jpg", "image/png": ".png", "image/gif": ".gif", "image/webp": ".webp", "image/bmp": ".bmp",
    "image/avif": ".avif", "image/tiff": ".tiff", "image/heic": ".heic", "audio/wav": ".wav", "audio/mpeg": ".mp3",
    "audio/ogg": ".ogg", "audio/flac": ".flac", "audio/aac": ".aac", "audio/mp4": ".m4a", "video/mp4": ".mp4",
    "video/webm": ".webm", "video/quicktime": ".mov", "video/x-matroska": ".mkv", "video/x-msvideo": ".avi",
}  # fmt: skip
"""How the files of media types end: browsers go by it."""

_WHOLE = 8192
"""Bytes. A medium of at most this size is its own small picture."""


class MediaFiles:
    """Keeps each medium once, by its digest. Close it to end its decoding process.

    Args:
        folder: where media go that have no room in the page; it is created for the first of them.
        policy: the limits for decoding.
        most: bytes of the page that media may take.
    """

    def __init__(self, folder: str, policy: MediaPolicy, most: int = LARGEST_PAGE) -> None:
        self.folder = folder
        self.outside = False
        self.size = 0
        self._most = most
        self._policy = policy
        self._decoder = decoder(policy)
        self._whole: dict[str, MediaPart] = {}
        self._small: dict[str, bytes] = {}
        self._names: set[str] = set()

    def close(self) -> None:
        """End the decoding process."""
        self._decoder.close()

    def add(self, digests: tuple[str, ...], part: MediaPart) -> None:
        """Keep a medium, each frame of a video of single frames for itself."""
        frames = [part] if not part.frames else [_frame(frame) for frame in part.frames]
        for digest, each in zip(digests, frames, strict=True):
            name = digest[:NAME]
            if name in self._names:
                continue
            self._names.add(name)
            if self.outside:
                self._put_out(name, each)
                continue
            self._whole[name] = each
            self.size += len(each.data) * 4 // 3
            if self.size > self._most:
                self._move_out()

    def blocks(self) -> Iterator[tuple[str, str]]:
        """Yield what stands in the page: names, and base64."""
        for name, part in self._whole.items():
            yield f"m-{name}", encode_text(part.data)
        for name, data in self._small.items():
            yield f"t-{name}", encode_text(data)

    def _move_out(self) -> None:
        self.outside, self.size = True, 0
        whole, self._whole = self._whole, {}
        for name, part in whole.items():
            self._put_out(name, part)

    def _put_out(self, name: str, part: MediaPart) -> None:
        write_medium(self.folder, name + EXTENSIONS.get(part.media_type, ".bin"), part.data)
        if part.modality == "image" and len(part.data) <= _WHOLE:
            small = part.data
        else:
            try:
                small = self._decoder.run(thumbnail, part, self._policy)
            except MMPromptError:  # it cannot be decoded, which a check reports
                return
        if small and self.size + len(small) * 4 // 3 <= self._most // 2:
            self._small[name] = small
            self.size += len(small) * 4 // 3


def _frame(data: bytes) -> MediaPart:
    return MediaPart("image", "image/jpeg", data)
