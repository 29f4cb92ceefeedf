"""evalscope's benchmark ``mmprompt``: the rows of a task file or dataset. Importing this module registers it."""

from __future__ import annotations

import json
from typing import Any

from evalscope.api.benchmark import BenchmarkMeta, VisionLanguageAdapter
from evalscope.api.dataset import DatasetDict, MemoryDataset, Sample
from evalscope.api.evaluator import TaskState
from evalscope.api.metric import Score
from evalscope.api.registry import register_benchmark
from evalscope.constants import Tags

from mmprompt.errors import TaskError
from mmprompt.plugins.bridge.requests import answer_texts, request_name
from mmprompt.plugins.bridge.row_options import ROW_OPTIONS, AskedRows, asked_rows
from mmprompt.plugins.evalscope.messages import to_evalscope
from mmprompt.render.request import Request

_NO_PATH = "mmprompt:no-path"
_ROW = "mmprompt_row"


@register_benchmark(
    BenchmarkMeta(
        name="mmprompt",
        pretty_name="mmprompt",
        description="The rows of a task file or dataset of mmprompt.",
        dataset_id=_NO_PATH,
        tags=[Tags.MULTI_MODAL, Tags.CUSTOM],
        metric_list=["acc"],
        eval_split="test",
        prompt_template="{question}",
        extra_params=dict.fromkeys(name for name in ROW_OPTIONS if name != "path"),
    )
)
class Benchmark(VisionLanguageAdapter):  # type: ignore[misc]  # the runner is absent when types are checked
    """The rows of ``local_path``; the other arguments are in ``extra_params`` of ``--dataset-args``."""

    _asked: AskedRows

    def load(self) -> tuple[DatasetDict, None]:
        """Return the rows as samples.

        Raises:
            MMPromptError: rows cannot be asked, or evalscope would lose a part of them.
        """
        if self.dataset_id == _NO_PATH:
            raise TaskError("no task file or dataset is given", 'add "local_path": "FILE" to --dataset-args')
        given = {**self.extra_params, "path": self.dataset_id}
        self._asked = asked_rows(given, '"extra_params": {{"{name}": {json}}}', _check)
        _check_settings(self._asked.requests, self._task_config.generation_config)
        rows = MemoryDataset([_sample(row, request) for row, request in enumerate(self._asked.requests)])
        return DatasetDict.from_dataset(rows, ["default"], self.limit, self.repeats), None

    def match_score(
        self, original_prediction: str, filtered_prediction: str, reference: str, task_state: TaskState
    ) -> Score:
        """Return the score of a reply by the task's own scorer; by evalscope's metric, if the command names one."""
        if self.metric_list != ["accuracy"]:
            return super().match_score(original_prediction, filtered_prediction, reference, task_state)
        request = self._asked.requests[task_state.metadata[_ROW]]
        value = {"acc": self._asked.score(request, filtered_prediction)} if self._asked.scored else {}
        return Score(value=value, prediction=original_prediction, extracted_prediction=filtered_prediction)


def _check(request: Request) -> None:
    to_evalscope(request["messages"])


def _sample(row: int, request: Request) -> Sample:
    answers = answer_texts(request)
    named = {_ROW: row, "id": request_name(request)}
    target = answers[0] if len(answers) == 1 else answers
    return Sample(input=to_evalscope(request["messages"]), target=target or "", id=row, metadata=named)


def _check_settings(requests: list[Request], config: Any) -> None:
    """Refuse settings of the task that evalscope would not send: those that its own ``--generation-config`` lacks."""
    said = {name: value for name, value in config.model_dump(exclude_unset=True).items() if name != "batch_size"}
    given = {} if said == {"temperature": 0.0} else said  # its default
    for request in requests:
        keys = dict(request)
        own = {**keys, **keys.pop("extra_body", {})}
        lost = {name: value for name, value in own.items() if name not in {"messages", "extra_body", *given}}
        if lost:
            raise TaskError(
                "evalscope does not send the settings of the task file", f"add --generation-config '{json.dumps(lost)}'"
            )
