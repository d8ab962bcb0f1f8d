"""Text of a model or a client as Markdown for Gradio, with all foreign markup escaped.

Gradio takes tags of HTML in Markdown for tags, forms and styles among them. So the text is made into HTML in which nothing comes from it
but words, and that stands in Markdown as blocks of HTML, which Gradio leaves alone: they begin with a tag, have no empty line, and whatever
could mean something to Gradio is a character reference. Code is the exception: it stands in a fence that it cannot end.
"""

import base64
import re
from collections.abc import Mapping
from html import escape, unescape
from typing import Any, Final

from langchain_core.messages import BaseMessage

from ..addresses import is_page
from ..messages.metadata import text_of
from ..messages.printable import printable
from ..strict_json import mend_surrogates
from .rich_text import markdown_parts

MATH_DELIMITERS: Final[list[dict[str, str | bool]]] = [
    {"left": "$$", "right": "$$", "display": True},
    {"left": "\\(", "right": "\\)", "display": False},
]
"""Delimiters for `gr.Chatbot(latex_delimiters=...)` that also render formulas within a line."""

_CODE = re.compile(r'<pre><code(?: class="language-([\w+#.-]+)")?>(.*)</code></pre>', re.DOTALL)
_MATH = re.compile(r'<span class="at-(math|inline_math)">(?:\$\$|\\\[|\\\()(.*?)(?:\$\$|\\\]|\\\))</span>')
_MEANS_MORE = re.compile(r"\$\$|\\[\[(]|%%%")  # to Gradio, which looks for formulas in code too
_REFERENCES: Final = {ord(mark): f"&#{ord(mark)};" for mark in "$\\%\n"}
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml);base64,[A-Za-z0-9+/=]+")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*://")
_STYLE: Final = "width:auto;max-width:100%;max-height:28em;border-radius:8px"
_INSIDE: Final = "contain:paint"  # a formula may ask to be drawn elsewhere


def gradio_markdown(text: str) -> str:
    """Return a text in Markdown that Gradio shows without HTML from the text.

    Args:
        text: What was written, also as far as it has been.
    """
    return "\n\n".join(_code(*code.groups()) if (code := _CODE.fullmatch(part)) else _block(part) for part in markdown_parts(text))


def gradio_code(text: str) -> str:
    """Return text with every character shown literally."""
    return _code("text", escape(printable(mend_surrogates(text))))


def gradio_words(text: str) -> str:
    """Return text on one line, with every character shown literally."""
    words = " ".join(printable(mend_surrogates(text)).split())
    return "".join(one if one.isalnum() or one in " _-,;" else f"&#{ord(one)};" for one in words)


def gradio_images(message: BaseMessage) -> str:
    """Return the images in a message, from their data. For an image elsewhere, which is not fetched, its address."""
    return "\n\n".join(_block(_image(block)) for block in message.content_blocks if block["type"] == "image")


def gradio_image(address: str) -> str:
    """Return an image from an address that holds its data."""
    return _block(_image({"url": address}))


def gradio_link(address: str) -> str:
    """Return an address as a link of HTML within a line."""
    shown = escape(address).translate(_REFERENCES)
    return f'<a href="{shown}" target="_blank" rel="noopener noreferrer nofollow">{shown}</a>'


def gradio_message(message: BaseMessage) -> str:
    """Return the text of a message, and its images."""
    return "\n\n".join(part for part in (gradio_markdown(text_of(message)), gradio_images(message)) if part)


def _image(block: Mapping[str, Any]) -> str:
    address = str(block.get("url") or "")
    if data := block.get("base64"):
        data = base64.b64encode(data).decode() if isinstance(data, bytes) else data
        address = f"data:{block.get('mime_type') or 'image/png'};base64,{data}"
    if _IMAGE.fullmatch(address):
        return f'<img src="{address}" alt="image" style="{_STYLE}">'
    if is_page(address):
        return "".join(markdown_parts(f"Image: {address}"))
    return f"<p>Image: {escape(printable(mend_surrogates(address)))}</p>" if _ELSEWHERE.match(address) else "<p>[image]</p>"


def _block(html: str) -> str:
    """Return a block of HTML, on one line."""
    pieces, at = [], 0
    for math in _MATH.finditer(html):
        left, right = ("$$", "$$") if math[1] == "math" else ("\\(", "\\)")
        inside = f'<span style="{_INSIDE};display:inline-block;max-width:100%">{left}{math[2].translate(_REFERENCES)}{right}</span>'
        pieces += [html[at : math.start()].translate(_REFERENCES), inside]
        at = math.end()
    return f"<div>{''.join(pieces)}{html[at:].translate(_REFERENCES)}</div>"


def _code(language: str | None, escaped: str) -> str:
    """Return code in a safe fence; as HTML if Gradio would process its content."""
    code = unescape(escaped)
    if language == "mermaid" or _MEANS_MORE.search(code):
        return _block(f"<pre><code>{escaped}</code></pre>")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
    return f"{fence}{language or ''}\n{code}\n{fence}"
