"""Tool calls of a history in every wire's terms: ids, arguments, and the call that a result answers."""

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
    """A tool call with LangChain's id and the values that its result must repeat on the wire."""

    @property
    def known(self) -> str: ...


CallT = TypeVar("CallT", bound=_SentCall)


def find_call(identifier: str, calls: Sequence[CallT]) -> CallT | None:
    """Return the first call with this id."""
    return next((call for call in calls if call.known == identifier), None)


def without_call(identifier: str, calls: tuple[CallT, ...]) -> tuple[CallT, ...]:
    """Return the calls without the first one with this id: calls that share an id are answered in order."""
    if not calls or calls[0].known == identifier:  # nearly always: results come in the order of the calls
        return calls[1:]
    position = next((number for number, call in enumerate(calls) if call.known == identifier), None)
    return calls if position is None else calls[:position] + calls[position + 1 :]


def derived_id(prefix: str, identifier: str, name: str = "", position: int = 0, *, digits: int = 24) -> str:
    """Return a derived id for a call whose own id cannot be sent; equal calls get equal ids.

    Args:
        prefix: The id's prefix.
        identifier: The call's own id.
        name: The tool's name, where calls without an id are to be told apart.
        position: The call's place, likewise.
        digits: The number of hex digits after the prefix.
    """
    seed = f"{identifier}\x00{name}\x00{position}".encode(errors="surrogatepass")
    return f"{prefix}{hashlib.sha1(seed, usedforsecurity=False).hexdigest()[:digits]}"


def empty_output(*, failed: bool) -> str:
    """Return the output of a result without text, because some vendors reject an empty one."""
    return _FAILED if failed else _NO_OUTPUT


def legal_arguments(call: ToolCallRecord, *, unreadable: str = "") -> str:
    """Return the arguments as the model wrote them if every server can read them, else the same object serialized again.

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
