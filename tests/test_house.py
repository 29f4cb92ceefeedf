"""The size and the types of the package, measured by ``house.py``; the bounds may only be tightened."""

from __future__ import annotations

import textwrap
from pathlib import Path

import house
import pytest

import mmprompt

LONGEST_MODULE = 500  # lines
LONGEST_FUNCTION = 50
NINETY_PERCENT_OF_FUNCTIONS = 22
MOST_ANY = 0.10  # share of signatures
MOST_OBJECT = 0.20  # share of signatures: the values of rows are of any type


@pytest.fixture(scope="module")
def package() -> house.Package:
    return house.Package(Path(mmprompt.__file__).parent)


def test_modules_are_short(package: house.Package) -> None:
    assert not {m.name: m.lines for m in package.modules.values() if m.lines > LONGEST_MODULE}


def test_functions_are_short(package: house.Package) -> None:
    assert not {f"{s.module}.{s.name}": s.lines for s in package.signatures if s.lines > LONGEST_FUNCTION}
    assert house.nine_tenths([s.lines for s in package.signatures]) <= NINETY_PERCENT_OF_FUNCTIONS


def test_no_modules_import_each_other(package: house.Package) -> None:
    assert not package.cycles()


def test_rooms_import_those_before_them_only(package: house.Package) -> None:
    assert not package.against_order()


def test_signatures_say_what_they_take_and_return(package: house.Package) -> None:
    share = house.Share.of(package.signatures)
    assert share.any / share.all <= MOST_ANY
    assert share.object / share.all <= MOST_OBJECT


# ---- the measure itself


def write(folder: Path, files: dict[str, str]) -> house.Package:
    for name, text in files.items():
        path = folder / "mmprompt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return house.Package(folder / "mmprompt")


def test_aliases_are_resolved_within_and_across_modules(tmp_path: Path) -> None:
    types = """
    from typing import Any, Union
    JSON = Any
    Pairs = tuple[tuple[str, object], ...]
    Loose = Union[dict, None]
    """
    uses = """
    from collections.abc import Callable, Mapping
    from typing import TYPE_CHECKING, Any, Literal
    from mmprompt.errors import Pairs, Loose
    if TYPE_CHECKING:
        from mmprompt.errors import JSON as Value
    def clean(a: dict[str, int], b: "list[str] | None", c: Callable[[int], str], d: Literal["Any"] = "Any") -> None: ...
    def pairs(a: Pairs) -> None: ...
    def alias(a: "Value") -> None: ...
    def bare(a: Loose) -> None: ...
    def written(a: int) -> Mapping[str, list[Any]]: ...
    def stars(*_: object, **options: Any) -> None: ...
    def unparametrised(a: list) -> None: ...
    class Owner:
        def method(self) -> "Any":
            def inner(a: int) -> int: ...
    """
    package = write(tmp_path, {"errors.py": types, "messages.py": uses})
    assert {s.name: set(s.holds) for s in package.signatures} == {
        "clean": set(),
        "pairs": {"object"},
        "alias": {"any"},
        "bare": {"any"},
        "written": {"any", "written"},
        "stars": {"any", "written", "object"},
        "unparametrised": {"any", "written"},
        "Owner.method": {"any", "written"},
        "Owner.method.inner": set(),
    }


def test_lines_of_code_are_neither_blank_comments_docstrings_nor_imports(tmp_path: Path) -> None:
    text = '''
    """A module,

    in several lines."""
    import os
    from typing import (
        Any,
        NamedTuple,
    )

    LIMIT = 7  # beside code
    """What it limits"""

    # a comment alone
    def f() -> str:
        "One line."
        import sys

        return """a text
        of three lines

        that is no docstring"""
    '''
    assert [m.lines_of_code for m in write(tmp_path, {"errors.py": text}).modules.values()] == [5]


def test_cycles_count_when_modules_load_and_the_order_always(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "media/__init__.py": "",
        "media/one.py": "from mmprompt.media import two\n",
        "media/two.py": "import mmprompt.media.three\n",
        "media/three.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mmprompt.media.one import x\n",
        "errors.py": "def f() -> None:\n    from mmprompt.media.one import x\n",
    }
    package = write(tmp_path / "a", files)
    assert package.cycles() == []
    assert package.against_order() == ["mmprompt.errors imports mmprompt.media.one"]
    files["media/three.py"] = "try:\n    from mmprompt.media.one import x\nexcept ImportError:\n    pass\n"
    package = write(tmp_path / "b", files)
    assert package.cycles() == [["mmprompt.media.one", "mmprompt.media.three", "mmprompt.media.two"]]


@pytest.mark.parametrize(("lengths", "expected"), [([7], 7), ([*range(1, 11)], 9), ([*range(1, 12)], 10)])
def test_nine_tenths_of_the_functions_are_no_longer(lengths: list[int], expected: int) -> None:
    assert house.nine_tenths(lengths) == expected
