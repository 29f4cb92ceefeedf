"""``view_html``: a task, a dataset or a journal as a page."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing, nullcontext
from typing import Any, NamedTuple

from mmprompt.check.check import Codes
from mmprompt.datasets.output import check_apart, check_output, output, working_folder
from mmprompt.datasets.whole_file import faults_of
from mmprompt.datasets.writers.output_file import write_medium
from mmprompt.media.outputs import replacing
from mmprompt.media.policy import MediaPolicy
from mmprompt.viewer.assets import Assets
from mmprompt.viewer.exhibit import Exhibit, Path, Source, exhibit_of
from mmprompt.viewer.html_page import page_chunks
from mmprompt.viewer.index import rules_of
from mmprompt.viewer.media_files import EXTENSIONS, LARGEST_PAGE, MediaFiles
from mmprompt.viewer.row_view import TARGETS, RowViews
from mmprompt.viewer.side import CHUNK, Side
from mmprompt.viewer.viewed_rows import Choice, viewed_rows


class ViewReport(NamedTuple):
    """What was written: the page, how many samples it shows, and the folder of its media if they stand beside it."""

    path: str
    rows: int
    size: int
    folder: str | None


def view_html(
    source: Source,
    path: Path,
    other: Source | None = None,
    *,
    journal: Path | None = None,
    dataset: Path | None = None,
    target: str = "vllm",
    policy: MediaPolicy | None = None,
    limit: int | None = None,
    select: Codes = (),
    check: bool = True,
    decode: bool = True,
    workers: int = 1,
    fit: bool = False,
) -> ViewReport:
    """Write the rows of a task, a dataset or a journal as one page of HTML, which loads nothing from the network.

    The page holds its media while it stays below 20 MB. Else it holds small pictures, and the media go to a folder
    beside it: ``OUT/assets`` for ``OUT.html``.

    Args:
        source: the task, the dataset, or the journal of a run. The manifest of a journal names its task; what is not
            data, or does not lie in the folder of the journal, is not opened, and the page says so.
        path: the page to write.
        other: another one, to be compared with it.
        journal: the journal with the replies to ``source``, where that is no journal.
        dataset: the rows of ``source``, where that is a journal.
        target: the target whose requests are shown first.
        policy: which media may be read; by default those below the dataset's folder, as the task says.
        limit: the most rows to show.
        select: the codes of findings to show; by default all errors and warnings.
        check: look for findings.
        decode: look inside media for findings.
        workers: threads that check rows.
        fit: change media as little as each target needs.

    Raises:
        TaskError: the task is wrong.
        TargetError: the target is unknown.
        OSError: the page cannot be written.
    """
    with replacing(os.fspath(path)):
        exhibits = [exhibit_of(source, journal, dataset), *([] if other is None else [exhibit_of(other)])]
    choice = Choice(target, policy, limit, None, check, decode, select, workers, fit)
    return write_page(exhibits, os.fspath(path), choice)


def write_page(exhibits: Sequence[Exhibit], path: str, choice: Choice, most: int = LARGEST_PAGE) -> ViewReport:
    """Write one task, or two beside each other, as a page of about ``most`` bytes or less.

    Raises:
        OSError: it cannot be written.
    """
    check_output(path)
    for exhibit in exhibits:
        check_apart(path, exhibit.task.dataset, exhibit.task.train)
    with ExitStack() as stack:
        stack.enter_context(faults_of(path))
        stack.enter_context(replacing(path))
        assets = Assets(path, stack.enter_context(working_folder(path)))
        views = [stack.enter_context(closing(_views(exhibit, choice))) for exhibit in exhibits]
        media = stack.enter_context(closing(MediaFiles(assets.made, views[0].policy, most * 3 // 4)))
        blocks = _RowBlocks(assets.made, most)
        sides = [Side(number, exhibit, views[number], media, blocks.put) for number, exhibit in enumerate(exhibits)]
        for side, exhibit, own in zip(sides, exhibits, views, strict=True):
            for viewed in viewed_rows(exhibit.task, own, choice):
                side.add(viewed)
        indexes, heads = zip(*[side.finish() for side in sides], strict=True)
        outside = blocks.outside or media.outside
        head = {**_head(heads, sides, choice.target), "folder": assets.address if outside else ""}
        first = [(f"index-{number}", index) for number, index in enumerate(indexes)]
        later = itertools.chain(blocks.inside.items(), media.blocks())
        title = " / ".join(exhibit.title for exhibit in exhibits)
        pieces = page_chunks(title, head, first, later, sources="'self' file:" if outside else "")
        with assets.placed() if outside else nullcontext(), output(path) as writer:
            for piece in pieces:
                writer.write([piece.encode("utf-8", "backslashreplace")])
            writer.flush()
        assets.remove_older()
    size, folder = writer.bytes_written, assets.folder if outside else None
    return ViewReport(path, sum(side.counts.rows for side in sides), size, folder)


def _views(exhibit: Exhibit, choice: Choice) -> RowViews:
    return RowViews(exhibit.task, choice.target, choice.policy, TARGETS, fit=choice.fit)


def _head(heads: Sequence[Mapping[str, Any]], sides: Sequence[Side], target: str) -> dict[str, Any]:
    codes = {code for side in sides for code in side.counts.codes}
    whole = {finding["code"] for head in heads for finding in head["findings"]}
    return {
        "sides": heads,
        "counts": sides[0].counts.data,
        "codes": rules_of(codes | whole),
        "chunk": CHUNK,
        "target": target,
        "extensions": EXTENSIONS,
        "served": False,
    }


class _RowBlocks:
    """The chunks of rows: inside the page while they have room, else as scripts in the folder."""

    def __init__(self, folder: str, most: int) -> None:
        self.inside: dict[str, str] = {}
        self.outside = False
        self._folder = folder
        self._most = most // 4
        self._size = 0

    def put(self, name: str, base64: str) -> None:
        """Keep a chunk."""
        if self.outside:
            self._write(name, base64)
            return
        self.inside[name] = base64
        self._size += len(base64)
        if self._size > self._most:
            self.outside = True
            for each in self.inside.items():
                self._write(*each)
            self.inside = {}

    def _write(self, name: str, base64: str) -> None:
        write_medium(self._folder, f"{name}.js", f'received("{name}","{base64}");'.encode("ascii"))
