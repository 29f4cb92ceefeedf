"""The findings of a dataset, for the tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mmprompt.check.checker import Checker, Keeps, dataset_fault
from mmprompt.check.store import SampleFacts, Store
from mmprompt.errors import MMPromptError
from mmprompt.errors.findings import Finding
from mmprompt.media.policy import MediaPolicy
from mmprompt.tasks.load import dataset_task, load_task
from mmprompt.tasks.media import task_policy
from mmprompt.tasks.task import Task


def in_process(task: Task) -> MediaPolicy:
    """Return a task's own policy with the decoders in this process: a process of their own takes longer than a check.

    ``test_checking_engine.py`` and the commands in tests/cli have decoders in processes of their own.
    """
    return replace(task_policy(task), isolate=False)


def findings_of(path: Path, workers: int = 1, keeps: Keeps | None = None) -> list[Finding]:
    """Return the findings of a dataset."""
    task = dataset_task(path)
    checker = Checker(task, policy=in_process(task), keeps=keeps)
    try:
        with Store() as store:
            for _ in checker.check(store, workers):
                pass
            return list(store.findings())
    finally:
        checker.close()


def overlap_of(path: Path, other: Path) -> list[Finding]:
    """Return the findings of a dataset that is compared with another one."""
    checker, against = [Checker(task, policy=in_process(task)) for task in map(dataset_task, (path, other))]
    try:
        with Store() as store, Store() as others:
            for _ in against.check(others):
                pass
            for row in others.query("SELECT * FROM samples WHERE sent IS NOT NULL"):
                store.add_against(SampleFacts(*row))
            for _ in checker.check(store):
                pass
            return list(store.findings())
    finally:
        checker.close()
        against.close()


def findings_for(path: Path, target: str | None = None) -> list[Finding]:
    """Return the findings of a dataset or task file; one that cannot be opened gives one finding."""
    try:
        task = load_task(path)
    except MMPromptError as error:
        return [dataset_fault(error, path.name)]
    checker = Checker(task, target, policy=in_process(task))
    try:
        with Store() as store:
            for _ in checker.check(store):
                pass
            return list(store.findings())
    finally:
        checker.close()
