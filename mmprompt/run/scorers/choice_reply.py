"""Which choice a reply names: by letter, or in the choice's own words."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from string import ascii_uppercase

from mmprompt.datasets.choices import without_letters
from mmprompt.run.scorers.texts import normalised, whole_words

_MARKUP = re.compile(r"\\(?:text|mathrm|textbf|boxed)\b|[*`$\"\u201c\u201d{}]|</?(?:answer|b|strong)>")
_BLANKS = re.compile(r"[^\S\n]+")
_THOUGHT, _THOUGHT_ENDS = "<think>", "</think>"
_AHEAD = 200
"""Characters after words such as "the answer is" that are looked at."""

_BEGINS = (
    r"\banswers?|\b(?:correct|right|best) (?:option|choice)|\bI (?:would )?(?:choose|pick|select)"
    r"|\u7b54\u6848|\u6545?\u9009"  # Chinese: answer, so I choose
)
_IS = (
    r"(?: to (?:the|this|your) question)?"
    r"(?: (?:is|are|was|should be|would be|must be)| ?[:=\uff1a]|\u662f|\u4e3a|\u5e94\u8be5|\u9009\u9879?)*"
    r"[ :\uff1a\n]*(?:(?:option|choice)\b|\u9009\u9879)? ?"
)
_STATED = re.compile(rf"(?:{_BEGINS}){_IS}(?=(.{{0,{_AHEAD}}}))", re.IGNORECASE)
_STATEMENTS = 100
"""How many of them are looked at, from the last."""

_HEAD = re.compile(r"[(\[]? ?(?:([A-Z])(?![A-Za-z0-9'\u2019-])|([a-z])(?= ?[)\].,:]| ?$))")
_LONE = re.compile(r"(?:\b(?:option|choice) |(\())?(?<![A-Za-z0-9'\u2019-])([A-Z])(?![A-Za-z0-9'\u2019-])(?! ?[=+])")
_FIRST = re.compile(r"[(\[]?([A-Z])(?: ?[)\].:\uff0c\u3001]|,| - |\n)")
_ITEM = re.compile(r"^[-(\[ ]{0,3}([A-Z]) ?[)\].:]", re.MULTILINE)
_NOT = re.compile(r"(?:\bnot|n't|\bneither|\bnor)(?: option| choice)? ?\(?$", re.IGNORECASE)
_ARTICLES = re.compile(r"(?:the|a|an) ")
_SEVERAL = re.compile(r"[A-Z](?:[ ,;/&+]*(?:and )?[A-Z])*")
_LONGEST = 100_000
"""Characters at the end of a reply that are read."""

_GOES_ON = re.compile(r" (?!(?:and|or|is|because|since|shows|seems)\b)[a-z]|['\u2019]")
"""What follows the words "A" and "I", and not the letters."""


def choice_in(reply: str, choices: Sequence[str]) -> int:
    """Return the 0-based number of the choice that a reply names, -1 if it names none or several.

    In this order: the whole reply is a letter or the text of a choice; the last "the answer is …" names one; one letter
    stands alone; the reply begins with one; one text is named. What stands in ``<think>`` is left out, and of a reply
    that names several the last line counts.
    """
    said = _plain(reply)
    texts = [normalised(str(text)) for text in without_letters(choices)]
    found = _whole(said, texts)
    for reading in (_stated, _alone, _named):
        found = reading(said, texts) if found < 0 else found
    if found < 0 and "\n" in said:
        last = said.rpartition("\n")[2].strip()
        found = _alone(last, texts)
        found = _named(last, texts) if found < 0 else found
    return found


def letters_in(reply: str) -> frozenset[str]:
    """Return the letters of a reply that is nothing but letters, or that ends in "the answer is" and letters."""
    said = _plain(reply)
    stated = [match[1] for match in _STATED.finditer(said)]
    for text in (said, *stated[-1:]):
        form = re.sub(r"[()\[\].]", "", text).strip()
        if _SEVERAL.fullmatch(form):
            return frozenset(form.replace("and", "")) & frozenset(ascii_uppercase)
    return frozenset()


def _plain(reply: str) -> str:
    """Return what a reply says outside its thoughts, without markup and with single blanks."""
    said = reply.rpartition(_THOUGHT_ENDS)[2].partition(_THOUGHT)[0]
    return _BLANKS.sub(" ", _MARKUP.sub("", said[-_LONGEST:])).strip()


def _whole(said: str, texts: Sequence[str]) -> int:
    """Return the choice that is all that the reply says."""
    form = normalised(said)
    bare = form.strip("()[]:., ")
    if len(bare) == 1 and 0 <= (number := ascii_uppercase.find(bare.upper())) < len(texts):
        return number
    for number, text in enumerate(texts):
        if text and form in (text, f"the {text}", f"a {text}", f"an {text}"):
            return number
    return -1


def _stated(said: str, texts: Sequence[str]) -> int:
    """Return the choice that the last readable "the answer is …" names."""
    for match in reversed(deque(_STATED.finditer(said), maxlen=_STATEMENTS)):
        number = _letter(_HEAD.match(match[1]), len(texts))
        number = _begins(normalised(match[1]), texts) if number < 0 else number
        if number >= 0:
            return number
    return -1


def _letter(match: re.Match[str] | None, count: int) -> int:
    number = -1 if match is None else ascii_uppercase.find((match[1] or match[2]).upper())
    return number if number < count else -1


def _begins(text: str, texts: Sequence[str]) -> int:
    """Return the choice with whose words a text begins; of several the longest."""
    text = _ARTICLES.sub("", text, count=1) if _ARTICLES.match(text) else text
    begun = [n for n, one in enumerate(texts) if one and whole_words(one).match(text)]
    return max(begun, key=lambda number: len(texts[number]), default=-1)


def _alone(said: str, texts: Sequence[str]) -> int:
    """Return the choice whose letter alone stands in the reply, or with whose letter it begins."""
    for text in texts:
        if len(text) > 1 and re.search(r"\b[a-z]\b", text):  # the letter in "vitamin C" is part of a text
            said = re.sub(re.escape(text), " ", said, flags=re.IGNORECASE)
    stand = set()
    for match in _LONE.finditer(said):
        number, end = ascii_uppercase.index(match[2]), match.end()
        article = match[2] in "AI" and match[0] == match[2] and _GOES_ON.match(said, end)
        if number < len(texts) and not article and not _NOT.search(said[max(0, match.start() - 16) : match.start()]):
            stand.add(number)
    if len(stand) == 1:
        return stand.pop()
    begins = _FIRST.match(said)
    if begins and {match[1] for match in _ITEM.finditer(said)} <= {begins[1]}:
        return _letter(re.match("([A-Z])()", begins[1]), len(texts))
    return -1


def _named(said: str, texts: Sequence[str]) -> int:
    """Return the one choice whose words the reply holds. A text that stands in a longer one only is not held."""
    said = normalised(said)
    held: list[int] = []
    for number in sorted(range(len(texts)), key=lambda number: -len(texts[number])):
        if texts[number]:
            rest = whole_words(texts[number]).sub("\0", said)
            held += [number] if rest != said and texts[number] not in [texts[one] for one in held] else []
            said = rest
    return held[0] if len(held) == 1 else -1
