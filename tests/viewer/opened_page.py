"""What a page of ``mmprompt view`` holds, unpacked as its scripts unpack it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Any


class OpenedPage:
    """The data of a page, and of the files beside it."""

    def __init__(self, path: Path) -> None:
        self.text = path.read_text(encoding="utf-8")
        self.blocks = dict(re.findall(r'<script type="text/plain" id="([^"]+)">([^<]*)</script>', self.text))
        found = re.search(r'<script type="application/json" id="head">(.*?)</script>', self.text, re.DOTALL)
        assert found
        self.head = json.loads(found[1])
        self.folder = path.parent / self.head["folder"] if self.head["folder"] else None
        for file in sorted(self.folder.glob("*.js")) if self.folder else ():
            name, packed = re.findall(r'"([^"]*)"', file.read_text(encoding="utf-8"))
            self.blocks[name] = packed

    def index(self, side: int = 0) -> list[dict[str, Any]]:
        return unpacked(self.blocks[f"index-{side}"])

    def rows(self, side: int = 0) -> list[dict[str, Any]]:
        names = [name for name in self.blocks if name.startswith(f"rows-{side}-")]
        return [
            row for name in sorted(names, key=lambda n: int(n.split("-")[2])) for row in unpacked(self.blocks[name])
        ]

    def medium(self, digest: str) -> bytes:
        if f"m-{digest[:20]}" in self.blocks:
            return base64.b64decode(self.blocks[f"m-{digest[:20]}"])
        assert self.folder
        [file] = self.folder.glob(f"{digest[:20]}.*")
        return file.read_bytes()

    @property
    def scripts(self) -> list[str]:
        return re.findall(r"<script>(.*?)</script>", self.text, re.DOTALL)

    def allows(self, text: str) -> bool:
        """Whether the content security policy of the page names a script or style."""
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() in self.text.partition("<style>")[0]


def unpacked(text: str) -> Any:
    return json.loads(gzip.decompress(base64.b64decode(text)))
