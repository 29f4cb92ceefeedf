"""Media types: one table, decided by the bytes alone.

``sniff`` returns the kind of some bytes, ``media_type_for`` its media type for a modality. Suffixes and declared types
are only compared with the bytes; they never decide.
"""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of media file: its name, its media type for each modality, and the suffixes of its files.

    A kind ``by_choice`` is refused unless ``read_also`` names it. ``hint`` says what to do with a kind that is refused
    or cannot be decoded. ``demuxers`` are FFmpeg's for it, none of which opens another file; the first one reads sound.
    """

    name: str
    image: str | None = None
    audio: str | None = None
    video: str | None = None
    suffixes: tuple[str, ...] = ()
    by_choice: bool = False
    hint: str = ""
    demuxers: str = ""


_TO_PNG = "convert it to PNG or JPEG"
JPEG = Kind("JPEG", image="image/jpeg", suffixes=(".jpg", ".jpeg", ".JPG", ".JPEG", ".jpe", ".jfif"))
PNG = Kind("PNG", image="image/png", suffixes=(".png", ".PNG", ".apng"))
GIF = Kind("GIF", image="image/gif", suffixes=(".gif", ".GIF"))
WEBP = Kind("WebP", image="image/webp", suffixes=(".webp", ".WEBP"))
BMP = Kind("BMP", image="image/bmp", suffixes=(".bmp", ".BMP", ".dib"))
TIFF = Kind("TIFF", image="image/tiff", suffixes=(".tif", ".tiff"), by_choice=True, hint=_TO_PNG)
AVIF = Kind("AVIF", image="image/avif", suffixes=(".avif",), by_choice=True, hint=_TO_PNG)
HEIC = Kind("HEIC", image="image/heic", suffixes=(".heic", ".heif"), hint=_TO_PNG)
WAV = Kind("WAV", audio="audio/wav", suffixes=(".wav", ".wave", ".WAV"), demuxers="wav")
FLAC = Kind("FLAC", audio="audio/flac", suffixes=(".flac",), demuxers="flac")
MP3 = Kind("MP3", audio="audio/mpeg", suffixes=(".mp3", ".mpga", ".MP3"), demuxers="mp3")
AAC = Kind("AAC", audio="audio/aac", suffixes=(".aac",), demuxers="aac")
OGG = Kind(
    "Ogg", audio="audio/ogg", video="video/ogg", suffixes=(".ogg", ".oga", ".ogv", ".opus", ".spx"), demuxers="ogg"
)
M4A = Kind("M4A", audio="audio/mp4", suffixes=(".m4a", ".m4b", ".mp4"), demuxers="mov")
MP4 = Kind(
    "MP4", audio="audio/mp4", video="video/mp4", suffixes=(".mp4", ".m4v", ".m4a", ".MP4", ".3gp"), demuxers="mov"
)
QUICKTIME = Kind("QuickTime", video="video/quicktime", suffixes=(".mov", ".qt", ".MOV"), demuxers="mov")
WEBM = Kind("WebM", audio="audio/webm", video="video/webm", suffixes=(".webm", ".weba"), demuxers="matroska")
MATROSKA = Kind(
    "Matroska",
    audio="audio/x-matroska",
    video="video/x-matroska",
    suffixes=(".mkv", ".mk3d", ".mka"),
    demuxers="matroska",
)
AVI = Kind("AVI", video="video/x-msvideo", suffixes=(".avi", ".AVI"), demuxers="avi")
MPEG = Kind("MPEG", video="video/mpeg", suffixes=(".mpg", ".mpeg", ".vob"), demuxers="mpeg,mpegvideo")
MPEG_TS = Kind("MPEG-TS", video="video/mp2t", suffixes=(".ts", ".m2ts", ".mts"), demuxers="mpegts")

KINDS = (
    JPEG, PNG, GIF, WEBP, BMP, TIFF, AVIF, HEIC, WAV, FLAC, MP3, AAC, OGG, M4A, MP4, QUICKTIME, WEBM, MATROSKA, AVI,
    MPEG, MPEG_TS,
)  # fmt: skip

VIDEO_FRAMES = "video/jpeg"
"""The type of a video given as a list of JPEG frames, as in ``data:video/jpeg;base64,F1,F2``."""

_ALIASES = {
    "image/jpg": "image/jpeg",
    "image/pjpeg": "image/jpeg",
    "image/x-png": "image/png",
    "image/apng": "image/png",
    "image/x-bmp": "image/bmp",
    "image/x-ms-bmp": "image/bmp",
    "image/tif": "image/tiff",
    "image/heif": "image/heic",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/x-pn-wav": "audio/wav",
    "audio/mp3": "audio/mpeg",
    "audio/x-mp3": "audio/mpeg",
    "audio/mpeg3": "audio/mpeg",
    "audio/x-mpeg": "audio/mpeg",
    "audio/mpga": "audio/mpeg",
    "audio/x-flac": "audio/flac",
    "audio/x-aac": "audio/aac",
    "audio/aacp": "audio/aac",
    "audio/m4a": "audio/mp4",
    "audio/x-m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
    "audio/x-ogg": "audio/ogg",
    "audio/matroska": "audio/x-matroska",
    "application/ogg": "audio/ogg",
    "video/x-m4v": "video/mp4",
    "video/m4v": "video/mp4",
    "video/mov": "video/quicktime",
    "video/mkv": "video/x-matroska",
    "video/matroska": "video/x-matroska",
    "video/avi": "video/x-msvideo",
    "video/msvideo": "video/x-msvideo",
    "video/mpg": "video/mpeg",
}

_SUFFIX_TYPES = {
    suffix.lower(): kind.image or kind.video or kind.audio or "" for kind in reversed(KINDS) for suffix in kind.suffixes
}
_SUFFIX_TYPES.update({
    ".mp4": "video/mp4",
    ".m4a": "audio/mp4",
    ".m4b": "audio/mp4",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".opus": "audio/ogg",
    ".spx": "audio/ogg",
    ".weba": "audio/webm",
    ".mka": "audio/x-matroska",
    ".svg": "image/svg+xml",
})  # fmt: skip

_HEADS = {
    b"\x89PNG": PNG,
    b"GIF8": GIF,
    b"fLaC": FLAC,
    b"OggS": OGG,
    b"II*\x00": TIFF,
    b"MM\x00*": TIFF,
    b"\x00\x00\x01\xba": MPEG,
    b"\x00\x00\x01\xb3": MPEG,
}
_TAILS = {b"\x89PNG": (b"\r\n\x1a\n",), b"GIF8": (b"7a", b"9a")}
_RIFF = {b"WAVE": WAV, b"WEBP": WEBP, b"AVI ": AVI}
BRANDS = {
    b"avif": AVIF,
    b"avis": AVIF,
    b"heic": HEIC,
    b"heix": HEIC,
    b"hevc": HEIC,
    b"hevx": HEIC,
    b"heim": HEIC,
    b"heis": HEIC,
    b"mif1": HEIC,
    b"msf1": HEIC,
    b"M4A ": M4A,
    b"M4B ": M4A,
    b"M4P ": M4A,
    b"qt  ": QUICKTIME,
}


def sniff(data: bytes) -> Kind | None:
    """Return the kind of media that ``data`` begins with, or None for unknown bytes.

    The first 64 bytes decide. The signatures of MP3, AAC and MPEG-TS are short, so they are checked again at the next
    frame if ``data`` is long enough.
    """
    if data.startswith(b"\xff\xd8\xff"):
        return JPEG
    head = data[:4]
    kind = _HEADS.get(head)
    if kind is not None:
        tail = _TAILS.get(head)
        return kind if tail is None or data.startswith(tail, 4) else None
    if head in (b"RIFF", b"RF64"):
        return _RIFF.get(data[8:12])
    if head == b"\x1aE\xdf\xa3":
        return _ebml(data)
    if data.startswith(b"ftyp", 4):
        return _iso(data)
    return _sniff_weak(data)


def _ebml(data: bytes) -> Kind | None:
    if data.find(b"webm", 4, 64) > 0:
        return WEBM
    return MATROSKA if data.find(b"matroska", 4, 64) > 0 else None


def _iso(data: bytes) -> Kind:
    """Return the kind of an ISO base media file from its major brand; for ``mif1`` the other brands decide."""
    kind = BRANDS.get(data[8:12], MP4)
    if kind is HEIC and b"avif" in data[16 : min(int.from_bytes(data[:4], "big"), 64)]:
        return AVIF
    return kind


def _sniff_weak(data: bytes) -> Kind | None:
    """Return the kind where a short signature needs a second check."""
    first = data[:1]
    if first == b"\xff":
        return MP3 if _mpeg_audio(data, 0) else AAC if _adts(data, 0) else None
    if first == b"I":
        return _id3(data)
    if first == b"B":
        # BITMAPFILEHEADER: two reserved words of zero, then a header size that exists
        known = data[6:10] == b"\x00\x00\x00\x00" and data[14:18] in _BMP_HEADERS
        return BMP if data.startswith(b"BM") and known else None
    if first == b"G":
        packets = len(data) > 376 and data[188] == data[376] == 0x47
        return MPEG_TS if packets else None
    old_movie = data[4:8] in (b"moov", b"mdat", b"wide") and first < b"\x20"
    return QUICKTIME if first and old_movie else None


_SAYS_NOTHING = frozenset(("", "text/plain", "application/octet-stream", "binary/octet-stream"))
_BMP_HEADERS = tuple(size.to_bytes(4, "little") for size in (12, 16, 40, 52, 56, 64, 108, 124))
_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}
_KBITS = {
    (1, 3): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (1, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (2, 3): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (2, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def _mpeg_audio(data: bytes, at: int) -> bool:
    """Return whether an MPEG audio frame of layer II or III is at ``at``, followed by another if ``data`` goes on."""
    size = _mpeg_frame_size(data, at)
    if not size:
        return False
    following = at + size
    return len(data) < following + 4 or _mpeg_frame_size(data, following) > 0 or _ends_in_tag(data, following)


def _mpeg_frame_size(data: bytes, at: int) -> int:
    """Return the size of the frame whose header is at ``at``, 0 if there is none (ISO 11172-3, 2.4.1.3)."""
    if len(data) < at + 4 or data[at] != 0xFF or data[at + 1] < 0xE0:
        return 0
    version, layer = data[at + 1] >> 3 & 3, 4 - (data[at + 1] >> 1 & 3)
    bits, rate = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if version == 1 or layer not in (2, 3) or bits in (0, 15) or rate == 3:
        return 0
    low = version != 3
    kbits = _KBITS[1 + low, layer][bits - 1]
    samples_by_8 = 72 if layer == 3 and low else 144
    return samples_by_8 * 1000 * kbits // _RATES[version][rate] + (data[at + 2] >> 1 & 1)


def _ends_in_tag(data: bytes, at: int) -> bool:
    return data.startswith((b"TAG", b"APETAGEX"), at)


def _adts(data: bytes, at: int) -> bool:
    """Return whether an ADTS frame is at ``at``, followed by another if ``data`` goes on."""
    size = _adts_frame_size(data, at)
    return size > 0 and (len(data) < at + size + 7 or _adts_frame_size(data, at + size) > 0)


def _adts_frame_size(data: bytes, at: int) -> int:
    if len(data) < at + 7 or data[at] != 0xFF or data[at + 1] & 0xF6 != 0xF0 or data[at + 2] >> 2 & 15 > 12:
        return 0
    size = (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
    return size if size >= 7 else 0


def _id3(data: bytes) -> Kind | None:
    """Return the kind of the sound after an ID3v2 tag; MP3 if ``data`` does not reach that far."""
    if not data.startswith(b"ID3") or len(data) < 10 or data[3] > 4 or max(data[6:10]) > 0x7F:
        return None
    after = 10 + (data[6] << 21 | data[7] << 14 | data[8] << 7 | data[9])
    if data.startswith(b"fLaC", after):
        return FLAC
    return AAC if _adts(data, after) else MP3


def media_type_for(kind: Kind, modality: str) -> str | None:
    """Return the media type of ``kind`` as ``image``, ``audio`` or ``video``; None if it cannot be that."""
    media_type: str | None = getattr(kind, modality)
    return media_type


def any_type(kind: Kind) -> str:
    """Return the media type of ``kind`` without a modality: video rather than audio for MP4 and WebM."""
    return kind.image or (kind.audio if kind is OGG else kind.video) or kind.audio or ""


def normal_type(media_type: str) -> str:
    """Return a declared media type in lower case, without parameters, aliases replaced by the usual name."""
    plain = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def declared_type(media_type: str) -> str:
    """Return a declared media type as ``normal_type`` does; empty for types that say nothing, such as octet-stream."""
    plain = normal_type(media_type)
    return "" if plain in _SAYS_NOTHING else plain


def suffix_type(name: str) -> str | None:
    """Return the media type that belongs to the suffix of a file name, or None."""
    dot = name.rfind(".")
    return _SUFFIX_TYPES.get(name[dot:].lower()) if dot >= 0 else None


def agree(one: str, other: str) -> bool:
    """Return whether two media types name the same format, as ``audio/mp4`` and ``video/mp4`` do."""
    return one == other or one.partition("/")[2] == other.partition("/")[2]
