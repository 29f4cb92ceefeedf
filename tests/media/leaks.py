"""What a test holds of the process: descriptors, threads and children, and which of them it has left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from typing import NamedTuple

DESCRIPTORS = "/proc/self/fd"
TASKS = "/proc/self/task"
PATIENCE = 20.0
"""Seconds that a thread may still need to end, once nobody waits for it any more."""


class Held(NamedTuple):
    """What a process holds: its descriptors with what they lead to, its threads, its children."""

    descriptors: frozenset[tuple[str, str]]
    threads: frozenset[threading.Thread]
    children: frozenset[int]


def held() -> Held:
    """Return what this process holds now; without ``/proc`` only threads are told."""
    return Held(_descriptors(), frozenset(threading.enumerate()), _children())


def left_behind(before: Held, patience: float = PATIENCE) -> str:
    """Return, in words, what is held now and was not before; an empty string if nothing is.

    Only where something is left is rubbish in circles collected, and are threads waited for that are about to end.
    """
    if not _more_than(before):
        return ""
    gc.collect()
    end = time.monotonic() + patience
    while set(threading.enumerate()) - before.threads and time.monotonic() < end:
        time.sleep(0.02)
    return _more_than(before)


def _more_than(before: Held) -> str:
    now = held()
    words = [f"descriptor {number} of {where}" for number, where in sorted(now.descriptors - before.descriptors)]
    words += [f"thread {thread.name}" for thread in now.threads - before.threads]
    words += [f"child {pid}" for pid in sorted(now.children - before.children)]
    return ", ".join(words)


def _descriptors() -> frozenset[tuple[str, str]]:
    found = []
    try:
        numbers = os.listdir(DESCRIPTORS)
    except OSError:
        return frozenset()
    for number in numbers:
        try:
            found.append((number, os.readlink(f"{DESCRIPTORS}/{number}")))
        except OSError:  # the one of the listing itself
            continue
    return frozenset(found)


def _children() -> frozenset[int]:
    """Return the children of all threads, ended ones that nobody waited for among them."""
    found: set[int] = set()
    try:
        tasks = os.listdir(TASKS)
    except OSError:  # a system without this
        return frozenset()
    for task in tasks:
        try:
            with open(f"{TASKS}/{task}/children", "rb", buffering=0) as file:
                found.update(map(int, file.read().split()))
        except OSError:  # a thread that has ended meanwhile
            continue
    return frozenset(found)
