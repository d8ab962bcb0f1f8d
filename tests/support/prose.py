"""The sentences of a page, of docstrings, comments and texts, for the gate on prose (tests/test_prose.py).

A sentence ends with `.`, `!` or `?` before a space and a beginning (a capital, a digit, a quote, code), or with its block. Blocks are
paragraphs, headings, items of lists, cells of tables and the entries of a docstring's sections. A code span counts as one word, a link by
its text, a picture not at all; code blocks and HTML comments are no prose.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.trees import tree_of

CODE = "`code`"
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+")
_OPENS = re.compile(r"^\s*(?:#{1,6} |!!! |\?\?\? |>|:::)")
_ENTRY = re.compile(r"^\*{0,2}\w[\w.]*(?: \([^)]*\))?: ")
_SECTION = re.compile(r"^(?:Args|Arguments|Attributes|Returns|Raises|Yields|Example|Examples|Note|Keyword Args|Warns):$")
_SPAN = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_NAMES = re.compile(rf"(?:{CODE}\W{{1,3}}(?:(?:and|or) )?){{2,}}{CODE}")
_END = re.compile(r"(?<=[.!?])[\"”')*_]*\s+(?=[\"“'(*_]*(?:[A-Z0-9]|" + re.escape(CODE) + "))")


class Sentence(NamedTuple):
    """A sentence, and the line on which its block begins."""

    line: int
    text: str

    @property
    def words(self) -> int:
        """How many words it has: what holds a letter or a digit."""
        return sum(1 for word in self.text.split() if re.search(r"\w", word))


def without_code(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, numbered; code blocks, front matter and HTML comments are blank lines."""
    for pattern in (_FRONT_MATTER, _COMMENT):
        text = pattern.sub(lambda found: "\n" * found[0].count("\n"), text)
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        found = _FENCE.match(line)
        if fence:
            yield number, ""
            fence = "" if found and found["fence"].startswith(fence) and line.strip() == found["fence"] else fence
        elif found:
            fence = found["fence"]
            yield number, ""
        else:
            yield number, line


def blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Sentence]:
    """Paragraphs, headings, items and cells, each on one line, at the line of its beginning."""
    held: list[str] = []
    begin = 0
    for number, line in [*lines, (0, "")]:
        in_table = line.lstrip().startswith("|")
        opens = in_table or bool(_ITEM.match(line) or _OPENS.match(line))
        if held and (opens or not line.strip()):
            yield Sentence(begin, " ".join(held))
            held = []
        if in_table:
            yield from (Sentence(number, cell.strip()) for cell in re.split(r"(?<!\\)\|", _SPAN.sub(CODE, line)) if cell.strip(" -:"))
        elif line.strip():
            begin = begin if held else number
            held.append(_OPENS.sub("", _ITEM.sub("", line)).strip() if opens else line.strip())
            if line.startswith("#"):
                yield Sentence(begin, " ".join(held))
                held = []


def sentences(lines: Iterable[tuple[int, str]]) -> Iterator[Sentence]:
    """The sentences of all blocks."""
    for line, block in blocks(lines):
        plain = _LINK.sub(r"\1", _PICTURE.sub("", _SPAN.sub(CODE, block)))
        yield from (Sentence(line, one) for one in _END.split(_NAMES.sub(CODE, plain)) if one.strip())


def of_page(path: Path) -> list[Sentence]:
    """The sentences of a Markdown page."""
    return list(sentences(without_code(path.read_text(encoding="utf-8"))))


def words_around_code(path: Path) -> tuple[int, int]:
    """The words of a page before its first code block, and all its words outside of code blocks."""
    text = path.read_text(encoding="utf-8")
    first = next((number for number, line in enumerate(text.splitlines(), 1) if _FENCE.match(line)), text.count("\n") + 1)
    before, words = 0, 0
    for number, line in without_code(text):
        counted = sum(1 for word in line.split() if re.search(r"\w", word))
        before += counted if number < first else 0
        words += counted
    return before, words


def of_docstrings(path: Path) -> Iterator[Sentence]:
    """The sentences of the docstrings of a module, those below a name included; an entry of a section is a block."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines = []
            for number, line in without_code(node.value.value.strip("\n")):
                plain, place = line.strip(), node.lineno + number - 1
                lines += [(place, "")] if _ENTRY.match(plain) else []
                lines.append((place, "" if _SECTION.match(plain) or plain.startswith((">>>", "...")) else line))
            yield from sentences(lines)


def of_comments(path: Path) -> Iterator[Sentence]:
    """The sentences of the comments of a module; comments on lines in a row are one block."""
    lines: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            own = not token.line[:column].strip()
            if not own or not lines or lines[-1][0] != row - 1:
                lines.append((row - 1, ""))
            lines.append((row, token.string.lstrip("#:! ")))
    yield from sentences(lines)


def of_texts(path: Path) -> Iterator[Sentence]:
    """The sentences of the other texts of a module that have six words and more: errors, logs and the like. A value put in is a word."""
    nodes = list(ast.walk(tree_of(path)))
    apart = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    apart |= {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    for node in nodes:
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        pieces = [str(part.value) if isinstance(part, ast.Constant) else "x" for part in parts]
        is_text = isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
        if is_text and id(node) not in apart and "".join(pieces).count(" ") > 4:
            yield from sentences((node.lineno, line) for line in "".join(pieces).splitlines())
