"""The arguments of a history's tool calls, as wires take them back."""

from ...messages.calls import ToolCallRecord
from .json_text import dumps, read_object

__all__ = ["legal_arguments"]


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
