"""Histories that grow: what was derived of a list holds for the messages that it was made with, and for no others."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.messages.incremental import GrowingHistory, growing


@dataclass
class Texts:
    """A fold of the texts of messages, which notes how many it has read."""

    texts: list[str] = field(default_factory=list)
    count: int = 0

    def copy(self) -> "Texts":
        """A copy, which has read nothing itself."""
        return Texts([*self.texts])

    def read(self, messages: Sequence[BaseMessage]) -> None:
        """Read the next messages."""
        self.texts += [str(one.content) for one in messages]
        self.count += len(messages)


def read(messages: GrowingHistory) -> Texts:
    """The fold over a list."""
    return messages.derive(Texts, Texts)


def kept(messages: list[BaseMessage]) -> GrowingHistory:
    """The list, read and kept."""
    known = growing(messages)
    known.keep()
    read(known)
    return known


def test_a_longer_list_reads_what_is_new() -> None:
    """The messages before are known."""
    messages: list[BaseMessage] = [HumanMessage("a"), HumanMessage("b")]
    kept(messages)
    made = read(growing([*messages, HumanMessage("c")]))
    assert (made.texts, made.count) == (["a", "b", "c"], 1)


def test_a_list_in_which_another_message_stands_is_read_anew() -> None:
    """Replaced, removed or added: the list is no longer the one that was compared."""
    messages: list[BaseMessage] = [HumanMessage("a"), HumanMessage("b")]
    for change in (lambda one: one.__setitem__(0, HumanMessage("x")), lambda one: one.pop(0), lambda one: one.append(HumanMessage("c"))):
        known = kept(messages)
        change(known)
        assert read(known).texts == [str(one.content) for one in known]


def test_a_message_that_cannot_be_compared_is_another() -> None:
    """A value whose comparison is no truth value is in a message that took another's place."""

    class Vague:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> Any:
            raise TypeError

    messages: list[BaseMessage] = [HumanMessage("a", additional_kwargs={"x": Vague()}), HumanMessage("b")]
    known = kept(messages)
    known[0] = HumanMessage("a", additional_kwargs={"x": Vague()})
    assert read(known).count == 2


def test_an_artifact_changes_nothing() -> None:
    """It is never sent: one that changes, or comes later, makes nobody read again."""
    messages: list[BaseMessage] = [ToolMessage("a", tool_call_id="1", artifact=[1]), ToolMessage("b", tool_call_id="2")]
    kept(messages)
    messages[0].artifact.append(2)  # type: ignore[attr-defined]
    messages[1].artifact = object()  # type: ignore[attr-defined]
    assert read(growing([*messages, HumanMessage("c")])).count == 1
