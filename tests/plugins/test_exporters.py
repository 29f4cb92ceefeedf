"""What tools without a plugin get, read back by their own packages; each test needs the package of its tool."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from runner_commands import Tour, check_parts, rendered, run_command
from test_tour_over_http import arrived

from mmprompt import convert_dataset, load_task
from mmprompt.errors import TargetError

pytestmark = pytest.mark.runners


def need(module: str, package: str) -> None:
    if find_spec(module) is None:
        pytest.skip(f"{package} is not installed")


@pytest.fixture(scope="module")
def requests(tour: Path) -> dict[str, Any]:
    return {str(r.id): r for r in load_task(str(tour / "tour.jsonl")).requests()}


def test_lighteval_s_doc_holds_texts_pictures_and_answers(requests: dict[str, Any]) -> None:
    need("lighteval", "lighteval")
    from lighteval.tasks.requests import Doc

    from mmprompt.plugins.lighteval import to_lighteval

    for name, pictures in (("tour-01", 1), ("tour-16", 3), ("tour-10", 0)):
        request = requests[name]
        doc = to_lighteval(request)
        assert isinstance(doc, Doc)
        assert doc.get_golds() == list(request.answers)
        assert len(doc.images or ()) == pictures
        parts = [part for part in arrived({"messages": request.messages})[0][1] if part[0] == "text"]
        assert doc.query == parts[0][1]
        assert all(min(image.size) > 10 for image in doc.images or ())
    for name in ("tour-03", "tour-04", "tour-15"):
        with pytest.raises(TargetError, match="lighteval"):
            to_lighteval(requests[name])


def test_lighteval_s_right_choice_is_the_row_s(tmp_path: Path) -> None:
    need("lighteval", "lighteval")
    from mmprompt.plugins.lighteval import to_lighteval

    rows = [{"question": "Which?", "A": "cat", "B": "dog", "answer": "B"}]
    [request] = load_task({"dataset": {"rows": rows}}).requests()
    doc = to_lighteval(request)
    assert (doc.choices, doc.gold_index, doc.get_golds()) == (["cat", "dog"], [1], ["dog"])


def test_helm_s_object_holds_the_parts_in_order(requests: dict[str, Any], tmp_path: Path) -> None:
    need("helm", "crfm-helm")
    from mmprompt.plugins.helm import to_helm

    for name, request in requests.items():
        if name == "tour-15":
            with pytest.raises(TargetError, match="HELM would fetch the image that goes by its URL"):
                to_helm(request, tmp_path)
            continue
        held = [
            ("text", item.text) if item.type == "text" else (item.type, item.content_type, _sha256(item.location))
            for item in to_helm(request, tmp_path).media_objects
        ]
        assert held == arrived({"messages": request.messages})[0][1], name


def _sha256(path: str | None) -> str:
    return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()


READ_TSV = """
import json, sys
from vlmeval.dataset.image_vqa import CustomVQADataset
data = CustomVQADataset(dataset="mine")
built = [data.build_prompt(n) for n in range(len(data))]
print("\\n" + json.dumps([[(item["type"], item["value"]) for item in message] for message in built]))
"""


def test_vlmevalkit_reads_the_tsv_below_lmudata(tmp_path: Path, tour: Path) -> None:
    need("vlmeval", "ms-vlmeval")
    rows = [
        {"id": 1, "image": "media/coffee.jpg", "question": "What drink?", "answer": "coffee"},
        {
            "id": 2,
            "image": ["media/coffee.jpg", "media/chelsea.jpg"],
            "question": "Which is a cat?",
            "answer": "second",
        },
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    convert_dataset(tmp_path / "rows.jsonl", tmp_path / "mine.tsv", to="vlmevalkit", media_roots=[str(tour)])
    done = subprocess.run(
        [sys.executable, "-c", READ_TSV],
        env={**os.environ, "LMUData": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    built = json.loads(done.stdout.rstrip().rpartition("\n")[2])
    for row, message in zip(rows, built, strict=True):
        named = row["image"] if isinstance(row["image"], list) else [row["image"]]
        pictures = [value for kind, value in message if kind == "image"]
        from PIL import Image

        for path, name in zip(pictures, named, strict=True):
            with Image.open(path) as read, Image.open(tour / name) as own:
                assert read.size == own.size
        assert message[-1][1].startswith(str(row["question"]))


def test_openai_evals_samples_are_chats_with_ideal(tmp_path: Path, tour: Path) -> None:
    out = tmp_path / "evals.jsonl"
    told: list[Exception] = []
    report = convert_dataset(tour / "tour.jsonl", out, to="openai-evals", on_error=told.append)
    assert (report.written, report.failed) == (24, 1)
    assert "the medium is a URL" in str(told[0])
    sent = {r.id: r for r in load_task(str(tour / "tour.jsonl")).requests()}
    for line in map(json.loads, out.read_text(encoding="utf-8").splitlines()):
        assert line["input"] == sent[line["id"]].messages
        assert [line["ideal"]] == list(sent[line["id"]].answers)


EVAL = """
tour: {id: tour.all.v0}
tour.all.v0: {class: evals.elsuite.basic.match:Match, args: {samples_jsonl: FILE}}
"""


def test_openai_evals_own_command_asks_and_scores_the_samples(tmp_path: Path, tour: Path) -> None:
    need("evals", "evals")
    samples, path = tmp_path / "evals.jsonl", tour / "tour.jsonl"
    convert_dataset(path, samples, to="openai-evals", on_error=lambda error: None)
    (tmp_path / "registry/evals").mkdir(parents=True)
    (tmp_path / "registry/evals/tour.yaml").write_text(EVAL.replace("FILE", str(samples)), encoding="utf-8")
    wanted = Tour({name: line for name, line in rendered(path).items() if name != "tour-15"})

    def command(url: str) -> list[object]:
        model = ["gpt-4-recorder", "--completion_args", f"api_base={url}"]  # evals knows a chat model by its name
        return ["oaieval", *model, "tour", "--registry_path", "registry", "--record_path", "record.jsonl"]

    run = run_command(tmp_path, command, wanted.reply)
    wanted.check(run)
    check_parts(run.bodies, path, ("tour-15",))
    [report] = [line for line in _lines(tmp_path / "record.jsonl") if "final_report" in line]
    assert report["final_report"]["accuracy"] == pytest.approx(wanted.score)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
