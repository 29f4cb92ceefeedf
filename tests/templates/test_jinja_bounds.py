"""Jinja texts from strangers: what would take all memory or time is an error of the row."""

from __future__ import annotations

import pickle

import pytest

from mmprompt import MMPromptError
from mmprompt.templates.jinja_text import JinjaText

BIG = "{% set x = 'a' * 30000 %}"
DOUBLE = "{%% set n = namespace(x='a' * 1000000) %%}{%% for i in range(30) %%}{%% set n.x = %s %%}{%% endfor %%}"


@pytest.mark.parametrize(
    "source",
    [
        DOUBLE % "n.x ~ n.x",
        DOUBLE % "n.x + n.x",
        BIG + "{{ (x|replace('a', x))|length }}",
        BIG + "{{ x.replace('a', x)|length }}",
        BIG + "{{ x|join(x)|length }}",
        BIG + "{{ x.join(x)|length }}",
        "{{ ([('a' * 4000000)] * 1000)|string|length }}",
        "{{ [('a' * 4000000)] * 1000 }}",
        "{{ '{:>1000000000}'.format(1)|length }}",
        "{{ 'a'.translate({97: 'b' * 4000000})|length }}",
    ],
)
def test_what_makes_gigabytes_is_an_error(source):
    with pytest.raises(MMPromptError, match=r"it would make more than 4194304 characters|is unsafe"):
        JinjaText(source).fill({})


@pytest.mark.parametrize(
    "source",
    [
        "{% set l = range(300)|list %}{% for a in l %}{% for b in l %}{% for c in l %}{% endfor %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(50) }}",
        "{% set l = ['a' * 4000000] * 1000 %}{{ l|map('list')|map('length')|sum }}",
    ],
)
def test_what_takes_hours_is_an_error(source):
    with pytest.raises(MMPromptError, match="it takes too many steps"):
        JinjaText(source).fill({})


def test_what_templates_do_stays_as_it_is():
    source = (
        "{% for c in choices %}{{ c.letter ~ '/' ~ loop.length }}{{ ', ' if not loop.last }}{% endfor %} "
        "{{ ['a', 'b']|join(', ') }} {{ '-'.join(['x', 'y']) }} {{ q.replace('l', 'L') }} {{ q|replace('l', 'L', 1) }} "
        "{{ l|map(attribute='n')|join('+') }} {{ l|join('+', attribute='n') }} {{ [1] + [2] }} {{ 1 + 2 }} {{ l|tojson }}"
    )
    row = {"q": "hello", "l": [{"n": 1}, {"n": 2}], "options": ["x", "y"]}
    text = pickle.loads(pickle.dumps(JinjaText(source)))
    assert text.fill(row) == 'A/2, B/2 a, b x-y heLLo heLlo 1+2 1+2 [1, 2] 3 [{"n": 1}, {"n": 2}]'


@pytest.mark.parametrize("options", [["a", "", "b"], [str(number) for number in range(27)]])
def test_choices_without_a_letter_or_a_text_are_an_error(options):
    with pytest.raises(MMPromptError, match="choice"):
        JinjaText("{% for c in choices %}{{ c.text }}{% endfor %}").fill({"options": options})
    assert JinjaText("{{ question }}").fill({"question": "Q", "options": options}) == "Q"
