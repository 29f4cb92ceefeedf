"""Few-shot prompts, against a bare join of pieces split before, and against replacing slot by slot."""

from __future__ import annotations

import copy
import resource
import sys
from collections.abc import Iterator

from timing import Row, interleaved

from mmprompt import load_task

COUNT = 100_000
BAR = 0.3
LARGE = 267 << 10
LARGE_BAR = 100.0
SHOTS = 4

_ROUND = [
    {"role": "HUMAN", "prompt": "Question: {question}\nHint: {hint}"},
    {"role": "BOT", "prompt": "Answer: {answer}"},
]
_BEGIN = {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve the following questions."}
_TRAIN = [{"question": f"{n}+{n}=?", "hint": "add", "answer": str(2 * n)} for n in range(SHOTS)]


def examples() -> list[Row]:
    """Make 100,000 four-shot dialogue prompts, and some with one large value."""
    timed = interleaved({"ours": _ours, "join": _join, "replace": _replace}, 3)
    ours, join, replace = (timed[name].best_cpu for name in ("ours", "join", "replace"))
    per = ", ".join(f"{name} {timed[name].best_cpu / COUNT * 1e6:.1f} us" for name in timed)
    large = interleaved({"ours": lambda: _large(_prompts), "replace": lambda: _large(_replaced)}, 3)
    faster = large["replace"].best_cpu / large["ours"].best_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    return [
        Row("4-shot dialogues, against a bare join", f"{join / ours:.2f} ({per})", f">= {BAR}", join / ours >= BAR),
        Row("the same, against replacing slot by slot", f"{replace / ours:.1f}", ">= 1", replace >= ours),
        Row("one value of 267 KiB, likewise", f"{faster:.0f}", f">= {LARGE_BAR:.0f}", faster >= LARGE_BAR),
        Row("peak memory after them, MiB", f"{peak:.0f}"),
    ]


def _rows(count: int, question: str = "") -> Iterator[dict[str, str]]:
    for number in range(count):
        yield {"question": question or f"{number}+1=?", "hint": "count", "answer": str(number + 1)}


def _prompts(rows: Iterator[dict[str, str]]) -> Iterator[object]:
    task = load_task(
        {
            "dataset": {"rows": rows, "train_rows": _TRAIN},
            "infer_cfg": {
                "ice_template": {"template": {"round": _ROUND}},
                "prompt_template": {"template": {"begin": [_BEGIN, "</E>"], "round": _ROUND}, "ice_token": "</E>"},
                "retriever": {"type": "FixKRetriever", "fix_id_list": list(range(SHOTS))},
            },
        }
    )
    return (prompt for _, prompt in task.prompts())


def _ours() -> None:
    for _ in _prompts(_rows(COUNT)):
        pass


def _join() -> None:
    """Build the same lists of dicts from pieces that were split before; nothing is checked."""
    for row in _rows(COUNT):
        out = [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve the following questions."}]
        for shot in _TRAIN:
            out.append({"role": "HUMAN", "prompt": "".join(("Question: ", shot["question"], "\nHint: ", shot["hint"]))})
            out.append({"role": "BOT", "prompt": "".join(("Answer: ", shot["answer"]))})
        out.append({"role": "HUMAN", "prompt": "".join(("Question: ", row["question"], "\nHint: ", row["hint"]))})
        out.append({"role": "BOT", "prompt": "".join(("Answer: ", ""))})


def _replaced(rows: Iterator[dict[str, str]]) -> Iterator[object]:
    """Fill by replacing slot after slot in every text, the test row's in the examples too."""
    for row in rows:
        out = [copy.deepcopy(_BEGIN)]
        for shot in _TRAIN:
            for item in copy.deepcopy(_ROUND):
                for key, value in shot.items():
                    item["prompt"] = item["prompt"].replace("{" + key + "}", value)
                out.append(item)
        out.extend(copy.deepcopy(_ROUND))
        masked = {**row, "answer": ""}
        for item in out:
            for key, value in masked.items():
                item["prompt"] = item["prompt"].replace("{" + key + "}", value)
        yield out


def _replace() -> None:
    for _ in _replaced(_rows(COUNT)):
        pass


def _large(make: object) -> None:
    for _ in make(_rows(200, "x{" * (LARGE // 2))):  # type: ignore[operator]  # one of the makers above
        pass


def check() -> None:
    """Refuse to compare programs that do not do the same."""
    if list(_prompts(_rows(3))) != list(_replaced(_rows(3))):
        raise SystemExit("the prompts differ")
