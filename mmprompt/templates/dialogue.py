"""The forms of a template, validated and compiled once: a string, a dialogue, or labels of either.

A dialogue is ``begin``, ``round`` and ``end``. What a role says is compiled by the template class (text or content
parts), so this module knows only that it can be rendered for an entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Union, cast

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.templates.prompt_list import PromptList, RoleItem, Section, TextItem, copied
from mmprompt.templates.role_text import Examples, Speech, TextSpeech, Tokens
from mmprompt.templates.sample_view import SampleView
from mmprompt.templates.slots import SlotText

DIALOGUE_KEYS = frozenset({"begin", "round", "end"})
ROLE_KEYS = frozenset(
    {
        "role", "fallback_role", "prompt", "prompt_mm", "begin", "end", "generate", "api_role", "name", "tool_calls",
        "tool_call_id",
    }
)  # fmt: skip

_KEY_TYPES: Mapping[str, tuple[type, ...]] = {
    "role": (str,),
    "fallback_role": (str,),
    "api_role": (str,),
    "name": (str,),
    "tool_call_id": (str,),
    "generate": (bool,),
    "tool_calls": (list, tuple),
    "begin": (str, int, list, tuple),
    "end": (str, int, list, tuple),
}


class RoleLine(NamedTuple):
    """One role dict of a template: the keys that stay, and what the role says (None: it says nothing itself)."""

    keys: dict[str, Any]
    speech: Speech | None
    nested: bool


class LooseLine(NamedTuple):
    """A string of begin or end, or the place of the examples between turns."""

    speech: TextSpeech


Line = Union[RoleLine, LooseLine]


class Dialogue(NamedTuple):
    """A compiled dialogue: its lines by section; ``has_marker`` tells whether the examples have a place in it."""

    sections: tuple[tuple[Section, tuple[Line, ...]], ...]
    round: tuple[Line, ...]
    has_marker: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The names in braces, in order."""
        speeches = [line.speech for _, lines in self.sections for line in lines if line.speech is not None]
        return tuple(name for speech in speeches for name in speech.names)


class Labels(NamedTuple):
    """A template for each label."""

    forms: dict[object, SlotText | Dialogue]

    @property
    def has_marker(self) -> bool:
        """Whether the examples have a place in every one of them."""
        return all(form.has_marker for form in self.forms.values())


Form = Union[SlotText, Dialogue, Labels]

Compiler = Callable[[Mapping[str, Any], str], "Speech | None"]
"""Makes the speech of a role dict, given the dict and its place in the template."""


def is_dialogue(template: object) -> bool:
    """Tell whether a template is a dialogue: a dict whose keys are all among begin, round and end."""
    return isinstance(template, Mapping) and set(template) <= DIALOGUE_KEYS


def compile_form(template: object, tokens: Tokens, compiler: Compiler, loose: Callable[[str, str], TextSpeech]) -> Form:
    """Compile a template of any form.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """
    if isinstance(template, str):
        return _with_token(tokens.compile(template), tokens, "template")
    if not isinstance(template, Mapping):
        raise TemplateError(f"a template is a string or a dict, not {type(template).__name__}", "see 'template='")
    if is_dialogue(template):
        return _compile_dialogue(template, compiler, loose, tokens, "template")
    forms: dict[object, SlotText | Dialogue] = {}
    for label, value in template.items():
        place = f"template[{label!r}]"
        if isinstance(value, str):
            forms[label] = _with_token(tokens.compile(value), tokens, place)
        elif is_dialogue(value):
            forms[label] = _compile_dialogue(value, compiler, loose, tokens, place)
        else:
            hint = "a dict that is no dialogue maps each label to a string or to a dialogue of begin, round and end"
            if label in DIALOGUE_KEYS or isinstance(value, list):
                strange = next(key for key in template if key not in DIALOGUE_KEYS)
                hint = f"a dialogue has the keys begin, round and end, and not {shown(strange)}"
            raise TemplateError(f"the template of label {shown(label)} is no template", hint).located(template=place)
    return Labels(forms)


def _with_token(text: SlotText, tokens: Tokens, place: str) -> SlotText:
    if tokens.ice and not text.has_marker:
        what = f"the ice_token {shown(tokens.ice)} does not occur in the text"
        raise TemplateError(what, "put it where the examples go, or leave ice_token out").located(template=place)
    return text


def _compile_dialogue(
    template: Mapping[str, Any], compiler: Compiler, loose: Callable[[str, str], TextSpeech], tokens: Tokens, place: str
) -> Dialogue:
    if "round" not in template:
        raise TemplateError("a dialogue has no round", "give 'round', a list of role dicts").located(template=place)
    sections = []
    for name in ("begin", "round", "end"):
        value = template.get(name, ())
        if name != "round" and isinstance(value, (str, Mapping)):
            value = [value]
        if not isinstance(value, (list, tuple)):
            what = f"'{name}' is {type(value).__name__}"
            raise TemplateError(what, "it is a list of role dicts").located(template=f"{place}.{name}")
        lines = tuple(
            _compile_line(item, compiler, loose, f"{place}.{name}[{index}]", in_round=name == "round", tokens=tokens)
            for index, item in enumerate(value)
        )
        sections.append((Section(name), lines))
    if not sections[1][1]:
        raise TemplateError("the round is empty", "give at least one role dict").located(template=f"{place}.round")
    speeches = [line.speech for _, lines in sections for line in lines]
    marked = any(speech is not None and speech.has_marker for speech in speeches)
    return Dialogue(tuple(s for s in sections if s[1]), sections[1][1], marked)


def _compile_line(
    item: object,
    compiler: Compiler,
    loose: Callable[[str, str], TextSpeech],
    place: str,
    *,
    in_round: bool,
    tokens: Tokens,
) -> Line:
    if isinstance(item, str):
        if in_round and not (tokens.ice and tokens.ice in item):
            hint = "each item of a round is a role dict; a string may only be the place of the examples"
            raise TemplateError(f"the string {shown(item)} in a round", hint).located(template=place)
        return LooseLine(loose(item, place))
    if not isinstance(item, Mapping):
        raise TemplateError(f"{type(item).__name__} in a dialogue", "give a role dict").located(template=place)
    for key in item:
        if key not in ROLE_KEYS:
            raise TemplateError(f"unknown key {shown(key)} in a role dict", nearest(key, ROLE_KEYS)).located(
                template=place
            )
    if "role" not in item:
        raise TemplateError("a role dict without a role", "give 'role', such as HUMAN").located(template=place)
    for key, kinds in _KEY_TYPES.items():
        if item.get(key) is not None and not isinstance(item[key], kinds):
            names = " or ".join(k.__name__ for k in kinds)
            raise TemplateError(f"'{key}' is {type(item[key]).__name__}", f"give {names}").located(template=place)
    keys = {k: v for k, v in item.items() if k not in {"prompt", "prompt_mm"}}
    nested = any(isinstance(v, (list, Mapping)) for v in keys.values())
    return RoleLine(copied(keys), compiler(item, place), nested)


def render_dialogue(dialogue: Dialogue, entry: SampleView, examples: Examples) -> PromptList:
    """Return the whole dialogue for ``entry``, with the examples at their place."""
    out = PromptList()
    for section, lines in dialogue.sections:
        out.extend(render_section(lines, entry, examples, section))
    return out


def render_section(lines: Sequence[Line], entry: SampleView, examples: Examples, section: Section) -> list[Any]:
    """Return the items of a section; dialogue examples take the place of a loose line's token."""
    if not isinstance(examples, list):
        return [render_line(line, entry, examples, section) for line in lines]
    out: list[Any] = []
    for line in lines:
        if isinstance(line, LooseLine) and line.speech.has_marker:
            out.extend(splice(line.speech.around_marker(entry), examples, section))
        else:
            out.append(render_line(line, entry, examples, section))
    return out


def render_example(dialogue: Dialogue, entry: SampleView) -> PromptList:
    """Return the round alone, as one in-context example."""
    section = Section("ice")
    return PromptList(
        [
            render_line(line, entry, None, section)
            for line in dialogue.round
            if not (isinstance(line, LooseLine) and line.speech.has_marker)
        ]
    )


def render_line(line: Line, entry: SampleView, examples: Examples, section: Section) -> RoleItem | TextItem:
    """Return one line for ``entry``, with the examples inside what it says."""
    if type(line) is LooseLine:
        return TextItem(str(line.speech.render(entry, examples)), section)
    keys, speech, nested = cast("RoleLine", line)
    item = RoleItem(copied(keys) if nested else keys)  # what the template holds is never handed out
    item.section = section
    if speech is not None:
        item["prompt"] = speech.render(entry, examples)
    return item


def splice(texts: list[str], examples: Sequence[Any], section: Section) -> list[Any]:
    """Return the items of a loose text with dialogue examples between its pieces; empty pieces are left out."""
    out: list[Any] = [TextItem(texts[0], section)] if texts[0] else []
    for after in texts[1:]:
        out.extend(examples)
        if after:
            out.append(TextItem(after, section))
    return out
