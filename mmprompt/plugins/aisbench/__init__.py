"""AISBench: templates, a dataset, a retriever and a model for its configs, by class, dotted path or short name.

Nothing of AISBench is imported here: its registry imports ``calculators`` of this package, and a config the classes.
"""

from __future__ import annotations

from mmprompt.plugins.aisbench.chat_model import MMPromptChat
from mmprompt.plugins.aisbench.rows import MMPromptDataset, MMPromptRetriever
from mmprompt.plugins.aisbench.task_template import MMPromptTask
from mmprompt.plugins.aisbench.template_classes import (
    MMPromptMultimodal,
    MMPromptMultiTurn,
    MMPromptText,
)

__all__ = [
    "MMPromptChat",
    "MMPromptDataset",
    "MMPromptMultiTurn",
    "MMPromptMultimodal",
    "MMPromptRetriever",
    "MMPromptTask",
    "MMPromptText",
]
