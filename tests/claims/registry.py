"""Functions that try sentences: each is found by the words of its sentence, and given what is in the places of the others."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.claims.sentences import Sentence

Try = Callable[..., None]


@dataclass(frozen=True)
class Claim:
    """A function, and the sentence that it tries.

    Attributes:
        template: The sentence, with `{name}` where something is that the function is given.
        function: Fails if the sentence is not true. `links`, if it takes these, are the targets of the sentence's links.
    """

    template: str
    function: Try

    @property
    def pattern(self) -> re.Pattern[str]:
        """The template as a regular expression, a group for each name."""
        parts = re.split(r"\{(\w+)\}", self.template)
        return re.compile("".join(f"(?P<{part}>.+?)" if place % 2 else re.escape(part) for place, part in enumerate(parts)))

    def fits(self, sentence: Sentence) -> bool:
        """Whether this is the function of the sentence."""
        return bool(self.pattern.fullmatch(sentence.text))

    def try_it(self, sentence: Sentence) -> None:
        """Call the function with what the sentence says."""
        found = self.pattern.fullmatch(sentence.text)
        assert found, f"{self.template!r} is not {sentence.text!r}"
        given: dict[str, Any] = found.groupdict()
        if "links" in inspect.signature(self.function).parameters:
            given["links"] = sentence.links
        self.function(**given)


@dataclass(frozen=True)
class Page:
    """The claims of a page.

    Attributes:
        path: The page, below the repository.
        claims: Filled by the decorator `says`.
    """

    path: str
    claims: list[Claim]

    def says(self, template: str) -> Callable[[Try], Try]:
        """Bind a function to the sentence of this page that the template fits."""

        def bind(function: Try) -> Try:
            self.claims.append(Claim(template, function))
            return function

        return bind


README = Page("README.md", [])
INDEX = Page("docs/index.md", [])
