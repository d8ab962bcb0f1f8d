"""Random replies of every wire in which the vendor does something by itself, as its server sends them, and what a page is to have of each.

A writer makes one reply: `text`, `thought`, `function`, and the names in `kinds` and `waiting` are what can be in it, in any order;
`opened` begins a call of the vendor's that the reply does not end. `shows` is known from what was written, not from what was read.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tests.support.random_replies import WORDS
from tests.support.script import Events
from tests.support.vendor_replies import PIXEL

LARGE = (PIXEL[:40] + "QUJD" * 100_000, PIXEL[:40] + "REVG" * 90_000)
"""Files above 256 kB, which events that are kept have by reference."""
SCREEN = {"type": "image", "base64": PIXEL, "mime_type": "image/png"}
"""A screenshot."""
RESULTS: dict[str, Any] = {
    "computer_call": SCREEN,
    "computer": SCREEN,
    "shell_call": [{"stdout": "a.txt", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
    "apply_patch_call": {"status": "completed", "output": "done"},
    "bash": "a.txt",
    "str_replace_based_edit_tool": "1 line",
    "memory": "nothing yet",
}
"""What the caller's machine answers to a call that waits."""


@dataclass
class Shows:
    """What a page is to have of one reply, each kind in order.

    Attributes:
        text: The text.
        thought: The reasoning.
        calls: The vendor's own calls: name, arguments, output, whether it failed.
        sources: Address and title of pages, name of documents.
        files: The addresses of files.
        kept: The ids of files that the vendor keeps.
        functions: The calls of tools and of the vendor's tools for the caller's machine: name and arguments.
    """

    text: str = ""
    thought: str = ""
    calls: list[tuple[str, Any, Any, bool]] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    functions: list[tuple[str, Any]] = field(default_factory=list)


class Writer:
    """Writes one reply.

    Args:
        draw: What is drawn from.
        number: A number that no other reply has.
    """

    kinds: ClassVar[Sequence[str]] = ()
    waiting: ClassVar[Sequence[str]] = ()

    def __init__(self, draw: random.Random, number: int) -> None:
        self.draw, self.number, self.count = draw, number, 0
        self.events: list[dict[str, Any]] = []
        self.content: list[dict[str, Any]] = []
        self.shows = Shows()
        self.vocabulary: Sequence[str] = WORDS

    def word(self) -> str:
        """A word that may look like anything."""
        return self.draw.choice(self.vocabulary)

    def words(self) -> list[str]:
        """The pieces of a text, not empty."""
        return [self.word() for _ in range(self.draw.randint(1, 4))]

    def next(self, prefix: str) -> str:
        """An id that no other item has."""
        self.count += 1
        return f"{prefix}_{self.number}_{self.count}"

    def page(self) -> dict[str, str]:
        """A page that is cited; some are cited twice."""
        page = {"url": f"https://example.org/{self.number}/{self.draw.randint(1, 4)}", "title": f"<b>{self.word()}</b>"}
        self.shows.sources.append(page["url"])
        return page

    def made(self, mime_type: str = "image/png") -> str:
        """The data of a file that is made."""
        data = self.draw.choice(LARGE) if self.draw.random() < 0.15 else PIXEL
        self.shows.files.append(f"data:{mime_type};base64,{data}")
        return data

    def called(self, name: str, args: Any, output: Any = None, failed: bool = False) -> bool:
        """Note a call of the vendor's; whether it failed."""
        self.shows.calls.append((name, args, output, failed))
        return failed

    def fails(self) -> bool:
        """Whether something fails, which is seldom."""
        return self.draw.random() < 0.25

    def text(self) -> None:
        """Some text."""
        raise NotImplementedError

    def thought(self) -> None:
        """Some reasoning."""
        raise NotImplementedError

    def function(self, name: str, args: Mapping[str, Any]) -> None:
        """A call of a function."""
        raise NotImplementedError

    def opened(self) -> None:
        """A call of the vendor's that has no end."""

    def reply(self) -> Events:
        """The whole reply."""
        raise NotImplementedError

    def cut(self) -> Events:
        """What was written, as a stream that ends there."""
        return Events(self.events, done=False)
