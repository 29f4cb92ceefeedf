"""Dataset configs that AISBench ships, over small rows in the layout of each: as shipped, and with our template.

``python tests/plugins/stock_configs.py`` runs them by AISBench's own command, and prints what the server got.
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).parents[1]))  # for the script: pytest has it
from opencompass_family import run_config

TOUR = Path(__file__).parents[2] / "fixtures" / "tour"
ASKED = 'What does it say? "{answer}" <b>\u4f60\u597d'
"""A question with what templates, markup and encodings may stumble on."""

Sent = list[tuple[str, str]]
"""The parts of a message: a text, or a medium's type and the SHA-256 of its bytes or the name that went."""


class Stock(NamedTuple):
    """A shipped config: its module and the path that the user gives it, and the media of each row in order."""

    module: str
    path: str
    media: list[list[str]]


def write_rows(folder: Path) -> dict[str, Stock]:
    """Write the rows of each dataset, and return the configs by the names of their lists."""
    makers: tuple[Callable[[Path], Stock], ...] = (mmstar, vocalsound, textvqa, docvqa, mmmu, ocrbench, videobench, mm_custom)  # fmt: skip
    found = {}
    for maker in makers:
        name = maker.__name__
        (folder / name).mkdir()
        found[name] = maker(folder / name)
    return found


def mmstar(folder: Path) -> Stock:
    row = {
        "index": 0,
        "question": ASKED,
        "A": "a cup",
        "B": "a clock",
        "answer": "A",
        "category": "c",
        "l2-category": "l",
    }
    _tsv(folder / "MMStar.tsv", [{**row, "image": _base64("coffee.jpg")}])
    return Stock("mmstar.mmstar_gen", str(folder / "MMStar.tsv"), [["MMStar_images/0.jpg"]])


def vocalsound(folder: Path) -> Stock:
    (folder / "speaker_1_cough.wav").write_bytes(_bytes("train.wav"))
    return Stock("vocalsound.vocalsound_gen", str(folder), [["speaker_1_cough.wav"]])


def textvqa(folder: Path) -> Stock:
    (folder / "train_images").mkdir()
    names = ["train_images/coffee.jpg", "train_images/\u676f\u5b50 #1.jpg"]
    for name in names:
        (folder / name).write_bytes(_bytes(Path(name).name))
    rows = [{"question_id": n, "question": ASKED, "image": name} for n, name in enumerate(names)]
    _jsonl(folder / "textvqa_val.jsonl", rows)
    answers = [{"question_id": n, "answers": [{"answer": "a cup"}] * 10} for n in range(len(names))]
    (folder / "textvqa_val_annotations.json").write_text(json.dumps({"annotations": answers}), encoding="utf-8")
    return Stock("textvqa.textvqa_gen", str(folder / "textvqa_val.jsonl"), [[name] for name in names])


def docvqa(folder: Path) -> Stock:
    _tsv(folder / "DocVQA_VAL.tsv", [{"index": 1, "image": _base64("sign.png"), "question": ASKED, "answer": "['a']"}])
    return Stock("docvqa.docvqa_gen", str(folder / "DocVQA_VAL.tsv"), [["DocVQA_images/1.jpg"]])


def mmmu(folder: Path) -> Stock:
    import pandas as pd  # type: ignore[import-untyped]  # the runner's

    (folder / "Art").mkdir()
    row = {"id": "validation_Art_1", "question": f"<image 1> and <image 2>: {ASKED}", "options": "['one', 'two']"}
    pictures = {
        f"image_{n}": {"bytes": _bytes(name), "path": name} for n, name in enumerate(("coffee.jpg", "clock.jpg"), 1)
    }
    rows = [{**row, "answer": "A", "question_type": "multiple-choice", **pictures}]
    pd.DataFrame(rows).to_parquet(folder / "Art" / "validation-00000-of-00001.parquet")
    names = [f"MMMU_images/validation_Art_1_{n}.jpg" for n in (1, 2)]
    return Stock("mmmu.mmmu_gen", str(folder), [names])


def ocrbench(folder: Path) -> Stock:
    row = {"index": 0, "image": _base64("sign.png"), "question": ASKED, "content": "c", "answer": "['STOP']"}
    _tsv(folder / "OCRBench_v2.tsv", [row])
    return Stock(
        "ocrbench_v2.ocrbench_v2_gen_0_shot_chat", str(folder / "OCRBench_v2.tsv"), [["OCRBench_v2_images/0.jpg"]]
    )


def videobench(folder: Path) -> Stock:
    (folder / "answer").mkdir()
    (folder / "clips").mkdir()
    (folder / "clips" / "v1.mp4").write_bytes(_bytes("short.mp4"))
    answers = {"clips": {"v1": {"answer": "A"}}}
    (folder / "answer" / "ANSWER.json").write_text(json.dumps(answers), encoding="utf-8")
    row = {"vid_path": "clips/v1.mp4", "video_id": 1, "question": ASKED, "choices": {"A": "one", "B": "two"}}
    (folder / "clips_QA_new.json").write_text(json.dumps({"v1": row}), encoding="utf-8")
    return Stock("videobench.videobench_gen", str(folder), [["clips/v1.mp4"]])


def mm_custom(folder: Path) -> Stock:
    rows = [("image", ["coffee.jpg", "clock.jpg"]), ("audio", ["train.mp3"]), ("video", ["short.mp4"])]
    for name in (name for _, names in rows for name in names):
        (folder / name).write_bytes(_bytes(name))
    _jsonl(folder / "rows.jsonl", [{"type": t, "path": p, "question": ASKED, "answer": "a"} for t, p in rows])
    return Stock("mm_custom.mm_custom_gen", str(folder / "rows.jsonl"), [names for _, names in rows])


def _bytes(name: str) -> bytes:
    return (TOUR / "media" / name).read_bytes()


def _base64(name: str) -> str:
    return base64.b64encode(_bytes(name)).decode()


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def _tsv(path: Path, rows: list[dict[str, Any]]) -> None:
    import pandas as pd  # the runner's

    pd.DataFrame(rows).to_csv(path, sep="\t", index=False)


def run_both(folder: Path) -> tuple[dict[str, Stock], dict[str, list[Sent]], dict[str, list[Sent]]]:
    """Run all configs in one run; return them, and what was sent of each dataset's rows: as shipped, and by ours."""
    stock = write_rows(folder)
    run = run_config(folder, "ais_bench", config_of(stock, folder), "--mode", "infer", "--debug", reply=lambda _: "A")
    rows = [len(config.media) for config in stock.values()]
    if len(run.bodies) != 1 + 2 * sum(rows):  # the first row once more, to warm up
        raise AssertionError(run.log[-5000:])
    sent = iter([parts_of(body) for body in run.bodies[1:]])
    shipped, ours = (
        {name: [next(sent) for _ in range(n)] for name, n in zip(stock, rows, strict=True)} for _ in range(2)
    )
    return stock, shipped, ours


def config_of(stock: dict[str, Stock], folder: Path) -> str:
    """Return a config of all datasets: as shipped, and again with nothing but the template's class and media changed."""
    bases = "\n".join(
        f"    from ais_bench.benchmark.configs.datasets.{config.module} import {_variable(config)}"
        for config in stock.values()
    )
    paths = {_variable(config): config.path for config in stock.values()}
    return f"""
from mmengine.config import read_base
from ais_bench.benchmark.models import VLLMCustomAPIChat
from ais_bench.benchmark.partitioners import NaivePartitioner
from ais_bench.benchmark.runners import LocalRunner
from ais_bench.benchmark.summarizers import DefaultSummarizer
from ais_bench.benchmark.tasks import OpenICLApiInferTask
from mmprompt.plugins.aisbench import MMPromptMultimodal

with read_base():
{bases}

def copied(value):
    if isinstance(value, dict):
        return {{key: copied(item) for key, item in value.items()}}
    return [copied(item) for item in value] if isinstance(value, list) else value

stock = [{", ".join(f"{name}[0]" for name in paths)}]
for dataset, path in zip(stock, {list(paths.values())!r}):
    dataset["path"] = path
datasets = [*copied(stock), *stock]
for number, dataset in enumerate(stock):
    dataset["abbr"] += "-ours"
    template = dataset["infer_cfg"]["prompt_template"]
    template.update(type=MMPromptMultimodal, media=dict(roots={[str(folder / name) for name in stock]!r}[number:number + 1]))
models = [dict(attr="service", type=VLLMCustomAPIChat, abbr="m", path="", model="recorder", host_ip="127.0.0.1",
               host_port=PORT, max_out_len=16, batch_size=1, request_rate=0, retry=1, generation_kwargs=dict())]
summarizer = dict(attr="accuracy", type=DefaultSummarizer)
infer = dict(partitioner=dict(type=NaivePartitioner, n=len(datasets)),
             runner=dict(type=LocalRunner, task=dict(type=OpenICLApiInferTask)))
work_dir = "out"
del copied, stock, dataset, path, number, template
"""


def _variable(config: Stock) -> str:
    """Return the name of the list of datasets in a shipped config."""
    return config.module.partition(".")[0] + "_datasets"


def parts_of(body: dict[str, Any]) -> Sent:
    """Return the parts of a request's one message."""
    [message] = body["messages"]
    return [_sent(part) for part in message["content"]]


def _sent(part: dict[str, Any]) -> tuple[str, str]:
    if part["type"] == "text":
        return "text", part["text"]
    url = part[part["type"]]["url"]
    media_type, comma, text = url.removeprefix("data:").partition(";base64,")
    return (media_type, sha(base64.b64decode(text))) if comma else (part["type"], url)


def sha(data: bytes) -> str:
    """Return the SHA-256 of bytes."""
    return hashlib.sha256(data).hexdigest()


def type_of(name: str) -> str:
    """Return the media type of a file of these rows."""
    return {"jpg": "image/jpeg", "wav": "audio/wav", "mp3": "audio/mpeg", "mp4": "video/mp4"}[name.rpartition(".")[2]]


def fault(url: str) -> str:
    """Return what a server cannot do with the name of a medium."""
    if not url.startswith("file:///"):
        return f"names no file: '{url.removeprefix('file://').partition('/')[0]}' is taken for a host"
    return "a path of this machine, and no server elsewhere can open it"


def table(stock: dict[str, Stock], shipped: dict[str, list[Sent]], ours: dict[str, list[Sent]], folder: Path) -> str:
    """Return what was sent of each medium, a line for each, the two templates side by side."""
    lines = [("config", "as shipped", "what is wrong with it", "with MMPromptMultimodal")]
    for name in stock:
        for before, after in zip(shipped[name], ours[name], strict=True):
            for (kind, url), (media_type, digest) in zip(before, after, strict=True):
                if kind != "text":
                    short = url.replace(str(folder), "…")
                    lines.append(
                        (name, f"{kind} {short}", fault(url), f"{media_type}, bytes with SHA-256 {digest[:8]}…")
                    )
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        print(table(*run_both(Path(folder)), Path(folder)))


if __name__ == "__main__":
    main()
