"""The dataset configs that OpenCompass and AISBench ship, each loaded as a task and filled with invented rows.

``python tests/plugins/shipped_configs.py`` prints what is taken, and what is refused and why. The configs are read
from the installed packages; the packages themselves are not imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from mmprompt import MediaPolicy, MMPromptError, load_task
from mmprompt.tasks.upstream.dataset_configs import UpstreamDataset, find_datasets, upstream_task
from mmprompt.tasks.upstream.execute import run_config
from mmprompt.tasks.upstream.stubs import RunnerStub

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"
MEDIA = {"image": "media/coffee.jpg", "audio": "media/train.wav", "video": "media/clip.mp4"}
CONFIGS = {"opencompass": "configs/datasets", "ais_bench": "benchmark/configs/datasets"}
OPENICL = {"opencompass": "openicl", "ais_bench": "benchmark/openicl"}
MOST = 100_000
"""Datasets looked at, a bound far above what the packages ship. Settings that were seen before are not loaded again."""

_SLOT = re.compile(r"\{([^{}]+)\}")
_SHORTENED = re.compile(r"'[^' ]*/[^']*'|'[^']{40,}'|(?<=dataset )'[^']*'")
_TURNS = ("MultiTurnPromptTemplate", "MultiTurnGenInferencer", "ChatInferencer")


class Refusal(NamedTuple):
    """A dataset that is not taken: its runner, file and abbr (empty for a whole file), and the error's words."""

    runner: str
    file: str
    abbr: str
    what: str


class Survey(NamedTuple):
    """How many files and datasets were looked at, how many were taken, and those that were not."""

    files: int
    datasets: int
    taken: int
    refused: list[Refusal]


def survey() -> Survey:
    """Load every dataset of every config: the first of a file by ``load_task(file)``, the others as mappings."""
    files = datasets = taken = 0
    seen: dict[str, str] = {}
    refused: list[Refusal] = []
    for runner, folder in ((name, folder_of(name) / below) for name, below in CONFIGS.items()):
        for path in sorted(folder.rglob("*.py")):
            files += 1
            file = str(path.relative_to(folder))
            try:
                variables, stub_texts = run_config(str(path))
            except MMPromptError as error:
                refused.append(Refusal(runner, file, "", error.what))
                continue
            for number, dataset in enumerate(find_datasets(variables), 1):
                datasets += 1
                if datasets > MOST:
                    raise RuntimeError("the packages ship more datasets than this looks at")
                error_words = _fault(path, number, dataset, stub_texts, seen)
                taken += not error_words
                refused += [Refusal(runner, file, dataset.abbr, error_words)] if error_words else []
    return Survey(files, datasets, taken, refused)


def folder_of(runner: str) -> Path:
    """Return the folder of an installed package, which is not imported."""
    spec = find_spec(runner)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(runner)
    return Path(next(iter(spec.submodule_search_locations)))


def classes(runner: str) -> set[str]:
    """Return the names of the classes that a runner defines for ``infer_cfg``."""
    files = (folder_of(runner) / OPENICL[runner]).rglob("*.py")
    trees = (ast.parse(file.read_text(encoding="utf-8")) for file in files)
    return {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _fault(path: Path, number: int, dataset: UpstreamDataset, stub_texts: frozenset[str], seen: dict[str, str]) -> str:
    """Return why a dataset is refused; empty if all of its requests are made."""
    key = ""
    try:
        made = upstream_task(dataset, stub_texts)
        sections: dict[str, Any] = {"reader_cfg": made.reader_cfg, "infer_cfg": made.infer_cfg}
        key = repr(sections)
        if number > 1 and key in seen:
            return seen[key]
        rows = _rows(dataset.config)
        task = load_task(path, rows, abbr="1") if number == 1 else load_task(sections, rows)
        fault = "" if list(task.requests(policy=MediaPolicy([str(TOUR)]))) else "no request"
    except MMPromptError as error:
        fault = error.what
    seen[key] = fault
    return fault


def _rows(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return invented rows that have what the config's templates and reader name."""
    infer, reader = (
        {**part} if isinstance(part := config.get(k), Mapping) else {} for k in ("infer_cfg", "reader_cfg")
    )
    given = reader.get("input_columns") or []
    columns = given.split() if isinstance(given, str) else list(given)
    output = reader.get("output_column")
    sections = [part for key in ("ice_template", "prompt_template") if isinstance(part := infer.get(key), Mapping)]
    named = [name for text in _texts(sections) for name in _SLOT.findall(text)]
    row: dict[str, Any] = {
        name: MEDIA.get(name, f"<{name}>")
        for name in [*columns, *filter(None, [output]), *named]
        if isinstance(name, str)
    }
    kinds = {_short(part.get("type")) for part in [*sections, infer.get("inferencer") or {}]}
    if kinds & set(_TURNS):
        row = {name: [f"{value} 1", f"{value} 2"] for name, value in row.items()}
    for section in sections:
        template = section.get("template")
        if output and isinstance(template, Mapping) and not template.keys() <= {"begin", "round", "end"}:
            row[output] = next(iter(template))
        for message in section.get("messages") or ():
            if isinstance(message, Mapping) and "expand_column" in message:
                row[message["expand_column"]] = [{"role": "user", "content": "?"}]
    if "MMPromptTemplate" in kinds and "content" in columns:
        row["content"] = f"<AIS_IMAGE_START>{MEDIA['image']}<AIS_CONTENT_TAG><AIS_TEXT_START>?<AIS_CONTENT_TAG>"
        if "video" in str(config.get("abbr")).lower():
            row["content"] = row["content"].replace("IMAGE", "VIDEO").replace(MEDIA["image"], MEDIA["video"])
    retriever = infer.get("retriever")
    ids = (retriever.get("fix_id_list") if isinstance(retriever, Mapping) else None) or [0]
    return {"rows": [{**row, "id": 0}, {**row, "id": 1}], "train_rows": [{**row} for _ in range(max(ids) + 40)]}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _short(named: object) -> str:
    return named.short if isinstance(named, RunnerStub) else getattr(named, "__name__", str(named)).rpartition(".")[2]


def main() -> None:
    """Print the table."""
    found = survey()
    print(f"{found.files} files, {found.datasets} datasets: {found.taken} taken, {len(found.refused)} refused")
    reasons: dict[str, list[Refusal]] = {}
    for refusal in found.refused:
        reasons.setdefault(_SHORTENED.sub("'…'", refusal.what), []).append(refusal)
    for reason, refused in sorted(reasons.items(), key=lambda item: -len(item[1])):
        files = {(refusal.runner, refusal.file) for refusal in refused}
        print(f"{len(refused):6} in {len(files)} files: {reason} (such as {refused[0].runner}, {refused[0].file})")


if __name__ == "__main__":
    main()
