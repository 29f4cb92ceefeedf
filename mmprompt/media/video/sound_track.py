"""The sound of a video as a separate file."""

from __future__ import annotations

from mmprompt.errors import PolicyError, SourceError
from mmprompt.media.audio.encoders import to_16_bits
from mmprompt.media.audio.reading import audio_facts, decode_audio
from mmprompt.media.audio.wav import wav_file
from mmprompt.media.ffmpeg.matroska import is_whole
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.reading import check_whole, video_facts


def sound_track(data: bytes, policy: MediaPolicy) -> bytes:
    """Return the first sound of a video as a WAV file: 16 bits, the rate and channels it has, from its first sample.

    Raises:
        SourceError: not a video, a video without sound, or a sound that is damaged, cut, or of an odd rate.
        PolicyError: more seconds or time than the policy allows, or a WAV file of more than ``max_bytes``.
    """
    container = video_facts(data, policy).container
    facts = audio_facts(data, policy)
    sound = decode_audio(data, policy)
    if sound.broken:
        raise SourceError(
            f"the sound of the {container} file is damaged", "fetch the file again, or encode it anew", code="MM400"
        )
    if facts.seconds is not None and not is_whole(data):
        check_whole(len(sound.samples) / sound.rate, facts.seconds)
    if sound.samples.size * 2 > policy.max_bytes:
        raise PolicyError(
            f"the sound as WAV has more than max_bytes ({policy.max_bytes})", "raise max_bytes", code="MM211"
        )
    return wav_file(to_16_bits(sound.samples), sound.rate)[0]
