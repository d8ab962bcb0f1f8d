"""Errors of OpenAI or compatible servers, as classes that are LangChain's as well as the SDK's.

Every class inherits the SDK's own error and the class of `langchain_core.exceptions` that says the same, so code that
catches either keeps working. They subclass the SDK's, so they are made when first needed, under the names that
langchain-openai uses: `from langchain_autotools.providers.openai.errors import OpenAIRateLimitError` (this loads the SDK).
`error_types` lists them. Each says whether the same request may succeed later (`is_retryable`) and how long the server asked to
wait (`retry_after`, seconds or None).
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessageChunk

from ...chunks import new_chunk
from .._base.chat_model import by_name
from .._base.errors import ErrorMapping, labels_of, lazy_classes
from .._base.errors import ModelRefusalError as ModelRefusalError
from .._transport.clients import http_library
from .._transport.secrets import is_secret_header as is_secret_header

if TYPE_CHECKING:
    from .error_types import *  # noqa: F403 - the classes, for type checkers

# `code` or `type` of an error object -> the status it would have had outside a stream.
_STATUS_OF_CODE = by_name(
    {
        "invalid_request_error BadRequestError content_policy_violation image_content_policy_violation invalid_prompt": 400,
        "1026 1027 1042 2013": 400,  # MiniMax's numbers (platform.minimax.io, "Error codes")
        "invalid_api_key authentication_error 1004 2049": 401,
        "1008": 402,
        "permission_error": 403,
        "model_not_found not_found_error": 404,
        "timeout": 408,
        "rate_limit_exceeded rate_limit_error requests tokens insufficient_quota 1002 1039 1041 2056": 429,
        "server_error api_error": 500,
        "overloaded_error": 503,
    }
)

# Words in a code or type that no list has -> the same. DashScope's codes are made of such words.
_STATUS_OF_WORDS = (
    (re.compile(r"rate.?limit|throttl|too.?many", re.IGNORECASE), 429),
    (re.compile(r"api.?key|authenti|unauthorized", re.IGNORECASE), 401),
    (re.compile(r"arrear|balance", re.IGNORECASE), 402),
    (re.compile(r"not.?found", re.IGNORECASE), 404),
    (re.compile(r"invalid|bad.?request|unsupported|inspection", re.IGNORECASE), 400),
)
_FAILED = "tool_use_failed"
_UNREADABLE = "unreadable_call"
_NAMED = re.compile(r"<function[=/( ]*(?P<name>[\w.-]+)|\"name\"\s*:\s*\"(?P<quoted>[^\"]+)\"")
_FINE = frozenset({"", "0", "200", "ok", "success"})
_CODES = ("code", "error_code", "errorCode", "err_code", "statusCode", "status_code", "status")
_TYPES = ("type", "error_type", "errorType")
_MESSAGES = ("message", "msg", "error_msg", "error_message", "errorMessage", "err_msg", "status_msg", "detail")

__getattr__ = lazy_classes(__name__, "OpenAI")


@cache
def sdk() -> Any:
    """The SDK's module."""
    import openai

    return openai


ERRORS = ErrorMapping(
    library=lambda: http_library(sdk()),
    sdk=sdk,
    error_class=__getattr__,
    prefix="OpenAI",
    by_status={413: "StatusError", 422: "UnprocessableEntityError"},
    status_of_label=_STATUS_OF_CODE,
    overflow_labels=frozenset({"context_length_exceeded", "exceed_context_size_error"}),  # OpenAI's code, and llama.cpp's type
    overflow_texts=(  # how OpenAI, vLLM, LiteLLM and Anthropic-shaped gateways say it where they set no code
        "context_length_exceeded",
        "maximum context length",
        "exceeds the context window",
        "exceeds the available context size",
        "Input tokens exceed the configured limit",
        "prompt is too long",
        "ContextWindowExceededError",
    ),
    account_texts={"Incorrect API key provided": "KeyRefusedError"},  # xAI's, with a 400
    never_retried=frozenset({"insufficient_quota"}),  # a 429 that lasts until somebody pays
    always_retried=frozenset({_FAILED}),  # the model wrote an unreadable call: its next try may be readable (wire quirk T-07)
)

error_table = ERRORS.table
error_from_body = ERRORS.from_body


def is_known_error(body: Mapping[str, Any]) -> bool:
    """Whether an error object states its kind."""
    return any(label in _STATUS_OF_CODE for label in labels_of(body))


# ---------------------------------------------------------------------------------------------- errors inside a reply


def error_in(frame: Mapping[str, Any]) -> Exception | None:
    """Return the error that a frame without a choice, or a whole body, says; None if it says none (wire quirks E-08, E-16)."""
    if frame.get("error"):
        return reply_error(frame["error"])
    base = frame.get("base_resp")
    if isinstance(base, Mapping) and not _is_fine(base.get("status_code")):
        return reply_error(base)
    named = any(key.startswith(("error", "err_")) and not _is_fine(value) for key, value in frame.items())
    coded = not (_is_fine(frame.get("code")) and _is_fine(frame.get("statusCode"))) and (frame.get("message") or frame.get("msg"))
    called = "error" in (frame.get("object"), frame.get("type"))
    return reply_error(frame) if named or coded or called or frame.get("detail") else None


def reply_error(error: Any) -> Exception:
    """Return the error of an error object in a reply, in any vendor's words, as if it had come with its HTTP status.

    Args:
        error: The object, or a text.
    """
    if not isinstance(error, Mapping):
        return error_from_body({"message": str(error)})
    body = dict(error)
    for name, keys in (("code", _CODES), ("type", _TYPES), ("message", _MESSAGES)):
        said = next((error[key] for key in keys if error.get(key) and error[key] != "error"), None)
        body |= {} if said is None or (name == "message" and not isinstance(said, str)) else {name: said}
    return error_from_body(body, _status_of(body))


def _is_fine(value: Any) -> bool:
    return not value or str(value).lower() in _FINE


def _status_of(error: Mapping[str, Any]) -> int | None:
    values = [str(error[key]) for key in (*_CODES, *_TYPES) if isinstance(error.get(key), str | int)]
    numbers = [int(value) for value in values if value.isdecimal() and 400 <= int(value) < 600]
    if numbers or isinstance(error.get("detail"), list):  # FastAPI's list of what is wrong with the request
        return numbers[0] if numbers else 422
    known = next((_STATUS_OF_CODE[value] for value in values if value in _STATUS_OF_CODE), None)
    return known or next((status for words, status in _STATUS_OF_WORDS if any(map(words.search, values))), None)


# ---------------------------------------------------------------------------------------------- refused calls


def failed_turn(error: Exception, model: str, provider: str) -> AIMessageChunk | None:
    """Return the turn behind a `tool_use_failed` error: the model's calls, none of which may run, and the reason (wire quirk T-07).

    Args:
        error: The error.
        model: The model's name.
        provider: The name under which replies say where they are from.

    Returns:
        The turn; None for other errors, and for one that does not say what the model wrote.
    """
    body = getattr(error, "body", None)
    failure = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(failure, Mapping) or failure.get("code") != _FAILED or not failure.get("failed_generation"):
        return None
    calls = _calls_in(str(failure["failed_generation"]))
    chunk = new_chunk("", {"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}, None)
    reason = {"finish_reason": _FAILED, "finish_message": str(failure.get("message") or _FAILED)}
    chunk.response_metadata = {"model_provider": provider, "model_name": model, **reason}
    return chunk


def _calls_in(written: str) -> list[dict[str, Any]]:
    """Return the calls in the model's text; one with the whole text if it is not JSON."""
    try:
        value = json.loads(written)
    except ValueError:
        value = None
    entries = value if isinstance(value, list) else [value]
    if entries and all(isinstance(entry, Mapping) and isinstance(entry.get("name"), str) for entry in entries):
        arguments = [json.dumps(entry.get("arguments", entry.get("parameters", {})), ensure_ascii=False) for entry in entries]
        return [{"function": {"name": entry["name"], "arguments": text}} for entry, text in zip(entries, arguments, strict=True)]
    named = _NAMED.search(written)
    return [{"function": {"name": (named["name"] or named["quoted"]) if named else _UNREADABLE, "arguments": written}}]
