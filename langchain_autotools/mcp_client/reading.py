"""How what an MCP server has written is read: as messages that the SDK takes, whatever is wrong with them.

The SDK refuses a message for any detail, and then loses the answer in it, or ends the session. So each line, body and event is read here
first. What cannot be read as JSON at all is no message.
"""

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..strict_json import mend_surrogates

_ERROR = -32603
_WAITS = "input_required"
_PROGRESS, _CHANGED, _CANCELLED = "notifications/progress", "notifications/tools/list_changed", "notifications/cancelled"
_SUBSCRIBED = "notifications/subscriptions/acknowledged"
_HALF = re.compile(r"[\ud800-\udfff]|\\u[dD][89a-fA-F]")
_ANSWER = re.compile(rb'\s*(?:[\[{\s]*\{\s*"(?:jsonrpc|id|result|error)"|"jsonrpc")\s*:')
_OUTCOME = re.compile(rb'"(?:result|error)"\s*:')
_ID = re.compile(rb'"id"\s*:\s*"?(\d+)')


class Lines:
    """Lines of what comes in pieces. Only a line feed, a carriage return or both end one, not all that Python takes for an end."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the lines that a piece ends."""
        whole = piece[1:] if self._after_return and piece.startswith(b"\n") else piece
        self._after_return = piece.endswith(b"\r")
        first, *more = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._parts.append(first)
        for part in more:
            yield b"".join(self._parts)
            self._parts = [part]

    def rest(self) -> Iterator[bytes]:
        """Yield the last line, if it has no end."""
        if any(self._parts):
            yield b"".join(self._parts)
        self._parts = []


def read_message(text: str | bytes) -> Any:
    """Return what a server has written, with half characters mended; None where it is no JSON. Control characters may be in texts."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        data = json.loads(text.removeprefix("\ufeff"), strict=False)
        return json.loads(mend_surrogates(json.dumps(data, ensure_ascii=False))) if _HALF.search(text) else data
    except (ValueError, RecursionError):
        return None


def messages_in(data: Any) -> Iterator[Mapping[str, Any]]:
    """Yield what may be a message in what a server has written: one, or a batch of them."""
    for one in data if isinstance(data, list) else [data]:
        if isinstance(one, Mapping):
            yield one


# ---------------------------------------------------------------------------------------------- answers


def key_of(identity: Any) -> str | None:
    """Return the id of a message as all forms of it are compared; None where it is none."""
    if isinstance(identity, float) and identity.is_integer():
        identity = int(identity)
    return str(identity) if isinstance(identity, str | int) and not isinstance(identity, bool) else None


def is_answer(message: Mapping[str, Any]) -> bool:
    """Whether a message answers a request."""
    return "result" in message or "error" in message


def answer_of(message: Mapping[str, Any], identity: Any, public: Callable[[str], str]) -> dict[str, Any]:
    """Return an answer as JSON-RPC has it.

    Args:
        message: The answer.
        identity: The id of the request that it answers.
        public: Takes out of a text what only this process may know.
    """
    result, error = message.get("result"), message.get("error")
    if "result" not in message or (result is None and error is not None):
        return {"jsonrpc": "2.0", "id": identity, "error": _error(error, public)}
    return {"jsonrpc": "2.0", "id": identity, "result": result if isinstance(result, Mapping) else {"structuredContent": result}}


def _error(error: Any, public: Callable[[str], str]) -> dict[str, Any]:
    """Return an error as JSON-RPC has it."""
    if not isinstance(error, Mapping):
        return {"code": _ERROR, "message": public(error if isinstance(error, str) else json.dumps(error))}
    code, message, data = error.get("code"), error.get("message"), error.get("data")
    words = message if isinstance(message, str) else json.dumps(error if message is None else message, ensure_ascii=False)
    known = {"data": {"supported": data["supported"]}} if isinstance(data, Mapping) and "supported" in data else {}  # which protocols
    return {"code": code if isinstance(code, int) and not isinstance(code, bool) else _ERROR, "message": public(words), **known}


def result_of(result: Mapping[str, Any], can_wait: bool) -> Mapping[str, Any] | None:
    """Return the result of a call, whose questions are such as can be shown; None where it waits for what cannot be read.

    Args:
        result: The result.
        can_wait: Whether the protocol is one in which a call can wait for answers.
    """
    if result.get("resultType") != _WAITS:
        return result
    if not can_wait:
        return {name: value for name, value in result.items() if name != "resultType"}
    requests, state = result.get("inputRequests") or {}, result.get("requestState")
    if not isinstance(requests, Mapping) or not isinstance(state, str | None):
        return None
    if not all(isinstance(one, Mapping) and isinstance(one.get("method"), str) for one in requests.values()):
        return None
    return {**result, "inputRequests": {key: {**one, "params": _question(one.get("params"))} for key, one in requests.items()}}


def _question(params: Any) -> dict[str, Any]:
    """Return the parameters of a question, of which a text and a schema are shown."""
    given = params if isinstance(params, Mapping) else {}
    message, schema = given.get("message", ""), given.get("requestedSchema", {})
    shown = {"message": message if isinstance(message, str) else json.dumps(message)}
    return {**given, **shown} | ({} if "url" in given else {"requestedSchema": schema if isinstance(schema, Mapping) else {}})


def half_answer(line: bytes) -> tuple[bool, str | None]:
    """Whether a line that is no JSON is what is left of an answer, with the id of its request where it names one."""
    head = _OUTCOME.split(line, maxsplit=1)[0]
    if not _ANSWER.match(line) or b'"method"' in head:
        return False, None
    named = _ID.search(head)
    return True, named[1].decode() if named else None


# ---------------------------------------------------------------------------------------------- what a server sends by itself


def request_of(message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a request or a notification as the SDK takes it; None for one that cannot be answered, or means nothing to us."""
    method, params = message.get("method"), message.get("params")
    given = params if isinstance(params, Mapping) else {}
    if not isinstance(method, str):
        return None
    if "id" not in message or method.startswith("notifications/"):
        known = _notified(method, given)
        return None if known is None else {"jsonrpc": "2.0", "method": method, "params": known}
    if key_of(message["id"]) is None or isinstance(message["id"], float):
        return None
    return {"jsonrpc": "2.0", "id": message["id"], "method": method, **({"params": given} if isinstance(params, Mapping) else {})}


def _notified(method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the parameters of a notification, as far as they are those of the protocol; None for one that means nothing to us."""
    if method == _PROGRESS:
        return _progress(params)
    if method == _CANCELLED:
        return dict(params) if key_of(params.get("requestId")) is not None else None
    if method in (_CHANGED, _SUBSCRIBED):
        meta = params.get("_meta")
        return {**params, "_meta": meta if isinstance(meta, Mapping) else {}}
    return None


def _progress(params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a report of progress; None for one that is none."""
    token, done, total, message = (params.get(name) for name in ("progressToken", "progress", "total", "message"))
    if key_of(token) is None or not _is_count(done):
        return None
    told = {"progressToken": int(token) if isinstance(token, float) else token, "progress": done}
    told |= {"total": total} if _is_count(total) else {}
    return told | ({"message": message} if isinstance(message, str) else {})


def _is_count(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
