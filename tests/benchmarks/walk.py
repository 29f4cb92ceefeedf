"""The way of one sample, from the dataset's row to the line that is sent: how many of our functions it goes through.

    python tests/benchmarks/walk.py           # the figures
    python tests/benchmarks/walk.py --tree    # with every function, indented; ^ marks a callback
    python tests/benchmarks/walk.py --long    # as a row without a form

The row is ``tour-02`` (two pictures and a question) of ``fixtures/tour/task.yaml``. It has a form, as all rows do but
the first that gives its answers, and rows that are walked. It is the last in a copy of the dataset, so that the other
rows warm up what is made once; eight rows like it stand before it. The walk begins when the dataset gives the sample
and ends when its line is written.

calls      times that a function of ours is entered, as the interpreter counts: a generator each time that it goes on,
           a comprehension as a function (Python 3.12 and later enter most comprehensions no more, so they count fewer).
functions  the same with each generator counted once, and no comprehensions: alike in all versions of Python.
modules    modules of ours that these functions stand in.
depth      the most of these functions at work at one time.
stays      runs of consecutive functions in one room (a folder or module at the top of the package).
returns    stays in a room where the walk has been before.
climbs     stays in a room that stands later in the import order than the room of the stay before: the walk came back
           up out of a lower room. A walk that only goes down would have none.
callbacks  functions called from another room that stands earlier in the import order, as through a callback.
types      classes of ours whose objects are made on the way and are arguments (not self) or results, also as elements of
           a list, tuple or dict. What the task and the dataset hold already (compiled templates, limits) does not count.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

from house import ORDER  # noqa: E402  # it stands one folder up

import mmprompt  # noqa: E402
from mmprompt.render.builder import RequestBuilder  # noqa: E402
from mmprompt.render.request import RequestMaker  # noqa: E402

PACKAGE = Path(mmprompt.__file__).resolve().parent
TOUR = HERE.parent.parent / "fixtures" / "tour"
SAMPLE = "tour-02"
_INLINE = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})
_PLACE = {room: number for number, room in enumerate(ORDER)}


class Call(NamedTuple):
    """One call of a function of ours; ``back`` if a room called it that stands earlier in the import order."""

    module: str
    function: str
    depth: int
    back: bool


class Walk:
    """Calls of our functions, gathered by ``sys.setprofile`` from the moment when the dataset gives the sample."""

    def __init__(self, sample: str) -> None:
        self.entered = 0
        self.calls: list[Call] = []
        self.types: set[str] = set()
        self._sample = sample
        self._begun = self._left_the_dataset = False
        self._seen: dict[int, FrameType] = {}  # the frames themselves, so that no number comes again
        self._older: dict[int, object] = {}  # the objects of ours that the walk finds there

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        """Take note of a call or a return."""
        module = _module(frame.f_code)
        if module is None or event not in ("call", "return"):
            return
        reading = _room(module) == "datasets"
        if event == "return" and reading and not self._left_the_dataset and getattr(arg, "id", None) == self._sample:
            self._begin()
        elif self._begun and event == "return":
            self._note_types([arg])
        elif self._begun:
            self.entered += 1
            self._left_the_dataset = self._left_the_dataset or not reading
            if id(frame) not in self._seen and frame.f_code.co_name not in _INLINE:
                self._note_call(module, frame)

    def _begin(self) -> None:
        self._begun = True
        self.entered = 0
        self.calls.clear()
        self.types.clear()
        self._seen.clear()
        self._older = {id(found): found for found in gc.get_objects() if _is_ours(found)}

    def _note_call(self, module: str, frame: FrameType) -> None:
        self._seen[id(frame)] = frame
        callers = list(_callers(frame))
        here, there = _room(module), _room(callers[0]) if callers else ""
        back = _PLACE.get(here, -1) > _PLACE.get(there, len(ORDER))
        name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)  # Python 3.10 has no qualified names
        self.calls.append(Call(module, name, len(callers) + 1, back))
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._note_types([frame.f_locals.get(name) for name in given if name != "self"])

    def _note_types(self, values: list[Any]) -> None:
        for value in values:
            inner = list(value.values()) if type(value) is dict else value if type(value) in (list, tuple) else ()
            found = [one for one in (value, *inner) if _is_ours(one) and id(one) not in self._older]
            self.types.update(type(one).__name__ for one in found)


class Figures(NamedTuple):
    """What is counted of a walk."""

    calls: int
    functions: int
    modules: int
    depth: int
    stays: int
    returns: int
    climbs: int
    callbacks: int
    types: int


def figures(walk: Walk) -> Figures:
    rooms = [_room(call.module) for call in walk.calls]
    stays = [room for before, room in zip(["", *rooms], rooms, strict=False) if room != before]
    return Figures(
        calls=walk.entered,
        functions=len(walk.calls),
        modules=len({call.module for call in walk.calls}),
        depth=max(call.depth for call in walk.calls) - min(call.depth for call in walk.calls) + 1,
        stays=len(stays),
        returns=len(stays) - len(set(stays)),
        climbs=sum(_PLACE.get(room, -1) > _PLACE.get(before, -1) for before, room in pairwise(stays)),
        callbacks=sum(call.back for call in walk.calls),
        types=len(walk.types),
    )


def measure(*, formed: bool) -> tuple[Walk, bytes]:
    """Walk once, and return what was gathered with the line that came out."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "tour")
        shutil.copytree(TOUR, copy)
        rows = (copy / "tour.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
        rows.sort(key=lambda row: json.loads(row)["id"] == SAMPLE)  # stable: the others stay in order
        rows[-1:-1] = [rows[-1].replace(SAMPLE, f"like-{number}") for number in range(8)]
        (copy / "tour.jsonl").write_text("".join(rows), encoding="utf-8")
        line_of_next = _lines(mmprompt.load_task(str(copy / "task.yaml")), formed=formed)
        for _ in rows[:-2]:
            line_of_next()
        walk = Walk(SAMPLE)
        line_of_next(walk)  # one more row, so that the hook itself is warm
        return walk, line_of_next(walk)


def _lines(task: Any, *, formed: bool) -> Callable[..., bytes]:
    """Return what gives the line of the next row: through ``task.requests``, or else through the renderer."""
    if hasattr(task, "requests"):
        builder, rows = RequestBuilder(task, formed=formed), task.samples()
        maker = RequestMaker(builder)
        step: Callable[[], bytes] = lambda: maker.of(builder.prepare(next(rows)))[0].body(model="m")  # noqa: E731
    else:
        renderer, samples = _class("Renderer")(task), task.samples()
        step = lambda: b"".join(renderer.render(next(samples)).chunks)  # noqa: E731

    def line(profile: Walk | None = None) -> bytes:
        sys.setprofile(profile)
        try:
            return step()
        finally:
            sys.setprofile(None)

    return line


def _class(name: str) -> Any:
    """Return a class of the room ``render``, wherever in it the class stands."""
    room = importlib.import_module(f"{PACKAGE.name}.render")
    inner = pkgutil.walk_packages(getattr(room, "__path__", []), f"{room.__name__}.")
    modules = [room, *(importlib.import_module(found.name) for found in inner)]
    return next(getattr(module, name) for module in modules if hasattr(module, name))


def _module(code: CodeType) -> str | None:
    """Return the module of ours that holds a piece of code, None for one of others."""
    path = Path(code.co_filename)
    if PACKAGE not in path.parents:
        return None
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "__init__"


def _room(module: str) -> str:
    return module.partition(".")[0]


def _is_ours(found: object) -> bool:
    return str(type(found).__module__).partition(".")[0] == PACKAGE.name


def _callers(frame: FrameType) -> Iterator[str]:
    """Give the modules of our functions that a call stands in, the nearest first."""
    caller = frame.f_back
    while caller is not None:
        module = _module(caller.f_code)
        if module is not None and caller.f_code.co_name not in _INLINE:
            yield module
        caller = caller.f_back


def main() -> None:
    parser = argparse.ArgumentParser(description="Count what one row goes through.")
    parser.add_argument("--json", action="store_true", help="print the figures and the line as JSON")
    parser.add_argument("--long", action="store_true", help="walk the row, as one without a form")
    parser.add_argument("--tree", action="store_true", help="print every function, indented; ^ marks a callback")
    given = parser.parse_args()
    walk, line = measure(formed=not given.long)
    if given.json:
        rooms = sorted({_room(call.module) for call in walk.calls})
        print(json.dumps({"figures": figures(walk)._asdict(), "rooms": rooms, "line": json.loads(line)}))
        return
    least = min(call.depth for call in walk.calls)
    for call in walk.calls if given.tree else ():
        print(f"{'  ' * (call.depth - least)}{'^' if call.back else ''}{call.module}:{call.function}")
    print("  ".join(f"{name} {count}" for name, count in figures(walk)._asdict().items()), f" line {len(line)} bytes")
    print("modules:", *dict.fromkeys(call.module for call in walk.calls))
    print("types:", *sorted(walk.types))


if __name__ == "__main__":
    main()
