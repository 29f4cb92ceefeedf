from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import NamedTuple

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmprompt.errors import RowError, TargetError
from mmprompt.targets.exact_json import MAX_DEPTH, dumps, faithful, finite, loads, loads_noting

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = (
    st.integers()
    | st.integers(-(1 << 200), 1 << 200)
    | st.integers((1 << 63) - 5, (1 << 64) + 5)
    | st.integers(-(1 << 63) - 5, -(1 << 63) + 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(9e18, 3e19)
)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


def typed(value: object) -> object:
    """The value with its types spelled out: 1, 1.0 and True compare equal in Python."""
    if isinstance(value, dict):
        return [(key, typed(item)) for key, item in value.items()]
    if isinstance(value, list):
        return ["list", *map(typed, value)]
    return type(value).__name__, repr(value)


@settings(max_examples=2 * settings().max_examples)
@given(VALUES, st.booleans())
def test_loads_gives_what_json_gives_with_the_same_types(value, escaped):
    text = json.dumps(value, ensure_ascii=escaped)
    assert typed(loads(text)) == typed(json.loads(text))
    assert typed(loads(text.encode())) == typed(json.loads(text))


@settings(max_examples=2 * settings().max_examples)
@given(VALUES)
def test_dumps_is_read_back_exactly(value):
    assert typed(loads(dumps(value))) == typed(value)
    assert typed(json.loads(dumps(value))) == typed(value)


@settings(max_examples=2 * settings().max_examples)
@given(st.text('{}[]",:\\u0123456789deE+-.ntfalsruNI \t\ufeff\ud800x', max_size=20))
def test_loads_accepts_and_refuses_what_json_does(text):
    try:
        expected = json.loads(text)
        json.dumps(expected, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        with pytest.raises(RowError):
            loads(text)
    else:
        assert typed(loads(text)) == typed(expected)


@pytest.mark.parametrize(
    "text",
    [
        "123456789012345678901234567890",
        '{"a": 18446744073709551616}',
        '{"a": {"b": [1, [-9223372036854775809]]}}',
        '[[["x", 1e400]]]',
        "-0", "-0.0", "1E400", "-1e400", "1e5", "1E+5", "1e-400", "9223372036854775807", "18446744073709551615",
        "1e19", "9.3e18", "12345678901234567890.0",
        "NaN", "Infinity", "-Infinity", '{"a": [NaN]}',
        '{"a": 1, "b": 2, "a": 3}', '{"x": {"a": 1, "a": {"a": 2}}}',
        '"\\ud83d\\ude00"', '"\\u0000"', '"\x7f"', " [1 , 2 ]\r\n",
    ],
)  # fmt: skip
def test_the_hard_cases_read_as_json_reads_them(text):
    assert typed(loads(text)) == typed(json.loads(text))


def test_a_byte_order_mark_is_accepted_in_bytes_as_json_does():
    assert loads(b'\xef\xbb\xbf{"a": 1}') == json.loads(b'\xef\xbb\xbf{"a": 1}')
    assert loads_noting(b'\xef\xbb\xbf{"a": 1}')[1][0].kind == "bom"


@pytest.mark.parametrize(
    "text", ['{"q": "a\\ud800b"}', b'{"q": "a\\ud800b"}', '{"q": "a\ud800b"}', '{"q": ["\\udc00"]}']
)
def test_a_lone_surrogate_is_an_error_that_names_the_column(text):
    with pytest.raises(RowError, match="lone surrogate") as caught:
        loads(text)
    assert caught.value.where.column == "q"


@pytest.mark.parametrize("text", ['{"\\ud800": 1}', '{"a": {"\\ud800": 1}}', '"\\ud800"', '["\\udfff\\ud800"]'])
def test_a_lone_surrogate_anywhere_is_an_error(text):
    with pytest.raises(RowError, match="lone surrogate"):
        loads(text)


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1010, 1_023, 2_000, 100_000])
@pytest.mark.parametrize("pair", ["[]", "{}"])
def test_very_deep_nesting_is_a_row_error(depth, pair):
    opened = "[" if pair == "[]" else '{"a":'
    with pytest.raises(RowError, match="nested"):
        loads(opened * depth + "1" + pair[1] * depth)


def test_nesting_below_the_limit_is_read_and_can_be_printed():
    text = "[" * (MAX_DEPTH - 1) + "1" + "]" * (MAX_DEPTH - 1)
    assert repr(loads(text)).replace(" ", "") == text
    assert loads(dumps(loads(text))) == loads(text)


def test_an_integer_that_python_refuses_is_a_row_error():
    with pytest.raises(RowError, match="digits"):
        loads('{"a": ' + "9" * 5000 + "}")


def test_invalid_json_says_where():
    with pytest.raises(RowError) as caught:
        loads('{"a": 1,, "b": 2}')
    assert caught.value.where.offset == 8
    with pytest.raises(RowError, match="cut off"):
        loads('{"a": "unfinish\n')


def test_invalid_utf8_says_at_which_byte():
    with pytest.raises(RowError, match="byte 0xff at byte offset 9 is not UTF-8") as caught:
        loads('{"a": "é'.encode() + b'\xff"}')
    assert caught.value.where.offset == 8


def test_remarks_name_what_other_readers_refuse_or_change():
    line = '{"a": NaN, "b": 123456789012345678901234567890, "c": 1, "c": 2, "d": [-Infinity], "e": 1.5}'
    _, remarks = loads_noting(line)
    assert [(r.kind, r.column) for r in remarks] == [("key", "c"), ("nan", "a"), ("integer", "b"), ("nan", "d")]
    assert loads_noting('{"a": 1, "b": 18446744073709551615, "c": [1.5e300]}')[1] == ()


def test_ordinary_floats_are_not_read_twice():
    assert faithful({"boxes": [[0.5, 1e18]], "text": "x", "n": 1 << 63})
    assert not faithful({"boxes": [[0.5, {"n": 1e19}]]})


class Role(str):
    __slots__ = ()


class Bag(dict):
    pass


class Point(NamedTuple):
    x: int
    y: int


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "é\u2028", "b": [1, None]}, '{"a":"é\u2028","b":[1,null]}'),
        (1 << 70, "1180591620717411303424"),
        (finite([float("nan"), None]), '["NaN",null]'),
        (finite({"a": ({"b": float("-inf")}, float("inf"), 1e308)}), '{"a":[{"b":"-Infinity"},"Infinity",1e+308]}'),
        (Role("user"), '"user"'),
        ({Role("k"): Role("v")}, '{"k":"v"}'),
        ([Bag(a=1)], '[{"a":1}]'),
        (Point(1, 2), "[1,2]"),
        ((1, "x"), '[1,"x"]'),
        ({1: "a"}, '{"1":"a"}'),
        ("null", '"null"'),
    ],
)
def test_dumps_writes_what_json_writes(value, expected):
    assert dumps(value) == expected.encode()


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, Decimal(1), object(), 1j])
def test_an_object_that_json_lacks_is_an_error_that_names_its_type(value):
    with pytest.raises(TargetError, match=rf"type {type(value).__name__} "):
        dumps({"a": [value]})


def test_dumps_refuses_lone_surrogates_cycles_and_depth():
    cycle: list[object] = []
    cycle.append(cycle)
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    for value in ("a\ud800", {"\udc00": 1}, cycle, deep, {(1, 2): 3}):
        with pytest.raises(TargetError):
            dumps(value)


def test_orjson_still_differs_where_this_module_says_so():
    assert isinstance(orjson.loads("18446744073709551616"), float)
    assert orjson.dumps(math.nan) == b"null"
