"""An instruction with slots, compiled once, and the values from an input that fill them.

``{name}`` is a slot if ``name`` is a word (letters of any script, digits, ``_``). All other braces are text. The names
of extra keys may be any text. Values are filled in last, in one pass, and are not parsed again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.prompters.content import PromptContent, content_of, joined
from mmprompt.templates.slots import Slot

Pieces = tuple[Union[str, Slot], ...]
"""Text and slots, in order."""

EXTRA_HEADING = "Here are some extra messages you can referred to:\n\n"
_SLOT = re.compile(r"\{(\w+)\}")
_HALVES = ("system", "user")


class Halves(NamedTuple):
    """The instruction as given: its system half, and its user half if it was a dict."""

    system: Pieces
    user: Pieces | None


class Instruction(NamedTuple):
    """A compiled instruction.

    ``closing`` follows the user half in a string. ``for_one_text`` are the halves to use if one text fills the only
    slot, for a dialect in which they differ.
    """

    system: Pieces
    user: Pieces
    slots: tuple[str, ...]
    closing: str = ""
    for_one_text: tuple[Pieces, Pieces] | None = None

    def filled(
        self, values: Mapping[str, PromptContent], *, one_text: bool = False
    ) -> tuple[PromptContent, PromptContent]:
        """Return the system half and the user half with their slots filled."""
        halves = self.for_one_text if one_text and self.for_one_text is not None else (self.system, self.user)
        return filled(halves[0], values), filled(halves[1], values)


def instruction_of(system: Pieces, user: Pieces, closing: str = "") -> Instruction:
    """Return the instruction made of two halves."""
    slots = dict.fromkeys(piece.column for piece in (*system, *user) if isinstance(piece, Slot))
    return Instruction(_merged(system), _merged(user), tuple(slots), closing)


def filled(pieces: Pieces, values: Mapping[str, PromptContent]) -> PromptContent:
    """Return pieces with each slot's value in its place."""
    return joined(*[piece if isinstance(piece, str) else values[piece.column] for piece in pieces])


def pieces_of(text: str) -> Pieces:
    """Return a text as pieces."""
    split = _SLOT.split(text)  # text, name, text, name, …, text
    return tuple([Slot(p, f"{{{p}}}", required=True) if n % 2 else p for n, p in enumerate(split) if p])


def _merged(pieces: Pieces) -> Pieces:
    out: list[str | Slot] = []
    for piece in pieces:
        if isinstance(piece, str) and out and isinstance(out[-1], str):
            out[-1] += piece
        else:
            out.append(piece)
    return tuple(out)


def halves_of(instruction: object, *, other_keys: bool = False) -> Halves:
    """Return an instruction, a string or a dict of ``system`` and ``user``, as halves."""
    if instruction is None:
        return Halves((), None)
    if isinstance(instruction, str):
        return Halves(pieces_of(instruction), None)
    if not isinstance(instruction, Mapping):
        what = f"it is {type(instruction).__name__}"
        raise TemplateError(what, "give text, or a dict of system and user").located(template="instruction")
    for key in instruction:
        if key not in _HALVES and not other_keys:
            raise TemplateError(f"unknown key {shown(key)}", nearest(key, _HALVES)).located(template="instruction")
    system, user = [instruction.get(half, "") for half in _HALVES]
    for half, text in (("system", system), ("user", user)):
        if not isinstance(text, str):
            raise TemplateError(f"the {half} half is {type(text).__name__}", "give text").located(
                template="instruction"
            )
    return Halves(pieces_of(system), pieces_of(user))


def extra_pieces(extra_keys: str | Sequence[str] | None) -> Pieces:
    """Return the block that shows the extra keys, each with its slot."""
    if not extra_keys:
        return ()
    keys = [extra_keys] if isinstance(extra_keys, str) else extra_keys
    if not isinstance(keys, (list, tuple)):
        raise TemplateError(f"extra_keys is {type(keys).__name__}", "give a name or a list of names")
    out: list[str | Slot] = [EXTRA_HEADING]
    seen = set()
    for key in keys:
        if not isinstance(key, str) or not key.strip() or key in seen:
            fault = "is given twice" if key in seen else "is not a name"
            raise TemplateError(f"the extra key {shown(key)} {fault}", "give each name once, as text")
        seen.add(key)
        out += [f"### {key}:\n", Slot(key, f"{{{key}}}", required=True), "\n\n"]
    return tuple(out)


class DividedInput(NamedTuple):
    """An input divided into a value for each slot and the ``rest``, which is the user's turn.

    ``key`` is the key of the rest in a mapping. ``one_text`` is true if the input was one text, or content parts, for
    the only slot.
    """

    values: Mapping[str, PromptContent]
    rest: Any = ""
    key: object = None
    one_text: bool = False


def divide_input(instruction: Instruction, value: object) -> DividedInput:
    """Divide an input between the slots and the user's turn.

    A mapping fills every slot, and the value of one further key is the user's turn. Any other input fills the only
    slot, or is the user's turn if there is no slot.

    Raises:
        TemplateError: no input, a slot without a value, several keys that are not slots, or one text for several slots.
    """
    if value is None:
        raise TemplateError("the input is missing", "give text or a mapping of slots; '' is an empty turn")
    slots = instruction.slots
    if isinstance(value, Mapping):
        return _from_mapping(slots, value)
    if not slots:
        return DividedInput({}, value)
    if len(slots) > 1:
        what = f"the input is one text, and the instruction has {len(slots)} slots: {_names(slots)}"
        raise TemplateError(what, f"give a mapping of {_names(slots)}")
    return DividedInput({slots[0]: content_of(value, f"the input for slot '{slots[0]}'")}, one_text=True)


def _from_mapping(slots: tuple[str, ...], given: Mapping[str, object]) -> DividedInput:
    missing = [slot for slot in slots if slot not in given]
    rest = [key for key in given if key not in slots] if missing or len(given) > len(slots) else []
    if missing:
        known = nearest(missing[0], rest)
        hint = f" ({known})" if known.startswith("did") else ""
        what = f"the input has no value for slot{'s' * (len(missing) > 1)} {_names(missing)}{hint}"
        keeps = f"the value '{{{missing[0]}}}' keeps the braces as text"
        raise TemplateError(what, f"give values for {_names(slots)}; {keeps}")
    values = {slot: content_of(given[slot], f"slot '{slot}'") for slot in slots}
    if not rest:
        return DividedInput(values)
    if len(rest) > 1:
        beside = f"beside the slots {_names(slots)}" if slots else "since the instruction has no slots"
        hint = f"give one key for the user's turn, {beside}"
        if {"type", "role"} & set(rest):
            hint += ", or put the message or content part into a list"
        raise TemplateError(f"the input has keys that are not slots: {_names(rest)}", hint)
    return DividedInput(values, given[rest[0]], rest[0])


def _names(names: Iterable[object]) -> str:
    return ", ".join([shown(name, 40) for name in names])
