"""The README and the home page of the site say what is so: each sentence with a number, a *not* or an *all* is tried.

A function (tests/claims) is given the numbers and names of its sentence, and tries them: through the public API and servers on loopback, or
against the file that the sentence links to. None compares the sentence with a text of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import tests.claims.index
import tests.claims.readme
import tests.claims.without_key  # noqa: F401 - these bind their functions
from tests.claims.registry import INDEX, README, Claim, Page
from tests.claims.sentences import Sentence, sentences, value
from tests.support.pages import REPOSITORY

PAGES = pytest.mark.parametrize("page", [README, INDEX], ids=lambda page: page.path)


def claimed(page: Page) -> list[Sentence]:
    """The sentences of a page that claim something."""
    return [sentence for sentence in sentences((REPOSITORY / page.path).read_text(encoding="utf-8")) if sentence.claims]


def bound(page: Page) -> Iterator[tuple[Sentence, Claim]]:
    """Each sentence with its function."""
    return ((sentence, claim) for sentence in claimed(page) for claim in page.claims if claim.fits(sentence))


def test_each_sentence_that_claims_something_has_a_function() -> None:
    """One, and each function has a sentence."""
    for page in (README, INDEX):
        found = [sentence.text for sentence, _ in bound(page)]
        assert [sentence.text for sentence in claimed(page) if found.count(sentence.text) != 1] == []
        assert {claim.template for claim in page.claims} == {claim.template for _, claim in bound(page)}


@PAGES
def test_what_the_page_says_is_so(page: Page) -> None:
    """Each function is given the numbers and names of its sentence, and tries them."""
    false: list[Exception] = []
    for sentence, claim in bound(page):
        try:
            claim.try_it(sentence)
        except Exception as error:
            error.add_note(f"{page.path}: {sentence.text}")
            false.append(error)
    if false:
        raise ExceptionGroup(f"{page.path} says what is not so", false)


@PAGES
def test_with_another_number_it_is_not_so(page: Page) -> None:
    """Whichever number of a sentence is changed, its function is given the other one and fails."""
    for sentence, claim in bound(page):
        for changed in sentence.changed():
            assert claim.fits(changed), f"the template states a number of {sentence.text!r}"
            with pytest.raises((AssertionError, LookupError, ValueError)):
                claim.try_it(changed)
                pytest.fail(f"a function holds this to be so, too: {changed.text}")


PAGE_OF_ALL_KINDS = """# Three kinds

One paragraph with `code 5` and
a [link to 7](page.md#x), not more. Another one: gpt-5, SHA-256.

```sh
echo 8
```

- **Bold.** All of 1,967 runs
  went on 2 lines.
- An item

| head | 3 |
|---|---|
| cell 4. Next [x](y.md) | |

![Two turns](picture.svg)
"""


def test_sentences_are_found_outside_of_code() -> None:
    """Of paragraphs, items, cells, headings and pictures, with their numbers and links; digits of names are no numbers."""
    found = sentences(PAGE_OF_ALL_KINDS)
    assert [sentence.text for sentence in found] == [
        "Three kinds",
        "One paragraph with `code 5` and a link to 7, not more.",
        "Another one: gpt-5, SHA-256.",
        "Bold.",
        "All of 1,967 runs went on 2 lines.",
        "An item",
        "head",
        "3",
        "cell 4.",
        "Next x",
        "Two turns",
    ]
    assert [sentence.numbers for sentence in found if sentence.claims] == [["Three"], ["5", "7"], ["1,967", "2"], ["3"], ["4"], ["Two"]]
    assert [sentence.links for sentence in found if sentence.links] == [("page.md#x",), ("y.md",)]
    assert [changed.text for changed in found[4].changed()] == ["All of 1968 runs went on 2 lines.", "All of 1,967 runs went on 3 lines."]
    assert [value(number) for number in ("1,967", "two", "12.3", "half")] == [1967, 2, 12.3, 0.5]


def test_strong_words_are_claims() -> None:
    """A sentence without a number claims something too."""
    strong = ["It is not so.", "It does it only once.", "All of them.", "It has no key.", "Everything.", "It can't.", "Never.", "Not yet."]
    assert [text for text in strong if not sentences(text)[0].claims] == []
    assert not sentences("It notes another key, allows more, and is known.")[0].claims
