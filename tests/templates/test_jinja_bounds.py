"""Jinja texts from strangers: what would take all memory or time is an error of the row."""

from __future__ import annotations

import pickle
import tracemalloc

import pytest
from jinja2 import Environment
from time_taken import processor_seconds

from mmprompt import MMPromptError, TemplateError
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


TWINS = "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}"
NESTED = "{% set n = namespace(x=range(99000)|list) %}{% for i in range(900) %}{% set n.x = [n.x] %}{% endfor %}"


@pytest.mark.parametrize("name", ["upper", "tojson", "urlencode", "escape", "trim", "string", "join", "sort"])
def test_a_list_that_holds_itself_many_times_is_an_error(name):
    """Twenty-seven lists, each with the one before twice, took over a minute and up to 2.7 GB."""
    text = JinjaText(f"{TWINS}{{{{ n.x|{name}|length }}}}")

    def fill():
        with pytest.raises(MMPromptError, match=r"it takes too many steps|it would make more than"):
            text.fill({})

    assert processor_seconds(fill, enough=1) < 3


@pytest.mark.parametrize("indent", ["9", "500000000", "-1", "true", "'a' * 4000000", "1.5"])
def test_json_is_indented_by_at_most_eight(indent):
    with pytest.raises(MMPromptError, match="tojson takes an indent from 0 to 8"):
        JinjaText(f"{{{{ [1]|tojson(indent={indent}) }}}}").fill({})


@pytest.mark.parametrize("indent", [0, 8])
def test_the_indents_of_deep_json_are_counted_before_they_are_written(indent):
    """They took 900 MB and four seconds."""
    text = JinjaText(f"{NESTED}{{{{ n.x|tojson(indent={indent})|length }}}}")

    def fill():
        with pytest.raises(MMPromptError, match="it would make more than 4194304 characters"):
            text.fill({})

    tracemalloc.start()
    try:
        fill()
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()


def test_json_reads_as_in_jinja():
    value = {"b": [1, {"c": "<é'&>"}], "a": [], "n": None, "t": (1.5, True)}
    for call in ("tojson", "tojson(2)", "tojson(indent=8)", "tojson(0)"):
        theirs = Environment(autoescape=False).from_string(f"{{{{ v|{call} }}}}").render(v=value)
        assert JinjaText(f"{{{{ v|{call} }}}}").fill({"v": value}) == theirs


def test_a_jinja_text_has_at_most_65536_characters():
    """One of a mebibyte took half a minute and 2 GB to compile."""
    assert JinjaText("{# " + "a" * 65_530 + " #}").fill({}) == ""
    with pytest.raises(TemplateError, match=r"a Jinja text of 65537 characters; shorten it to at most 65536"):
        JinjaText("a" * 65_537)


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "a+" * 30_000 + "a }}",
        "{{ " + "(" * 30_000 + "a" + ")" * 30_000 + " }}",
        "{% for a in b %}" * 30 + "{% endfor %}" * 30,
    ],
)
def test_a_text_that_is_nested_too_deeply_to_compile_is_our_error(source):
    with pytest.raises(TemplateError, match="the Jinja text is nested too deeply; split it into shorter steps"):
        JinjaText(source)


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
