"""Write and read back: for each pair of formats, a sample that both hold comes back equal, media by their SHA-256."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mmprompt import DatasetError, MMPromptError, RowError, convert_dataset, dataset_task
from mmprompt.datasets.choices import choices_in

pytest.importorskip("pyarrow", reason="needs pyarrow: pip install 'mmprompt[parquet]'")
MEDIA = Path(__file__).parents[2] / "fixtures" / "tour" / "media"
SUFFIX = {
    "jsonl": ".jsonl", "json": ".json", "csv": ".csv", "tsv": ".tsv", "parquet": ".parquet", "arrow": ".arrow",
    "webdataset": ".tar", "imagefolder": "", "vlmevalkit": ".tsv", "ais": ".jsonl", "mm_custom": ".jsonl",
    "openai": ".jsonl", "llava": ".json", "qwen": ".json", "sharegpt": ".jsonl", "llamafactory": ".jsonl",
}  # fmt: skip
FORMATS = sorted(SUFFIX)

words = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="<>\u2028\u2029\x85"), min_size=1, max_size=30
).filter(lambda text: text.strip() and not text.strip().startswith(("[", "{")))
words = words | st.sampled_from(["NA", "None", "007", "1e5", "null", "a\tb", 'a "quoted" word', "two\nlines", "<box>"])
pictures = st.lists(st.sampled_from(["coffee.jpg", "chelsea.jpg", "sign.png", "cat.webp"]), min_size=1, max_size=3)
rows = st.lists(st.fixed_dictionaries({"question": words, "answer": words, "images": pictures}), min_size=1, max_size=3)


def seen(path: Path, root: Path | None = None) -> list[tuple[Any, ...]]:
    task = dataset_task(path)
    found = []
    samples = list(task.samples())
    for sample, request in zip(samples, task.requests(), strict=True):
        content = request.messages[-1]["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        order = [part.get("text", part["type"]) for part in parts]
        digests = [medium.sha256 for medium in request.media]
        found.append((str(request.id), order, digests, request.answers, choices_in(sample.columns).texts))
    return found


def put(folder: Path, given_rows: list[dict[str, Any]]) -> Path:
    import json

    path = folder / "given.jsonl"
    made = [
        {"id": f"q-{number}", **row, "images": [str(MEDIA / name) for name in row["images"]]}
        for number, row in enumerate(given_rows)
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made), "utf-8")
    return path


@pytest.mark.parametrize("first", FORMATS)
@settings(max_examples=settings().max_examples // 25, deadline=None, suppress_health_check=list(HealthCheck))
@given(given_rows=rows, data=st.data())
def test_a_sample_comes_back_equal_from_any_pair_of_formats(first, given_rows, data):
    second = data.draw(st.sampled_from(FORMATS))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = put(folder, given_rows)
        one, other = folder / f"one{SUFFIX[first]}", folder / f"two{SUFFIX[second]}"
        stored = None if first == "imagefolder" else "embed"
        report = convert_dataset(source, one, to=first, store=stored, media_roots=[str(MEDIA)])
        assert (report.written, report.failed) == (len(given_rows), 0)
        wanted = [
            (f"q-{n}", ["image_url"] * len(row["images"]) + [row["question"]], (row["answer"],))
            for n, row in enumerate(given_rows)
        ]
        assert [(i, order, answers) for i, order, _, answers, _ in seen(one)] == wanted
        stored = None if second == "imagefolder" else data.draw(st.sampled_from(["embed", "files"]))
        stored = "embed" if second == "webdataset" else stored
        assert convert_dataset(one, other, to=second, store=stored).written == len(given_rows)
        assert seen(other) == seen(one)


def test_interleaved_chats_keep_their_order_through_every_form_that_holds_them(tmp_path):
    import json

    cup, cat = str(MEDIA / "coffee.jpg"), str(MEDIA / "chelsea.jpg")
    turns = [
        {"from": "human", "value": "Compare <image> with <image>.\nBriefly."},
        {"from": "gpt", "value": "A cup and a cat."},
        {"from": "human", "value": "Which lives?"},
        {"from": "gpt", "value": "The cat."},
    ]
    source = tmp_path / "train.json"
    source.write_text(json.dumps([{"id": "x", "images": [cup, cat], "conversations": turns, "score": 0.5}]), "utf-8")
    before = source
    first = None
    for to in ("openai", "llava", "qwen", "sharegpt", "llamafactory", "openai"):
        out = tmp_path / f"{before.stem}_{to}{SUFFIX[to]}"
        convert_dataset(before, out, to=to, store="embed", media_roots=[str(MEDIA)])
        (row,) = dataset_task(out).requests()
        (sample,) = dataset_task(out).samples()
        shown = (row.id, row.messages, row.answers, sample.columns["score"])
        assert [len(m["content"]) if isinstance(m["content"], list) else m["content"] for m in row.messages] == [
            5, "A cup and a cat.", "Which lives?",
        ]  # fmt: skip
        assert first in (None, shown)
        first, before = shown, out


@pytest.mark.parametrize(
    ("to", "row", "what"),
    [
        (
            "csv",
            {"content": "<AIS_TEXT_START>a<AIS_CONTENT_TAG><AIS_IMAGE_START>CUP<AIS_CONTENT_TAG>"},
            "another order",
        ),
        ("vlmevalkit", {"id": "1", "question": "q"}, "pictures, and the row has none"),
        ("mm_custom", {"question": "no media"}, "media of one modality, and the row has: none"),
        ("llava", {"image": "CUP", "question": "what is <image>?"}, "a text holds a mark"),
        ("llava", {"question": "q", "answer": 3}, "the answer is of type int"),
        ("webdataset", {"id": "a.b", "question": "q"}, "cannot be the name of a member"),
        ("imagefolder", {"question": "q"}, "the row has no medium"),
        ("ais", {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}, "one message"),
        ("openai-evals", {"question": "q"}, "needs an answer"),
        ("evalscope-perf", {"question": "q", "kind": "x"}, "messages only, and the row has 'kind'"),
        ("csv", {"question": "a\rb"}, "a carriage return"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_by_name(tmp_path, to, row, what):
    import json
    import shutil

    shutil.copy(MEDIA / "coffee.jpg", tmp_path / "CUP")
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(RowError, match=what) as caught:
        convert_dataset(source, tmp_path / "out", to=to)
    assert caught.value.where.line == 1
    assert not (tmp_path / "out").exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["CUP", "rows.jsonl"]
    told: list[MMPromptError] = []
    with pytest.raises(DatasetError, match="no row could be written"):
        convert_dataset(source, tmp_path / "out", to=to, on_error=told.append)
    assert len(told) == 1


def test_load_tests_and_evaluation_sets_hold_the_media(tmp_path):
    import json

    source = tmp_path / "rows.jsonl"
    cup = str(MEDIA / "coffee.jpg")
    source.write_text(json.dumps({"id": "a", "image": cup, "question": "What?", "answer": "a cup"}) + "\n", "utf-8")
    made = {}
    for to in ("promptfoo", "openai-evals", "general-vqa", "vllm-bench", "evalscope-perf"):
        out = tmp_path / f"{to}.jsonl"
        try:
            convert_dataset(source, out, to=to, media_roots=[str(MEDIA)])
        except RowError as error:
            assert to == "vllm-bench", error
            continue
        made[to] = json.loads(out.read_text("utf-8"))
    content = made["evalscope-perf"][0]["content"]
    assert [part["type"] for part in content] == ["image_url", "text"]
    assert content[0]["image_url"]["url"].startswith("data:image/jpeg;base64,/9j/")
    assert made["promptfoo"][0]["vars"]["messages"][0]["content"] == content
    assert made["promptfoo"][0]["assert"] == [{"type": "equals", "value": "a cup"}]
    assert made["openai-evals"] == {"id": "a", "input": made["evalscope-perf"], "ideal": "a cup"}
    assert made["general-vqa"] == {"id": "a", "messages": made["evalscope-perf"], "answer": "a cup"}


def test_a_row_without_right_answers_is_a_test_of_promptfoo_without_an_assertion(tmp_path):
    import json

    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({"question": "What?", "answer": []}) + "\n", "utf-8")
    convert_dataset(source, tmp_path / "tests.jsonl", to="promptfoo")
    (test,) = json.loads((tmp_path / "tests.jsonl").read_text("utf-8"))
    assert test == {"vars": {"messages": [{"role": "user", "content": "What?"}]}}


def test_general_vqa_holds_sounds_and_texts_as_evalscope_reads_them(tmp_path, tour):
    import json

    rows = [
        {"id": "wav", "audio": "media/train.wav", "question": "?"},
        {"id": "mp3", "audio": "media/train.mp3", "question": "?"},
        {"id": "flac", "audio": "media/train.flac", "question": "?"},
        {"id": "text", "question": "What is <image 1>?"},
    ]
    source = tmp_path / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)), "utf-8")
    told = []
    convert_dataset(source, tmp_path / "out", to="general-vqa", media_roots=[str(tour)], on_error=told.append)
    made = {
        row["id"]: row["messages"][0]["content"]
        for row in map(json.loads, (tmp_path / "out").read_text("utf-8").splitlines())
    }
    for name, head in (("wav", "data:audio/wav;base64,"), ("mp3", "data:audio/mpeg;base64,")):
        assert made[name][0]["type"] == "input_audio"
        assert made[name][0]["input_audio"]["format"] == name
        assert made[name][0]["input_audio"]["data"].startswith(head)
    assert made["text"] == [{"type": "text", "text": "What is <image 1>?"}]
    assert [str(error.where.sample) for error in told] == ["flac"]
    assert "WAV or MP3" in told[0].what
