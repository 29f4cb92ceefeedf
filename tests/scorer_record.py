"""Records what published scorers say of the replies of ``reply_cases.py``, in ``fixtures/scores/recorded.json``.

    python tests/scorer_record.py VQA_EVAL.py

It runs where ``ms-vlmeval`` (VLMEvalKit), ``anls`` and ``ais-bench-benchmark`` are installed, with Python 3.10, and
takes the path of ``vqaEval.py``, the official evaluation of the VQA challenge (repository GT-Vision-Lab/VQA).
"""

from __future__ import annotations

import importlib.util
import json
import logging
import re
import sys
from importlib.metadata import distribution, version
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from reply_cases import anls_cases, choice_cases, digest, vqa_cases

RECORDED = Path(__file__).parent.parent / "fixtures" / "scores" / "recorded.json"


def main(official: str) -> None:
    """Run all, and write the file."""
    logging.disable(logging.CRITICAL)
    matching = _module("ms-vlmeval", "vlmeval/utils/matching_util.py")
    vqa_eval = _module("ms-vlmeval", "vlmeval/dataset/utils/vqa_eval.py")
    from ais_bench.benchmark.datasets.textvqa import TEXTEvaluator
    from ais_bench.benchmark.utils.postprocess.text_postprocessors import first_option_postprocess
    from anls import anls_score

    choices = list(choice_cases())
    lettered = [dict(zip("ABCD", case.choices, strict=False)) for case in choices]
    vqa, anls = list(vqa_cases()), list(anls_cases())
    by_vlmevalkit = [_vlmevalkit(vqa_eval, case, "vqa_score") for case in vqa]
    by_aisbench = [
        TEXTEvaluator().score([case.reply], [[{"answer": text, "id": n} for n, text in enumerate(case.answers)]])
        for case in vqa
    ]
    recorded = {
        "versions": {name: version(name) for name in ("ms-vlmeval", "anls", "ais-bench-benchmark")},
        "choice": {
            "digest": digest(choice_cases()),
            "vlmevalkit": "".join(
                matching.can_infer(case.reply, dict(texts)) or "-"
                for case, texts in zip(choices, lettered, strict=True)
            ),
            "aisbench": "".join(
                first_option_postprocess(case.reply, "".join(texts)) or "-"
                for case, texts in zip(choices, lettered, strict=True)
            ),
        },
        "vqa": {
            "digest": digest(vqa_cases()),
            "official": [round(score, 4) for score in _official(official, vqa)],
            "vlmevalkit": [round(float(score), 4) for score in vqa_eval.hit_calculate(by_vlmevalkit, "TextVQA")],
            "aisbench": [round(found["accuracy"] / 100, 4) for found in by_aisbench],
        },
        "anls": {
            "digest": digest(anls_cases()),
            "anls": [round(anls_score(case.reply, list(case.answers)), 4) for case in anls],
            "vlmevalkit": [
                round(float(score), 4)
                for score in vqa_eval.hit_calculate([_vlmevalkit(vqa_eval, case, "anls") for case in anls], "DocVQA")
            ],
        },
    }
    RECORDED.write_text(json.dumps(recorded, separators=(",", ":")).replace('},"', '},\n"') + "\n", encoding="utf-8")


def _module(name: str, path: str) -> ModuleType:
    """Load one file of a distribution. The packages above it are not run: they need libraries of their own."""
    file = Path(str(distribution(name).locate_file(path)))
    package = sys.modules.setdefault(path.partition("/")[0], ModuleType(path.partition("/")[0]))
    package.__path__ = [str(distribution(name).locate_file(path.partition("/")[0]))]
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _vlmevalkit(module: Any, case: Any, method: str) -> Any:
    return module.process_line({"answer": repr(list(case.answers)), "prediction": case.reply}, method=method)


def _official(path: str, cases: list[Any]) -> list[float]:
    """Run the official evaluation, written for Python 2: its ``print`` statements are left out."""
    source = Path(path).read_text(encoding="utf-8").replace("\r", "")
    namespace: dict[str, Any] = {"sys": SimpleNamespace(stdout=SimpleNamespace(write=len, flush=lambda: None))}
    source = re.sub(r"^(\s*)print .*$", r"\1pass", source, flags=re.MULTILINE).replace("import sys\n", "")
    exec(source, namespace)
    people = {
        number: {
            "answers": [{"answer": text, "answer_id": n} for n, text in enumerate(case.answers)],
            "question_type": "what",
            "answer_type": "other",
        }
        for number, case in enumerate(cases)
    }
    questions = SimpleNamespace(qa=people, getQuesIds=lambda: list(people))
    replies = SimpleNamespace(qa={number: {"answer": case.reply} for number, case in enumerate(cases)})
    evaluation = namespace["VQAEval"](questions, replies, n=6)
    evaluation.evaluate()
    return [evaluation.evalQA[number] / 100 for number in people]


if __name__ == "__main__":
    main(sys.argv[1])
