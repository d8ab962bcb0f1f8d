"""`docs/wire_quirks.md`: its streams come out as it says, and what it says is handled is shown somewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.providers.openai.fragments import FragmentReader, fragment_reader, told

REPOSITORY = Path(__file__).resolve().parent.parent
PAGE = (REPOSITORY / "docs" / "wire_quirks.md").read_text(encoding="utf-8")
ENTRIES = {entry[:4]: entry for entry in re.split(r"^### (?=[A-Z]-\d\d$)", PAGE, flags=re.MULTILINE)[1:]}

_BLOCK = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r"""'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<json>\{.*?\}|null|\d+)|-""")
_ID = r"[A-Z]-\d\d"
_CITED = re.compile(rf"[Ww]ire quirks? ({_ID}(?:(?:, | to | and ){_ID})*)")
_RANGE = re.compile(rf"({_ID}) to ({_ID})")
_OUTSIDE = re.compile(r"(?<!\w)(?:quirks|langchain|design|house)\.md")


def read_entry(text: str) -> dict[str, Any]:
    """An entry of `tool_calls` out of `index id name arguments`."""
    values = [_value(match) for match in _TOKEN.finditer(text)]
    assert len(values) == 4, text
    named = dict(zip(("index", "id", "name", "arguments"), values, strict=True))
    sent = {key: value for key, value in named.items() if value is not ...}
    function = {key: sent.pop(key) for key in ("name", "arguments") if key in sent}
    return {**sent, "function": function}


def _value(match: re.Match[str]) -> Any:
    quoted = match["single"] if match["single"] is not None else match["double"]
    if quoted is not None:
        return quoted
    return json.loads(match["json"]) if match["json"] else ...


def streams() -> Iterator[Any]:
    """Each stream of the page: its chunks, and the calls that the page says it makes."""
    for name, text in {"": PAGE.partition("\n## A.")[0], **ENTRIES}.items():
        for block in _BLOCK.findall(text):
            lines = block.splitlines()
            chunks = [[read_entry(entry) for entry in line.split(" ; ")] for line in lines if not line.startswith("=")]
            expected = [_call(line) for line in lines if line.startswith("=")]
            yield pytest.param(chunks, expected, id=name or "the example")


def _call(line: str) -> tuple[str, dict[str, Any] | None]:
    _, name, arguments = line.split(" ", 2)
    return name, None if arguments == "refused" else json.loads(arguments)


def cited(text: str) -> set[str]:
    """The entries that a text cites as `wire quirk A-10`, `wire quirks A-10, A-11` or `wire quirks C-01 to C-17`."""
    found: set[str] = set()
    for names in _CITED.findall(text):
        found |= set(re.findall(_ID, names))
        for first, last in _RANGE.findall(names):
            found |= {f"{first[:2]}{number:02}" for number in range(int(first[2:]), int(last[2:]) + 1)}
    return found


def files(*folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of each Python file in the folders."""
    for folder in folders:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            yield str(path.relative_to(REPOSITORY)), path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader() -> Iterator[FragmentReader]:
    """One model and server for all streams."""
    with fragment_reader() as reading:
        yield reading


@pytest.mark.parametrize(("chunks", "expected"), list(streams()))
def test_a_stream_of_the_page(reader: FragmentReader, chunks: list[Any], expected: list[tuple[str, dict[str, Any] | None]]) -> None:
    """Sent over HTTP, a stream makes the calls that the page says; those that it calls refused do not run."""
    assert told(reader.read(chunks, sorted({name for name, _ in expected}))) == expected


def test_every_entry_says_what_is_done_and_where_it_is_from() -> None:
    """A verdict and a source each; one heading for each number."""
    assert len(ENTRIES) == len(re.findall(r"^### ", PAGE, flags=re.MULTILINE))
    for name, entry in ENTRIES.items():
        verdicts = re.findall(r"^- (?:Handled|Partly handled|Not handled)\b", entry, flags=re.MULTILINE)
        assert len(verdicts) == 1, name
        assert len(re.findall(r"^- Source: .", entry, flags=re.MULTILINE)) == 1, name


def test_every_citation_is_on_the_page() -> None:
    """What code and tests cite as a wire quirk can be looked up."""
    missing = {(name, one) for name, text in files("langchain_autotools", "tests") for one in cited(text) - ENTRIES.keys()}
    assert not missing


def test_what_is_handled_is_shown() -> None:
    """By a stream of the page or a test that names it; a range of numbers shows nothing."""
    texts = [_RANGE.sub("", text) for name, text in files("tests") if not name.endswith(Path(__file__).name)]
    shown = {one for text in texts for one in re.findall(rf"\b{_ID}\b", text)}
    shown |= {name for name, entry in ENTRIES.items() if _BLOCK.search(entry)}
    handled = {name for name, entry in ENTRIES.items() if "\n- Not handled" not in entry}
    assert sorted(handled - shown) == []


def test_nothing_outside_the_repository_is_cited() -> None:
    """Notes that were never published are no source."""
    texts = [*files("langchain_autotools", "tests", "examples", "benchmarks"), *((page.name, page.read_text()) for page in _pages())]
    here = Path(__file__).name
    assert [name for name, text in texts if _OUTSIDE.search(text) and not name.endswith(here)] == []


def _pages() -> list[Path]:
    return [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]
