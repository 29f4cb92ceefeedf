"""The prompts of a task with their in-context examples: the rows these are chosen from, and how many fit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sized
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mmprompt.errors import RowError, TaskError

if TYPE_CHECKING:
    from mmprompt.datasets.read import Dataset
    from mmprompt.datasets.sample import Sample
    from mmprompt.icl.assembly import Assembly, Fits, Prompt
    from mmprompt.tasks.task import Task


def compiled_assembly(
    task: Task, dataset: Dataset | None, train: Dataset | None, count_tokens: CountTokens | None, *, list_cells: bool
) -> Assembly | None:
    """Compile the templates of a task and bind its examples; None if it has a meta template alone.

    Raises:
        TaskError: a setting is wrong, or a length in tokens is asked for without a tokenizer.
        TemplateError: a template or the meta template is malformed.
        RowError: an example that cannot be read.
    """
    meta, config = task.meta_template, task.config
    if config.infer_cfg is None:
        return None
    from mmprompt.icl.assembly import Assembly  # noqa: PLC0415  # loads with the first template

    assembly = Assembly(config.infer_cfg, config.columns, meta, list_cells=list_cells)
    if assembly.needs_examples and assembly.arguments.get("max_seq_len") is not None and count_tokens is None:
        raise TaskError("max_seq_len needs the model's tokenizer", "load_task(…, tokenizer=…), or leave it out")
    _bind_examples(assembly, dataset, train, config.train_range)
    return assembly


def _bind_examples(assembly: Assembly, dataset: Dataset | None, train: Dataset | None, chosen: slice) -> None:
    """Read the rows ``chosen`` of the training set, if the task takes examples from it.

    A task without a dataset is left as it is: it can be compiled, and given a dataset later.

    Raises:
        TaskError: the retriever needs examples, and the task names no file of them.
        RowError: an example that cannot be read.
    """
    if not assembly.needs_examples or (train is None and dataset is None):
        return
    if train is None:
        name = type(assembly.retriever).__name__
        raise TaskError(f"{name} needs examples", "give dataset.train, their file (--train FILE), or train_rows")
    rows: list[Sample] = []
    for row in itertools.islice(train, chosen.start, chosen.stop, chosen.step):
        if isinstance(row, RowError):
            raise row
        rows.append(row)
    alike = dataset is not None and train.roots == dataset.roots and len(train.roots) == 1
    assembly.over(rows, None if alike else train.root)


def takes_examples(infer_cfg: Mapping[str, object] | None) -> bool:
    """Return whether the retriever of a task takes examples.

    Raises:
        TaskError: it is unknown, or its arguments are wrong.
    """
    retriever = (infer_cfg or {}).get("retriever")
    if retriever is None:
        return False
    from mmprompt.icl.retrievers import ZeroRetriever  # noqa: PLC0415  # loads with the first retriever
    from mmprompt.icl.types import build_retriever  # noqa: PLC0415  # loads with the first retriever

    return not isinstance(build_retriever(retriever, "infer_cfg.retriever"), ZeroRetriever)


CountTokens = Callable[[str], int]


@runtime_checkable
class Encoder(Protocol):
    """What counting needs of a tokenizer."""

    def encode(self, text: str, /) -> Sized:
        """Return the tokens of a text."""
        ...


def token_counter(tokenizer: Encoder | CountTokens | None) -> CountTokens | None:
    """Return the function that counts the tokens of a text; None without a tokenizer."""
    if tokenizer is None:
        return None
    if isinstance(tokenizer, Encoder):
        encode = tokenizer.encode
        return lambda text: len(encode(text))
    if not callable(tokenizer):
        raise TaskError(f"a tokenizer is {type(tokenizer).__name__}", "give one with encode(text), or a function")
    count = tokenizer
    return lambda text: int(count(text))


def images_in(prompt: Prompt) -> int:
    """Return how many images a prompt holds."""
    items = [item for item in prompt if isinstance(item, Mapping)] if isinstance(prompt, list) else []
    parts = [part for item in items for part in item.get("prompt", item.get("content")) or ()]
    return sum(isinstance(part, Mapping) and "image" in str(part.get("type")) for part in parts)


def length_check(
    max_tokens: int | None, max_images: int | None, count: CountTokens | None, as_string: Callable[[Prompt], str]
) -> Fits:
    """Return the function that says whether a prompt is short enough.

    Tokens are those of the string after the meta template, which ``as_string`` returns. A prompt with images has no
    such string, so the tokens of its own texts count.
    """

    def fits(prompt: Prompt) -> bool:
        images = images_in(prompt)
        if max_images is not None and images > max_images:
            return False
        if max_tokens is None or count is None:
            return True
        return count(str(prompt) if images else as_string(prompt)) <= max_tokens

    return fits
