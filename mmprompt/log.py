"""The logger of the package: named ``mmprompt``, silent unless the host configures it, or a runner's plugin does."""

from __future__ import annotations

import logging

log = logging.getLogger("mmprompt")
log.addHandler(logging.NullHandler())
