"""The tests of a promptfoo config: the variables of each, inline or in files, one row of variables at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from mmprompt.datasets.read import open_dataset
from mmprompt.datasets.sample import Sample
from mmprompt.errors import RowError, TaskError, nearest, shown
from mmprompt.tasks.config import Section
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.config_folder import ConfigFolder, upstream_yaml
from mmprompt.tasks.upstream.promptfoo_prompts import FILE
from mmprompt.tasks.upstream.promptfoo_vars import CODE, check_file, combinations

_KEYS = (
    "description", "vars", "assert", "options", "metadata", "threshold", "provider", "providers", "providerOutput",
    "prompts", "tags", "assertScoringFunction",
)  # fmt: skip
_HUBS = ("huggingface://", "http://", "https://", "az://", "sharepoint://")
_RIGHT = ("equals", "contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all")
"""Types of assertions that say the answer."""


class Case(NamedTuple):
    """One test: ``origin`` is the row of a file that holds it, None for one in the config itself.

    With ``expands`` each combination of the texts in its lists is a row.
    """

    variables: Section
    asserts: tuple[Section, ...]
    options: Section
    prompts: tuple[str, ...] = ()
    origin: Sample | None = None
    expands: bool = True

    def combinations(self, folder: ConfigFolder) -> Iterator[dict[str, object]]:
        """Yield the variables of each row that the test gives."""
        expands = self.expands and self.options.get("disableVarExpansion") is not True
        return combinations(self.variables, folder, expands=expands, is_data=self.origin is not None)


class HubError(TaskError):
    """The tests lie on a hub."""


class Tests:
    """The tests under the keys ``tests``, ``scenarios`` and ``defaultTest``, read anew at each iteration.

    Raises:
        TaskError: a test is made by code, or a key is unknown.
        HubError: the tests lie on a hub.
    """

    def __init__(self, config: Section, folder: ConfigFolder) -> None:
        self._folder = folder
        self._default = self._default_case(config.get("defaultTest"))
        tests = config.get("tests")
        self._tests = [] if tests is None else [tests] if isinstance(tests, (str, Mapping)) else list(_items(tests))
        self._scenarios = list(_items(config.get("scenarios") or []))
        for entry in self._tests:
            self._check_entry(entry)

    def __iter__(self) -> Iterator[Case | RowError]:
        """Give the tests in order; without any, one test without variables."""
        for entry in self._tests:
            yield from self._cases(entry)
        for scenario in self._scenarios:
            yield from self._of_scenario(scenario)
        if not self._tests and not self._scenarios:
            yield self._default

    def of_row(self, row: Sample) -> Case:
        """Return the test in a row of a file: its ``vars``, or the columns as variables."""
        columns = row.columns
        if isinstance(columns.get("vars"), Mapping):
            return self._case(columns, row)  # type: ignore[arg-type]  # what JSON holds
        plain = {name: value for name, value in columns.items() if not name.startswith("__")}
        expected = [columns[name] for name in columns if re.fullmatch(r"__expected\d*", name)]
        options = {name: columns[f"__{name}"] for name in ("prefix", "suffix") if columns.get(f"__{name}")}
        asserts = [made for text in expected if isinstance(text, str) and (made := _assertion(text))]
        test = {"vars": plain, "assert": asserts, "options": options}
        return self._case(test, row)._replace(expands=False)  # type: ignore[arg-type]  # what a dataset holds

    def _default_case(self, value: ConfigValue) -> Case:
        if isinstance(value, str):
            value = _yaml(value, "defaultTest", self._folder)
        empty = Case({}, (), {})
        self._default = empty
        return empty if value is None else self._case(_mapping(value, "defaultTest"), None)

    def _check_entry(self, entry: ConfigValue) -> None:
        """Refuse tests that cannot be read, before the first is."""
        if isinstance(entry, Mapping):
            if "path" in entry:
                raise _error(f"the tests {shown(entry['path'])} are made by code", "save them as JSON lines")
            self._case(entry, None)
            return
        if not isinstance(entry, str):
            raise _error(f"a test is {type(entry).__name__}", "give a mapping with vars, or a file")
        if entry.startswith(_HUBS):
            raise HubError(f"the tests lie at {shown(entry)}", "give them: --dataset FILE; in Python dataset=")
        name = entry.removeprefix(FILE)
        suffix = os.path.splitext(name.partition(":")[0])[1]
        if suffix in CODE:
            what = f"the tests {shown(name)} are code, and a config of data is not run"
            raise _error(what, "save them as JSON lines, and give those with --dataset FILE")
        if suffix.partition("#")[0] in (".xlsx", ".xls"):
            raise _error(f"the tests {shown(name)} are a spreadsheet", "save it as CSV")
        self._folder.files(name, "tests")

    def _cases(self, entry: ConfigValue) -> Iterator[Case | RowError]:
        if isinstance(entry, Mapping):
            yield self._case(entry, None)
            return
        for path in self._folder.files(str(entry).removeprefix(FILE), "tests"):
            if path.endswith((".yaml", ".yml")):
                read = upstream_yaml(self._folder.text(path, "tests"))
                for test in [read] if isinstance(read, Mapping) else _items(read or []):
                    yield self._case(_mapping(test, "a test"), None, self._folder.beside(path))
                continue
            for row in open_dataset(path, format=_format(path), layouts=False):
                yield row if isinstance(row, RowError) else self.of_row(row)

    def _of_scenario(self, scenario: ConfigValue) -> Iterator[Case | RowError]:
        if isinstance(scenario, str):
            raise _error(f"the scenario {shown(scenario)} is a file", "write it into the config")
        held = _mapping(scenario, "a scenario")
        sets, tests = held.get("config") or [{}], held.get("tests") or [{}]
        for config in _items(sets):
            first = self._case(_mapping(config, "scenarios.config"), None)
            for entry in [tests] if isinstance(tests, (str, Mapping)) else _items(tests):
                self._check_entry(entry)
                for case in self._cases(entry):
                    yield case if isinstance(case, RowError) else _over(case, first)

    def _case(self, test: Section, origin: Sample | None, folder: ConfigFolder | None = None) -> Case:
        """Return a test laid over the default one; files of variables lie in ``folder``."""
        if unknown := [key for key in test if key not in _KEYS]:
            raise _error(f"unknown key {shown(unknown[0])} in a test", nearest(unknown[0], _KEYS))
        options = _mapping(test.get("options") or {}, "options")
        if options.get("transformVars"):
            raise _error("options.transformVars changes variables by code", "write the variables as they should be")
        asserts = [a for a in _items(test.get("assert") or []) if isinstance(a, Mapping)]
        named = test.get("prompts") or ()
        prompts = (named,) if isinstance(named, str) else tuple(map(str, _items(named)))
        variables = _variables(test.get("vars"), folder or self._folder)
        if origin is None:
            for value in variables.values():
                check_file(value, self._folder)
        return _over(Case(variables, tuple(asserts), options, prompts, origin), self._default)


def _variables(value: ConfigValue, folder: ConfigFolder) -> Section:
    """Return the variables of a test: a mapping, or files that hold one."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    merged: dict[str, ConfigValue] = {}
    for name in [value] if isinstance(value, str) else _items(value):
        merged.update(_mapping(_yaml(str(name), "vars", folder), "vars"))
    return merged


def _yaml(name: str, key: str, folder: ConfigFolder) -> ConfigValue:
    """Return what the YAML files of a name or pattern hold; mappings are merged."""
    merged: ConfigValue = None
    for path in folder.files(name.removeprefix(FILE), key):
        read = upstream_yaml(folder.text(path, key))
        merged = {**merged, **read} if isinstance(merged, Mapping) and isinstance(read, Mapping) else read
    return merged


def right_answer(case: Case) -> ConfigValue:
    """Return the answer that the first telling assertion of a test gives; None if no assertion does."""
    return _answer_in(case.asserts)


def _answer_in(asserts: Iterable[Section]) -> ConfigValue:
    for assertion in asserts:
        kind, value = assertion.get("type"), assertion.get("value")
        if kind == "assert-set":
            found = [_answer_in([a]) for a in _items(assertion.get("assert") or []) if isinstance(a, Mapping)]
            if answers := [answer for answer in found if answer is not None]:
                return answers if len(answers) > 1 else answers[0]
        if kind in _RIGHT and value is not None and not (isinstance(value, str) and value.startswith(FILE)):
            listed = str(kind).endswith(("any", "all")) and isinstance(value, str)
            return [text.strip() for text in str(value).split(",")] if listed else value
    return None


def _assertion(text: str) -> Section | None:
    """Return the assertion in a cell ``__expected``: ``contains: Paris``, or a text that the reply equals."""
    found = re.match(r"(not-)?([a-z][a-z-]*)(?:\([\d.]+\))?:", text)
    if not text.strip():
        return None
    if found is None or not (found[2] in _RIGHT or "-" in found[2] or found[2] in _GRADERS):
        return {"type": "equals", "value": text}
    return {"type": (found[1] or "") + found[2], "value": text[found.end() :].strip()}


_GRADERS = ("javascript", "python", "similar", "factuality", "grade", "regex", "fn", "eval", "latency", "cost", "rouge")


def _over(case: Case, below: Case) -> Case:
    """Return a test laid over another's variables, assertions and options."""
    inherits = case.options.get("disableDefaultAsserts") is not True
    return case._replace(
        variables={**below.variables, **case.variables},
        asserts=(*case.asserts, *(below.asserts if inherits else ())),
        options={**below.options, **case.options},
        prompts=case.prompts or below.prompts,
    )


def _format(path: str) -> str | None:
    suffix = os.path.splitext(path)[1]
    return {".csv": "csv", ".jsonl": "jsonl", ".json": "json", ".tsv": "tsv"}.get(suffix)


def _items(value: ConfigValue) -> list[ConfigValue]:
    if not isinstance(value, (list, tuple)):
        raise _error(f"a list is expected, and this is {type(value).__name__}", "give a list")
    return list(value)


def _mapping(value: ConfigValue, place: str) -> Section:
    if not isinstance(value, Mapping):
        raise _error(f"{place} is {type(value).__name__}", "give a mapping")
    return value


def _error(what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting="tests")
