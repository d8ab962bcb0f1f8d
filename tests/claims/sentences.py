"""The sentences of a page that claim something: found in its Markdown, outside of code, with the numbers that they state."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

_UNITS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen"]
WORDS = {
    **{word: float(number) for number, word in enumerate(_UNITS, 2)},
    **{"twice": 2.0, "twenty": 20.0, "thirty": 30.0, "forty": 40.0, "fifty": 50.0, "sixty": 60.0, "ninety": 90.0},
    **{"half": 0.5, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9},
}
"""Numbers that are written as words. One is an article as well, and none of them."""

_NUMBER = re.compile(rf"(?<![\w.,-])\d+(?:,\d{{3}})*(?:\.\d+)*(?![\w-])|\b(?:{'|'.join(WORDS)})\b", re.IGNORECASE)
_STRONG = re.compile(r"\b(?:not|cannot|\w+n't|yet|only|all|every|everything|always|never|no|none|nothing|nobody|neither)\b", re.IGNORECASE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\](?!\())*)\]\(([^)\s]+)\)")
_END = re.compile(r"(?<=[.!?])\x02?\s+(?=[A-Z`\"'\d])")


@dataclass(frozen=True)
class Sentence:
    """A sentence, a table's cell or a heading.

    Attributes:
        text: What a reader sees of it, on one line, code in backticks.
        links: Where its links lead, in their order.
    """

    text: str
    links: tuple[str, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """The numbers that it states. Digits of a name (gpt-5, SHA-256) are none."""
        return _NUMBER.findall(self.text)

    @property
    def claims(self) -> bool:
        """Whether it states a number, that something is not, or that all is."""
        return bool(self.numbers or _STRONG.search(self.text))

    def changed(self) -> Iterator[Sentence]:
        """The same sentence with each of its numbers changed in turn."""
        for found in _NUMBER.finditer(self.text):
            text = self.text[: found.start()] + _next(found.group()) + self.text[found.end() :]
            yield replace(self, text=text)


def _next(number: str) -> str:
    """Another number than this one, written alike: one more at its last place."""
    if number.lower() in WORDS:
        words = list(WORDS)
        return words[(words.index(number.lower()) + 1) % len(words)]
    before, last = re.fullmatch(r"(.*?)(\d+)", number.replace(",", "")).groups()  # type: ignore[union-attr]
    return before + str(int(last) + 1).zfill(len(last))


def value(number: str) -> float:
    """What a number says: 1,967 or two or 12.3."""
    return float(WORDS[number.lower()] if number.lower() in WORDS else number.replace(",", ""))


def sentences(markdown: str) -> list[Sentence]:
    """All sentences of a page: of its paragraphs, lists, headings, cells of tables and descriptions of pictures."""
    prose = re.sub(r"^ *```.*?^ *```$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    prose = re.sub(r"<!--.*?-->", "", prose, flags=re.DOTALL)
    return [sentence for block in _blocks(prose) for sentence in _split(block)]


def _blocks(prose: str) -> Iterator[str]:
    """What stands for itself, each as one line."""
    lines: list[str] = []
    for line in [*prose.splitlines(), ""]:
        stripped = line.strip()
        begins = re.match(r"(?:[-*+]|\d+\.)\s+|#+\s+", stripped)
        if lines and (not stripped or begins or stripped.startswith("|")):
            yield " ".join(lines)
            lines = []
        if stripped.startswith("|"):
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", stripped.strip("|")) if not re.fullmatch(r"[\s:-]*", cell))
        elif stripped.startswith("#"):
            yield stripped.lstrip("# ")
        elif stripped:
            lines.append(stripped[begins.end() :] if begins else stripped)


def _split(block: str) -> Iterator[Sentence]:
    """The sentences of a block: each with its links, and pictures by their descriptions."""
    for part in re.split(r"(!\[[^\]]*\]\([^)]*\))", block):
        picture = part.startswith("![")
        masked, links = _masked(part)
        for text in _END.split(masked):
            numbers = [int(number) for number in re.findall(r"\x00(\d+)\x01", text)]
            shown = re.sub(r"\x00\d+\x01|\x02", "", text).replace("**", "").strip()
            if shown:
                yield Sentence(shown, tuple(links[number] for number in numbers) if not picture else ())


def _masked(text: str) -> tuple[str, list[str]]:
    """The text with marks in the place of link targets, and the targets."""
    links: list[str] = []

    def shown(found: re.Match[str]) -> str:
        links.append(found[3])
        return f"{found[2]}\x00{len(links) - 1}\x01"

    return _LINK.sub(shown, text).replace("**", "\x02"), links
