"""The rules that data can break. Their codes are stable: a code is never used for another rule."""

from __future__ import annotations

from typing import NamedTuple

_SEVERITIES = {"E": "error", "W": "warning", "I": "info"}


class Rule(NamedTuple):
    """A rule that data can break. ``severity`` is ``"error"``, ``"warning"`` or ``"info"``."""

    code: str
    name: str
    severity: str


_TABLE = """\
MM000 E unreadable-dataset
MM001 E unreadable-row
MM002 E malformed-json
MM003 E wrong-encoding
MM004 W byte-order-mark
MM005 W mojibake
MM006 E missing-column
MM007 W wrong-type
MM008 E ragged-row
MM009 E repeated-id
MM010 W missing-value-text
MM011 E nested-too-deep
MM012 E lone-surrogate
MM013 W control-character
MM014 W no-rows
MM015 W repeated-key
MM016 W missing-id
MM017 E too-long
MM018 W non-finite-number
MM019 W uneven-columns
MM020 W replacement-character
MM021 W big-integer
MM022 W one-column
MM023 W skipped-part
MM024 W unmatched-join
MM025 I joined-unasked
MM026 I other-delimiter
MM100 E malformed-tags
MM101 E unterminated-segment
MM102 W misspelt-tag
MM103 W text-outside-segments
MM104 W unclosed-last-tag
MM105 W tag-in-text
MM106 W blank-segment
MM107 W placeholder-without-medium
MM108 E placeholder-count
MM109 W special-token-in-text
MM200 E unusable-medium
MM201 E missing-file
MM202 E empty-medium
MM203 E git-lfs-pointer
MM204 W wrong-media-type
MM205 E text-instead-of-media
MM206 E outside-media-root
MM207 E wrong-case
MM208 E malformed-base64
MM209 E malformed-data-uri
MM210 E not-allowed
MM211 E too-large
MM212 E unsafe-path
MM213 E wrong-modality
MM214 E unsupported-format
MM215 E not-a-file
MM216 E unreadable-file
MM217 E malformed-url
MM218 E not-fetched
MM219 W odd-base64
MM220 E too-many-media
MM221 W changed-medium
MM300 E damaged-image
MM301 E truncated-image
MM302 E too-many-pixels
MM303 W rotated-image
MM304 W cmyk-image
MM305 W sixteen-bit-image
MM306 W animated-image
MM307 W blank-image
MM308 W tiny-image
MM309 W extreme-shape
MM310 I transparent-image
MM311 W bytes-after-image
MM312 W low-information
MM313 I colour-profile
MM314 W dark-image
MM315 W light-image
MM316 I blurry-image
MM317 W odd-size
MM318 I grey-image
MM400 E damaged-audio
MM401 W truncated-audio
MM402 E empty-audio
MM403 W silent-audio
MM404 W clipped-audio
MM405 E too-long-audio
MM406 E unsupported-audio
MM407 W very-short-audio
MM408 W low-sample-rate
MM409 W silent-channel
MM410 E non-finite-samples
MM500 E damaged-video
MM501 E no-video-stream
MM502 W wrong-frame-count
MM503 W variable-frame-rate
MM504 E picture-as-video
MM505 E truncated-video
MM506 E too-long-video
MM507 W tiny-video
MM508 W blank-video
MM509 E unsupported-video
MM510 W single-frame-video
MM511 W still-video
MM512 W rotated-video
MM600 E wrong-template
MM601 E wrong-prompt
MM602 E wrong-task
MM603 E unfilled-slot
MM604 E null-slot
MM605 W media-not-sent
MM606 W column-not-sent
MM607 E unknown-role
MM608 W answer-in-prompt
MM609 W literal-slot
MM610 W unused-examples
MM611 I no-media
MM612 W unknown-column
MM613 W examples-dropped
MM614 W setting-not-sent
MM615 W answer-sent
MM616 I unused-column
MM700 E empty-question
MM701 W missing-answer
MM702 E answer-not-a-choice
MM703 E repeated-choice
MM704 W answer-in-question
MM705 W answer-in-file-name
MM706 E swapped-columns
MM707 W repeated-sample
MM708 W repeated-media
MM709 W similar-media
MM710 W conflicting-answers
MM711 W train-test-overlap
MM712 W too-few-choices
MM713 I uneven-answers
MM714 E empty-choice
MM715 W missing-media
MM716 W long-text
MM717 I blanks-around-answer
MM718 W two-readings
MM800 E refused-by-target
MM801 E too-many-for-target
MM802 E too-large-for-target
MM803 E wrong-dimensions
MM804 E wrong-format
MM805 E request-too-large
MM806 I batch-too-large
MM807 I scaled-by-target
MM808 E repeated-batch-id
MM900 E error
MM901 E model-server
MM902 E decoder-ended
MM903 E missing-extra
MM904 W media-cache
"""

RULES = {code: Rule(code, name, _SEVERITIES[severity]) for code, severity, name in map(str.split, _TABLE.splitlines())}
"""The rules by code. The first digit is the family: file, tags, media, image, audio, video, template, dataset, target,
internal."""


def page_of(code: str) -> str:
    """Return the place of a rule's page in the project: ``mmprompt/check/pages/MM2.md#mm204-wrong-media-type``."""
    return f"mmprompt/check/pages/{code[:3]}.md#{code.lower()}-{RULES[code].name}"
