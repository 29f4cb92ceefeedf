"""``PromptTemplate``: text templates, as a string, a dialogue, or a dict of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from mmprompt.errors import TemplateError, nearest, shown
from mmprompt.messages import text_of
from mmprompt.templates.dialogue import (
    Compilers,
    Dialogue,
    Form,
    Labels,
    compile_form,
    is_dialogue,
    render_dialogue,
    render_example,
    splice,
)
from mmprompt.templates.jinja_text import is_jinja
from mmprompt.templates.prompt_list import PromptList, RoleDict, Section, copied
from mmprompt.templates.role_text import Examples, RoleContent, TextContent, Tokens
from mmprompt.templates.sample_view import SampleView, view_of


class PromptTemplate:
    """A template of text, checked and compiled at construction; immutable.

    Args:
        template: a string with slots; a dialogue dict of ``begin``, ``round`` and ``end``; or a dict that maps each
            label to one of these.
        ice_token: the literal text that the in-context examples replace.
        sep_token: a literal text that is removed.
        column_token_map: maps a column to the literal token that its value replaces; slots in braces work too.

    ``prompt_type`` is ``"meta"`` for a dialogue and ``"origin"`` for the other forms.

    Source: OpenCompass, Prompt Template; AISBench, Prompt Template.

    Raises:
        TemplateError: with the place in the template as ``where.template``.
    """

    _column: str | None = None
    """The column that is tagged because the template names it"""

    def __init__(
        self,
        template: str | Mapping[Any, Any],
        ice_token: str | None = None,
        sep_token: str | None = None,
        column_token_map: Mapping[str, str] | None = None,
    ) -> None:
        self._template = copied(template)
        self._tokens = _checked_tokens(column_token_map, ice_token, sep_token)
        self._form = self._compile()

    def _compile(self) -> Form:
        return compile_form(self._template, Compilers(self._role_content, self._text_content, self._tokens))

    def _role_content(self, item: RoleDict, place: str) -> RoleContent | None:
        """Return what a role says compiled; None if the template leaves it to the meta template."""
        if "prompt_mm" in item:
            raise TemplateError("prompt_mm in a text template", "use MMPromptTemplate").located(template=place)
        prompt = item.get("prompt")
        if prompt is None:
            return None
        if not isinstance(prompt, str) and not is_jinja(prompt):
            what = f"a prompt is text, not {type(prompt).__name__}"
            raise TemplateError(what, "give a string").located(template=f"{place}.prompt")
        return self._text_content(prompt, f"{place}.prompt")

    def _text_content(self, text: str | Mapping[str, str], place: str) -> TextContent:
        return TextContent(self._tokens.compile_any(text, place), place)

    @property
    def template(self) -> str | Mapping[Any, Any]:
        """A copy of the template as given."""
        return copied(self._template)

    @property
    def ice_token(self) -> str | None:
        """The token of the in-context examples, as given."""
        return self._tokens.ice

    @property
    def sep_token(self) -> str | None:
        """The separator token, as given."""
        return self._tokens.sep

    @property
    def prompt_type(self) -> str:
        """``"meta"`` for a dialogue, ``"origin"`` for a string or labels."""
        return "meta" if is_dialogue(self._template) else "origin"

    @property
    def labels(self) -> tuple[object, ...]:
        """The labels of a dict of labels, in order; empty for the other forms."""
        return tuple(self._form.forms) if isinstance(self._form, Labels) else ()

    @property
    def slot_names(self) -> tuple[str, ...]:
        """The names in braces, in order; those that name a column of the sample are slots."""
        return tuple(dict.fromkeys(name for form in self._forms() for name in form.names))

    @property
    def media_slots(self) -> tuple[str, ...]:
        """The columns that the media parts name, in order."""
        return tuple(dict.fromkeys(name for form in self._forms() for name in form.media_names))

    def _forms(self) -> Collection[TextContent | Dialogue]:
        return self._form.forms.values() if isinstance(self._form, Labels) else [self._form]

    @property
    def text_slots(self) -> tuple[str, ...]:
        """The columns of the slots in texts, in order."""
        return tuple(dict.fromkeys(name for form in self._forms() for name in form.text_names))

    def generate_item(
        self, entry: Mapping[str, object] | SampleView, output_field: str | None = None, ice: Examples = None
    ) -> str | PromptList:
        """Return the prompt for a test sample; ``output_field``, its answer column, reads as ``""``.

        ``ice`` are the examples, as text or as a PromptList. A dict of labels gives the prompt of its first label.

        Raises:
            TemplateError: the sample cannot fill the template, or there are examples and no place for them.
        """
        form = next(iter(self._form.forms.values())) if isinstance(self._form, Labels) else self._form
        return self._render(form, view_of(entry, output_field, self._column), ice)

    def generate_ice_item(self, entry: Mapping[str, object] | SampleView, label: object = None) -> str | PromptList:
        """Return a sample as an in-context example: the round alone, with its answer."""
        form, view = self._form_of(label), view_of(entry, None, self._column)
        return render_example(form, view) if isinstance(form, Dialogue) else str(form.render(view, None))

    def generate_label_prompt_item(
        self, entry: Mapping[str, object] | SampleView, ice: Examples = None, label: object = None
    ) -> str | PromptList:
        """Return the prompt of one label, with nothing masked."""
        return self._render(self._form_of(label), view_of(entry, None, self._column), ice)

    def _form_of(self, label: object) -> TextContent | Dialogue:
        if not isinstance(self._form, Labels):
            return self._form
        forms = self._form.forms
        found = next((f for known, f in forms.items() if known == label and type(known) is type(label)), None)
        if found is None:
            found = next((f for known, f in forms.items() if str(known) == str(label)), None)
        if found is None:
            raise TemplateError(f"no template for label {shown(label)}", nearest(label, forms))
        return found

    def _render(self, form: TextContent | Dialogue, view: SampleView, ice: Examples) -> str | PromptList:
        if ice is not None:
            self._check_examples(form, ice)
        if isinstance(form, Dialogue):
            return render_dialogue(form, view, ice)
        if isinstance(ice, list):
            return PromptList(splice(form.around_examples(view), ice, Section("round")))
        return text_of(form.render(view, ice))

    def _check_examples(self, form: TextContent | Dialogue, ice: Examples) -> None:
        """Refuse examples that are neither text nor items, or that have no place."""
        if ice is not None and not isinstance(ice, (str, list)):
            raise TemplateError(f"in-context examples are {type(ice).__name__}", "give text, or a PromptList")
        if ice and not form.has_marker:
            hint = f"put {shown(self.ice_token)} where they go" if self.ice_token else "give ice_token"
            what = "there are in-context examples and the template has no place for them"
            raise TemplateError(what, hint).located(template="template")

    def __reduce__(self) -> tuple[object, ...]:
        column_token_map = {column: token for token, column in self._tokens.columns.items()}
        return (type(self), (self._template, self.ice_token, self.sep_token, column_token_map))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._template!r})"


def _checked_tokens(column_token_map: Mapping[str, str] | None, ice_token: str | None, sep_token: str | None) -> Tokens:
    """Return the tokens of a template."""
    given = {"ice_token": ice_token, "sep_token": sep_token}
    for name, token in given.items():
        if token is not None and not isinstance(token, str):
            raise TemplateError(f"{name} is {type(token).__name__}", "give a literal text, or None")
    if column_token_map is not None and not isinstance(column_token_map, Mapping):
        raise TemplateError(f"column_token_map is {type(column_token_map).__name__}", "give a dict of column to token")
    if ice_token and ice_token == sep_token:
        raise TemplateError("ice_token and sep_token are the same", "give each its own text")
    tokens: dict[str, str] = {}
    for column, token in (column_token_map or {}).items():
        if not isinstance(token, str) or not token:
            raise TemplateError(f"the token of column '{column}' is empty or not a string", "give a literal text")
        if token in tokens:
            what = f"columns '{tokens[token]}' and '{column}' have the same token {shown(token)}"
            raise TemplateError(what, "give each its own text")
        for name, other in given.items():
            if token == other:
                raise TemplateError(f"the token of column '{column}' is the {name}", "give each its own text")
        tokens[token] = column
    return Tokens(ice_token, sep_token, tokens)
