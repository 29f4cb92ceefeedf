"""Rules on what a target does with requests that it accepts."""

from __future__ import annotations

from collections.abc import Iterator

from mmprompt.check.rule import CheckedRow, Hit, dataset_rule, row_rule
from mmprompt.check.store import Store
from mmprompt.errors import SourceError
from mmprompt.media.image.headers import picture_size

_BATCH_REQUESTS, _BATCH_BYTES = 50_000, 200 * 10**6
"""What OpenAI's Batch API takes in one file: requests, and bytes."""

_KEPT_SIDE = {"openai": 2048, "anthropic": 1568, "gemini": 3072}
"""The longer side, in pixels, to which a target scales a larger picture before most of its models see it. Newer models
may keep more, so the rule is only information."""


@row_rule("MM807")
def scaled_by_target(row: CheckedRow) -> Iterator[Hit]:
    """A picture of which the target shows its model a smaller copy."""
    most = _KEPT_SIDE.get(row.target)
    for medium in row.media if most is not None and not row.errors else ():
        if medium.part is None or medium.modality != "image" or most is None:
            continue
        try:
            size = picture_size(medium.part.data)
        except SourceError:  # a finding of its own
            continue
        if max(size) > most:
            what = f"{medium.name} has {size[0]} x {size[1]} pixels, and {row.target} scales it to {most}"
            yield Hit(
                what, f"cut out what matters, or scale it yourself: --max-side {most}", medium.column, medium.offset
            )


@dataset_rule("MM806")
def batch_too_large(store: Store) -> Iterator[Hit]:
    """More requests, or larger ones, than one file of OpenAI's Batch API takes."""
    if store.target != "openai":
        return
    requests, size = next(store.query("SELECT TOTAL(requests), TOTAL(size) FROM samples"))
    hint = f"write several files: --shard-rows {_BATCH_REQUESTS} --shard-bytes {_BATCH_BYTES}"
    if requests > _BATCH_REQUESTS:
        yield Hit(f"{requests:.0f} requests are more than a batch takes ({_BATCH_REQUESTS})", hint)
    if size > _BATCH_BYTES:
        yield Hit(f"about {size / 1e6:.0f} MB are more than a batch takes ({_BATCH_BYTES / 1e6:.0f})", hint)
