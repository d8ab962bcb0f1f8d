"""Tool calls of a history, and their results, in the wire's form.

Wire facts (wire quirks G-01, G-03, G-10): an id is sent only where the model sent one, and then on the call and its response alike; a
response is an object and repeats the call's name; newer models refuse a turn whose first call has no signature, unless it carries the
word that the vendor names for calls of others. What the model wrote goes back as it wrote it, so that prompt caches hit.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...messages.calls import ToolCallRecord
from .._encode.calls import empty_output, legal_arguments
from .._encode.json_text import dumps, read_object
from .tools import LEGAL_NAME

FOREIGN_SIGNATURE = "skip_thought_signature_validator"
"""The documented placeholder ("Thought signatures") for the missing signature of another model's call."""

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_.:-]")
_LONGEST_NAME = 64
_UNREADABLE = "INVALID_JSON"
_REFERENCE = "$ref"


class CallId(NamedTuple):
    """A tool call's id in LangChain, its tool's name on the wire, and the id that the model sent, if any."""

    known: str
    name: str
    sent: str | None = None


def legal_name(name: str) -> str:
    """Return the name if the wire accepts it, else a similar legal one."""
    if LEGAL_NAME.fullmatch(name):
        return name
    legal = _ILLEGAL.sub("_", name)
    return (legal if LEGAL_NAME.match(legal) else f"_{legal}")[:_LONGEST_NAME]


def encode_call(call: ToolCallRecord, signature: str | None, *, same_origin: bool) -> str:
    """Encode one call as the JSON of a part; its extra keys are sent only to their origin.

    Args:
        call: The call.
        signature: The signature to send where the call has none of its own.
        same_origin: Whether it goes back to the endpoint and model that made it.
    """
    beside = dict(call.extra.get("part") or {}) if same_origin else {}
    within = dict(call.extra.get("call") or {}) if same_origin else {}
    if not is_readable(call):
        beside.pop("thoughtSignature", None)
    if signature:
        beside.setdefault("thoughtSignature", signature)
    head = dumps({**within, "name": legal_name(call.name)})[:-1]
    after = "," + dumps(beside)[1:-1] if beside else ""
    return f'{{"functionCall":{head},"args":{legal_arguments(call, unreadable=_UNREADABLE)}}}{after}}}'


def is_readable(call: ToolCallRecord) -> bool:
    """Whether a call can be sent back with its original arguments. Otherwise its signature is no longer valid."""
    return call.args is not None or not call.arguments.strip() or read_object(call.arguments) is not None


def response_of(texts: Sequence[str], *, failed: bool) -> dict[str, Any]:
    """Return the texts of a result as the object of a function response.

    A text that is an object stays one; but not where a key is `$ref`, which the server would take for a reference to media.

    Args:
        texts: The texts.
        failed: Whether the call failed: then they stand under `error`.
    """
    text = "\n".join(texts)
    value = read_object(text) if text.lstrip().startswith("{") else None
    if value and not _refers(value):
        return value if not failed or "error" in value else {"error": value}
    if not text.strip():
        text = empty_output(failed=failed)
    return {"error" if failed else "result": text}


def _refers(value: Any) -> bool:
    if isinstance(value, Mapping):
        return _REFERENCE in value or any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))
