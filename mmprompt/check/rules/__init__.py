"""The rules by family: importing a module registers its rules."""

from __future__ import annotations

from mmprompt.check.rules import answers, duplicates, images, pixels, sounds, texts, videos

__all__ = ["answers", "duplicates", "images", "pixels", "sounds", "texts", "videos"]
