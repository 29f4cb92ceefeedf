"""The page as one HTML file: template, styles and scripts of the package, and the data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from mmprompt.media.base64_text import encode_text

SCRIPTS = ("data", "list", "served", "filters", "sample", "conversation", "overview", "main")


def page_chunks(
    title: str,
    head: Mapping[str, Any],
    first: Iterable[tuple[str, str]] = (),
    later: Iterable[tuple[str, str]] = (),
    *,
    sources: str = "",
) -> Iterator[str]:
    """Yield a page in pieces.

    Args:
        title: its title.
        head: what the scripts need to know at once.
        first: names and texts of the data that the list needs.
        later: names and texts of all other data.
        sources: where scripts and media may come from beside the page, such as ``"file:"``.
    """
    script, css = _script(), _file("page.css")
    policy = content_policy(script, css, sources)
    yield _template().render(title=title, policy=policy, css=css, head=_in_script(head))
    yield from (_block(*each) for each in first)
    yield f"<script>{script}</script>\n"
    yield from (_block(*each) for each in later)
    yield "</body></html>\n"


def content_policy(script: str, css: str, sources: str) -> str:
    """Return the content security policy of a page: nothing but its own script and styles, by their digests."""
    rules = {
        "default-src": "'none'",
        "script-src": f"'sha256-{_digest(script)}' {sources}",
        "style-src": f"'sha256-{_digest(css)}'",
        "img-src": f"blob: {sources}",
        "media-src": f"blob: {sources}",
        "connect-src": sources if "'self'" in sources else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}".strip() for name, value in rules.items())


def _digest(text: str) -> str:
    return encode_text(hashlib.sha256(text.encode("utf-8")).digest())


def _in_script(value: Mapping[str, Any]) -> str:
    """Return JSON that no HTML parser takes for anything else."""
    return json.dumps(value, default=str).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _block(name: str, base64: str) -> str:
    return f'<script type="text/plain" id="{name}">{base64}</script>\n'


@cache
def _file(name: str) -> str:
    return files("mmprompt.viewer").joinpath("page", name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    return "\n".join([_file(f"{name}.js") for name in SCRIPTS])


@cache
def _template() -> Any:
    import jinja2  # noqa: PLC0415  # 20 ms, only for pages
    from markupsafe import Markup  # noqa: PLC0415  # with jinja2

    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters["own"] = Markup  # what is ours, or escaped already
    return environment.from_string(_file("page.html"))
