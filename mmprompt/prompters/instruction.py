"""An instruction with slots, compiled once, and what an input fills them with.

``{name}`` is a slot where ``name`` is a word (letters of any script, digits, ``_``); all other braces are text. Extra
keys are slots as data, so their names may be anything. Values go in last, in one pass, and are never looked at again.
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

    ``closing`` follows the user half in a string. ``for_one_text`` are the halves where one text fills the only slot,
    if the dialect has others there.
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
    """Return an instruction, a string or a dict of ``system`` and ``user``, as halves.

    Raises:
        TemplateError: another type, a half that is no text, or (unless ``other_keys``) another key.
    """
    if instruction is None:
        return Halves((), None)
    if isinstance(instruction, str):
        return Halves(pieces_of(instruction), None)
    if not isinstance(instruction, Mapping):
        what = f"an instruction is a string or a dict of system and user, not {type(instruction).__name__}"
        raise TemplateError(what, "give text").located(template="instruction")
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
    """Return the block that shows the extra keys, each with its slot; nothing if there are none.

    Raises:
        TemplateError: a key that is no text, blank, or given twice.
    """
    if not extra_keys:
        return ()
    keys = [extra_keys] if isinstance(extra_keys, str) else extra_keys
    if not isinstance(keys, (list, tuple)):
        raise TemplateError(f"extra_keys is {type(keys).__name__}", "give a name or a list of names")
    out: list[str | Slot] = [EXTRA_HEADING]
    seen = set()
    for key in keys:
        if not isinstance(key, str) or not key.strip() or key in seen:
            fault = "twice" if key in seen else "is no name"
            raise TemplateError(f"the extra key {shown(key)} {fault}", "give each name once, as text")
        seen.add(key)
        out += [f"### {key}:\n", Slot(key, f"{{{key}}}", required=True), "\n\n"]
    return tuple(out)


class DividedInput(NamedTuple):
    """What an input gave: a value for each slot, what is left for the user's turn, and the key that was under.

    ``one_text`` tells that the input was one text, or parts, which went into the only slot.
    """

    values: Mapping[str, PromptContent]
    rest: Any = ""
    key: object = None
    one_text: bool = False


def divide_input(instruction: Instruction, value: object) -> DividedInput:
    """Divide an input between the slots and the user's turn.

    A mapping fills every slot; one key may be left, whose value is the user's turn. Anything else fills the only slot,
    or is the user's turn where there is no slot. ``rest`` is as given, except that it is content in the second case.

    Raises:
        TemplateError: no input, slots without a value, keys that are no slots, or one text for several slots.
    """
    if value is None:
        raise TemplateError("there is no input", "give text or a mapping of slots; '' is an empty turn")
    slots = instruction.slots
    if isinstance(value, Mapping):
        return _from_mapping(slots, value)
    if not slots:
        return DividedInput({}, value)
    if len(slots) > 1:
        what = f"the input is one text, and the instruction has {len(slots)} slots: {_names(slots)}"
        raise TemplateError(what, f"give a mapping of {_names(slots)}")
    return DividedInput({slots[0]: content_of(value, f"the input for slot '{slots[0]}'")}, one_text=True)


def _from_mapping(slots: tuple[str, ...], given: Mapping[Any, object]) -> DividedInput:
    missing = [slot for slot in slots if slot not in given]
    rest = [key for key in given if key not in slots] if missing or len(given) > len(slots) else []
    if missing:
        known = nearest(missing[0], rest)
        hint = f" ({known})" if known.startswith("did") else ""
        what = f"the input has no value for slot{'s' * (len(missing) > 1)} {_names(missing)}{hint}"
        raise TemplateError(
            what, f"the slots are {_names(slots)}; the value '{{{missing[0]}}}' keeps the braces as text"
        )
    values = {slot: content_of(given[slot], f"slot '{slot}'") for slot in slots}
    if not rest:
        return DividedInput(values)
    if len(rest) > 1:
        slots_said = f"the slots are {_names(slots)}" if slots else "the instruction has no slot"
        hint = f"{slots_said}; beside them one key may hold the user's turn"
        if {"type", "role"} & set(rest):
            hint += ", and a message or a content part as input goes into a list"
        raise TemplateError(f"the input has keys that are no slot: {_names(rest)}", hint)
    return DividedInput(values, given[rest[0]], rest[0])


def _names(names: Iterable[object]) -> str:
    return ", ".join([shown(name, 40) for name in names])
