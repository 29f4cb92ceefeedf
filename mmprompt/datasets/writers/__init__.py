"""Writers: samples to a file. A format joins a *form* (what a row looks like) and a *file* (how rows are stored).

A row that the format cannot hold is an error. Media go as bytes (``embed``), as files beside the output (``files``) or
by the names that they have (``keep``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mmprompt.datasets.writers import chats, column_rows, croissant, load_tests, row_files, table_files
from mmprompt.datasets.writers.record import Record, RowSink
from mmprompt.datasets.writers.stored_media import MediaStore, StoredAs
from mmprompt.errors.findings import Note


class Writing(NamedTuple):
    """How a format is written: its form, its file, and how its media are stored unless the caller says so.

    ``only`` is the one way that it can store media. ``keeps_settings``: it holds the settings of Batch lines. ``notes``
    say what the output lacks.
    """

    form: Callable[[Record, MediaStore], dict[str, object]]
    file: Callable[[str], RowSink]
    store: str = "keep"
    stored_as: StoredAs = "uri"
    only: str | None = None
    keeps_settings: bool = False
    notes: tuple[Note, ...] = ()


WRITERS: dict[str, Writing] = {
    "jsonl": Writing(column_rows.row, row_files.JSONLines),
    "json": Writing(column_rows.row, row_files.JSONArray),
    "csv": Writing(column_rows.text_row, row_files.CSVFile),
    "tsv": Writing(column_rows.text_row, row_files.TSVFile),
    "parquet": Writing(column_rows.listed_row, table_files.ParquetFile, "embed", "struct"),
    "arrow": Writing(column_rows.listed_row, table_files.ArrowFile, "embed", "struct"),
    "webdataset": Writing(column_rows.listed_row, table_files.TarFile, "embed", "struct", only="embed"),
    "imagefolder": Writing(column_rows.named_files, row_files.FolderMetadata, "files", only="files"),
    "audiofolder": Writing(column_rows.named_files, row_files.FolderMetadata, "files", only="files"),
    "vlmevalkit": Writing(column_rows.vlmevalkit_row, row_files.VLMEvalKitFile, "embed", "base64"),
    "croissant": Writing(
        column_rows.file_row, croissant.CroissantFolder, "files", only="files", notes=(croissant.UNKNOWN,)
    ),
    "ais": Writing(chats.ais, row_files.JSONLines),
    "mm_custom": Writing(chats.mm_custom, row_files.JSONLines),
    "openai": Writing(chats.openai, row_files.JSONLines, "embed", keeps_settings=True),
    "llava": Writing(chats.llava, row_files.JSONRows),
    "qwen": Writing(chats.qwen, row_files.JSONRows),
    "sharegpt": Writing(chats.sharegpt, row_files.JSONRows),
    "llamafactory": Writing(chats.llamafactory, row_files.JSONRows),
    "promptfoo": Writing(load_tests.promptfoo, row_files.JSONArray, "embed"),
    "openai-evals": Writing(load_tests.openai_evals, row_files.JSONLines, "embed"),
    "general-vqa": Writing(load_tests.general_vqa, row_files.JSONLines, "embed"),
    "vllm-bench": Writing(load_tests.vllm_bench, row_files.JSONLines, "embed"),
    "evalscope-perf": Writing(load_tests.evalscope_perf, row_files.JSONMessageLines, "embed"),
}
"""From format to how it is written."""
