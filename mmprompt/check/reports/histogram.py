"""Histograms as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

_WIDTH, _HEIGHT, _BELOW = 240, 90, 16


def histogram(title: str, bars: Sequence[tuple[float, float, int]]) -> str:
    """Return a figure with a bar for each (low, high, count); the least and the greatest value stand below."""
    most = max([count for _, _, count in bars], default=0) or 1
    width = _WIDTH / max(len(bars), 1)
    drawn = []
    for number, (low, high, count) in enumerate(bars):
        height = _HEIGHT * count / most
        about = escape(f"{count:,} from {_number(low)} to {_number(high)}")
        place = f'x="{number * width:.1f}" y="{_HEIGHT - height:.1f}" width="{width - 1:.1f}" height="{height:.1f}"'
        drawn.append(f"<rect {place}><title>{about}</title></rect>")
    ends = f'<text x="0" y="{_HEIGHT + 12}">{_number(bars[0][0])}</text>' if bars else ""
    if bars:
        ends += f'<text x="{_WIDTH}" y="{_HEIGHT + 12}" text-anchor="end">{_number(bars[-1][1])}</text>'
    size = f'width="{_WIDTH}" height="{_HEIGHT + _BELOW}" viewBox="0 0 {_WIDTH} {_HEIGHT + _BELOW}"'
    label = escape(title)
    return (
        f"<figure><figcaption>{label}</figcaption>"
        f'<svg {size} role="img" aria-label="{label}">{"".join(drawn)}{ends}</svg></figure>\n'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.2f}"
