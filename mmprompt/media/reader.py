"""The one place that reads what a sample names, under a policy.

``MediaReader`` takes a ``MediaRef`` and returns a ``MediaPart`` with the user's bytes unchanged, or a ``MediaRef`` with
the name that goes on the wire. The bytes decide the type; a declaration or suffix that contradicts them is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mmprompt.errors import MediaError, PolicyError, SourceError, expect, nearest, shown
from mmprompt.errors.findings import Note
from mmprompt.media.data_uri import decode_payload, parse_data_uri
from mmprompt.media.files import GuardedFiles
from mmprompt.media.media_types import VIDEO_FRAMES, agree, normal_type
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.request_reader import Read, RequestReader
from mmprompt.media.sources import RootedPath, Source, classify, in_short
from mmprompt.media.type_check import checked_type, suffix_findings
from mmprompt.media.urls import file_url, is_plain_url
from mmprompt.messages import MODALITIES, MediaPart, MediaRef, Message, Pairs, checked

if TYPE_CHECKING:
    from mmprompt.media.fetch.fetcher import Fetcher
    from mmprompt.media.frame_list import Frames

MODES = ("inline", "file", "url", "keep")
_ADDRESS = {"file": "file:// address", "url": "URL"}
_RAISE = "raise max_bytes to allow it, or use --policy trusted"
_new = tuple.__new__  # half the time of the class, and this runs for every file


class MediaReader:
    """Reads media under one policy, in one mode. Safe to share between threads.

    Make one and keep it: it resolves the roots of the policy when it is made. It keeps nothing open, except a few idle
    connections for each thread where it fetches; see ``Fetcher``.

    Modes, for a path or ``file://`` URL: ``inline`` returns its bytes, ``file`` an absolute ``file://`` URL, ``url``
    raises an error, ``keep`` returns the source as written. A data URI, base64 or bytes are read by ``inline`` and kept
    by ``keep``; the other modes raise an error. An http(s) URL stays as it is and is not opened, unless the mode is
    ``inline`` and the policy allows fetching from its host.

    Raises:
        PolicyError: a root of the policy is not a folder, or ``policy`` is not a ``MediaPolicy``.
        SourceError: an unknown mode.
    """

    __slots__ = ("_fetcher", "_files", "_inline", "_inline_reader", "_read_also", "mode", "policy")

    def __init__(self, policy: MediaPolicy, mode: str = "inline") -> None:
        if mode not in MODES:
            raise SourceError(f"unknown media mode {shown(mode)}", nearest(mode, MODES))
        hint = "give MediaPolicy(roots=[DIR]), or a preset: MediaPolicy.preset('hostile', [DIR])"
        expect(policy, MediaPolicy, "the policy", hint, PolicyError)
        self.policy = policy
        self.mode = mode
        self._inline = mode == "inline"
        self._read_also = policy.read_also
        self._files = GuardedFiles(policy)
        self._inline_reader: MediaReader | None = None
        self._fetcher: Fetcher | None = None
        if policy.fetch and self._inline:
            from mmprompt.media.fetch.fetcher import Fetcher  # noqa: PLC0415  # only where it is asked for

            self._fetcher = Fetcher(policy)

    def request(self, read: Read | None = None) -> RequestReader:
        """Return a reader for the media of one request, which the policy bounds together.

        ``read`` stands in for ``self.read``. It may also change what it reads; the bytes that go out are counted.
        """
        return RequestReader(self.policy, read or self.read)

    def read(self, ref: MediaRef) -> MediaPart | MediaRef:
        """Return ``ref`` read: a part with bytes, or a reference with the name to send.

        A URL with a scheme other than http, https and file comes back unchanged: the target decides about it.

        Raises:
            SourceError: the source is malformed or cannot be fetched, its bytes are not media of its modality, or the
                mode cannot send it.
            PolicyError: the policy does not allow it.
        """
        modality, source, form, options, extra, _ = ref
        if modality not in MODALITIES:
            raise SourceError(f"unknown modality {shown(modality)}", nearest(modality, MODALITIES), code="MM200")
        kind, value = ("url", source) if type(source) is str and is_plain_url(source) else classify(source)
        if kind == "url":
            if self._fetcher is not None and self._fetcher.allows(value):
                fetched = self._fetcher.fetch(value)
                return self._part(ref, fetched.data, fetched.declared, name=in_short(source))
            return _new(MediaRef, (modality, source, form, options, extra, value))
        if kind in ("path", "file"):
            if isinstance(source, RootedPath):
                return self._rooted(ref, source, source.full(value))
            return self.read_file(ref, value)
        if kind == "scheme":
            return ref
        if self.mode in ("file", "url"):
            raise SourceError(f"{in_short(source)} has no {_ADDRESS[self.mode]}", "use --media inline, or a file")
        part = self._embedded(ref, Source(kind, value))
        if self._inline or not isinstance(source, str):
            return part
        return MediaRef(modality, source, form, options, extra, source)

    def read_file(self, ref: MediaRef, path: str, name: str = "") -> MediaPart | MediaRef:
        """Read the file at ``path``, or check it where it goes by name; errors call it ``name``, else by its path.

        Raises:
            MediaError: as ``read``.
        """
        name = name or path
        if not self._inline:
            return self._named(ref, path, name)
        modality, source, form, options, extra, _ = ref
        return self.file_part((modality, form, options, extra), path, name, _origin(source))

    def file_part(self, kept: tuple[str, str, Pairs, Pairs], path: str, name: str, origin: str) -> MediaPart:
        """Return the file at ``path`` with the fields of its reference that stay; ``origin`` names it in messages.

        Raises:
            MediaError: as ``read``.
        """
        modality, form, options, extra = kept
        data = self._files.read(path, name)
        found, media_type = checked_type(data, modality, name, self._read_also)
        findings = () if path.endswith(found.suffixes) else suffix_findings(path, found, media_type)
        return _new(MediaPart, (modality, media_type, data, (), form, options, extra, origin, (), findings))

    def _rooted(self, ref: MediaRef, source: RootedPath, path: str) -> MediaPart | MediaRef:
        """Read a path that begins at its own root; messages show it as it was written."""
        try:
            return self.read_file(ref, path, str(source))
        except MediaError as error:
            if not source.owner:
                raise
            raise type(error)(f"in {source.owner}: {error.what}", error.hint, error.where, error.code) from None

    def _named(self, ref: MediaRef, path: str, name: str) -> MediaRef:
        """Open and check a file, and return its reference with the name that goes on the wire."""
        head, full = self._files.head(path, name)
        checked_type(head, ref.modality, name)
        if self.mode == "url":
            raise SourceError(f"{_origin(ref.source)} has no URL", "use --media inline or file, or name it by its URL")
        if self.mode == "file":
            return ref._replace(name=file_url(full))
        # one object in both fields: targets write a source that is its own name as it stands
        written = ref.source if type(ref.source) is str else name
        return ref._replace(source=written, name=written)

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
            self._check_bytes(value)
            return self._part(ref, value)
        from mmprompt.media.frame_list import check_is_video, frames_of_objects  # noqa: PLC0415  # for objects in memory
        from mmprompt.media.objects import encode_object, is_frames  # noqa: PLC0415  # for objects in memory

        if is_frames(value):
            check_is_video(ref.modality)  # first: however deep a list of lists of frames is, it ends here
            return _video_of(ref, frames_of_objects(value, self.policy, self._as_inline().read))
        encoded = encode_object(value, ref.modality, self.policy)
        return self._part(ref, encoded.data, findings=encoded.findings, changes=encoded.changes)

    def _decoded(self, ref: MediaRef, text: str, declared: str, is_base64: bool, frames: bool) -> MediaPart:
        if frames and is_base64:
            from mmprompt.media.frame_list import check_is_video, frames_of_base64  # noqa: PLC0415  # for a video

            check_is_video(ref.modality)
            return _video_of(ref, frames_of_base64(text, self.policy))
        data, findings = decode_payload(text, is_base64, self.policy.max_bytes)
        self._check_bytes(data)
        return self._part(ref, data, declared, findings)

    def _check_bytes(self, data: bytes) -> None:
        if len(data) > self.policy.max_bytes:
            raise PolicyError(
                f"{len(data)} bytes are more than max_bytes ({self.policy.max_bytes})", _RAISE, code="MM211"
            )

    def _part(
        self,
        ref: MediaRef,
        data: bytes,
        declared: str = "",
        findings: tuple[Note, ...] = (),
        changes: tuple[str, ...] = (),
        *,
        name: str = "",
    ) -> MediaPart:
        kind, media_type = checked_type(data, ref.modality, name, self.policy.read_also)
        if declared and not agree(normal_type(declared), media_type):
            findings = (*findings, Note("MM204", f"declared {shown(declared, 40)[1:-1]}, bytes are {kind.name}"))
        modality, source, form, options, extra, _ = ref
        if isinstance(source, Mapping) and source.get("bytes") is not None:  # sound as numbers has no bytes of its own
            path = source.get("path")
            findings = (*findings, *(suffix_findings(path, kind, media_type) if isinstance(path, str) else ()))
        return MediaPart(modality, media_type, data, (), form, options, extra, in_short(source), changes, findings)

    def check_size(self, media: Iterable[MediaPart]) -> None:
        """Refuse media that came with their bytes and have more than ``max_bytes``, or too many frames.

        Raises:
            PolicyError: the first of them.
        """
        from mmprompt.media.frame_list import check_count  # noqa: PLC0415  # loads with media in memory

        limit = self.policy.max_bytes
        for part in media:
            check_count(len(part.frames), self.policy)
            if (size := len(part.data) + sum(map(len, part.frames))) > limit:
                raise PolicyError(
                    f"{part.modality} of {size} bytes is more than max_bytes ({limit})", _RAISE, code="MM211"
                )

    def _as_inline(self) -> MediaReader:
        """Return a reader that returns bytes, for the frames of a video."""
        if self._inline:
            return self
        if self._inline_reader is None:
            self._inline_reader = MediaReader(self.policy)
        return self._inline_reader


def read_messages(
    messages: Sequence[Message], policy: MediaPolicy | None = None, media: str = "inline"
) -> list[Message]:
    """Return ``messages`` with every ``MediaRef`` read; one that has its wire name already stays as it is.

    Args:
        messages: those of one request, as a template and meta template return them.
        policy: what may be read; without one, no path may.
        media: the mode, see ``MediaReader``.

    Raises:
        MediaError: a source cannot be read, or the request holds more media than the policy allows.
        TargetError: an item is not a ``Message``.
    """
    request = MediaReader(policy or MediaPolicy(), media).request()
    return [message._replace(parts=tuple(map(request.part, message.parts))) for message in map(checked, messages)]


def _video_of(ref: MediaRef, frames: Frames) -> MediaPart:
    _, source, form, options, extra, _ = ref
    files, changes, findings = frames
    return MediaPart("video", VIDEO_FRAMES, b"", files, form, options, extra, in_short(source), changes, findings)


def _origin(source: object) -> str:
    """Return a path in short, for messages; a short printable one is returned as it is."""
    if isinstance(source, str) and len(source) <= 80 and source.isprintable():
        return str(source)
    return in_short(source)
