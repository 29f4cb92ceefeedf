"""lmms-eval: the model ``mmprompt`` by entry point, and the task class ``Rows`` for YAML files.

This module stays light: lmms-eval loads it with its list of models, whichever model is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmms_eval.models.registry_v2 import ModelManifest


def manifests() -> list[ModelManifest]:
    """Return what lmms-eval's registry holds of our model: its name, and where its class is."""
    from lmms_eval.models.registry_v2 import ModelManifest  # noqa: PLC0415  # the registry that calls us

    return [ModelManifest(model_id="mmprompt", chat_class_path="mmprompt.plugins.lmms_eval.model.ChatModel")]
