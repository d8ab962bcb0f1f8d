"""Prose is in short sentences, and says "is" for "is"; a how-to shows code before it explains (`tests/support/prose.py` counts)."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support import prose
from tests.support.prose import Sentence
from tests.test_house import MODULES, PACKAGE, PYTHON_FILES, REPOSITORY, each_file

pytestmark = pytest.mark.house

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))]
HOWTOS = sorted((DOCS / "howto").glob("*.md"))
MOST_WORDS = 40
STANDS = re.compile(r"\b(?:stand|stands|standing|stood)\b(?!-(?:alone|in|ins)\b)(?! (?:(?:in )?for|out|still)\b)", re.IGNORECASE)
"""The word where it means that something is somewhere. To stand for something or in for it, to stand out and to stand still may be said."""
NO_PROSE = {
    "history/summaries.py": "what a model is asked for a summary: other words would be another request",
    "showing/gradio_chat.py": "the script of a page",
    "showing/notebook.py": "the style of a page",
}
"""Modules whose texts are not read by people, and what they are."""
HOWTO_WORDS = 900
WORDS_BEFORE_CODE = 120


def faults(sentences: Iterable[Sentence]) -> list[str]:
    """What breaks a rule, each with its line."""
    found = []
    for one in sentences:
        if one.words > MOST_WORDS:
            found.append(f"line {one.line}: {one.words} words: {one.text}")
        if STANDS.search(one.text):
            found.append(f'line {one.line}: "stands" for "is": {one.text}')
    return found


def test_the_sentences_of_pages() -> None:
    """At most 40 words each, and none with "stands" for "is"."""
    found = [f"{page.relative_to(REPOSITORY)}, {fault}" for page in PAGES for fault in faults(prose.of_page(page))]
    assert not found, "\n".join(found)


@each_file(PYTHON_FILES)
def test_the_sentences_of_docstrings_and_comments(path: Path) -> None:
    """The same in modules of the package, the examples, the benchmarks and the tests."""
    if path != Path(__file__):  # it says what is refused
        found = faults([*prose.of_docstrings(path), *prose.of_comments(path)])
        assert not found, "\n".join(found)


@each_file([path for path in MODULES if path.relative_to(PACKAGE).as_posix() not in NO_PROSE])
def test_the_sentences_of_texts(path: Path) -> None:
    """The same in what the package says: errors, logs, the command's words."""
    found = faults(prose.of_texts(path))
    assert not found, "\n".join(found)


def test_what_is_no_prose_is_there() -> None:
    """A module of the list that has no fault leaves it."""
    assert [name for name in NO_PROSE if not faults(prose.of_texts(PACKAGE / name))] == []


def test_a_how_to_is_short_and_begins_with_its_code() -> None:
    """At most 900 words of prose, tables included, of which at most 120 come before its first block of code."""
    counted = {page.name: prose.words_around_code(page) for page in HOWTOS}
    assert {name: one for name, one in counted.items() if one[0] > WORDS_BEFORE_CODE or one[1] > HOWTO_WORDS} == {}


def of(text: str, tmp_path: Path) -> list[tuple[str, int]]:
    """The sentences of a page with this text, and their words."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    return [(one.text, one.words) for one in prose.of_page(page)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A title\nOne line,\nand its end. Another `one. two`? `It` is.", [("A title", 2), ("One line, and its end.", 5)]),
        ("Say e.g. this, i.e. that, 3.14 of them.", [("Say e.g. this, i.e. that, 3.14 of them.", 8)]),
        ("- An item\n  goes on\n1. Another\n", [("An item goes on", 4), ("Another", 1)]),
        ("| a b | `c` |\n|---|---|\n| d \\| e | |\n", [("a b", 2), ("`code`", 1), ("d \\| e", 2)]),
        ("A [link with text](https://host/a.b) is.", [("A link with text is.", 5)]),
        ("![A picture](x.svg)\n\n<!-- No. Prose. -->\nText.", [("Text.", 1)]),
        ("Names `a`, `b`, `c` and `d` are one.", [("Names `code` are one.", 4)]),
        ("---\nsearch: none\n---\n```text\nNot this.\n```\nThis.\n~~~~\n```\nNot.\n~~~~\n", [("This.", 1)]),
    ],
)
def test_what_a_sentence_is(text: str, expected: list[tuple[str, int]], tmp_path: Path) -> None:
    """Items, cells and headings are sentences of their own; code is a word, a link its text, a picture nothing."""
    assert of(text, tmp_path)[: len(expected)] == expected


def test_what_a_docstring_says(tmp_path: Path) -> None:
    """The entries of its sections are sentences of their own; comments in a row are one text."""
    module = tmp_path / "module.py"
    module.write_text(
        'def f(a: int) -> int:\n    """Do it.\n\n    Args:\n        a: First\n            and more.\n        b: Then.\n\n'
        '    Returns:\n        That.\n    """\n    # It is\n    # so. Here.\n    return a  # beside\n',
        encoding="utf-8",
    )
    assert [one.text for one in prose.of_docstrings(module)] == ["Do it.", "a: First and more.", "b: Then.", "That."]
    assert [one.text for one in prose.of_comments(module)] == ["It is so.", "Here.", "beside"]


@pytest.mark.parametrize("text", ["It stands in a file.", "Here they stood.", "What stands where?", "A limit standing there."])
def test_what_is_refused(text: str, tmp_path: Path) -> None:
    """The word in the place of "is", and a long sentence."""
    page = tmp_path / "page.md"
    page.write_text(
        f"{text}\n\n{'word ' * 41}.\n\nA stand-alone stand-in stands for it, and stands in for another. Understand the standard.\n"
    )
    assert [fault.split(":")[0] for fault in faults(prose.of_page(page))] == ["line 1", "line 3"]
