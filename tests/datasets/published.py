"""Samples of published formats, written as their owners write them, and the messages that each row must give.

Each function writes a dataset into a folder and returns a ``Case``. Files are made by the real library where there is
one; else the layout is that of the source that the function's docstring names.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
CUP, CAT, SMALL_CAT, SPEECH, CLIP = "coffee.jpg", "chelsea.jpg", "cat.webp", "{wav}", "{mp4}"


def data_of(name: str) -> bytes:
    return (MEDIA / name).read_bytes()


WAV = next(path.name for path in sorted(MEDIA.iterdir()) if path.suffix == ".wav")
MP4 = next(path.name for path in sorted(MEDIA.iterdir()) if path.suffix == ".mp4")
FLAC = next(path.name for path in sorted(MEDIA.iterdir()) if path.suffix == ".flac")


def image(name: str = CUP) -> tuple[str, str]:
    return "image", sha256(data_of(name)).hexdigest()


def audio(name: str = WAV) -> tuple[str, str]:
    return "audio", sha256(data_of(name)).hexdigest()


def video(name: str = MP4) -> tuple[str, str]:
    return "video", sha256(data_of(name)).hexdigest()


def text(words: str) -> tuple[str, str]:
    return "text", words


def user(*parts: tuple[str, str] | str) -> tuple[str, list[tuple[str, str]]]:
    return "user", [text(part) if isinstance(part, str) else part for part in parts]


def says(role: str, words: str) -> tuple[str, list[tuple[str, str]]]:
    return role, [text(words)]


class Sent(NamedTuple):
    """One row as it must go out: its id, its messages, its answers."""

    id: object
    messages: list[tuple[str, list[tuple[str, str]]]]
    answers: tuple[object, ...] = ()


class Case(NamedTuple):
    """A dataset: what to open, the format that it must be recognised as, its rows, and how it is opened."""

    path: Path
    format: str
    rows: list[Sent]
    options: Mapping[str, Any] = MappingProxyType({})
    roots: tuple[Path, ...] = ()


def put(folder: Path, *names: str, below: str = "") -> None:
    (folder / below).mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(MEDIA / name, folder / below / name)


def dump(path: Path, value: object, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, **options), encoding="utf-8")
    return path


def lines(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


# ---- dialogues with marks


def llava(folder: Path) -> Case:
    """haotian-liu/LLaVA, docs/Finetune_Custom_Data.md"""
    put(folder, CUP, below="part-000001")
    rows = [
        {
            "id": "997bb945",
            "image": f"part-000001/{CUP}",
            "conversations": [
                {"from": "human", "value": "<image>\nWhat is in the cup?"},
                {"from": "gpt", "value": "Coffee."},
                {"from": "human", "value": "And beside it?"},
                {"from": "gpt", "value": "A spoon."},
            ],
        },
        {"id": "text-only", "conversations": [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]},
        {
            "id": "after",
            "image": f"part-000001/{CUP}",
            "conversations": [{"from": "human", "value": "What is this?\n<image>"}, {"from": "gpt", "value": "A cup."}],
        },
    ]
    return Case(
        dump(folder / "custom.json", rows, indent=2),
        "llava",
        [
            Sent(
                "997bb945",
                [user(image(), "What is in the cup?"), says("assistant", "Coffee."), user("And beside it?")],
                ("A spoon.",),
            ),
            Sent("text-only", [user("2 + 2?")], ("4",)),
            Sent("after", [user("What is this?", image())], ("A cup.",)),
        ],
    )


def sharegpt(folder: Path) -> Case:
    """hiyouga/LLaMA-Factory, data/README.md, "Sharegpt format" and its multimodal image dataset"""
    put(folder, CUP, CAT)
    row = {
        "conversations": [
            {"from": "human", "value": "<image>Is this <image> a cat?"},
            {"from": "gpt", "value": "The second one."},
        ],
        "images": [CUP, CAT],
        "system": "Be brief.",
    }
    sent = [says("system", "Be brief."), user(image(), "Is this ", image(CAT), " a cat?")]
    return Case(lines(folder / "sharegpt.jsonl", row), "sharegpt", [Sent(0, sent, ("The second one.",))])


def llamafactory(folder: Path) -> Case:
    """hiyouga/LLaMA-Factory, data/mllm_demo.json and data/mllm_video_audio_demo.json"""
    put(folder, CUP, WAV, MP4, below="mllm_demo_data")
    at = "mllm_demo_data/{}".format
    rows = [
        {
            "messages": [
                {"content": "<image>What is it?", "role": "user"},
                {"content": "A cup.", "role": "assistant"},
                {"content": "Which colour?", "role": "user"},
                {"content": "Red.", "role": "assistant"},
            ],
            "images": [at(CUP)],
        },
        {
            "messages": [
                {"content": "<video><audio>What is said?", "role": "user"},
                {"content": "Nothing.", "role": "assistant"},
            ],
            "videos": [at(MP4)],
            "audios": [at(WAV)],
        },
    ]
    first = [user(image(), "What is it?"), says("assistant", "A cup."), user("Which colour?")]
    second = [user(video(), audio(), "What is said?")]
    return Case(
        dump(folder / "mllm_demo.json", rows, indent=2),
        "llamafactory",
        [Sent(0, first, ("Red.",)), Sent(1, second, ("Nothing.",))],
    )


def alpaca(folder: Path) -> Case:
    """hiyouga/LLaMA-Factory, data/README.md, "Alpaca Format" """
    row = {
        "instruction": "Add the numbers.",
        "input": "1, 2",
        "output": "3",
        "system": "You count.",
        "history": [["1 + 1?", "2"]],
    }
    sent = [says("system", "You count."), user("1 + 1?"), says("assistant", "2"), user("Add the numbers.\n1, 2")]
    return Case(dump(folder / "alpaca.json", [row]), "llamafactory", [Sent(0, sent, ("3",))])


def qwen(folder: Path) -> Case:
    """QwenLM/Qwen2.5-VL, qwen-vl-finetune/README.md, "Supported Data Format" """
    put(folder, CUP, CAT, below="cats")
    put(folder, MP4, below="videos")
    rows = [
        {
            "image": [f"cats/{CUP}", f"cats/{CAT}"],
            "conversations": [
                {"from": "human", "value": "<image>\n<image>\nWhat differs?"},
                {"from": "gpt", "value": "One is a cat."},
            ],
        },
        {
            "video": f"videos/{MP4}",
            "conversations": [{"from": "human", "value": "<video>\nWhat moves?"}, {"from": "gpt", "value": "A ball."}],
        },
    ]
    return Case(
        dump(folder / "annotations.json", rows),
        "qwen",
        [
            Sent(0, [user(image(), image(CAT), "What differs?")], ("One is a cat.",)),
            Sent(1, [user(video(), "What moves?")], ("A ball.",)),
        ],
    )


def qwen_vl(folder: Path) -> Case:
    """QwenLM/Qwen-VL, README.md, "Data preparation" """
    put(folder, CUP, CAT, below="assets")
    row = {
        "id": "identity_2",
        "conversations": [
            {
                "from": "user",
                "value": f"Picture 1: <img>assets/{CUP}</img>\nPicture 2: <img>assets/{CAT}</img>\n图中的猫在哪?",
            },
            {"from": "assistant", "value": "<ref>猫</ref><box>(1,2),(3,4)</box>"},
        ],
    }
    sent = [user("Picture 1: ", image(), "Picture 2: ", image(CAT), "图中的猫在哪?")]
    return Case(
        dump(folder / "train.json", [row]),
        "qwen-vl",
        [Sent("identity_2", sent, ("<ref>猫</ref><box>(1,2),(3,4)</box>",))],
    )


def _asked(words: str, *before: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*before, {"type": "text", "text": words}]}]


def trl(folder: Path) -> Case:
    """huggingface/trl, docs/source/dataset_formats.md, vision datasets: prompt-completion."""
    put(folder, CUP, CAT)
    reply = [{"role": "assistant", "content": [{"type": "text", "text": "The cat."}]}]
    see = {"type": "image"}
    rows = [
        {"images": [CUP, CAT], "prompt": _asked("Which is older?", see, see), "completion": reply},
        {
            "image": CAT,
            "prompt": _asked("What is it?", see),
            "completion": [{"role": "assistant", "content": "A cat."}],
        },
        {"images": [], "prompt": [{"role": "user", "content": "1 + 1?"}], "completion": "2"},
    ]
    sent = [
        Sent(0, [user(image(CUP), image(CAT), "Which is older?")], ("The cat.",)),
        Sent(1, [user(image(CAT), "What is it?")], ("A cat.",)),
        Sent(2, [user("1 + 1?")], ("2",)),
    ]
    return Case(lines(folder / "train.jsonl", *rows), "openai", sent)


def verl(folder: Path) -> Case:
    """verl-project/verl, examples/data_preprocess/geo3k.py: texts of ``prompt`` with marks, and a list of pictures."""
    put(folder, CUP, CAT)
    rule = {"style": "rule", "ground_truth": "2"}
    rows = [
        {"images": [], "prompt": [{"role": "user", "content": "1 + 1?"}], "reward_model": rule},
        {
            "images": [CUP, CAT],
            "prompt": [
                {"role": "system", "content": "Be short."},
                {"role": "user", "content": "<image><image>Which is older?"},
            ],
            "reward_model": rule,
        },
    ]
    sent = [
        Sent(0, [user("1 + 1?")]),
        Sent(1, [says("system", "Be short."), user(image(CUP), image(CAT), "Which is older?")]),
    ]
    return Case(lines(folder / "train.jsonl", *rows), "openai", sent)


def vsft(folder: Path) -> Case:
    """HuggingFaceH4/llava-instruct-mix-vsft: tables give all parts the same keys, and number the pictures."""
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    see = [{"type": "image", "text": None, "index": at} for at in (0, 1)]
    asked = _asked("Which is older, this or", see[1])[0]["content"]
    say = [{"type": "text", "text": words, "index": None} for words in ("The cat.", "Hm?", "Yes.")]
    rows = [
        {
            "images": [{"bytes": data_of(CUP), "path": None}, {"bytes": data_of(CAT), "path": None}],
            "messages": [{"role": "user", "content": [*asked, see[0]]}, {"role": "assistant", "content": say[:1]}],
        },
        {
            "images": None,
            "messages": [{"role": "user", "content": say[1:2]}, {"role": "assistant", "content": say[2:]}],
        },
    ]
    path = folder / "train-00000-of-00001.parquet"
    pq.write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    sent = [
        Sent(0, [user(image(CAT), "Which is older, this or", image(CUP)), says("assistant", "The cat.")]),
        Sent(1, [user("Hm?"), says("assistant", "Yes.")]),
    ]
    return Case(path, "parquet", sent)


def internvl(folder: Path) -> Case:
    """OpenGVLab/InternVL-Domain-Adaptation-Data, train_meta/internvl_1_2_finetune_bdd.json"""
    put(folder, CUP, below="playground/data/coco")
    lines(
        folder / "playground/opensource/set.jsonl",
        {
            "id": 7,
            "image": CUP,
            "width": 512,
            "conversations": [{"from": "human", "value": "<image>\nWhat is it?"}, {"from": "gpt", "value": "A cup."}],
        },
    )
    meta = {
        "set": {
            "root": "playground/data/coco/",
            "annotation": "playground/opensource/set.jsonl",
            "data_augment": False,
            "repeat_time": 1,
            "length": 1,
        }
    }
    return Case(
        dump(folder / "meta.json", meta, indent=2), "internvl", [Sent(7, [user(image(), "What is it?")], ("A cup.",))]
    )


# ---- benchmarks


def mmmu(folder: Path) -> Case:
    """MMMU/MMMU on the hub, as parquet with Image features, made by ``datasets``"""
    pytest.importorskip(
        "datasets.features", reason="needs datasets: pip install datasets"
    )  # not our folder of that name
    datasets = pytest.importorskip("datasets")
    empty: dict[str, Any] = {f"image_{n}": None for n in range(1, 8)}
    rows = [
        {
            **empty,
            "id": "validation_Art_1",
            "question": "Compare <image 1> with <image 2>.",
            "options": "['<image 2>', 'Both', \"Neither's\"]",
            "image_1": {"bytes": data_of(CUP), "path": None},
            "image_2": {"bytes": data_of(CAT), "path": None},
            "answer": "B",
            "question_type": "multiple-choice",
        },
        {
            **empty,
            "id": "validation_Art_2",
            "question": "How many cups?\n<image 1>",
            "options": "[]",
            "image_1": {"bytes": data_of(CUP), "path": None},
            "answer": "1",
            "question_type": "open",
        },
    ]
    kinds = {name: datasets.Value("string") for name in rows[0] if not name.startswith("image_")}
    features = datasets.Features({**kinds, **{name: datasets.Image() for name in empty}})
    made = datasets.Dataset.from_list(rows, features=features)
    path = folder / "Art" / "validation-00000-of-00001.parquet"
    path.parent.mkdir()
    made.to_parquet(str(path))
    asked = user("Compare ", image(), " with ", image(CAT), ".\nA. ", image(CAT), "B. Both\nC. Neither's")
    return Case(
        path,
        "mmmu",
        [
            Sent("validation_Art_1", [asked], ("B",)),
            Sent("validation_Art_2", [user("How many cups?", image())], ("1",)),
        ],
    )


def scienceqa(folder: Path) -> Case:
    """lupantech/ScienceQA, data/scienceqa/problems.json"""
    put(folder, CUP, below="images/test/12")
    rows = {
        "11": {"question": "Which is hot?", "choices": ["ice", "fire"], "answer": 1, "hint": "", "image": None},
        "12": {
            "question": "What is it?",
            "choices": ["a cup", "a cat"],
            "answer": 0,
            "hint": "Look closely.",
            "image": CUP,
        },
    }
    more = {"task": "closed choice", "grade": "grade2", "lecture": "", "solution": "", "split": "test"}
    path = dump(folder / "problems.json", {key: {**row, **more} for key, row in rows.items()}, indent=2)
    return Case(
        path,
        "scienceqa",
        [
            Sent("11", [user("Which is hot?\nA. ice\nB. fire")], (1,)),
            Sent("12", [user(image(), "Look closely.\nWhat is it?\nA. a cup\nB. a cat")], (0,)),
        ],
    )


def vqav2(folder: Path) -> Case:
    """visualqa.org, "Input Questions Format" and "Annotation Format" """
    put(folder, CUP, below="val2014")
    (folder / "val2014" / CUP).rename(folder / "val2014" / "COCO_val2014_000000262148.jpg")
    head = {"info": {"year": 2014}, "license": {"name": "CC"}, "data_type": "mscoco", "data_subtype": "val2014"}
    answers = [
        {"answer": word, "answer_confidence": "yes", "answer_id": n} for n, word in enumerate(["red", "brown"], 1)
    ]
    one = {"question_type": "what", "multiple_choice_answer": "red", "answers": answers, "image_id": 262148}
    dump(
        folder / "v2_mscoco_val2014_annotations.json",
        {**head, "annotations": [{**one, "answer_type": "other", "question_id": 262148000}]},
    )
    question = {"image_id": 262148, "question": "What colour?", "question_id": 262148000}
    path = dump(
        folder / "v2_OpenEnded_mscoco_val2014_questions.json",
        {**head, "task_type": "Open-Ended", "questions": [question]},
    )
    return Case(path, "vqav2", [Sent(262148000, [user(image(), "What colour?")], ("red", "brown"))])


def textvqa(folder: Path) -> Case:
    """textvqa.org, TextVQA_0.5.1_val.json"""
    put(folder, CUP, below="train_images")
    (folder / "train_images" / CUP).rename(folder / "train_images" / "003a8ae2ef43b901.jpg")
    row = {
        "question": "what is written?",
        "image_id": "003a8ae2ef43b901",
        "image_classes": ["Cup"],
        "flickr_original_url": "https://example.com/x.jpg",
        "image_width": 512,
        "image_height": 341,
        "answers": ["nothing", "none"],
        "question_tokens": ["what", "is", "written"],
        "question_id": 34602,
        "set_name": "val",
    }
    head = {"dataset_type": "val", "dataset_name": "textvqa", "dataset_version": "0.5.1"}
    path = dump(folder / "TextVQA_0.5.1_val.json", {**head, "data": [row]})
    return Case(path, "textvqa", [Sent(34602, [user(image(), "what is written?")], ("nothing", "none"))])


def docvqa(folder: Path) -> Case:
    """rrc.cvc.uab.es, DocVQA task 1, val_v1.0.json"""
    put(folder, CUP, below="documents")
    row = {
        "questionId": 49153,
        "question": "What is the date?",
        "image": f"documents/{CUP}",
        "docId": 14465,
        "ucsf_document_id": "pybv0228",
        "ucsf_document_page_no": "81",
        "answers": ["1968", "in 1968"],
        "data_split": "val",
    }
    path = dump(folder / "val_v1.0.json", {"dataset_name": "SP-DocVQA", "dataset_split": "val", "data": [row]})
    return Case(path, "docvqa", [Sent(49153, [user(image(), "What is the date?")], ("1968", "in 1968"))])


def mathvista(folder: Path) -> Case:
    """lupantech/MathVista, data/testmini.json"""
    put(folder, CUP, below="images")
    query = "Hint: Answer with the letter.\nQuestion: How many?\nChoices:\n(A) 1\n(B) 2"
    more = {"unit": None, "precision": None, "question_type": "multi_choice", "answer_type": "text", "metadata": {}}
    rows = {
        "1": {
            "pid": "1",
            "question": "How many?",
            "image": f"images/{CUP}",
            "choices": ["1", "2"],
            "answer": "1",
            "query": query,
        },
        "2": {"pid": "2", "question": "And now?", "image": f"images/{CUP}", "choices": None, "answer": "7"},
    }
    path = dump(folder / "testmini.json", {key: {**row, **more} for key, row in rows.items()}, indent=2)
    return Case(
        path,
        "mathvista",
        [Sent("1", [user(image(), query)], ("1",)), Sent("2", [user(image(), "And now?")], ("7",))],
    )


def coco(folder: Path) -> Case:
    """cocodataset.org, "Data format", 4. Captioning"""
    put(folder, CUP, below="val2017")
    (folder / "val2017" / CUP).rename(folder / "val2017" / "000000397133.jpg")
    picture = {"license": 4, "file_name": "000000397133.jpg", "height": 341, "width": 512, "id": 397133}
    captions = [{"image_id": 397133, "id": n, "caption": words} for n, words in enumerate(["A cup.", "A red cup."])]
    whole = {"info": {"year": 2017}, "licenses": [{"id": 4}], "images": [picture], "annotations": captions}
    return Case(
        dump(folder / "captions_val2017.json", whole),
        "coco",
        [Sent(397133, [user(image())], ("A cup.", "A red cup."))],
    )


def videomme(folder: Path) -> Case:
    """lmms-lab/Video-MME on the hub, videomme/test-00000-of-00001.parquet, made by ``datasets``"""
    pytest.importorskip(
        "datasets.features", reason="needs datasets: pip install datasets"
    )  # not our folder of that name
    datasets = pytest.importorskip("datasets")
    put(folder, MP4, below="data")
    (folder / "data" / MP4).rename(folder / "data" / "fFjv93ACGo8.mp4")
    row = {
        "video_id": "001",
        "duration": "short",
        "domain": "Knowledge",
        "url": "https://www.youtube.com/watch?v=fFjv93ACGo8",
        "videoID": "fFjv93ACGo8",
        "question_id": "001-1",
        "question": "What moves?",
        "options": ["A. A ball.", "B. A cat."],
        "answer": "A",
    }
    (folder / "videomme").mkdir()
    path = folder / "videomme" / "test-00000-of-00001.parquet"
    datasets.Dataset.from_list([row]).to_parquet(str(path))
    asked = user(video(), "What moves?\nA. A ball.\nB. A cat.")
    return Case(path, "videomme", [Sent("001-1", [asked], ("A",))], roots=(folder / "data",))


def mvbench(folder: Path) -> Case:
    """OpenGVLab/MVBench on the hub, json/action_sequence.json"""
    put(folder, MP4)
    row = {
        "video": MP4,
        "question": "What happened?",
        "candidates": ["It fell.", "It flew."],
        "answer": "It fell.",
        "start": 0.0,
        "end": 1.0,
    }
    path = dump(folder / "action_sequence.json", [row])
    return Case(path, "mvbench", [Sent(0, [user(video(), "What happened?\nA. It fell.\nB. It flew.")], ("It fell.",))])


def arc(folder: Path) -> Case:
    """allenai/ai2_arc on the hub, ARC-Challenge; a few rows have the labels 1 to 4"""
    texts = ["a plant", "an animal", "a stone"]
    rows = [
        {"id": "M_7", "question": "Which moves?", "choices": {"text": texts, "label": list(names)}, "answerKey": key}
        for names, key in (("ABC", "B"), ("123", "2"), ("123", ""))
    ]
    rows[1]["id"], rows[2]["id"] = "N_1", "T_2"
    asked = [user("Which moves?\nA. a plant\nB. an animal\nC. a stone")]
    return Case(
        lines(folder / "test.jsonl", *rows),
        "arc",
        [Sent("M_7", asked, ("B",)), Sent("N_1", asked, ("B",)), Sent("T_2", asked)],
    )


def arc_of_ai2(folder: Path) -> Case:
    """ARC-V1-Feb2018-2/ARC-Challenge/ARC-Challenge-Test.jsonl, as OpenCompass reads it"""
    choices = [{"text": "a plant", "label": "1"}, {"text": "an animal", "label": "2"}]
    row = {"id": "M_7", "question": {"stem": "Which moves?", "choices": choices}, "answerKey": "2"}
    path = lines(folder / "ARC-Challenge-Test.jsonl", row)
    return Case(path, "arc", [Sent("M_7", [user("Which moves?\nA. a plant\nB. an animal")], ("B",))])


def air_bench(folder: Path) -> Case:
    """OFA-Sys/AIR-Bench, Inference_Foundation.py and Inference_Chat.py"""
    put(folder, WAV, below="Sound_AQA_clothoaqa")
    put(folder, FLAC, below="Audio_Grounding_AudioGrounding")
    rows = [
        {
            "path": WAV,
            "question": "What is heard?",
            "choice_a": "speech",
            "choice_b": "rain",
            "choice_c": None,
            "choice_d": None,
            "answer_gt": "speech",
            "task_name": "Sound_AQA",
            "dataset_name": "clothoaqa",
            "uniq_id": 12,
        },
        {
            "path": FLAC.replace(".flac", ".wav"),
            "question": "When?",
            "choice_a": "first",
            "choice_b": "last",
            "answer_gt": "last",
            "task_name": "Audio_Grounding",
            "dataset_name": "AudioGrounding",
            "uniq_id": 13,
        },
    ]
    return Case(
        dump(folder / "Foundation_meta.json", rows),
        "air-bench",
        [
            Sent(12, [user(audio(), "What is heard?\nA. speech\nB. rain")], ("speech",)),
            Sent(13, [user(audio(FLAC), "When?\nA. first\nB. last")], ("last",)),
        ],
    )


def audiobench(folder: Path) -> Case:
    """AudioLLMs/AudioBench, src/dataset_src/cn_college_listen_mcq_test.py; parquet made by ``datasets``"""
    pytest.importorskip(
        "datasets.features", reason="needs datasets: pip install datasets"
    )  # not our folder of that name
    datasets = pytest.importorskip("datasets")
    row = {
        "context": {"bytes": data_of(WAV), "path": WAV},
        "instruction": "What is said?",
        "choices": "(A) Nothing.\n(B) Something.",
        "answer": "(A) Nothing.",
    }
    import pyarrow as pa

    struct = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([("context", struct), *[(n, pa.string()) for n in ("instruction", "choices", "answer")]])
    table = pa.Table.from_pylist([row], schema=schema)
    path = folder / "test-00000-of-00001.parquet"
    datasets.Dataset(table).to_parquet(str(path))
    asked = user(audio(), "What is said?\n(A) Nothing.\n(B) Something.")
    return Case(path, "audiobench", [Sent(0, [asked], ("(A) Nothing.",))])


def inspect(folder: Path) -> Case:
    """inspect.aisi.org.uk, Datasets: fields of Sample; content parts of ChatMessageUser"""
    put(folder, CUP)
    rows = [
        {"id": "s-1", "input": "Which is hot?", "choices": ["ice", "fire"], "target": "B"},
        {
            "id": "s-2",
            "input": [
                {"role": "user", "content": [{"type": "image", "image": CUP}, {"type": "text", "text": "What is it?"}]}
            ],
            "target": "a cup",
        },
    ]
    return Case(
        lines(folder / "samples.jsonl", *rows),
        "inspect",
        [
            Sent("s-1", [user("Which is hot?\nA. ice\nB. fire")], ("B",)),
            Sent("s-2", [user(image(), "What is it?")], ("a cup",)),
        ],
    )


def vlmevalkit(folder: Path) -> Case:
    """open-compass/VLMEvalKit, docs/en/Development.md; written by pandas, as its ``dump`` does"""
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install pandas")
    cup, cat = (base64.b64encode(data_of(name)).decode() for name in (CUP, CAT))
    rows = [
        {
            "index": 0,
            "image": cup,
            "question": "What is it?",
            "hint": "NA",
            "A": "a cup",
            "B": "007",
            "C": None,
            "answer": "A",
        },
        {
            "index": 1,
            "image": str([cup, cat]),
            "question": "Alike?",
            "hint": None,
            "A": "yes",
            "B": "no",
            "C": None,
            "answer": "B",
        },
        {
            "index": 1000000,
            "image": "0",
            "question": "What is it?",
            "hint": None,
            "A": "007",
            "B": "a cup",
            "C": "1e5",
            "answer": "B",
        },
    ]
    path = folder / "MMBench_DEV_EN.tsv"
    pandas.DataFrame(rows).to_csv(path, sep="\t", index=False)
    return Case(
        path,
        "vlmevalkit",
        [
            Sent("0", [user(image(), "NA\nWhat is it?\nA. a cup\nB. 007")], ("A",)),
            Sent("1", [user(image(), image(CAT), "Alike?\nA. yes\nB. no")], ("B",)),
            Sent("1000000", [user(image(), "What is it?\nA. 007\nB. a cup\nC. 1e5")], ("B",)),
        ],
    )


# ---- files and folders


def _rows() -> list[dict[str, Any]]:
    return [
        {"id": "r-1", "question": "What is it?", "answer": "a cup", "picture": CUP},
        {"id": "r-2", "question": "NA", "answer": "007", "picture": CAT},
    ]


_SENT = [
    Sent("r-1", [user(image(), "What is it?")], ("a cup",)),
    Sent("r-2", [user(image(CAT), "NA")], ("007",)),
]


def _hub_dataset() -> Any:
    pytest.importorskip(
        "datasets.features", reason="needs datasets: pip install datasets"
    )  # not our folder of that name
    datasets = pytest.importorskip("datasets")
    rows = [{"image": {"bytes": data_of(row["picture"]), "path": row.pop("picture")}, **row} for row in _rows()]
    kinds = {name: datasets.Value("string") for name in ("id", "question", "answer")}
    return datasets.Dataset.from_list(rows, features=datasets.Features({**kinds, "image": datasets.Image()}))


def parquet(folder: Path) -> Case:
    """``datasets``: to_parquet with an Image feature, in two shards"""
    made = _hub_dataset()
    (folder / "data").mkdir()
    for shard in range(2):
        made.shard(2, shard, contiguous=True).to_parquet(str(folder / "data" / f"test-0000{shard}-of-00002.parquet"))
    return Case(folder, "parquet", _SENT)


def saved(folder: Path) -> Case:
    """``datasets``: save_to_disk of a DatasetDict, opened by its split"""
    made = _hub_dataset()
    import datasets

    datasets.DatasetDict({"train": made.select([]), "test": made}).save_to_disk(str(folder / "saved"))
    return Case(folder / "saved", "arrow", _SENT, {"split": "test"})


def arrow(folder: Path) -> Case:
    """pyarrow: an Arrow IPC file"""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
    rows = [{**row, "image": {"bytes": data_of(row["picture"]), "path": None}} for row in _rows()]
    table = pyarrow.Table.from_pylist([{k: v for k, v in row.items() if k != "picture"} for row in rows])
    with pyarrow.OSFile(str(folder / "rows.arrow"), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
        writer.write(table)
    return Case(folder / "rows.arrow", "arrow", _SENT)


def imagefolder(folder: Path) -> Case:
    """huggingface.co/docs/datasets/image_load, ImageFolder with metadata.jsonl"""
    put(folder, CUP, CAT)
    rows = [{"file_name": row.pop("picture"), **row} for row in _rows()]
    lines(folder / "metadata.jsonl", *rows)
    return Case(folder, "imagefolder", _SENT)


def audiofolder(folder: Path) -> Case:
    """huggingface.co/docs/datasets/audio_load, AudioFolder with metadata.csv"""
    put(folder, WAV, below="data")
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["file_name", "question", "answer"], [f"data/{WAV}", "What is said?", "1e5"]])
    return Case(folder, "imagefolder", [Sent(0, [user(audio(), "What is said?")], ("1e5",))])


def _tar(path: Path) -> Path:
    webdataset = pytest.importorskip("webdataset", reason="needs webdataset: pip install webdataset")
    with webdataset.TarWriter(str(path)) as writer:
        for row in _rows():
            fields = {"question": row["question"], "answer": row["answer"]}
            writer.write({"__key__": row["id"], "jpg": data_of(row["picture"]), "json": fields})
    return path


def tar(folder: Path) -> Case:
    """``webdataset``: TarWriter"""
    return Case(_tar(folder / "shard-000000.tar"), "webdataset", _SENT)


def packed_tar(folder: Path) -> Case:
    """``webdataset``: TarWriter, gzip"""
    return Case(_tar(folder / "shard-000000.tar.gz"), "webdataset", _SENT)


def plain_tar(folder: Path) -> Case:
    """webdataset/webdataset, README.md: members by base name; ``.txt``, ``.cls``"""
    path = folder / "00000.tar"
    with tarfile.open(path, "w") as archive:
        for name, data in (("a/0.jpg", data_of(CUP)), ("a/0.cls", b"3"), ("a/1.jpg", data_of(CAT)), ("a/1.cls", b"5")):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return Case(
        path,
        "webdataset",
        [Sent("a/0", [user(image())], (3,)), Sent("a/1", [user(image(CAT))], (5,))],
        {"map_columns": {"cls": "answer"}},
    )


def packed_lines(folder: Path) -> Case:
    put(folder, CUP, CAT)
    rows = [{"image": row.pop("picture"), **row} for row in _rows()]
    path = folder / "rows.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return Case(path, "jsonl", _SENT)


def mapped_csv(folder: Path) -> Case:
    put(folder, CUP, CAT)
    with open(folder / "rows.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["name", "pic", "Q", "label"], *[[r["id"], r["picture"], r["question"], r["answer"]] for r in _rows()]]
        )
    columns = {"name": "id", "pic": "image", "Q": "question", "label": "answer"}
    return Case(folder / "rows.csv", "csv", _SENT, {"map_columns": columns})


def keyed(folder: Path) -> Case:
    put(folder, CUP, CAT)
    rows = [{"image": row.pop("picture"), **row} for row in _rows()]
    other = [{"name": "x"}]
    return Case(dump(folder / "all.json", {"labels": other, "data": rows}), "json", _SENT, {"key": "data"})


def joined(folder: Path) -> Case:
    put(folder, CUP, CAT)
    rows = _rows()
    lines(folder / "answers.jsonl", *[{"name": row["id"], "answer": row.pop("answer")} for row in rows])
    path = lines(folder / "rows.jsonl", *[{"image": row.pop("picture"), "name": row["id"], **row} for row in rows])
    return Case(path, "jsonl", _SENT, {"join": [f"{folder / 'answers.jsonl'}:name"]})


CASES: list[Callable[[Path], Case]] = [
    llava, sharegpt, llamafactory, alpaca, qwen, qwen_vl, trl, verl, vsft, internvl, mmmu, scienceqa, vqav2, textvqa, docvqa, mathvista,
    coco, videomme, mvbench, arc, arc_of_ai2, air_bench, audiobench, inspect, vlmevalkit, parquet, saved, arrow, imagefolder, audiofolder,
    tar, packed_tar, plain_tar, packed_lines, mapped_csv, keyed, joined,
]  # fmt: skip
