"""The passes of `repair`, each by itself: from a list of messages to a new one."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from . import expansion, normalize, pairing, passes

__all__ = ["answer_dangling", "drop_orphans", "expand", "order_results"]


def expand(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Replace every run message by the messages that it carries."""
    return pairing.messages_of(expansion.expand_runs(list(enumerate(messages)))[0])


def drop_orphans(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Leave out the results that answer no call."""
    return pairing.messages_of(passes.drop_orphans(list(enumerate(messages)))[0])


def order_results(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Put every result directly after its AI message, in the order of the calls. Calls get ids of their own first."""
    return pairing.messages_of(passes.order_results(normalize.name_calls(list(enumerate(messages)))[0])[0])


def answer_dangling(messages: Sequence[BaseMessage], *, open_end: bool = False) -> list[BaseMessage]:
    """Answer every call that has no result. Calls get ids of their own first.

    Args:
        messages: The history.
        open_end: Whether the calls of the last AI message may stay without results.
    """
    return pairing.messages_of(passes.answer_dangling(normalize.name_calls(list(enumerate(messages)))[0], open_end=open_end)[0])
