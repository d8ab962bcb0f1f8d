"""The README and the home page of the site say what is so: each sentence with a number, a *not* or an *all* is tried.

A function (tests/claims) is given the numbers and names of its sentence, and tries them: through the public API and servers on loopback, or
against the file that the sentence links to. None compares the sentence with a text of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.claims import index, readme
from tests.claims.registry import Claim, Page
from tests.claims.sentences import Sentence, sentences, value
from tests.support.pages import REPOSITORY

PAGES = (readme.PAGE, index.PAGE)


def claimed(page: Page) -> list[Sentence]:
    """The sentences of a page that claim something."""
    return [sentence for sentence in sentences((REPOSITORY / page.path).read_text(encoding="utf-8")) if sentence.claims]


def bound(page: Page, sentence: Sentence) -> list[Claim]:
    """The functions of a sentence."""
    return [claim for claim in page.claims if claim.fits(sentence)]


def cases() -> list[Any]:
    """Each claim with its sentence."""
    return [
        pytest.param(claim, sentence, id=f"{page.path}:{claim.function.__name__}")
        for page in PAGES
        for sentence in claimed(page)
        for claim in bound(page, sentence)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path)
def test_each_sentence_that_claims_something_has_a_function(page: Page) -> None:
    """One, and each function has a sentence."""
    found = claimed(page)
    assert [sentence.text for sentence in found if len(bound(page, sentence)) != 1] == []
    assert [claim.template for claim in page.claims if not any(claim.fits(sentence) for sentence in found)] == []


@pytest.mark.parametrize(("claim", "sentence"), cases())
def test_what_a_sentence_says_is_so(claim: Claim, sentence: Sentence) -> None:
    """Its function gets its numbers and names, and tries them."""
    claim.try_it(sentence)


@pytest.mark.parametrize(("claim", "sentence"), [case for case in cases() if case.values[1].numbers])
def test_with_another_number_it_is_not_so(claim: Claim, sentence: Sentence) -> None:
    """Whichever number of the sentence is changed, its function is given the other one and fails."""
    for changed in sentence.changed():
        assert claim.fits(changed), f"the template states a number of {sentence.text!r}"
        with pytest.raises(Exception) as failure:  # noqa: PT011 - any: a row that is not there, a comparison
            claim.try_it(changed)
        assert not isinstance(failure.value, TypeError), changed.text


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


@pytest.mark.parametrize("text", ["It is not so.", "It does it only once.", "All of them.", "It has no key.", "Everything.", "It can't."])
def test_strong_words_are_claims(text: str) -> None:
    """A sentence without a number claims something too."""
    assert [sentence.claims for sentence in sentences(text)] == [True]
