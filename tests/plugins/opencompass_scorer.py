"""A model of OpenCompass that needs no weights: a text is the less likely, the longer it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from opencompass.models.base import BaseModel


class Scorer(BaseModel):
    """Compares texts by their length."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path="scorer", meta_template=options.get("meta_template"))

    def get_ppl(self, inputs: list[str], mask_length: Any = None) -> Any:
        return np.array([float(len(text)) for text in inputs])

    def get_token_len(self, prompt: str) -> int:
        return len(prompt)
