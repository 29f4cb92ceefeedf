"""An ordered map over threads: results in the order of their items, with a bound on what waits in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

_I = TypeVar("_I")
_O = TypeVar("_O")

WAITING_BYTES = 64 << 20
"""No further item is started while items and results of this many bytes wait for their turn."""


def ordered_map(
    work: Callable[[_I], _O],
    items: Iterable[_I],
    workers: int,
    *,
    item_bytes: Callable[[_I], int],
    result_bytes: Callable[[_O], int],
) -> Generator[_O, None, None]:
    """Yield ``work(item)`` for each item, in order, computed by ``workers`` threads.

    At most ``2 * workers`` items are in flight, and together they hold at most ``WAITING_BYTES`` and one item more.
    ``items`` is iterated in the calling thread. An error of ``items`` or of ``work`` is raised when its turn comes.
    The threads end with the iteration. ``item_bytes`` returns the bytes that an item holds, ``result_bytes`` those that
    a result holds beside its item.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # one worker needs no threads

    source = iter(items)
    flying: deque[tuple[int, Future[_O]]] = deque()
    fault: BaseException | None = None
    more = True
    with ThreadPoolExecutor(workers, "mmprompt") as pool:
        try:
            while True:
                while more and len(flying) < 2 * workers and _held(flying, result_bytes) <= WAITING_BYTES:
                    try:
                        item = next(source)
                    except StopIteration:
                        more = False
                    except Exception as error:  # noqa: BLE001  # raised when its turn comes
                        fault, more = error, False
                    else:
                        flying.append((item_bytes(item), pool.submit(work, item)))
                if not flying:
                    if fault is not None:
                        raise fault
                    return
                yield flying.popleft()[1].result()
        finally:
            for _, future in flying:
                future.cancel()


def _held(flying: deque[tuple[int, Future[_O]]], result_bytes: Callable[[_O], int]) -> int:
    """Return the bytes that the items in flight and the results that wait hold together."""
    held = 0
    for size, future in flying:
        held += size
        if future.done() and future.exception() is None:
            held += result_bytes(future.result())
    return held
