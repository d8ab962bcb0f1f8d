"""Tool calls of a history, as every wire takes them back: ids, arguments, and which call a result answers."""

import hashlib
from collections.abc import Sequence
from typing import Protocol, TypeVar

from ...messages.calls import ToolCallRecord
from .json_text import dumps, read_object

_NO_OUTPUT = "(no output)"
_FAILED = "(failed without output)"
BELOW = "(the output follows in the next message)"
"""The text of a result whose output is media that only a user message may hold."""


class _SentCall(Protocol):
    """A call by the id that LangChain knows, and what its result must repeat of it on the wire."""

    @property
    def known(self) -> str: ...


CallT = TypeVar("CallT", bound=_SentCall)


def find_call(identifier: str, calls: Sequence[CallT]) -> CallT | None:
    """The first call of this id."""
    return next((call for call in calls if call.known == identifier), None)


def without_call(identifier: str, calls: tuple[CallT, ...]) -> tuple[CallT, ...]:
    """The calls without the first of this id: calls that share an id are answered in order."""
    if not calls or calls[0].known == identifier:  # nearly always: results come in the order of the calls
        return calls[1:]
    position = next((number for number, call in enumerate(calls) if call.known == identifier), None)
    return calls if position is None else calls[:position] + calls[position + 1 :]


def derived_id(prefix: str, identifier: str, name: str = "", position: int = 0, *, digits: int = 24) -> str:
    """An id for a call whose own cannot be sent; the same call always gets the same.

    Args:
        prefix: What the id begins with.
        identifier: The call's own id.
        name: The tool's name, where calls without an id are to be told apart.
        position: The call's place, likewise.
        digits: How many hex digits follow the prefix.
    """
    seed = f"{identifier}\x00{name}\x00{position}".encode(errors="surrogatepass")
    return f"{prefix}{hashlib.sha1(seed, usedforsecurity=False).hexdigest()[:digits]}"


def empty_output(*, failed: bool) -> str:
    """What a result without text says: some vendors refuse an empty one."""
    return _FAILED if failed else _NO_OUTPUT


def legal_arguments(call: ToolCallRecord, *, unreadable: str = "") -> str:
    """The arguments as the model wrote them where every server can read that, else the same object written anew.

    Args:
        call: The call.
        unreadable: The key under which a text that is no object goes back. Without one it does not: the call's result says what was
            wrong with it.
    """
    value = read_object(call.arguments)
    if value is not None and (call.args is None or value == call.args):
        return call.arguments
    if call.args is not None:
        return dumps(call.args)
    return dumps({unreadable: call.arguments}) if unreadable and call.arguments.strip() else "{}"
