"""The short names. AISBench imports this sub-package last, when all its registries but one exist."""

from __future__ import annotations

from ais_bench.benchmark.registry import ICL_PROMPT_TEMPLATES, ICL_RETRIEVERS, LOAD_DATASET, MODELS

from mmprompt.plugins.aisbench.chat_model import MMPromptChat
from mmprompt.plugins.aisbench.rows import MMPromptDataset, MMPromptRetriever
from mmprompt.plugins.aisbench.task_template import MMPromptTask
from mmprompt.plugins.aisbench.template_classes import (
    MMPromptMultimodal,
    MMPromptMultiTurn,
    MMPromptText,
)

for _template in (MMPromptText, MMPromptMultimodal, MMPromptMultiTurn, MMPromptTask):
    ICL_PROMPT_TEMPLATES.register_module(module=_template)
ICL_RETRIEVERS.register_module(module=MMPromptRetriever)
LOAD_DATASET.register_module(module=MMPromptDataset)
MODELS.register_module(module=MMPromptChat)
