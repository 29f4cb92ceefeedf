"""Configs of promptfoo: each prompt with the variables of each test is a row.

    prompts: ["What is in the picture {{name}}?", file://chat.json]
    tests:
      - vars: {name: cup, image: file://cup.jpg}
        assert: [{type: contains, value: coffee}]

The answer of a row is the value of the first assertion ``equals`` or ``contains``. Providers and graders are not used.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import cast

from mmprompt.datasets.notes import Notes
from mmprompt.datasets.read import Dataset
from mmprompt.datasets.sample import Row, Sample
from mmprompt.errors import MMPromptError, RowError, TaskError, nearest, shown
from mmprompt.tasks.config import ANSWER, Section
from mmprompt.tasks.section_values import ConfigValue
from mmprompt.tasks.upstream.config_folder import ConfigFolder, line_of, upstream_yaml
from mmprompt.tasks.upstream.nunjucks import NunjucksText
from mmprompt.tasks.upstream.promptfoo_prompts import Prompt, prompts_of
from mmprompt.tasks.upstream.promptfoo_tests import Case, HubError, Tests, right_answer
from mmprompt.tasks.upstream.shaped_rows import ShapedDataset, UpstreamYaml, unused_note
from mmprompt.tasks.yaml_text import FunctionName

MARKS = frozenset(("prompts", "providers", "targets", "tests", "defaultTest", "scenarios", "redteam"))
"""A mapping with one of these keys is such a config."""

_KEYS = ("prompts", "tests", "defaultTest", "scenarios", "env", "extensions", "nunjucksFilters", "redteam")
_UNUSED = (
    "$schema", "description", "providers", "targets", "sharing", "outputPath", "evaluateOptions", "commandLineOptions",
    "derivedMetrics", "tags", "writeLatestResults", "metadata", "tracing", "assertionTemplates", "defaultProviders",
    "scoring", "version", "author", "repeat",
)  # fmt: skip
_QUIET = ("$schema", "description", "tags", "author", "version")
"""Unused keys that no note lists."""


class PromptfooRows:
    """The rows of a config. ``hub`` is the error of tests that lie on a hub, where the config has such."""

    def __init__(
        self, prompts: list[Prompt], tests: Tests, folder: ConfigFolder, env: Section, hub: TaskError | None
    ) -> None:
        self._prompts = prompts
        self._tests = tests
        self._folder = folder
        self._env = env
        self._hub = hub

    def section(self, dataset: ConfigValue) -> ConfigValue:
        """Return the section ``dataset``: the caller's rows, each the variables of a test."""
        if dataset is None and self._hub is not None:
            raise self._hub
        return dataset

    def shaped(self, own: Dataset | None, train: Dataset | None) -> tuple[Dataset | None, Dataset | None]:
        """Return the rows that are sent."""
        if train is not None:
            raise TaskError("promptfoo has no in-context examples", "leave out --train")
        if own is not None:
            return ShapedDataset(own, self._rows_of_row), None
        root = self._folder.folder or "."
        return Dataset(self._folder.path, "promptfoo", (root,), self._all), None

    def _all(self, _notes: Notes) -> Iterator[Row]:
        for number, case in enumerate(self._tests):
            if isinstance(case, RowError):
                yield case
                continue
            try:
                yield from self._rows_of(case, number)
            except MMPromptError as error:
                yield RowError(error.what, error.hint, error.where, error.code).located(
                    file=self._folder.path, sample=f"test {number + 1}"
                )

    def _rows_of_row(self, row: Sample) -> Iterator[Row]:
        yield from self._rows_of(self._tests.of_row(row), row.id)

    def _rows_of(self, case: Case, name: object) -> Iterator[Row]:
        """Yield the rows of a test: for each combination of its variables each prompt."""
        chosen = [p for p in self._prompts if not case.prompts or p.label in case.prompts]
        if not chosen:
            raise RowError(
                f"no prompt has the label {shown(case.prompts[0])}",
                nearest(case.prompts[0], [p.label for p in self._prompts]),
            )
        several = len(list(itertools.islice(case.combinations(self._folder), 2))) > 1
        for number, variables in enumerate(case.combinations(self._folder), 1):
            for prompt in chosen:
                label = name if not several else f"{name}.{number}"
                yield self._row(case, variables, prompt, label if len(chosen) == 1 else f"{label}/{prompt.label}")

    def _row(self, case: Case, variables: Mapping[str, object], prompt: Prompt, name: object) -> Row:
        origin = case.origin or Sample({}, name, self._folder.path, None, 0, False)
        sample = origin._replace(id=name, scanned=False, sent=frozenset())
        known = {"env": self._env, **variables} if self._env else variables
        try:
            texts = [str(case.options.get(key) or "") for key in ("prefix", "suffix")]
            around = texts if case.origin is not None else [str(_filled(text, known)) for text in texts]
            messages = prompt.messages(known, *around)
            answer = right_answer(case)
            filled = _filled(answer, known) if answer is not None else variables.get(ANSWER)
        except MMPromptError as error:
            return sample.located(RowError(error.what, error.hint, error.where, error.code))
        columns: dict[str, object] = {} if filled is None else {ANSWER: filled}
        return sample._replace(columns=columns, messages=messages)


def read(folder: ConfigFolder, text: str, abbr: str | None) -> UpstreamYaml:
    """Return the task of a config; ``abbr`` names one of several prompts.

    Raises:
        TaskError: prompts or tests are made by code, or a key is unknown.
    """
    config = cast("Section", upstream_yaml(text, functions=True))
    try:
        references = References(config)
        resolved = {key: references.resolved(value) for key, value in config.items()}
        kept = {key: value for key, value in resolved.items() if key not in references.used - {*_KEYS}}
        return _task(kept, folder, abbr)
    except TaskError as error:
        key = error.where.setting or ""
        raise error.located(file=folder.path, line=line_of(text, "tests" if key == "vars" else key)) from None


def _task(config: Section, folder: ConfigFolder, abbr: str | None) -> UpstreamYaml:
    for key, value in config.items():
        if key not in (*_KEYS, *_UNUSED):
            raise _at(key, f"unknown key {shown(key)} in a config of promptfoo", nearest(key, (*_KEYS, *_UNUSED)))
        if isinstance(value, FunctionName):
            raise _at(key, f"{key} is a Python function", "write its value")
    if config.get("extensions"):
        raise _at(
            "extensions", "extensions change tests by code", "remove extensions, and write the tests as they should be"
        )
    if "redteam" in config and not config.get("tests"):
        raise _at(
            "redteam", "a service makes the tests of redteam", "save its tests as YAML, and name them under tests"
        )
    env = config.get("env")
    env = env if isinstance(env, Mapping) else {}
    prompts = prompts_of(config.get("prompts"), folder, ("env",) if env else ())
    hub = None
    try:
        tests = Tests(config, folder)
    except HubError as error:
        hub, tests = error, Tests({key: value for key, value in config.items() if key != "tests"}, folder)
    unused = [key for key in config if key in _UNUSED and key not in _QUIET]
    rows = PromptfooRows(_chosen(prompts, abbr), tests, folder, env, hub)
    return UpstreamYaml({"reader_cfg": {"output_column": ANSWER}}, unused_note(unused), rows)


def _chosen(prompts: list[Prompt], abbr: str | None) -> list[Prompt]:
    """Return the prompts, or the one that ``abbr`` names by its label or its number from 1. Labels differ."""
    counts = Counter(prompt.label for prompt in prompts)
    named = [
        prompt if counts[prompt.label] == 1 else prompt._replace(label=f"{prompt.label} {number}")
        for number, prompt in enumerate(prompts, 1)
    ]
    if abbr is None:
        return named
    found = [prompt for number, prompt in enumerate(named, 1) if abbr in (prompt.label, str(number))]
    if not found:
        raise _at("prompts", f"no prompt has the label {shown(abbr)}", nearest(abbr, [p.label for p in named]))
    return found[:1]


def _filled(answer: ConfigValue, variables: Mapping[str, object]) -> object:
    """Return an answer in which the variables are filled in."""
    if isinstance(answer, str) and "{" in answer:
        return NunjucksText(answer, variables).fill(variables).plain()
    return [_filled(item, variables) for item in answer] if isinstance(answer, list) else answer


def _at(key: str, what: str, hint: str) -> TaskError:
    return TaskError(what, hint).located(setting=key)


_REF = "$ref"
_DEPTH = 50
_MOST_VALUES = 1 << 20


class References:
    """Replaces the references of one config. ``used`` are the top keys that they name."""

    def __init__(self, config: Section) -> None:
        self.used: set[str] = set()
        self._config = config
        self._left = _MOST_VALUES

    def resolved(self, value: ConfigValue, depth: int = _DEPTH) -> ConfigValue:
        """Return a value with what its references name.

        Raises:
            TaskError: a reference names no value, or references stand for too many values.
        """
        self._left -= 1
        if not depth or not self._left:
            raise TaskError("the references of the config nest too deeply", f"write the values out in place of {_REF}")
        if isinstance(value, Mapping):
            if isinstance(name := value.get(_REF), str):
                return self.resolved(self._named(name), depth - 1)
            return {key: self.resolved(held, depth - 1) for key, held in value.items()}
        return [self.resolved(item, depth - 1) for item in value] if isinstance(value, list) else value

    def _named(self, name: str) -> ConfigValue:
        if not name.startswith("#/"):
            raise TaskError(f"{_REF} names {shown(name)}, which is not in the config", "write the value out")
        keys = name[2:].split("/")
        self.used.add(keys[0])
        found: ConfigValue = self._config
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                known = found if isinstance(found, Mapping) else ()
                raise TaskError(f"{_REF} names {shown(key)}, which is not there", nearest(key, known))
            found = found[key]
        return found
