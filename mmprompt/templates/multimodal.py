"""``MMPromptTemplate``: dialogues whose roles say content parts, filled from tagged columns.

A round item has ``prompt_mm``, which maps a modality to a content part with slots. Each segment of the tagged column
that feeds the item gives one part, in the order of the sample. Without tags, slots take the values of plain columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmprompt.errors import TemplateError, shown
from mmprompt.templates.dialogue import Form, Labels
from mmprompt.templates.part_compiler import skeletons_of_prompt_mm
from mmprompt.templates.prompt_list import RoleDict
from mmprompt.templates.role_parts import PartsContent, PartsOptions
from mmprompt.templates.role_text import RoleContent, TextContent
from mmprompt.templates.text import PromptTemplate

ORDERS = ("sample", "template")


class MMPromptTemplate(PromptTemplate):
    """A template of multimodal dialogues, checked and compiled at construction; immutable.

    Args:
        template: a dialogue of ``begin``, ``round`` and ``end``, or labels of such dialogues. A role dict has an
            ordinary ``prompt`` or ``prompt_mm``: a dict of modality (``text``, ``image``, ``audio``, ``video``, or
            ``mm_url`` for any medium) to content part.
        ice_token: the literal text that the in-context examples replace.
        sep_token: a literal text that is removed.
        column_token_map: maps a column to the literal token that its value replaces.
        column: the tagged column that feeds every item. Without it, an item takes the tagged columns that its slots
            name, or else a tagged ``content``.
        order: ``"sample"`` keeps the order of the segments, ``"template"`` groups them by the keys of ``prompt_mm``.
        repeat_text: True repeats the text around the slot for each text segment, False puts it once around them all.

    Source: AISBench, Prompt Template, on multimodal templates.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """

    def __init__(
        self,
        template: Mapping[Any, Any],
        ice_token: str | None = None,
        sep_token: str | None = None,
        column_token_map: Mapping[str, str] | None = None,
        *,
        column: str | None = None,
        order: str = "sample",
        repeat_text: bool = True,
    ) -> None:
        if order not in ORDERS:
            raise TemplateError(f"unknown order {shown(order)}", "give 'sample' or 'template'")
        self._column = column
        self._options = PartsOptions(column, order == "template", repeat_text)
        super().__init__(template, ice_token, sep_token, column_token_map)

    @property
    def column(self) -> str | None:
        """The column that is tagged whatever it holds, if the template names one."""
        return self._column

    def _compile(self) -> Form:
        form = super()._compile()
        forms = list(form.forms.values()) if isinstance(form, Labels) else [form]
        if any(isinstance(f, TextContent) for f in forms):
            raise TemplateError("a multimodal template is a dialogue, not a string", "give a dict with 'round'")
        return form

    def _role_content(self, item: RoleDict, place: str) -> RoleContent | None:
        if "prompt_mm" not in item:
            return super()._role_content(item, place)
        if "prompt" in item:
            raise TemplateError("prompt and prompt_mm in one role dict", "keep one of them").located(template=place)
        here = f"{place}.prompt_mm"
        return PartsContent(skeletons_of_prompt_mm(item["prompt_mm"], self._tokens, here), here, self._options)

    def _text_content(self, text: str | Mapping[str, str], place: str) -> TextContent:
        return TextContent(self._tokens.compile_any(text, place), place, reads_tags=True)

    def __reduce__(self) -> tuple[object, ...]:
        column, by_key, repeat_text = self._options[:3]
        keywords = {"column": column, "order": ORDERS[by_key], "repeat_text": repeat_text}
        return (_rebuilt, (type(self), super().__reduce__()[1], keywords))


def _rebuilt(cls: type[MMPromptTemplate], arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> MMPromptTemplate:
    return cls(*arguments, **keywords)
