"""Parquet, Arrow, tar files and folders: memory, safety, missing packages, and datasets given in Python."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from mmprompt import DatasetError, MMPromptError, dataset_task, load_task
from mmprompt.datasets.read import open_dataset, rows_dataset

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
NEEDS_PARQUET = "needs pyarrow: pip install 'mmprompt[parquet]'"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", ["rows.parquet", "rows.tar"])
def test_memory_does_not_grow_with_rows_that_hold_pictures(tmp_path, name, monkeypatch):
    if name == "rows.parquet":
        pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import formats

    rows = 10_000
    formats.FORMATS[name][0](tmp_path / name, rows)
    assert formats.grown(tmp_path / name, rows) < 4_000_000


def parquet_of_pictures(path: Path, rows: int, size: int) -> Path:
    pa = pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    import pyarrow.parquet as pq

    made = [{"id": n, "image": {"bytes": n.to_bytes(4, "big") * (size // 4), "path": "a.jpg"}} for n in range(rows)]
    pq.write_table(pa.Table.from_pylist(made), path, use_dictionary=False, write_batch_size=1)  # a page a picture
    return path


def test_few_rows_of_large_media_are_in_memory_at_once(tmp_path):
    rows = iter(open_dataset(parquet_of_pictures(tmp_path / "rows.parquet", 64, 1 << 19)))
    next(rows)
    import pyarrow as pa

    assert pa.total_allocated_bytes() < 4 << 20
    assert len(list(rows)) == 63


def test_a_packed_parquet_file_holds_the_same_rows(tmp_path):
    plain = parquet_of_pictures(tmp_path / "rows.parquet", 20, 1 << 19)
    (tmp_path / "rows.parquet.gz").write_bytes(gzip.compress(plain.read_bytes(), 1))
    columns = [row.columns for row in open_dataset(plain)]
    assert [row.columns for row in open_dataset(tmp_path / "rows.parquet.gz")] == columns
    assert [row["id"] for row in columns] == list(range(20))


def tar(path: Path, *members: tuple[str, bytes] | tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
                continue
            info = tarfile.TarInfo(member[0])
            info.size = len(member[1])
            archive.addfile(info, io.BytesIO(member[1]))
    return path


def link(name: str, target: str, kind: bytes) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_members_of_a_tar_file_touch_no_file(tmp_path):
    (tmp_path / "secret.jpg").write_bytes((MEDIA / "coffee.jpg").read_bytes())
    (tmp_path / "in").mkdir()
    path = tar(
        tmp_path / "in" / "rows.tar",
        ("../escaped.json", b'{"question": "a"}'),
        ("/tmp/absolute.json", b'{"question": "b"}'),
        link("c.jpg", "../secret.jpg", tarfile.SYMTYPE),
        link("c.png", "/etc/passwd", tarfile.LNKTYPE),
        ("c.json", b'{"question": "c"}'),
    )
    before = sorted(tmp_path.rglob("*"))
    dataset = open_dataset(path)
    assert [(row.id, row.columns) for row in dataset] == [
        ("../escaped", {"question": "a"}), ("/tmp/absolute", {"question": "b"}), ("c", {"question": "c"}),
    ]  # fmt: skip
    assert "'c.jpg' is not part of a row and is skipped (and 1 more)" in dataset.notes[0]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_in_a_row_of_a_tar_file_opens_nothing_outside_the_roots(tmp_path):
    path = tar(tmp_path / "rows.tar", ("a.json", b'{"question": "q", "image": "/etc/passwd"}'))
    errors: list[MMPromptError] = []
    assert list(dataset_task(path).requests(on_error=errors.append)) == []
    assert "outside the media roots" in str(errors[0])


@pytest.mark.parametrize("annotation", ["../rows.jsonl", "/etc/passwd", "link.jsonl", None])
def test_a_meta_file_names_annotations_below_its_folder_only(tmp_path, annotation):
    (tmp_path / "rows.jsonl").write_text('{"question": "secret"}\n')
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "link.jsonl").symlink_to(tmp_path / "rows.jsonl")
    entry = {"set": {"root": ".", "annotation": annotation}}
    (tmp_path / "meta" / "meta.json").write_text(json.dumps(entry, indent=1))
    with pytest.raises(DatasetError, match="annotation file") as caught:
        list(open_dataset(tmp_path / "meta" / "meta.json"))
    assert caught.value.where.column == "annotation"


def test_the_list_of_files_of_a_saved_dataset_stays_in_its_folder(tmp_path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "state.json").write_text('{"_data_files": [{"filename": "../../../etc/passwd"}]}')
    with pytest.raises(DatasetError, match="no such file: '/"):
        open_dataset(tmp_path / "saved")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            "ModuleNotFoundError('no pyarrow')",
            "pip install 'mmprompt[parquet]', or give the rows in Python: load_task(",
        ),
        ("ImportError('needs NumPy 2')", "pip install 'pyarrow<26', or give the rows in Python: load_task("),
    ],
)
def test_a_missing_package_is_told_with_both_ways_out(tmp_path, error, told):
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    code = f"""
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pyarrow":
            raise {error}
sys.meta_path.insert(0, Finder())
from mmprompt.cli import main
sys.exit(main(["render", {str(tmp_path / "rows.parquet")!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_a_hub_dataset_gives_its_bytes_unchanged():
    pytest.importorskip(
        "datasets.features", reason="needs datasets: pip install datasets"
    )  # not our folder of that name
    datasets = pytest.importorskip("datasets")
    data = (MEDIA / "cat.webp").read_bytes()
    features = datasets.Features({"image": datasets.Image(), "question": datasets.Value("string")})
    made = datasets.Dataset.from_list(
        [{"image": {"bytes": data, "path": None}, "question": "What?"}], features=features
    )
    for task in (load_task({}, {"rows": made}), load_task({"dataset": {"rows": made}})):
        (request,) = task.requests()
        assert (request.media[0].media_type, request.media[0].size) == ("image/webp", len(data))


def test_datasets_of_tables_can_be_pickled_and_read_twice(tmp_path):
    pa = pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"id": [1, 2], "question": ["a", None]}), tmp_path / "rows.parquet")
    dataset = open_dataset(tmp_path / "rows.parquet")
    rows = list(dataset)
    assert [(row.id, row.row, row.line, row.scanned) for row in rows] == [(1, 0, None, False), (2, 1, None, False)]
    assert list(pickle.loads(pickle.dumps(dataset))) == rows == list(dataset)


def test_rows_in_python_have_published_layouts_too():
    turns = [{"from": "human", "value": "<image>What?"}, {"from": "gpt", "value": "A cup."}]
    (row,) = rows_dataset([{"image": b"\xff\xd8\xff", "conversations": turns}])
    assert [type(part).__name__ for part in row.messages[0].parts] == ["MediaRef", "TextPart"]
    assert row.columns["answer"] == "A cup."


def test_a_folder_without_a_dataset_and_one_with_several_splits_are_told(tmp_path):
    with pytest.raises(DatasetError, match="in which no dataset was found"):
        open_dataset(tmp_path)
    for name in ("train", "test"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"question": name}) + "\n")
    with pytest.raises(DatasetError, match="several splits or datasets: 'test', 'train'"):
        open_dataset(tmp_path)
    (row,) = open_dataset(tmp_path, split="test")
    assert row.columns["question"] == "test"


def put_texts(folder, *names):
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps({"question": f"q{number}"}) + "\n")


@pytest.mark.parametrize("end", [".jsonl", "-0a1b2c3d.jsonl"])
def test_the_shards_of_a_split_are_one_dataset(tmp_path, end):
    names = [f"{split}-0000{n}-of-00002" for split in ("test", "train") for n in (0, 1)]
    put_texts(tmp_path, *[name + end for name in names[:2]])
    assert [(row.columns["question"], row.row) for row in open_dataset(tmp_path)] == [("q0", 0), ("q1", 1)]
    put_texts(tmp_path, *[name + end for name in names])
    with pytest.raises(DatasetError, match="several splits or datasets: 'test', 'train'; choose one: --split test"):
        open_dataset(tmp_path)
    assert [(row.columns["question"], row.row) for row in open_dataset(tmp_path, split="train")] == [
        ("q2", 0),
        ("q3", 1),
    ]


@pytest.mark.parametrize(
    ("names", "splits"),
    [
        (["captions_2014.json", "captions_2017.json"], ["captions_2014", "captions_2017"]),
        (["test/rows.jsonl", "train/rows.jsonl"], ["test", "train"]),
        (["en/test-0-of-1.jsonl", "en/train.jsonl", "fr/test.jsonl"], ["en/test", "en/train", "fr"]),
        (["rows.csv", "rows.jsonl"], ["rows.csv", "rows.jsonl"]),
        (["2023.jsonl", "2024.jsonl"], ["2023", "2024"]),
        (
            ["en/rows.csv", "en/rows.jsonl", "fr/rows.csv", "fr/rows.jsonl"],
            ["en/rows.csv", "en/rows.jsonl", "fr/rows.csv", "fr/rows.jsonl"],
        ),
    ],
)
def test_no_file_of_a_folder_hides_another(tmp_path, names, splits):
    put_texts(tmp_path, *names)
    named = ", ".join(map(repr, splits))
    with pytest.raises(DatasetError, match=f"several splits or datasets: {named}; choose one: --split {splits[0]}"):
        open_dataset(tmp_path)
    assert [open_dataset(tmp_path, split=split).path for split in splits] == [str(tmp_path / name) for name in names]


def test_the_shards_of_parquet_files_are_one_split_in_each_folder(tmp_path):
    pa = pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    import pyarrow.parquet as pq

    for name in ("test-0-of-2", "test-1-of-2", "test/0000", "test/0001", "train/0000"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"question": [name]}), tmp_path / f"{name}.parquet")
    assert [row.columns["question"] for row in open_dataset(tmp_path)] == ["test-0-of-2", "test-1-of-2"]
    for number in (0, 1):
        (tmp_path / f"test-{number}-of-2.parquet").unlink()
    with pytest.raises(DatasetError, match="several splits or datasets: 'test', 'train'"):
        open_dataset(tmp_path)
    assert [row.columns["question"] for row in open_dataset(tmp_path, split="test")] == ["test/0000", "test/0001"]


def test_a_split_has_its_shards_in_all_folders_if_their_names_say_it(tmp_path):
    """As of MMMU, which has a folder for each subject."""
    pa = pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    import pyarrow.parquet as pq

    for name in ("Art/dev-00000-of-00001", "Art/test-00000-of-00001", "Math/dev-00000-of-00001"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"question": [name]}), tmp_path / f"{name}.parquet")
    with pytest.raises(DatasetError, match="several splits or datasets: 'dev', 'test'"):
        open_dataset(tmp_path)
    assert [row.columns["question"] for row in open_dataset(tmp_path, split="dev")] == [
        "Art/dev-00000-of-00001",
        "Math/dev-00000-of-00001",
    ]


def test_a_split_is_a_file_of_a_folder_or_a_column_of_the_rows(tmp_path):
    rows = [{"question": "a", "split": "test"}, {"question": "b", "split": "train"}, {"question": "c"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in (tmp_path, tmp_path / "rows.jsonl"):
        first, error = open_dataset(path, split="test")
        assert first.columns["question"] == "a"
        assert "does not say its split" in str(error)


def test_a_stream_has_published_layouts_too(tmp_path, command):
    row = {"messages": [{"role": "user", "content": "<image>What?"}], "images": ["a.jpg"]}
    turns = {"image": "a.jpg", "conversations": [{"from": "human", "value": "<image>What?"}]}
    parts = '[{"type":"image_url","image_url":{"url":"a.jpg"}},{"type":"text","text":"What?"}]'
    (tmp_path / "a.jpg").write_bytes((MEDIA / "coffee.jpg").read_bytes())
    for text in (json.dumps(row), json.dumps(turns), json.dumps([turns], indent=1), json.dumps([row])):
        done = command("render", "-", "--media", "keep", "--media-root", tmp_path, stdin=text.encode())
        assert (done.returncode, parts in done.stdout.decode()) == (0, True), done.stderr


def test_zstandard_is_read_from_text_and_tar_files(tmp_path):
    zstandard = pytest.importorskip("zstandard", reason="needs zstandard: pip install zstandard")
    plain = tar(tmp_path / "rows.tar", ("a.json", b'{"question": "q"}')).read_bytes()
    for name, data in (("rows.jsonl.zst", b'{"question": "q"}\n'), ("rows.tar.zst", plain)):
        (tmp_path / name).write_bytes(zstandard.compress(data))
        (row,) = open_dataset(tmp_path / name)
        assert row.columns == {"question": "q"}


def test_a_metadata_file_alone_is_its_folder(tmp_path):
    (tmp_path / "metadata.jsonl").write_text('{"file_name": "a.jpg", "question": "q"}\n')
    for path in (tmp_path, tmp_path / "metadata.jsonl"):
        dataset = open_dataset(path)
        (row,) = dataset
        assert (dataset.format, row.columns) == ("imagefolder", {"image": "a.jpg", "question": "q"})


def test_a_member_that_cannot_be_read_is_the_error_of_its_row(tmp_path):
    path = tar(tmp_path / "rows.tar", ("a.json", b"{"), ("b.txt", b"\xff"), ("c.json", b'{"question": "q"}'))
    broken, bytes_, good = open_dataset(path)
    assert (broken.where.sample, broken.where.column) == ("a", "json")
    assert (bytes_.where.sample, bytes_.where.column, "not UTF-8" in bytes_.what) == ("b", "txt", True)
    assert (good.id, good.row) == ("c", 2)


def test_wrong_offsets_of_an_arrow_file_are_no_reading_beyond_it(tmp_path):
    pa = pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    path = tmp_path / "rows.arrow"
    with pa.OSFile(str(path), "wb") as sink:
        table = pa.table({"question": ["abcdefgh", "ijklmnop"]})
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write(table)
    offsets = (0).to_bytes(4, "little") + (8).to_bytes(4, "little") + (16).to_bytes(4, "little")
    data = path.read_bytes()
    assert data.count(offsets) == 1
    for wrong in (-5, 1 << 30):
        path.write_bytes(data.replace(offsets, offsets[:4] + wrong.to_bytes(4, "little", signed=True) + offsets[8:]))
        assert ["the row cannot be read" in str(row) for row in open_dataset(path)] == [True, True]


def test_gzip_data_that_are_damaged_are_told(tmp_path):
    import gzip

    data = bytearray(gzip.compress(b'{"question": "q"}\n' * 1000))
    data[20:40] = bytes(20)
    (tmp_path / "rows.jsonl.gz").write_bytes(bytes(data))
    with pytest.raises(DatasetError, match="damaged gzip file"):
        list(open_dataset(tmp_path / "rows.jsonl.gz"))


@pytest.mark.parametrize("name", ["rows.parquet", "rows.arrow"])
@pytest.mark.parametrize("verb", ["render", "check"])
def test_a_table_without_a_byte_is_damaged(tmp_path, command, name, verb):
    pytest.importorskip("pyarrow", reason=NEEDS_PARQUET)
    (tmp_path / name).write_bytes(b"")
    done = command(verb, tmp_path / name)
    assert done.returncode == 1 + (verb == "render")
    assert f"{name}: MM000 the file is damaged: " in (done.stderr + done.stdout).decode()
