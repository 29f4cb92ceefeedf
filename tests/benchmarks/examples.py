"""Few-shot prompts, against a bare join of pieces split before, and against replacing slot by slot."""

from __future__ import annotations

import copy
import resource
import sys
from collections.abc import Callable, Iterator

from timing import Row, interleaved

from mmprompt import load_task

COUNT = 100_000
BAR = 0.18
LARGE = 267 << 10
LARGE_COUNT = 1_000
LARGE_BAR = 70.0
SHOTS = 4

_BEGIN = {"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve the following questions."}
_CHOICE = [
    {"role": "HUMAN", "prompt": "Question: {question}\nHint: {hint}\nA. {A}\nB. {B}\nC. {C}\nD. {D}"},
    {"role": "BOT", "prompt": "Answer: {answer}"},
]
_SHORT = [
    {"role": "HUMAN", "prompt": "Question: {question}\nHint: {hint}"},
    {"role": "BOT", "prompt": "Answer: {answer}"},
]
Texts = dict[str, str]


def examples() -> list[Row]:
    """Make 100,000 four-shot dialogue prompts of two kinds of rows, and some with one large value."""
    rows = []
    for name, make, round_ in (("nine columns", _choices, _CHOICE), ("three columns", _shorts, _SHORT)):
        rows += _compared(name, make, round_)
    large = interleaved(
        {
            "ours": lambda: _spent(_prompts(_large(), _CHOICE, _choices)),
            "replace": lambda: _spent(_replaced(_large(LARGE_COUNT // 10), _CHOICE, _choices)),
        },
        3,
    )
    ours, replace = large["ours"].best_cpu, large["replace"].best_cpu * 10
    each = (
        f"{replace / ours:.0f} (ours {ours / LARGE_COUNT * 1e6:.1f} us, replace {replace / LARGE_COUNT * 1e6:.0f} us)"
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)
    rows.append(
        Row("one value of 267 KiB, against replacing", each, f">= {LARGE_BAR:.0f}", replace >= LARGE_BAR * ours)
    )
    return [*rows, Row("peak memory after them, MiB", f"{peak:.0f}")]


def _compared(name: str, make: Callable[[int], Iterator[Texts]], round_: list[Texts]) -> list[Row]:
    join = _join_choices if round_ is _CHOICE else _join_shorts
    timed = interleaved(
        {
            "ours": lambda: _spent(_prompts(make(COUNT), round_, make)),
            "join": lambda: _spent(join(make(COUNT))),
            "replace": lambda: _spent(_replaced(make(COUNT // 10), round_, make)),
        },
        3,
    )
    ours, joined, replace = (timed[n].best_cpu for n in ("ours", "join", "replace"))
    replace *= 10
    per = ", ".join(
        f"{n} {t / COUNT * 1e6:.1f} us" for n, t in (("ours", ours), ("join", joined), ("replace", replace))
    )
    return [
        Row(f"4-shot, {name}, against a bare join", f"{joined / ours:.2f} ({per})", f">= {BAR}", joined / ours >= BAR),
        Row("the same, against replacing slot by slot", f"{replace / ours:.1f}", ">= 1", replace >= ours),
    ]


def _choices(count: int) -> Iterator[Texts]:
    """Rows with the columns of a multiple-choice benchmark such as MMBench."""
    for number in range(count):
        yield {
            "index": str(number),
            "question": f"{number}+1=?",
            "hint": "count",
            "A": str(number),
            "B": str(number + 1),
            "C": str(number + 2),
            "D": str(number + 3),
            "category": "sums",
            "answer": "B",
        }


def _shorts(count: int) -> Iterator[Texts]:
    for number in range(count):
        yield {"question": f"{number}+1=?", "hint": "count", "answer": str(number + 1)}


def _large(count: int = LARGE_COUNT) -> Iterator[Texts]:
    text = "x{" * (LARGE // 2)
    return ({**row, "question": text} for row in _choices(count))


def _prompts(rows: Iterator[Texts], round_: list[Texts], make: Callable[[int], Iterator[Texts]]) -> Iterator[object]:
    task = load_task(
        {
            "dataset": {"rows": rows, "train_rows": list(make(SHOTS))},
            "infer_cfg": {
                "ice_template": {"template": {"round": round_}},
                "prompt_template": {"template": {"begin": [_BEGIN, "</E>"], "round": round_}, "ice_token": "</E>"},
                "retriever": {"type": "FixKRetriever", "fix_id_list": list(range(SHOTS))},
            },
        }
    )
    return (prompt for _, prompt in task.prompts())


def _join_choices(rows: Iterator[Texts]) -> Iterator[object]:
    """Build the same lists of dicts from pieces that were split before, in place; nothing is checked."""
    shots = list(_choices(SHOTS))
    for row in rows:
        out = [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve the following questions."}]
        for r in shots:
            pieces = ("Question: ", r["question"], "\nHint: ", r["hint"], "\nA. ", r["A"], "\nB. ", r["B"], "\nC. ", r["C"], "\nD. ", r["D"])  # fmt: skip
            out.append({"role": "HUMAN", "prompt": "".join(pieces)})
            out.append({"role": "BOT", "prompt": "".join(("Answer: ", r["answer"]))})
        r = row
        pieces = ("Question: ", r["question"], "\nHint: ", r["hint"], "\nA. ", r["A"], "\nB. ", r["B"], "\nC. ", r["C"], "\nD. ", r["D"])  # fmt: skip
        out.append({"role": "HUMAN", "prompt": "".join(pieces)})
        out.append({"role": "BOT", "prompt": "".join(("Answer: ", ""))})
        yield out


def _join_shorts(rows: Iterator[Texts]) -> Iterator[object]:
    shots = list(_shorts(SHOTS))
    for row in rows:
        out = [{"role": "SYSTEM", "fallback_role": "HUMAN", "prompt": "Solve the following questions."}]
        for r in shots:
            out.append({"role": "HUMAN", "prompt": "".join(("Question: ", r["question"], "\nHint: ", r["hint"]))})
            out.append({"role": "BOT", "prompt": "".join(("Answer: ", r["answer"]))})
        out.append({"role": "HUMAN", "prompt": "".join(("Question: ", row["question"], "\nHint: ", row["hint"]))})
        out.append({"role": "BOT", "prompt": "".join(("Answer: ", ""))})
        yield out


def _replaced(rows: Iterator[Texts], round_: list[Texts], make: Callable[[int], Iterator[Texts]]) -> Iterator[object]:
    """Fill by replacing slot after slot in every text, the test row's in the examples too, as OpenCompass does."""
    shots = list(make(SHOTS))
    for row in rows:
        out = [copy.deepcopy(_BEGIN)]
        for shot in shots:
            for item in copy.deepcopy(round_):
                for key, value in shot.items():
                    item["prompt"] = item["prompt"].replace("{" + key + "}", value)
                out.append(item)
        out.extend(copy.deepcopy(round_))
        masked = {**row, "answer": ""}
        for item in out:
            for key, value in masked.items():
                item["prompt"] = item["prompt"].replace("{" + key + "}", value)
        yield out


def _spent(prompts: Iterator[object]) -> None:
    for _ in prompts:
        pass


def check() -> None:
    """Refuse to compare programs that do not do the same."""
    for make, round_, join in ((_choices, _CHOICE, _join_choices), (_shorts, _SHORT, _join_shorts)):
        ours = list(_prompts(make(3), round_, make))
        if ours != list(_replaced(make(3), round_, make)) or ours != list(join(make(3))):
            raise SystemExit("the prompts differ")
