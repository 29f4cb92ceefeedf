"""The logger of the package: named ``mmprompt``, and silent unless the host configures it."""

from __future__ import annotations

import logging

log = logging.getLogger("mmprompt")
log.addHandler(logging.NullHandler())
