"""The charts of docs/benchmarks.md show the figures of its tables, in words too, and are drawn by the command that measures."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import _TASKS, PAGES, write
from benchmarks.charts import CHARTS, PEERS, description, draw, keep, kept, measured

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
HEADINGS = {"text": "## Streamed text", "arguments": "## Argument fragments", "turns": "## A turn with two tool calls"}
SVG = "{http://www.w3.org/2000/svg}"

tasks = pytest.mark.parametrize("task", list(CHARTS))


@tasks
def test_the_kept_figures_are_those_of_the_table(task: str) -> None:
    """In the column of the size that the chart shows, row by row."""
    section = PAGE[PAGE.index(HEADINGS[task]) :].partition("\n## ")[0]
    lines = [re.split(r"(?<!\\)\|", line) for line in section.splitlines() if line.startswith("|")]
    head, _, *rows = [[cell.strip() for cell in line] for line in lines]
    column = next(place for place, cell in enumerate(head) if cell.split()[:1] == [f"{CHARTS[task].size:,}"])
    assert [float(row[column]) for row in rows] == list(kept()[task].values())


@tasks
def test_a_chart_says_in_words_what_it_shows(task: str) -> None:
    """For readers and programs that do not see it: in the file, and where the page has it."""
    words = description(task, kept()[task])
    svg = (DOCS / "images" / f"benchmark_{task}.svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    assert (root.attrib["role"], root.findtext(f"{SVG}desc"), root.findtext(f"{SVG}title")) == ("img", words, CHARTS[task].title)
    assert f"![{words}](images/benchmark_{task}.svg)" in PAGE
    assert "prefers-color-scheme: dark" in svg and not re.search("#0[1-4]0[1-4]0[1-4]", svg), "a colour that no scheme has"
    drawn = " ".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
    assert all(f"{PEERS[peer]}: {cost:,.1f}" in drawn for peer, cost in kept()[task].items())


def test_what_was_measured_is_kept_and_drawn(tmp_path: Path) -> None:
    """In units of the chart, in place of what was kept of the task; the charts of other tasks stay."""
    pytest.importorskip("matplotlib", reason="needs the extra `bench`")
    figures = {("sdk", "text", 4000): (2e-4, 1.0), ("autotools", "text", 4000): (1e-5, 1.0), ("autotools", "text", 500): (3e-5, 1.0)}
    path = tmp_path / "figures.json"
    path.write_text('{"turns": {"sdk": 2.0}, "text": {"floor": 1.0}}')
    keep({"text": measured("text", figures)}, path)
    assert kept(path) == {"turns": {"sdk": 2.0}, "text": {"sdk": 200.0, "autotools": 10.0}}
    (_, text) = draw(kept(path), tmp_path)
    assert "autotools: 10.0 µs (0.05 of the SDK)" in text.read_text(encoding="utf-8")
    assert measured("arguments", figures) == {}


def test_what_was_measured_is_written_where_it_has_its_place(tmp_path: Path) -> None:
    """On the users' page or on the contributors' one, or on both; each table has a place, and what nobody has a place for is refused."""
    pages = [tmp_path / page.name for page in PAGES]
    for page, copy in zip(PAGES, pages, strict=True):
        copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    write({name: f"new of {name}" for name in ("when", *_TASKS)}, pages)
    users, contributors = (page.read_text(encoding="utf-8") for page in pages)
    assert {name for name in ("when", *_TASKS) if f"\nnew of {name}\n\n<!-- end -->\n" not in users + contributors} == set()
    assert "new of when" in users and "new of when" in contributors
    assert "new of text" not in contributors and f"![{description('text', kept()['text'])}]" in users
    with pytest.raises(SystemExit, match="no page has a place for another"):
        write({"another": "1"}, pages)
