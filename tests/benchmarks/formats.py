"""How fast rows of Parquet and tar files with pictures are read, beside the bare library, and what memory it takes.

    python tests/benchmarks/formats.py            # 100,000 rows each
    python tests/benchmarks/formats.py --rows 5000

Prints one line a format: rows a processor second of the library alone and of ours, their ratio, and by how many bytes the peak
of memory grows between a fifth of the rows and the last.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from mmprompt.datasets.read import open_dataset

PICTURE = Path(__file__).parents[2] / "fixtures" / "tour" / "media" / "clock.jpg"


def write_parquet(path: Path, rows: int) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("image", struct), ("question", pa.string())])
    data = PICTURE.read_bytes()
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, rows, 1000):
            made = [
                {"id": n, "image": {"bytes": data[:-8] + b"%08d" % n, "path": f"{n}.jpg"}, "question": "What is it?"}
                for n in range(begin, min(begin + 1000, rows))
            ]
            writer.write_table(pa.Table.from_pylist(made, schema=schema), row_group_size=1000)


def write_tar(path: Path, rows: int) -> None:
    data = PICTURE.read_bytes()
    with tarfile.open(path, "w") as archive:
        for n in range(rows):
            for name, content in ((f"{n:06d}.jpg", data), (f"{n:06d}.json", b'{"question": "What is it?"}')):
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            archive.members = []


def bare_parquet(path: Path) -> Iterator[object]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches(batch_size=64):
        yield from batch.to_pylist()


def bare_tar(path: Path) -> Iterator[object]:
    import webdataset

    yield from webdataset.WebDataset(str(path), shardshuffle=False)


def peak() -> int:
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def seconds(rows: Iterator[object]) -> float:
    """Processor time, which other work on the machine changes little."""
    began = time.process_time()
    for _ in rows:
        pass
    return time.process_time() - began


def grown(path: Path, rows: int) -> int:
    """Read in a child process, and return by how much its peak grows after the first fifth."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from formats import peak, open_dataset\n"
        "early = 0\n"
        "for n, row in enumerate(open_dataset(sys.argv[2])):\n"
        "    if n == int(sys.argv[3]): early = peak()\n"
        "print(peak() - early)"
    )
    import subprocess
    import sys

    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(path), str(rows // 5)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


FORMATS: dict[str, tuple[Callable[[Path, int], None], Callable[[Path], Iterator[object]]]] = {
    "rows.parquet": (write_parquet, bare_parquet),
    "rows.tar": (write_tar, bare_tar),
}


def measured(folder: Path, name: str, rows: int) -> tuple[float, float, int]:
    """Return the rows a second of the library and of ours, and the growth of memory."""
    write, bare = FORMATS[name]
    path = folder / name
    write(path, rows)
    timed = [(seconds(bare(path)), seconds(iter(open_dataset(path)))) for _ in range(3)]
    theirs, ours = map(min, zip(*timed, strict=True))
    return rows / theirs, rows / ours, grown(path, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    os.environ.setdefault("WDS_VERBOSE_CACHE", "0")
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS:
            theirs, ours, growth = measured(Path(folder), name, rows)
            print(
                f"{name:14} library {theirs:9,.0f}/s  ours {ours:9,.0f}/s  ratio {ours / theirs:.2f}  grows {growth:,}"
            )
            (Path(folder) / name).unlink()


if __name__ == "__main__":
    main()
