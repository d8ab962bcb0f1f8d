"""How a model's Markdown becomes HTML, for pages that must not trust it.

Everything is escaped, and only the marks below become tags: nothing in a text can load an image, run, or look like a part of the page
around it. A link shows its address, an image is a link, a formula is as it was written. Marks that reach far are left as text, so
that no text takes long.
"""

import re
from collections.abc import Callable, Sequence
from html import escape
from itertools import takewhile
from typing import Final, TypeAlias

from ..messages.display import printable
from ..strict_json import mend_surrogates

_Lines: TypeAlias = Sequence[str]


_Found: TypeAlias = tuple[str, int] | None  # the HTML of a block, and the line behind it


_DEEPEST: Final = 6  # blocks in blocks, marks in marks


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(?:([\w+#.-]{1,30})(?![^\s,{}]))?[^`]*$")


_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")


_RULE = re.compile(r" {0,3}(?:-[ \t]*){3,}$| {0,3}(?:\*[ \t]*){3,}$| {0,3}(?:_[ \t]*){3,}$")


_QUOTE = re.compile(r" {0,3}> ?")


_ITEM = re.compile(r"( *)([-*+]|(\d{1,9})[.)])(?: +|$)")


_DASHES = re.compile(r" *\|? *:?-+:? *(?:\| *:?-+:? *)*\|? *$")


_CELL_END = re.compile(r"(?<!\\)\|")


_ADDRESS = r"https?://[^\s<>\"'`]{1,1000}"


_INLINE = re.compile(
    r"\$\$(?P<math>[^$]{1,1000}?)\$\$|\\\[(?P<math_>.{1,1000}?)\\\]|\\\((?P<inline_math>.{1,500}?)\\\)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|(?<!`)(?P<marks>`{1,9})(?!`)(?P<code>.{1,500}?)(?<!`)(?P=marks)(?!`)"
    rf"|!?\[(?P<label>[^\[\]]{{0,300}})\]\((?P<target>{_ADDRESS}?)(?: +\"[^\"]{{0,300}}\")?\)"
    rf"|(?P<bare>{_ADDRESS}(?<![.,;:!?)\]*_~]))"
    r"|\*\*(?=\S)(?P<strong>.{1,500}?)(?<=\S)\*\*"
    r"|\*(?=[^\s*])(?P<em>[^*]{1,500}?)(?<=\S)\*(?!\*)"
    r"|(?<!\w)_(?=[^\s_])(?P<em_>[^_]{1,500}?)(?<=\S)_(?!\w)"
    r"|~~(?=\S)(?P<del>.{1,500}?)(?<=\S)~~",
    re.DOTALL,
)


def markdown_html(text: str) -> str:
    """Return a text in Markdown as HTML that contains nothing from the text but words.

    Args:
        text: What a model wrote, also as far as it has written it.
    """
    return "\n".join(markdown_parts(text))


def markdown_parts(text: str) -> list[str]:
    """Return the HTML of a Markdown text, one entry per paragraph, list, table or other block."""
    return _parts([line.expandtabs(4).rstrip() for line in printable(mend_surrogates(text)).split("\n")], 0)


def _blocks(lines: _Lines, depth: int) -> str:
    return "\n".join(_parts(lines, depth))


def _parts(lines: _Lines, depth: int) -> list[str]:
    shown: list[str] = []
    at = 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        found = _found(lines, at, depth)
        html, at = found or _paragraph(lines, at, depth)
        shown.append(html)
    return shown


def _found(lines: _Lines, at: int, depth: int) -> _Found:
    """Return the block, other than a paragraph, that begins at a line."""
    found = (rule(lines, at, depth) for rule in _RULES if depth < _DEEPEST)
    return next((one for one in found if one is not None), None)


def _fence(lines: _Lines, at: int, depth: int) -> _Found:
    opening = _FENCE.match(lines[at])
    if opening is None:
        return None
    mark = opening[1]
    code = list(takewhile(lambda line: not (line.strip().startswith(mark) and not line.strip().strip(mark[0])), lines[at + 1 :]))
    shown = escape("\n".join(code))
    language = f' class="language-{opening[2]}"' if opening[2] else ""
    return f"<pre><code{language}>{shown}</code></pre>", at + len(code) + 2


def _heading(lines: _Lines, at: int, depth: int) -> _Found:
    heading = _HEADING.match(lines[at])
    if heading is None:
        return None
    return f'<p class="at-heading at-heading-{len(heading[1])}"><strong>{_inline(heading[2] or "")}</strong></p>', at + 1


def _quote(lines: _Lines, at: int, depth: int) -> _Found:
    quoted = list(takewhile(_QUOTE.match, lines[at:]))
    if not quoted:
        return None
    return f"<blockquote>{_blocks([_QUOTE.sub('', line, count=1) for line in quoted], depth + 1)}</blockquote>", at + len(quoted)


def _list(lines: _Lines, at: int, depth: int) -> _Found:
    first = _ITEM.match(lines[at])
    if first is None:
        return None
    items: list[str] = []
    while at < len(lines) and (item := _ITEM.match(lines[at])) and bool(item[3]) == bool(first[3]):
        inside, at = _item(lines, at, item)
        html = _blocks(inside, depth + 1)
        tight = "" not in inside and html.startswith("<p>")
        items.append(f"<li>{html[3:].replace('</p>', '', 1) if tight else html}</li>")
    tag = f'ol start="{int(first[3])}"' if first[3] else "ul"
    return f"<{tag}>{''.join(items)}</{tag[:2]}>", at


def _item(lines: _Lines, at: int, item: re.Match[str]) -> tuple[list[str], int]:
    """Return the lines of a list item, without their indent, and the number of the line after it."""
    indent = len(item[1]) + 2
    inside = [lines[at][item.end() :]]
    at += 1
    while at < len(lines):
        line = lines[at]
        space = len(line) - len(line.lstrip())
        goes_on = bool(inside[-1]) and not _begins(lines, at)
        if line and space < indent and not goes_on:
            break
        inside.append(line[min(space, item.end()) :])
        at += 1
    while inside and not inside[-1]:
        inside.pop()
    return inside, at


def _table(lines: _Lines, at: int, depth: int) -> _Found:
    if not _is_table(lines, at):
        return None
    rows = list(takewhile(lambda line: "|" in line, lines[at + 2 :]))
    head = f"<thead>{_row(lines[at], 'th')}</thead>"
    return f"<table>{head}<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>", at + 2 + len(rows)


def _is_table(lines: _Lines, at: int) -> bool:
    return "|" in lines[at] and at + 1 < len(lines) and _DASHES.match(lines[at + 1]) is not None


def _row(line: str, tag: str) -> str:
    cells = _CELL_END.split(line.strip().removeprefix("|").removesuffix("|"))
    shown = "".join(f"<{tag}>{_inline(cell.strip())}</{tag}>" for cell in cells)
    return f"<tr>{shown}</tr>"


def _paragraph(lines: _Lines, at: int, depth: int) -> tuple[str, int]:
    end = at + 1
    while end < len(lines) and lines[end] and not (depth < _DEEPEST and _begins(lines, end)):
        end += 1
    shown = _inline("\n".join(line.lstrip() for line in lines[at:end])).replace("\n", "<br>")
    return f"<p>{shown}</p>", end


_RULES: Sequence[Callable[[_Lines, int, int], _Found]] = (
    _fence,
    _heading,
    lambda lines, at, _: ("<hr>", at + 1) if _RULE.match(lines[at]) else None,
    _quote,
    _list,
    _table,
)


def _begins(lines: _Lines, at: int) -> bool:
    """Whether a block other than a paragraph begins at a line."""
    return any(mark.match(lines[at]) for mark in (_FENCE, _HEADING, _RULE, _QUOTE, _ITEM)) or _is_table(lines, at)


def _inline(text: str, depth: int = 0) -> str:
    if depth == _DEEPEST:
        return escape(text)
    shown: list[str] = []
    at = 0
    for mark in _INLINE.finditer(text):
        shown += [escape(text[at : mark.start()]), _marked(mark, depth)]
        at = mark.end()
    return "".join([*shown, escape(text[at:])])


def _marked(mark: re.Match[str], depth: int) -> str:
    kind = str(mark.lastgroup)
    inside = mark[kind]
    if kind == "escaped":
        return escape(inside)
    if kind == "code":
        return f"<code>{escape(inside.strip() or inside)}</code>"
    if kind.startswith(("math", "inline")):
        return f'<span class="at-{kind.rstrip("_")}">{escape(" ".join(mark[0].split()))}</span>'
    if kind == "bare":
        return _link(inside)
    if kind == "target":
        label = mark["label"].strip()
        return _link(inside) if label in ("", inside) else f"{_inline(label, depth + 1)} ({_link(inside)})"
    tag = kind.rstrip("_")
    return f"<{tag}>{_inline(inside, depth + 1)}</{tag}>"


def _link(address: str) -> str:
    """Return a link that shows its address."""
    shown = escape(address)
    return f'<a href="{shown}" target="_blank" rel="noopener noreferrer nofollow">{shown}</a>'
