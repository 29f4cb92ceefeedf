"""Measure the package: types of signatures, lengths, import order and cycles. Reads the source and imports nothing.

    python tests/house.py                 # the figures of mmprompt/
    python tests/house.py --list media    # with the signatures of one room that hold Any or a bare container
    python tests/house.py DIRECTORY       # of another copy of the package

A signature is that of a function or method, nested ones included. It counts as "Any" if an annotation of a parameter
or of the result holds ``Any``, or a container without parameters such as ``dict``, at any depth and through the type
aliases of our modules; "written" is the part of these where no alias hides it. One that holds ``object`` is counted
apart. A room is a folder or module at the top. A line of code is neither blank, nor a comment alone, nor part of a
docstring or of an import.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple, TypeGuard

ORDER = [
    "_version", "_log", "errors", "messages", "segments", "media", "targets", "datasets", "templates", "meta_template", "icl", "prompters",
    "tasks", "render", "check", "run", "viewer", "scale", "testing", "plugins", "cli", "__main__",
]  # fmt: skip
"""The rooms; each imports those before it only."""

AGAINST_THE_ORDER = {
    ("mmprompt.tasks.task", "render"),
    *((f"mmprompt.{name}", "viewer") for name in ("tasks.task", "render.request", "run.task_run")),
}
"""The imports that may go up the order, made inside a method: ``Task.requests`` imports ``render``, and what shows
itself in notebooks imports ``viewer``."""

CONTAINERS = frozenset(
    {
        *("dict", "list", "tuple", "set", "frozenset", "Dict", "List", "Tuple", "Set", "FrozenSet", "Callable"),
        *("Mapping", "MutableMapping", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection"),
        *("Generator", "deque", "defaultdict", "OrderedDict", "Counter", "AbstractSet", "Container", "Reversible"),
    }
)


class Signature(NamedTuple):
    """A function or method, and which of ``any`` (or a bare container), ``written`` and ``object`` apply to it."""

    module: str
    name: str
    line: int
    lines: int
    holds: frozenset[str]
    text: str


@cache
def syntax_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a source file; it is read once."""
    return ast.parse(path.read_text(encoding="utf-8"))


class Module:
    """One source file: its syntax tree, its imports and its aliases."""

    def __init__(self, name: str, path: Path, is_package: bool) -> None:
        self.name = name
        self.path = path
        self.is_package = is_package
        self.lines = path.read_bytes().count(b"\n")
        self.tree = syntax_tree(path)

    @cached_property
    def lines_of_code(self) -> int:
        """How many lines are neither blank, nor a comment, nor of a docstring or an import."""
        said = {number for node in ast.walk(self.tree) if _is_said(node) for number in _lines_of(node)}
        lines = enumerate(self.path.read_text(encoding="utf-8").splitlines(), 1)
        return sum(
            number not in said and bool(line.strip()) and not line.lstrip().startswith("#") for number, line in lines
        )

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"

    @cached_property
    def names(self) -> dict[str, tuple[str, str]]:
        """Local names that are imported: the module and the name there."""
        return {
            alias.asname or alias.name: (node.module, alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for alias in node.names
        }

    @cached_property
    def aliases(self) -> dict[str, ast.expr]:
        """Names that a module-level assignment gives a type."""
        found: dict[str, ast.expr] = {}
        for node in _top_level(self.tree, type_checking=True):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                found[node.targets[0].id] = node.value
            elif (
                isinstance(node, ast.AnnAssign)
                and node.value is not None
                and "TypeAlias" in ast.unparse(node.annotation)
            ):
                found[ast.unparse(node.target)] = node.value
        return found


class Package:
    """All modules of a package, by dotted name."""

    def __init__(self, folder: Path) -> None:
        self.modules: dict[str, Module] = {}
        for path in sorted(folder.rglob("*.py")):
            parts = [folder.name, *path.relative_to(folder).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            self.modules[name] = Module(name, path, is_package)

    @cached_property
    def signatures(self) -> list[Signature]:
        return [signature for module in self.modules.values() for signature in self._signatures_of(module)]

    def _signatures_of(self, module: Module) -> Iterator[Signature]:
        for qualified, node in _functions(module.tree, ""):
            a = node.args
            given = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
            annotations = [x for x in (*(g.annotation for g in given), node.returns) if x is not None]
            holds = frozenset(mark for x in annotations for mark in self._marks(x, module, frozenset()))
            end = node.end_lineno or node.lineno
            text = f"({ast.unparse(a)})" + ("" if node.returns is None else f" -> {ast.unparse(node.returns)}")
            yield Signature(module.name, qualified, node.lineno, end - node.lineno + 1, holds, text)

    def _marks(self, node: ast.AST, module: Module, aliases: frozenset[str]) -> Iterator[str]:
        """Give ``any`` and ``object`` for what a type holds; ``written`` for an ``any`` that no alias hides."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from self._marks(ast.parse(node.value, mode="eval").body, module, aliases)
        elif isinstance(node, ast.Subscript):
            base = ast.unparse(node.value).rpartition(".")[2]
            if base == "Literal":
                return
            if base not in CONTAINERS:
                yield from self._marks(node.value, module, aliases)
            yield from self._marks(node.slice, module, aliases)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self._marks_of_name(ast.unparse(node), module, aliases)
        else:
            for child in ast.iter_child_nodes(node):
                yield from self._marks(child, module, aliases)

    def _marks_of_name(self, name: str, module: Module, aliases: frozenset[str]) -> Iterator[str]:
        home, there = module.names.get(name, ("", name))
        alias = f"{module.name}.{name}"
        if alias in aliases:  # one that holds itself, as JSON values do
            return
        if name in module.aliases:
            yield from self._marks(module.aliases[name], module, aliases | {alias})
        elif home in self.modules:
            yield from self._marks_of_name(there, self.modules[home], aliases | {alias})
        elif there.rpartition(".")[2] == "Any" or there.rpartition(".")[2] in CONTAINERS:
            yield from ("any",) if aliases else ("any", "written")
        elif there == "object":
            yield "object"

    def imports(self, *, lazy: bool) -> dict[str, set[str]]:
        """Return for each module those of ours that it imports when it loads; with ``lazy`` in functions too."""
        graph = {}
        for module in self.modules.values():
            nodes = list(ast.walk(module.tree) if lazy else _top_level(module.tree, type_checking=False))
            graph[module.name] = {n for node in nodes for n in self._imported(node) if n != module.name}
        return graph

    def _imported(self, node: ast.AST) -> Iterator[str]:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in self.modules)
        elif isinstance(node, ast.ImportFrom) and node.module in self.modules:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [name for name in inner if name in self.modules]
            yield from found
            if len(found) < len(inner):
                yield node.module

    def against_order(self) -> list[str]:
        """Return the imports, lazy ones and those for types included, that go up the order."""
        place = {room: number for number, room in enumerate(ORDER)}
        wrong = []
        for name, targets in self.imports(lazy=True).items():
            here = self.modules[name].room
            for target in sorted(targets):
                there = self.modules[target].room
                if (name, there) in AGAINST_THE_ORDER or "__init__" in (here, there):
                    continue
                if place.get(there, -1) > place.get(here, len(ORDER)):
                    wrong.append(f"{name} imports {target}")
        return wrong

    def cycles(self) -> list[list[str]]:
        """Return the groups of modules that import each other when they load."""
        graph = self.imports(lazy=False)
        reach = {name: _reachable(graph, name) for name in graph}
        groups = {tuple(sorted(m for m in reach[n] if n in reach[m])) for n in graph if n in reach[n]}
        return [list(group) for group in sorted(groups)]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        name = f"{prefix}{child.name}" if named else prefix  # type: ignore[attr-defined]
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield name, child
        yield from _functions(child, f"{name}." if named else prefix)


def _is_said(node: ast.AST) -> TypeGuard[ast.stmt]:
    """Return whether a statement is an import, or a text that stands alone, as docstrings do."""
    alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return alone or isinstance(node, (ast.Import, ast.ImportFrom))


def _lines_of(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _top_level(tree: ast.Module, *, type_checking: bool) -> Iterator[ast.AST]:
    """Give the statements that run when a module loads, with ``type_checking`` also those for type checkers."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += [*(node.body if type_checking else ()), *node.orelse]
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ClassDef)):
            waiting += [n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.stmt, ast.ExceptHandler))]
        elif isinstance(node, ast.ExceptHandler):
            waiting += node.body


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph[name]
    return seen


class Share(NamedTuple):
    """How many signatures there are, how many hold ``Any`` (``written``: without an alias), and how many ``object``."""

    all: int
    any: int
    written: int
    object: int

    @classmethod
    def of(cls, signatures: list[Signature]) -> Share:
        counts = (sum(mark in s.holds for s in signatures) for mark in ("any", "written", "object"))
        return cls(len(signatures), *counts)

    def row(self, name: str) -> str:
        columns = (f"{count:8}{100 * count / max(self.all, 1):6.1f}%" for count in self[1:])
        return f"{name:14}{self.all:6}{''.join(columns)}"


def nine_tenths(lengths: list[int]) -> int:
    """Return the length that nine of ten functions do not exceed."""
    return sorted(lengths)[max(-(-len(lengths) * 9 // 10) - 1, 0)]


def report(package: Package, listed: str | None) -> None:
    rooms = sorted({m.room for m in package.modules.values()}, key=lambda r: ORDER.index(r) if r in ORDER else -1)
    print(f"{'room':14}{'all':>6}{'Any':>8}{'':7}{'written':>8}{'':7}{'object':>8}")
    by_room = {r: [s for s in package.signatures if package.modules[s.module].room == r] for r in rooms}
    for room, signatures in by_room.items():
        if signatures:
            print(Share.of(signatures).row(room))
    print(Share.of(package.signatures).row("all"))
    longest = max(package.signatures, key=lambda s: s.lines)
    lines, code = (
        sum(counts) for counts in zip(*((m.lines, m.lines_of_code) for m in package.modules.values()), strict=True)
    )
    print(f"\nlines {lines} in {len(package.modules)} modules, of code {code}")
    long = [f"{m.name} {m.lines}" for m in package.modules.values() if m.lines > 300]
    print(f"modules over 300 lines: {', '.join(long) or 'none'}")
    ninety = nine_tenths([s.lines for s in package.signatures])
    print(f"functions: p90 {ninety} lines, longest {longest.lines} ({longest.module}.{longest.name})")
    print(f"import cycles: {'; '.join(' + '.join(group) for group in package.cycles()) or 'none'}")
    print(f"imports against the order: {'; '.join(package.against_order()) or 'none'}")
    for signature in by_room.get(listed or "", []):
        if "any" in signature.holds:
            print(f"{signature.module}:{signature.line} {signature.name}{signature.text}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the package.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent / "mmprompt")
    parser.add_argument("--list", metavar="ROOM", help="list the signatures of this room that hold Any")
    given = parser.parse_args()
    report(Package(given.folder), given.list)


if __name__ == "__main__":
    main()
