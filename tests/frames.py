"""Writes the parts of docs/development.md that name functions and files: `python -m tests.frames`."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.code_lines import code_lines
from langchain_autotools import ChatOpenAI
from tests.support.counted import PACKAGE
from tests.support.script import Call, Turn
from tests.test_costs import OpenAIInOnePiece

PAGE = Path(__file__).resolve().parents[1] / "docs" / "development.md"
BEGIN, END = "<!-- {}: written by python -m tests.frames -->\n", "<!-- end -->"
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR

TO_ADD = {
    "an event": ("`CallDiscarded`", r"\bCallDiscarded\b", ""),
    "a wrapper of turns": ("`TurnWrapper`", r"\bTurnWrapper\b", ""),
    "a wrapper of tool calls": ("`_in_turn`", r"\b_in_turn\b", "executor"),
    "a setting of a run": ("`polling_tools`", r"\bpolling_tools\b", ""),
    "a stop reason": ("`no_progress`", r"\bno_progress\b", ""),
    "a field of `ToolPolicy`": ("`max_output`", r"\bmax_output\b", "executor"),
    "a vendor that speaks chat completions": ("`ChatXAI`", r"\bChatXAI\b", ""),
}
"""What may be added; one that there is, what it is found by, and in which folder of the package."""


def described(code: CodeType) -> str:
    """A function of the package as the page names it: a generator is marked, as it is entered again for each part."""
    mark = " ↻" if code.co_flags & _GENERATOR else ""
    return f"{code.co_filename.removeprefix(PACKAGE + '/')}  {code.co_qualname.replace('.<locals>', '')}{mark}"


@contextmanager
def tracing(lines: list[str]) -> Iterator[None]:
    """Write down each call of a function of the package, indented below its caller."""
    depth = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal depth
        if event in ("call", "return") and frame.f_code.co_filename.startswith(PACKAGE):
            if event == "call":
                lines.append("   " * depth + described(frame.f_code))
            depth += 1 if event == "call" else -1

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(before)


def text_chunk(tools: list[Callable[..., str]]) -> list[str]:
    """The calls for one text chunk in the middle of a reply."""
    lines: list[str] = []
    with OpenAIInOnePiece(lambda _: Turn("word! " * 9)) as server:
        chunks = ChatOpenAI(model="m", api_key="key", base_url=server.url, **({"tools": tools} if tools else {})).stream("Hello")
        for _ in range(5):
            next(chunks)
        with tracing(lines):
            next(chunks)
        chunks.close()  # type: ignore[attr-defined]
    return lines


def tool_call() -> list[str]:
    """The functions between the caller and a tool that runs."""
    lines: list[str] = []

    def look(place: str) -> str:
        """Look at a place."""
        frame: FrameType | None = sys._getframe()
        while frame is not None:
            if frame.f_code.co_filename.startswith(PACKAGE):
                lines.insert(0, described(frame.f_code))
            frame = frame.f_back
        return "quiet"

    replies = [Turn(calls=[Call("look", {"place": "Rome"})]), Turn("Done.")]
    with OpenAIInOnePiece(replies) as server:
        model = ChatOpenAI(model="m", api_key="key", base_url=server.url, tools=[look])
        for _ in model.stream("Hello"):
            pass
    return ["   " * depth + line for depth, line in enumerate(lines)]


def look(place: str) -> str:
    """Look at a place."""
    return place


def block(title: str, lines: list[str]) -> str:
    """One tree of the page."""
    return "\n".join([f"{title}\n", "```", *lines, "```\n"])


def code_of(path: Path) -> str:
    """The lines of a file that hold code."""
    source = path.read_text(encoding="utf-8")
    numbers = code_lines(source)
    return "\n".join(line for number, line in enumerate(source.split("\n"), 1) if number in numbers)


def rows() -> list[str]:
    """The table of what may be added: the files of the package that name one that there is."""
    sources = {path.relative_to(PACKAGE).as_posix(): code_of(path) for path in sorted(Path(PACKAGE).rglob("*.py"))}
    lines = ["| To add | as there is | files of the package |", "|---|---|---|"]
    for what, (example, pattern, folder) in TO_ADD.items():
        files = [f"`{name}`" for name, code in sources.items() if name.startswith(folder) and re.search(pattern, code)]
        lines.append(f"| {what} | {example} | {', '.join(files)} |")
    return lines


@cache
def parts() -> dict[str, str]:
    """What the page says, by the name of its part."""
    trees = [
        block("A text chunk of a model without tools:", text_chunk([])),
        block("A text chunk of a model with tools:", text_chunk([look])),
        block("From the caller to a tool that runs:", tool_call()),
    ]
    return {"frames": "\n".join(trees), "files": "\n".join(rows()) + "\n"}


def written(page: str) -> str:
    """The page with what is true of the code."""
    for name, text in parts().items():
        begin = BEGIN.format(name)
        before, found, after = page.partition(begin)
        if not found:
            raise ValueError(f"the page has no part {name}")
        page = f"{before}{begin}\n{text}\n{END}{after.partition(END)[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
