"""The passes of a history's repair, one at a time, on lists of messages."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langchain_autotools.history import expansion, normalize, pairing, passes

__all__ = ["answer_dangling", "drop_orphans", "expand", "order_results"]


def expand(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Every run message replaced by the messages it carries."""
    return pairing.messages_of(expansion.expand_runs(list(enumerate(messages)))[0])


def drop_orphans(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The history without results that answer no call."""
    return pairing.messages_of(passes.drop_orphans(list(enumerate(messages)))[0])


def order_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Every result directly after its AI message; calls get ids of their own first."""
    return pairing.messages_of(passes.order_results(normalize.name_calls(list(enumerate(messages)))[0])[0])


def answer_dangling(messages: Sequence[BaseMessage], *, open_end: bool = False) -> list[BaseMessage]:
    """Every call with a result; calls get ids of their own first."""
    return pairing.messages_of(passes.answer_dangling(normalize.name_calls(list(enumerate(messages)))[0], open_end=open_end)[0])
