"""A system without the calls that isolation needs says so, in words, and decodes without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = """
import os, select, signal, sys
for module, name in ((select, "poll"), (signal, "SIGALRM"), (signal, "SIGKILL"), (os, "set_blocking"), (os, "fork")):
    if hasattr(module, name):
        delattr(module, name)
for missing in ("resource", "fcntl"):
    sys.modules[missing] = None
from mmprompt import MediaPolicy, MediaRef, Message, change_messages, read_messages
from mmprompt.errors import PolicyError
read = read_messages([Message("user", [MediaRef("image", "media/coffee.jpg")])], MediaPolicy(roots=[sys.argv[1]]))
print(change_messages(read, max_side=64)[0].parts[0].changes[0])
try:
    change_messages(read, MediaPolicy.preset("hostile"), max_side=64)
except PolicyError as error:
    print(error)
"""


def test_where_there_are_no_limits_for_processes_isolate_is_refused_and_the_rest_works(
    tour: Path, command_environment: dict[str, str]
) -> None:
    words = [sys.executable, "-c", SCRIPT, str(tour)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True, env=command_environment)
    assert done.stdout.splitlines() == [
        "512x341 to 64x43 (max_side 64)",
        (
            "message 1, part 1: this system cannot isolate decoders (isolate, which --policy hostile sets); Linux and "
            "macOS can; choose another policy, or decode in this process with isolate=False"
        ),
    ]
