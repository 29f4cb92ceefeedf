"""The folder of a page's media and rows: ``OUT/assets`` for ``OUT.html``, where each page has a folder of its own.

So an older page stays whole until the new one has its name. Its folder is removed then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from mmprompt.datasets.output import is_stream
from mmprompt.errors import TaskError, shown

_FOLDER = re.compile(r"[0-9a-f]{12}")
_FILE = re.compile(r"[0-9a-f]{20}\.[a-z0-9]+|rows-\d+-\d+\.js")
"""The names of our folders and files. No other one is removed."""


class Assets:
    """Where the files beside a page lie: in the folder ``made`` while it is written, later below ``folder``.

    Args:
        page: the page.
        working: a folder that is gone at the end.
    """

    def __init__(self, page: str, working: str) -> None:
        self.made = os.path.join(working, "assets")
        self._own = os.path.splitext(page)[0]
        self.folder = os.path.join(self._own, "assets")
        self._name = os.urandom(6).hex()
        self._page = page

    @property
    def address(self) -> str:
        """The folder as the page names it."""
        from urllib.parse import quote  # noqa: PLC0415  # only with a folder

        return f"{quote(os.path.basename(self._own))}/assets/{self._name}"

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Put the files in their place before the page gets its name. If an exception leaves the block, they go.

        Raises:
            TaskError: the page is no file, or the place is a link.
            OSError: they cannot lie there.
        """
        if is_stream(self._page):
            raise TaskError(f"the page is too large for {shown(self._page)}", "name a file, beside which its media lie")
        for folder in (self._own, self.folder):
            if os.path.islink(folder):
                raise TaskError(f"the folder of the media {shown(folder)} is a link", "move it away")
        os.makedirs(self.folder, exist_ok=True)
        os.replace(self.made, os.path.join(self.folder, self._name))
        try:
            yield
        except BaseException:
            self._remove(self._name)
            raise

    def remove_older(self) -> None:
        """Remove the files of older pages of this name."""
        if os.path.islink(self._own) or os.path.islink(self.folder) or not os.path.isdir(self.folder):
            return
        for name in filter(_FOLDER.fullmatch, os.listdir(self.folder)):
            if name != self._name:
                self._remove(name)

    def _remove(self, name: str) -> None:
        folder = os.path.join(self.folder, name)
        with suppress(OSError):  # whatever else is there stays, and its folder
            for file in [] if os.path.islink(folder) else filter(_FILE.fullmatch, os.listdir(folder)):
                os.unlink(os.path.join(folder, file))
            for each in (folder, self.folder, self._own):
                os.rmdir(each)
