"""One table for all runners: each runner's own command over the tour, and what arrived at the server.

At the end of the tests the rows of the runners that are installed are printed:

    pytest -m runners tests/plugins/test_tour_table.py

With ``MMPROMPT_TOUR_TABLE=FILE`` the rows are also written to the end of a file, so that the runs in several
environments give the whole table.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aisbench_doors import FAMILY
from runner_commands import Run, Tour, check_parts, five_faults, rendered, run_command, run_words, served_shapes
from runner_present import need
from tour_doors import DOORS, Ask, Door, Results

pytestmark = [pytest.mark.runners, pytest.mark.slow]
Record = Callable[[str, object], None]


class Journey(NamedTuple):
    """One run of a runner over the rows of the tour that it can carry."""

    door: Door
    wanted: Tour
    run: Run
    results: Results


def ask(door: Door, folder: Path, path: Path, reply: Callable[[dict[str, Any]], str], **options: object) -> Run:
    return run_command(folder, lambda url: door.command(Ask(folder, path, url, options=options)), reply, door.variables)


@pytest.fixture(scope="module", params=[*DOORS, *FAMILY], ids=lambda door: door.runner)
def door(request: pytest.FixtureRequest) -> Door:
    found: Door = request.param
    need(found.runner, found.module)
    return found


@pytest.fixture(scope="module")
def journey(door: Door, tour: Path, tmp_path_factory: pytest.TempPathFactory) -> Journey:
    folder = tmp_path_factory.mktemp(door.runner)
    lines = rendered(tour / "tour.jsonl")
    wanted = Tour({name: line for name, line in lines.items() if name not in door.refused}, door.as_sent)
    given = Ask(folder, tour / "tour.jsonl", "", options={"skip_bad": True} if door.refused else {})
    run = run_command(
        folder,
        lambda url: [*door.command(given._replace(url=url)), *door.in_one_process],
        wanted.reply,
        door.variables,
    )
    assert (run.code != 0) == door.fails, run.said[-5000:]
    return Journey(door, wanted, run, door.results(folder))


def test_the_tour_arrives_as_render_writes_it_and_is_scored(
    journey: Journey, tour: Path, record_property: Record
) -> None:
    door, wanted, run, results = journey
    bodies = wanted.check_bodies(run, door.warm_up)
    assert all(body.keys() == {"model", "messages", *door.adds} for body in bodies), sorted(bodies[0])
    media = check_parts(bodies, tour / "tour.jsonl", tuple(door.refused))
    assert results.score == pytest.approx(wanted.score, abs=1e-4)
    right = {name: name in wanted.right for name in wanted.lines}
    assert results.right in (None, right, [*right.values()])
    cells = [door.runner, f"{len(bodies)} of {len(bodies) + len(door.refused)}", f"{media} of {media}"]
    cells += [f"{len(bodies)} of {len(bodies)}", f"{results.score:.4f} = {wanted.score:.4f}"]
    record_property("tour_table", [*cells, ", ".join(door.refused) or "nothing"])


def test_what_a_runner_cannot_carry_is_refused_by_name_before_the_run(door: Door, tour: Path, tmp_path: Path) -> None:
    if not door.refused:
        pytest.skip(f"{door.runner} carries the whole tour")
    run = ask(door, tmp_path, tour / "tour.jsonl", lambda body: "ok")
    assert (run.code != 0, run.bodies) == (True, [])
    assert f"{len(door.refused)} requests cannot be made" in run.said
    for name, said in door.refused.items():
        assert f"{said} (sample {name}" in run.said, run.said[-5000:]


def test_five_faulty_rows_of_sixty_are_told_at_once_before_the_first_request(door: Door, tmp_path: Path) -> None:
    path, faults = five_faults(tmp_path)
    run = ask(door, tmp_path, path, lambda body: "ok")
    assert (run.code != 0, run.bodies) == (door.stops, [])
    assert door.told in run.said, run.said[-5000:]
    for fault in (*faults, door.mend, door.skip):
        assert fault in run.said, (fault, run.said[-5000:])
    assert "--media-root" not in run.said


def test_the_way_to_mend_that_is_told_works(door: Door, tmp_path: Path) -> None:
    if not door.skip:
        pytest.skip(f"{door.runner} leaves no rows out")
    path, _ = five_faults(tmp_path)
    run = ask(door, tmp_path, path, lambda body: "ok", media_root=str(tmp_path), skip_bad=True)
    assert (run.code != 0) == door.fails, run.said[-5000:]
    assert len(run.bodies) == 56 + door.warm_up


def test_builtin_shapes_scores_as_in_mmprompt_run(door: Door, tmp_path: Path, shapes: tuple[Path, float]) -> None:
    path, score = shapes
    with served_shapes(tmp_path) as url:
        words = [*door.command(Ask(tmp_path, path, url, "builtin:shapes")), *door.in_one_process]
        done = run_words(tmp_path, words, **door.variables(url))
    assert done.returncode == 0, done.stdout + done.stderr
    assert door.results(tmp_path).score == pytest.approx(score, abs=1e-4)
