"""The one place that reads what a sample names, under a policy.

``MediaReader`` takes a ``MediaRef`` and gives a ``MediaPart`` with the user's bytes unchanged, or a ``MediaRef`` with
the name that goes on the wire. Bytes decide the type; a declaration or suffix that says otherwise is a finding.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

from mmprompt.errors import MediaError, PolicyError, SourceError, nearest, shown
from mmprompt.media.base64_text import decode
from mmprompt.media.data_uri import decode_payload, parse_data_uri
from mmprompt.media.files import GuardedFiles
from mmprompt.media.media_types import JPEG, VIDEO_FRAMES, agree, normal_type, sniff
from mmprompt.media.not_media import not_media
from mmprompt.media.objects import encode_image, encode_object, is_frames
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.request_reader import Read, RequestReader
from mmprompt.media.sources import RootedPath, Source, classify, in_short, is_plain_url
from mmprompt.media.type_check import checked_type, suffix_findings
from mmprompt.messages import MODALITIES, MediaPart, MediaRef, Message, Pairs, checked

if TYPE_CHECKING:
    from mmprompt.media.fetch.fetcher import Fetched, Fetcher

MODES = ("inline", "file", "url", "keep")
_new = tuple.__new__  # half the time of the class, and this runs for every file


class MediaReader:
    """Reads media under one policy, in one mode. Safe to share between threads.

    It holds nothing that is open, but where it fetches a few idle connections a thread; see ``Fetcher``.

    Modes, for a path or ``file://`` URL: ``inline`` gives its bytes, ``file`` an absolute ``file://`` URL, ``url`` is
    an error, ``keep`` gives the source as written. A data URI, base64 or bytes are read ``inline`` and kept by
    ``keep``; the others are errors. An http(s) URL stays as it is and is not opened, unless the mode is ``inline`` and
    the policy says to fetch from its host.

    Raises:
        PolicyError: a root of the policy that is no folder, or what is no policy.
        SourceError: an unknown mode.
    """

    __slots__ = ("_fetcher", "_files", "_inline", "mode", "policy")

    def __init__(self, policy: MediaPolicy, mode: str = "inline") -> None:
        if mode not in MODES:
            raise SourceError(f"unknown media mode {shown(mode)}", nearest(mode, MODES))
        if not isinstance(policy, MediaPolicy):
            raise PolicyError(f"the policy is {type(policy).__name__}", "give MediaPolicy(roots=[DIR])")
        self.policy = policy
        self.mode = mode
        self._inline = mode == "inline"
        self._files = GuardedFiles(policy)
        self._fetcher: Fetcher | None = None
        if policy.fetch and self._inline:
            from mmprompt.media.fetch.fetcher import Fetcher  # noqa: PLC0415  # only where it is asked for

            self._fetcher = Fetcher(policy)

    def request(self, read: Read | None = None) -> RequestReader:
        """Return what reads the media of one request, within the policy's bounds on all of them together.

        Args:
            read: reads one medium; by default ``self.read``. Give a function that also changes it where changes are
                asked for, so that what goes out is counted.
        """
        return RequestReader(self.policy, read or self.read)

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return ``ref`` read: a part with bytes, or a reference with the name to send.

        A URL of a scheme that is neither http, https nor file comes back as it is; targets decide about it.

        Raises:
            SourceError: the source is none, its bytes are no media or not of its modality, the mode cannot send it, or
                it could not be fetched.
            PolicyError: the policy does not allow it.
        """
        modality, source, form, options, extra, _ = ref
        if modality not in MODALITIES:
            raise SourceError(f"unknown modality {shown(modality)}", nearest(modality, MODALITIES))
        if type(source) is str and is_plain_url(source):
            if self._fetcher is not None and self._fetcher.allows(source):
                return self._fetched(ref, self._fetcher.fetch(source))
            return _new(MediaRef, (modality, source, form, options, extra, source))
        kind, value = classify(source)
        if kind == "url":
            if self._fetcher is not None and self._fetcher.allows(value):
                return self._fetched(ref, self._fetcher.fetch(value))
            return _new(MediaRef, (modality, source, form, options, extra, value))
        if kind in ("path", "file"):
            if type(source) is RootedPath:
                return self._of_example(ref, source, source.full(value))
            if not self._inline:
                return self._named(ref, value)
            data = self._files.read(value)
            found, media_type = checked_type(data, modality, value, self.policy.read_also)
            findings = () if value.endswith(found.suffixes) else suffix_findings(value, found, media_type)
            fields = (modality, media_type, data, (), form, options, extra, _origin(source), (), findings)
            return _new(MediaPart, fields)
        if kind == "scheme":
            return ref
        if self.mode in ("file", "url"):
            raise SourceError(f"{in_short(source)} has no {_ADDRESS[self.mode]}", "use --media inline, or a file")
        part = self._embedded(ref, Source(kind, value))
        if self._inline or not isinstance(source, str):
            return part
        return MediaRef(modality, source, form, options, extra, source)

    def _of_example(self, ref: MediaRef, source: RootedPath, full: str) -> MediaPart | MediaRef:
        """Read a path of an example, which begins at a root of its own; errors show it as its sample wrote it."""
        try:
            found = self.read(ref._replace(source=full))
        except MediaError as error:
            what = error.what.replace(shown(full), shown(str(source)))
            raise type(error)(f"in an example: {what}", error.hint, error.where) from None
        if isinstance(found, MediaPart):
            return found._replace(origin=_origin(source))
        if self.mode != "keep":
            return ref._replace(name=found.name)
        written = str(source)
        return ref._replace(source=written, name=written)

    def _named(self, ref: MediaRef, path: str) -> MediaRef:
        """Open and check the file all the same, and return the reference with its name on the wire."""
        head, full = self._files.head(path)
        checked_type(head, ref.modality, path)
        if self.mode == "url":
            raise SourceError(f"{_origin(ref.source)} has no URL", "use --media inline or file, or name it by its URL")
        if self.mode == "file":
            return ref._replace(name=file_url(full))
        written = _as_text(ref.source, path)  # one object: targets write a source that is its own name as it stands
        return ref._replace(source=written, name=written)

    def _fetched(self, ref: MediaRef, fetched: Fetched) -> MediaPart:
        """Judge what was fetched as any other bytes; what the server declared is a declaration."""
        return self._part(ref, fetched.data, fetched.declared, name=in_short(ref.source))

    def _embedded(self, ref: MediaRef, source: Source) -> MediaPart:
        """Read a source that holds its bytes itself."""
        kind, value = source
        if kind == "data":
            uri = parse_data_uri(value)
            frames = uri.media_type == VIDEO_FRAMES
            return self._decoded(ref, uri.payload, uri.media_type, uri.is_base64, frames)
        if kind == "base64":
            return self._decoded(ref, value, "", True, "," in value)
        if kind == "bytes":
            if len(value) > self.policy.max_bytes:
                raise PolicyError(f"{len(value)} bytes are more than max_bytes ({self.policy.max_bytes})", _RAISE)
            return self._part(ref, value)
        if is_frames(value):
            return self._object_frames(ref, value)
        encoded = encode_object(value, ref.modality, self.policy)
        return self._part(ref, encoded.data, findings=encoded.findings, changes=encoded.changes)

    def _decoded(self, ref: MediaRef, text: str, declared: str, is_base64: bool, frames: bool) -> MediaPart:
        limit = self.policy.max_bytes
        if frames and is_base64:
            return self._base64_frames(ref, text)
        data, findings = decode_payload(text, is_base64, limit)
        if len(data) > limit:
            raise PolicyError(f"{len(data)} bytes are more than max_bytes ({limit})", _RAISE)
        return self._part(ref, data, declared, findings)

    def _part(
        self,
        ref: MediaRef,
        data: bytes,
        declared: str = "",
        findings: tuple[str, ...] = (),
        changes: tuple[str, ...] = (),
        *,
        name: str = "",
    ) -> MediaPart:
        kind, media_type = checked_type(data, ref.modality, name, self.policy.read_also)
        if declared and not agree(normal_type(declared), media_type):
            findings = (*findings, f"declared {shown(declared, 40)[1:-1]}, bytes are {kind.name}")
        origin = in_short(ref.source)
        return MediaPart(ref.modality, media_type, data, (), *_shape(ref), origin, changes, findings)

    def _base64_frames(self, ref: MediaRef, text: str) -> MediaPart:
        """Decode comma-joined base64, one JPEG a frame; the limit holds for all frames together."""
        self._check_count(text.count(",") + 1)
        left = self.policy.max_bytes
        frames: list[bytes] = []
        findings: list[str] = []
        for number, piece in enumerate(text.split(",")):
            try:
                data, found = decode(piece, left)
            except SourceError as error:
                raise SourceError(f"frame {number}: {error.what}", error.hint) from None
            left -= len(data)
            if left < 0:
                raise PolicyError(f"the frames have more than max_bytes ({self.policy.max_bytes})", _RAISE)
            frames.append(data)
            findings.extend(f"frame {number}: {f}" for f in found)
        return _video_of(ref, frames, (), tuple(findings))

    def _object_frames(self, ref: MediaRef, items: Sequence[object]) -> MediaPart:
        """Read a list of frames: each a PIL image, an array, or anything that names or holds a JPEG."""
        _check_video(ref)  # before they are read: a frame that is a list of frames ends here, however deep it is
        self._check_count(len(items))
        frames: list[bytes] = []
        notes: list[str] = []
        left = self.policy.max_bytes
        for number, item in enumerate(items):
            if hasattr(item, "shape") or hasattr(item, "convert"):
                encoded = encode_image(item, self.policy, frame=True)
                data = encoded.data
                notes.extend(f"frame {number}: {change}" for change in encoded.changes)
            else:
                part = MediaReader.read(self._as_inline(), MediaRef("image", item))
                if not isinstance(part, MediaPart):
                    raise SourceError(f"frame {number} ({in_short(item)}) is not read", "give frames as files or bytes")
                data = part.data
            left -= len(data)
            if left < 0:
                raise PolicyError(f"the frames have more than max_bytes ({self.policy.max_bytes})", _RAISE)
            frames.append(data)
        return _video_of(ref, frames, tuple(notes), ())

    def _check_count(self, count: int) -> None:
        """Refuse too many frames before an object is made of each: a frame of three bytes takes a hundred then."""
        if count > self.policy.max_frames:
            what = f"{count} frames are more than max_frames ({self.policy.max_frames})"
            raise PolicyError(what, "raise max_frames to allow it, or use --policy trusted")

    def check_size(self, messages: Iterable[Message]) -> None:
        """Refuse media that came with their bytes and are longer than ``max_bytes``, or have too many frames.

        Raises:
            PolicyError: the first of them.
        """
        limit = self.policy.max_bytes
        for message in messages:
            for part in message.parts:
                if not isinstance(part, MediaPart):
                    continue
                self._check_count(len(part.frames))
                if (size := len(part.data) + sum(map(len, part.frames))) > limit:
                    raise PolicyError(f"{part.modality} of {size} bytes is more than max_bytes ({limit})", _RAISE)

    def _as_inline(self) -> MediaReader:
        return self if self._inline else MediaReader(self.policy)


_ADDRESS = {"file": "file:// address", "url": "URL"}
_RAISE = "raise max_bytes to allow it"


def read_messages(
    messages: Sequence[Message], policy: MediaPolicy | None = None, media: str = "inline"
) -> list[Message]:
    """Return ``messages`` with every ``MediaRef`` read; one that has its wire name already stays as it is.

    Args:
        messages: those of one request, as a template and meta template gave them.
        policy: what may be read; without one no path is.
        media: the mode, see ``MediaReader``.

    Raises:
        MediaError: the first source that cannot be read, or more media than the policy allows in one request.
        TargetError: what is no message.
    """
    request = MediaReader(policy or MediaPolicy(), media).request()
    return [message._replace(parts=tuple(map(request.part, message.parts))) for message in map(checked, messages)]


def file_url(path: str) -> str:
    """Return the absolute ``file://`` URL of a path, escaped."""
    if os.name == "nt":
        path = "/" + path.replace("\\", "/")
    return "file://" + quote(os.fsencode(path), safe="/~")


def _video_of(ref: MediaRef, frames: Sequence[bytes], changes: tuple[str, ...], findings: tuple[str, ...]) -> MediaPart:
    """Return the video of these frames, all JPEG."""
    _check_video(ref)
    for number, frame in enumerate(frames):
        kind = sniff(frame)
        if kind is not JPEG:
            found = kind.name if kind else not_media(frame).name
            raise SourceError(f"frame {number} is {found}", "the frames of a video are JPEG")
    origin = in_short(ref.source)
    return MediaPart("video", VIDEO_FRAMES, b"", tuple(frames), *_shape(ref), origin, changes, findings)


def _check_video(ref: MediaRef) -> None:
    if ref.modality != "video":
        raise SourceError(f"several frames are no {ref.modality}", "tag them as video, or give one picture a segment")


def _shape(ref: MediaRef) -> tuple[str, Pairs, Pairs]:
    return ref.form, ref.options, ref.extra


def _origin(source: object) -> str:
    """Return a path's source in short; a plain short name is its own."""
    if isinstance(source, str) and len(source) <= 80 and source.isprintable():
        return source
    return in_short(source)


def _as_text(source: object, path: str) -> str:
    return source if isinstance(source, str) else path
