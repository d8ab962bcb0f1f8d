"""Admission of a batch's calls, before any of them begins."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from .plan import Answer
from .steps import CallWrapper
from .workers.asking import Question


class Admission(Protocol):
    """Admits the calls of a batch: once, in call order, in the run's thread. An exception ends the batch with nothing run."""

    def admit(self, answers: Sequence[Answer]) -> Generator[Question, Any, Sequence[Answer]]:
        """Decide which calls of a batch run, as a generator of questions for the caller's functions, which receives the answers.

        Args:
            answers: What answers each call.

        Returns:
            The answers of the calls that run or are answered; the others stay pending.
        """


@dataclass(frozen=True)
class Reservation:
    """Reserves a journal entry for each planned call admitted so far.

    Attributes:
        entries: Gives the places of so many calls, in call order.
    """

    entries: Callable[[int], Sequence[CallWrapper]]

    def admit(self, answers: Sequence[Answer]) -> Generator[Question, Any, Sequence[Answer]]:
        """Return the answers with a journal entry for each planned call."""
        entries = iter(self.entries(sum(len(answer.planned) for answer in answers)))
        return [replace(answer, planned=[replace(one, entry=next(entries)) for one in answer.planned]) for answer in answers]
        yield  # makes it a generator
