"""Changes sound as the user asked, or as little as makes it fit a target. The part records each change.

Sound that needs no change is not decoded and keeps its bytes. Changed sound is written as WAV of 16-bit PCM, which
everything reads and which loses nothing of 16-bit sound, or as MP3 if asked.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from mmprompt.errors import PolicyError, SourceError, TargetError
from mmprompt.errors.findings import Note
from mmprompt.media.audio.encoders import (
    MP3_CHANNELS,
    clip,
    mp3_bits,
    mp3_file,
    mp3_rate,
    resample,
    to_16_bits,
    to_mono,
)
from mmprompt.media.audio.facts import AudioFacts
from mmprompt.media.audio.reading import Sound, audio_facts, check_decoded, decode_audio
from mmprompt.media.audio.wav import wav_file
from mmprompt.media.changes import Changes, TargetRoom
from mmprompt.media.policy import MediaPolicy
from mmprompt.messages import MediaPart

FORMATS = {"wav": "audio/wav", "mp3": "audio/mpeg"}
_NAMES = {"audio/wav": "WAV", "audio/mpeg": "MP3"}

KBITS = 64
"""Kilobits a second that MP3 gets for each channel."""

LOWEST_FIT = (16000, 32)
"""The rate and kbit/s below which ``fit`` gives up: speech is still understood, less would not be."""

_CUT = 0.1
"""Seconds that the declared length may be off: encoders pad by up to this much."""


class _Why(NamedTuple):
    """The reasons for a new format, rate and number of channels, in words."""

    format: str
    rate: str
    mono: str


class _Form(NamedTuple):
    """A form to write sound in: ``wav`` or ``mp3``, rate, channels, and kbit/s of MP3."""

    name: str
    rate: int
    channels: int
    kbits: int = 0

    def size(self, frames: int, rate: int) -> int:
        """Return how many bytes this many frames of ``rate`` take; the result is at most a few bytes too low."""
        if self.name == "wav":
            return 44 + round(frames * self.rate / rate) * self.channels * 2
        return math.ceil(frames / rate * self.kbits * 125)


def change_audio(part: MediaPart, changes: Changes, policy: MediaPolicy) -> MediaPart:
    """Return a sound changed as asked; the same part if it needs no change.

    The order is: ``start`` and ``seconds`` (exact to the sample), ``mono`` (the mean of the channels), ``audio_rate``,
    ``audio_format``. A WAV file asked for as ``wav`` stays as it is, whatever its bits. Otherwise changed sound becomes
    WAV of 16-bit PCM, or MP3 of 64 kbit/s a channel where ``audio_format`` is ``mp3``; MP3 takes two channels at most
    (more become one) and the rates that it has (the next above).
    """
    form, timed = changes.audio_format, bool(changes.start or changes.seconds is not None)
    new_type = FORMATS[form] if form else part.media_type
    if new_type == part.media_type and not (timed or changes.mono or changes.audio_rate):
        return part
    facts = audio_facts(part.data, policy)
    mixed = changes.mono and facts.channels > 1
    if new_type == part.media_type and not (timed or mixed or changes.audio_rate not in (None, facts.rate)):
        return part
    sound = decode_audio(part.data, policy, start=changes.start, seconds=changes.seconds)
    channels = sound.samples.shape[1]
    trimmed = bool(round(changes.start * sound.rate)) or sound.more
    rate, count = changes.audio_rate or sound.rate, 1 if changes.mono else channels
    if new_type == part.media_type and not trimmed and (rate, count) == (sound.rate, channels):
        return part
    wanted = _mp3_form(rate, count) if form == "mp3" else _Form("wav", rate, count)
    why = _Why(
        "audio_format" if form else "changed sound is written as WAV",
        "audio_rate" if wanted.rate == changes.audio_rate else f"MP3 has no {rate} Hz",
        "mono" if changes.mono else f"MP3 has {MP3_CHANNELS} at most",
    )
    if trimmed:
        end = changes.start + len(sound.samples) / sound.rate
        note = f"trimmed to {changes.start:g} s to {end:g} s (start, seconds)"
        part = part._replace(changes=(*part.changes, note))
    return _written(_noted(part, sound, facts, changes.start), _Work(sound, facts, policy), wanted, why)


def fit_audio(part: MediaPart, room: TargetRoom, policy: MediaPolicy) -> MediaPart:
    """Return a sound that a target accepts, changed as little as possible; the same part if it fits already.

    What is tried in turn, until it is small enough: WAV of 16-bit PCM; MP3 of 64 kbit/s a channel; the same mixed to
    mono; mono of 24 kHz and 48 kbit/s; mono of 16 kHz and 32 kbit/s. A target without MP3 gets WAV, then mono, then
    mono of 16 kHz. A rate that is lower already stays.
    """
    taken = part.media_type in room.formats
    limit = room.max_bytes
    if taken and (limit is None or len(part.data) <= limit):
        return part
    if not room.formats & set(FORMATS.values()):
        raise TargetError(
            f"{room.target} takes no {part.media_type}, and neither WAV nor MP3",
            "convert it, or choose another target",
            code="MM804",
        )
    facts = audio_facts(part.data, policy)
    sound = decode_audio(part.data, policy)
    names = ", ".join(name for media_type, name in _NAMES.items() if media_type in room.formats)
    reason = f"fit: {room.target} takes {f'{limit} bytes' if taken else names}"
    read, work = _noted(part, sound, facts), _Work(sound, facts, policy)
    for form in _forms(sound.rate, sound.samples.shape[1], room):
        if limit is not None and form.size(len(sound.samples), sound.rate) > limit:
            continue
        fitted = _written(read, work, form, _Why(reason, reason, reason))
        if limit is None or len(fitted.data) <= limit:
            if fitted.changes == read.changes:
                fitted = fitted._replace(changes=(*read.changes, f"WAV without its other chunks ({reason})"))
            return fitted
    seconds = len(sound.samples) / sound.rate
    raise TargetError(
        f"{room.target} takes {limit} bytes of a sound, too few for {seconds:.1f} s even as {_lowest(room)}",
        "trim it (seconds), or choose another target",
        code="MM802",
    )


def _lowest(room: TargetRoom) -> str:
    rate, kbits = LOWEST_FIT
    return f"MP3, mono, {rate} Hz, {kbits} kbit/s" if "audio/mpeg" in room.formats else f"WAV, mono, {rate} Hz"


def _forms(rate: int, channels: int, room: TargetRoom) -> list[_Form]:
    """Return the forms that ``fit_audio`` tries, in turn."""
    lowest_rate, lowest_kbits = LOWEST_FIT
    forms = []
    if "audio/wav" in room.formats:
        forms.append(_Form("wav", rate, channels))
    if "audio/mpeg" in room.formats:
        forms += [_mp3_form(rate, channels), _mp3_form(rate, 1)]
        forms += [_mp3_form(min(rate, 24000), 1, 48), _mp3_form(min(rate, lowest_rate), 1, lowest_kbits)]
    else:
        forms += [_Form("wav", rate, 1), _Form("wav", min(rate, lowest_rate), 1)]
    return forms


def _mp3_form(rate: int, channels: int, kbits: int = 0) -> _Form:
    rate, channels = mp3_rate(rate), channels if channels <= MP3_CHANNELS else 1
    return _Form("mp3", rate, channels, mp3_bits(rate, kbits or KBITS * channels))


class _Work(NamedTuple):
    """Decoded sound, the facts of its file, and the policy."""

    sound: Sound
    facts: AudioFacts
    policy: MediaPolicy


def _written(part: MediaPart, work: _Work, form: _Form, why: _Why) -> MediaPart:
    """Return the part with its decoded sound written in a form."""
    import numpy as np  # noqa: PLC0415  # heavy

    (samples, rate, *_), facts, policy = work
    if not np.isfinite(samples).all():
        raise SourceError("the samples hold values that are not finite", "put 0 in their place", code="MM410")
    notes, findings = list(part.changes), part.findings
    if clipped := clip(samples):
        findings += (Note("MM404", f"{clipped} samples beyond full scale were clipped"),)
    if form.channels != samples.shape[1]:
        notes.append(f"{samples.shape[1]} channels to 1, their mean ({why.mono})")
        samples = to_mono(samples)
    if form.rate != rate:
        check_decoded(round(len(samples) * form.rate / rate) * form.channels, policy)
        notes.append(f"{rate} Hz to {form.rate} Hz ({why.rate})")
        samples = resample(samples, rate, form.rate)
    whole = to_16_bits(samples)
    source = facts.container if facts.container.lower() == facts.codec else f"{facts.container} ({facts.codec})"
    if form.name == "mp3":
        data = mp3_file(whole, form.rate, form.kbits)
        notes.append(f"{source} to MP3, {form.kbits} kbit/s ({why.format})")
    else:
        data, _ = wav_file(whole, form.rate)
        if (facts.container, facts.codec) != ("WAV", "pcm_16"):
            notes.append(f"{source} to WAV, 16-bit PCM ({why.format})")
    if len(data) > policy.max_bytes:
        raise PolicyError(
            f"the changed sound has {len(data)} bytes, more than max_bytes ({policy.max_bytes})",
            "raise max_bytes to allow it, or ask for mp3",
            code="MM211",
        )
    return part._replace(media_type=FORMATS[form.name], data=data, changes=tuple(notes), findings=findings)


def _noted(part: MediaPart, sound: Sound, facts: AudioFacts, start: float = 0.0) -> MediaPart:
    """Return the part with the findings of decoding: damaged places, and a length that differs from the header."""
    found = []
    if sound.broken:
        found.append(Note("MM401", f"{sound.broken} damaged places of the sound could not be decoded"))
    seconds = start + len(sound.samples) / sound.rate
    if facts.seconds is not None and not sound.more and abs(facts.seconds - seconds) > _CUT:
        found.append(Note("MM401", f"the header declares {facts.seconds:.2f} s of sound, {seconds:.2f} s are there"))
    return part._replace(findings=(*part.findings, *found))
