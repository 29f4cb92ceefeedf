"""``python -m mmprompt``."""

from __future__ import annotations

import sys

from mmprompt.cli import main

if __name__ == "__main__":
    sys.exit(main())
