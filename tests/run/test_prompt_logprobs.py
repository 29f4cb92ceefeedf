"""Perplexities from servers that return the log-probabilities of prompts, and from those that do not."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import loopback
import pytest

from mmprompt import ServerError, load_task, run_task
from mmprompt.run.server_model import PromptToken, ServerModel, perplexity_of

Answerer = Callable[[dict[str, Any]], tuple[int, Any]]
CHOICES = [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "length"}]


@contextmanager
def serving(answer: Answerer) -> Iterator[tuple[ServerModel, list[dict[str, Any]]]]:
    """A server that gives ``answer`` of each body, as status and JSON; and the bodies."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            status, value = answer(bodies[-1])
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with loopback.serving(Handler) as port, closing(ServerModel(f"http://127.0.0.1:{port}/v1", "m")) as model:
        yield model, bodies


def entry(text: str, logprob: float, number: int = 7) -> dict[str, Any]:
    return {str(number): {"logprob": logprob, "rank": 1, "decoded_token": text}}


def like_vllm(body: dict[str, Any]) -> tuple[int, Any]:
    """A server that finds short labels likely; each picture is six tokens."""
    tokens: list[dict[str, Any] | None] = [None]
    for message in body["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part["type"] == "text":
                tokens += [entry(word, -len(word) / 10) for word in part["text"].split()]
            else:
                tokens += [entry("<|image_pad|>", -50.0)] * 6
    return 200, {"choices": CHOICES, "prompt_logprobs": tokens}


def labelled(labels: list[str], count: int = 1, *, image: bool = False) -> dict[str, Any]:
    """A task that compares labels."""
    asked: Any = {"role": "HUMAN", "prompt": "Which one ?"}
    if image:
        asked = {"role": "HUMAN", "prompt_mm": {"image": {"type": "image_url", "image_url": {"url": "{image}"}}}}
    templates = {label: {"round": [asked, {"role": "BOT", "prompt": label}]} for label in labels}
    kind = "MMPromptTemplate" if image else "PromptTemplate"
    infer = {"prompt_template": {"type": kind, "template": templates}, "inferencer": {"type": "PPLInferencer"}}
    pixel = Path(__file__).parents[2] / "fixtures/tour/media/alpha.png"
    rows = [{"id": n, "image": pixel.name} for n in range(count)]
    return {"dataset": {"rows": rows}, "infer_cfg": infer, "media": {"roots": [str(pixel.parent)]}}


def requests(labels: list[str], count: int = 1, *, image: bool = False) -> list[Any]:
    return list(load_task(labelled(labels, count, image=image)).requests())


def test_the_request_is_vllms_and_the_mean_is_over_all_tokens_after_the_first() -> None:
    with serving(like_vllm) as (model, bodies):
        [answer] = model.perplexities(requests(["A cat"]))
    assert answer.error is None
    assert answer.perplexity == pytest.approx(math.exp((0.5 + 0.3 + 0.1 + 0.1 + 0.3) / 5))
    [body] = bodies
    assert [m["role"] for m in body["messages"]] == ["user", "assistant"]
    settings = {key: body[key] for key in ("prompt_logprobs", "add_generation_prompt", "max_tokens", "model")}
    assert settings == {"prompt_logprobs": 0, "add_generation_prompt": False, "max_tokens": 1, "model": "m"}
    assert "continue_final_message" not in body  # False by default; the label's turn is complete


def test_the_tokens_of_media_are_left_out() -> None:
    with serving(like_vllm) as (model, _):
        [answer] = model.perplexities(requests(["A cat"], image=True))
    assert answer.perplexity == pytest.approx(math.exp((0.1 + 0.3) / 2))


@pytest.mark.parametrize(
    "refusal",
    [
        (200, {"choices": CHOICES}),
        (200, {"choices": CHOICES, "prompt_logprobs": None}),
        (422, {"detail": "Unexpected fields in the request: {'prompt_logprobs', 'add_generation_prompt'}"}),
        (400, {"error": {"message": "Unrecognized request argument supplied: prompt_logprobs"}}),
    ],
    ids=["ignored", "null", "transformers", "openai"],
)
def test_a_server_that_does_not_give_them_gets_no_second_request(refusal: tuple[int, Any]) -> None:
    made = requests(["yes", "no"], 8)
    assert len(made) == 16
    faults: list[ServerError] = []

    def ask(model: ServerModel, request: Any) -> None:
        with pytest.raises(ServerError) as raised:
            model.perplexities([request])
        faults.append(raised.value)

    with serving(lambda _: refusal) as (model, bodies):
        threads = [threading.Thread(target=ask, args=(model, request)) for request in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert (len(bodies), len(faults)) == (1, 16)
    assert {str(fault).partition(" gives ")[2].partition(":")[0].partition(";")[0] for fault in faults} == {
        "no log-probabilities of prompts"
    }
    assert "give --model the folder of a local model" in str(faults[0])


def test_a_run_ends_at_the_first_answer_without_them(tmp_path: Path) -> None:
    with serving(lambda _: (200, {"choices": CHOICES})) as (model, bodies):
        with pytest.raises(ServerError, match="gives no log-probabilities of prompts"):
            run_task(labelled(["yes", "no"], 20), model, tmp_path / "out.jsonl")
        assert len(bodies) == 1


@pytest.mark.parametrize("image", [False, True], ids=["text", "image"])
def test_a_run_chooses_the_likeliest_label_and_the_first_of_equal_ones(tmp_path: Path, image: bool) -> None:
    with serving(like_vllm) as (model, bodies):
        task = labelled(["longer words", "oak", "elm", "the ash"], 20, image=image)
        report = run_task(task, model, tmp_path / "out.jsonl")
    assert (report.answered, report.failed, len(bodies)) == (20, 0, 80)
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert {line["prediction"] for line in lines if line["label"] is None} == {"oak"}


def test_a_fault_that_may_pass_refuses_no_server() -> None:
    answers: list[Any] = [(503, {}), (400, {"error": {"message": "the prompt is too long"}})]
    with serving(lambda body: answers.pop(0) if answers else like_vllm(body)) as (model, bodies):
        busy, long, good = model.perplexities(requests(["a", "b", "c"]))
    assert (busy.passing, busy.kind) == (True, "busy")
    assert (long.passing, "too long" in str(long.error)) == (False, True)
    assert good.perplexity is not None
    assert len(bodies) == 3


@pytest.mark.parametrize("without", [{}, {"choices": CHOICES, "prompt_logprobs": None}])
def test_once_a_server_gives_them_an_answer_without_them_costs_its_own_request(without: dict[str, Any]) -> None:
    def answer(body: dict[str, Any]) -> tuple[int, Any]:
        return (200, without) if "b" in str(body["messages"]) else like_vllm(body)

    with serving(answer) as (model, bodies):
        good, bad, other = model.perplexities(requests(["a", "b", "c"]))
    assert good.perplexity is not None
    assert (bad.passing, "gives no log-probabilities of prompts" in str(bad.error)) == (True, True)
    assert other.perplexity is not None
    assert len(bodies) == 3


@pytest.mark.parametrize(
    "entries",
    [
        [None, {}],
        [None, 3],
        "text",
        [None, {"7": {"logprob": "x"}}],
        {"a": 1},
        [None, entry("x", 10**400)],
        [None, entry("x", math.nan)],
        [None, entry("x", math.inf), entry("y", -math.inf)],
        [None, entry("x", 1e308), entry("y", 1e308)],
        [None, {"7": [1]}],
    ],
)
def test_log_probabilities_in_another_form_are_an_error_of_the_request(entries: Any) -> None:
    with serving(lambda _: (200, {"choices": CHOICES, "prompt_logprobs": entries})) as (model, _):
        [answer] = model.perplexities(requests(["a"]))
    assert "not in vLLM's form" in str(answer.error)


def tokens(*texts: str) -> list[PromptToken]:
    return [PromptToken("", None), *[PromptToken(text, -1.0 if text == "word" else -9.0) for text in texts]]


@pytest.mark.parametrize(
    "run", [["<image>"], ["[IMG]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"], ["<unk>"] * 4, ["<ctx>"] * 64]
)
def test_known_placeholders_and_runs_of_special_tokens_stand_for_media(run: list[str]) -> None:
    assert perplexity_of(tokens("word", *run, "word"), with_media=True) == pytest.approx(math.e)
    assert perplexity_of(tokens("word", *run, "word"), with_media=False) > 3


@pytest.mark.parametrize("run", [["la"] * 20, ["[]"] * 9, ["< b >"] * 9, ["<unk>"] * 3, []])
def test_a_prompt_in_which_no_token_stands_for_the_media_is_refused(run: list[str]) -> None:
    with pytest.raises(ServerError, match="has no tokens that are known to stand for media"):
        perplexity_of(tokens("word", *run), with_media=True)


def test_a_prompt_of_one_token_has_no_perplexity() -> None:
    with pytest.raises(ServerError, match="no token to predict"):
        perplexity_of([PromptToken("", None)], with_media=False)


@pytest.mark.parametrize("logprob", [-math.inf, -1e308])
def test_labels_that_a_server_calls_impossible_have_a_finite_perplexity(logprob: float) -> None:
    entries = [None, entry("x", logprob), entry("y", logprob)]
    with serving(lambda _: (200, {"choices": CHOICES, "prompt_logprobs": entries})) as (model, _):
        [answer] = model.perplexities(requests(["a"]))
    assert math.isfinite(answer.perplexity or math.inf)


def test_a_label_that_is_as_good_as_impossible_has_a_finite_perplexity() -> None:
    assert math.isfinite(perplexity_of([PromptToken("", None), PromptToken("x", -9999.0)], with_media=False))
