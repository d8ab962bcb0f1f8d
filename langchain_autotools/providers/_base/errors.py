"""Errors of vendors' servers: what they say of a request, translated into classes that are LangChain's as well as the SDK's.

A vendor gives an `ErrorMapping`: its HTTP library, its classes, and what its error objects mean. Here is what is the same for all: which
error becomes which class, whether the same request may succeed later, and that no secret is in an error.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from langchain_core import exceptions
from langchain_core.exceptions import ModelError
from langchain_core.messages import BaseMessage

from ...errors import BriefInNotebooks, reduced
from ...retry import is_transient, retry_after, should_retry
from .._transport.exchange import ANSWERED, describe_redirect
from .._transport.secrets import header_secrets, hide_illegal_values, hide_secrets, public_request
from . import lazy

_NO_PAGE = re.compile(r"(\w+ )?not found\W*", re.IGNORECASE)  # what web frameworks say, and llama.cpp ("File Not Found")
_VERSION = re.compile(r"/v\d")
_PROVIDERS = __package__.removesuffix("_base")

ErrorTable = Mapping[type[BaseException], Callable[[BaseException], BaseException]]

_BY_STATUS = {
    400: "InvalidRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "ModelNotFoundError",
    408: "RequestTimeoutError",
    409: "ConflictError",
    413: "InvalidRequestError",
    422: "InvalidRequestError",
    429: "RateLimitError",
}


class ProviderError(BriefInNotebooks, ModelError):
    """Base class for errors of all vendors: the server rejected the request or failed, or the connection failed.

    Attributes:
        is_retryable: Whether the same request may succeed later.
        retry_after: The seconds that the server asked to wait; None if it did not.
    """

    is_retryable: bool
    retry_after: float | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        setattr(cls, "__reduce__", reduced)  # noqa: B010 - an SDK's own would go before one that is inherited
        if cls.__module__.startswith(_PROVIDERS):  # `error_types` defines the classes, and users import them from `errors`
            cls.__module__ = cls.__module__.replace("error_types", "errors")


def lazy_classes(module: str, prefix: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a vendor's `errors` module, which loads the SDK and `error_types` on first access to a class.

    Args:
        module: The module's name.
        prefix: The prefix of its classes' names.
    """
    return lazy(module, lambda name: module.replace("errors", "error_types") if name.startswith(prefix) else None)


@dataclass(frozen=True)
class ErrorMapping:
    """The error classes of one vendor.

    Attributes:
        library: Gives the HTTP library's module.
        sdk: Gives the SDK's module, importing it, where requests go through an SDK that raises errors of its own.
        error_class: The class of a name.
        prefix: The prefix of its classes' names; `APIError`, `StatusError`, `ContextOverflowError`, `TimeoutError` and
            `ConnectionError` follow it for what no status names.
        by_status: The rest of the names of classes by HTTP status, where they are not those of most vendors.
        status_of_label: The HTTP status that a `code` or `type` of an error object means.
        overflow_labels: Codes and types that say the messages are too long.
        overflow_texts: Texts that say so.
        account_texts: Texts of a status 400 that concern the key or the account, not the request, with the names of their classes.
        never_retried: Codes and types of errors that last, whatever their status.
        always_retried: Codes and types of errors that pass, whatever their status.
        envelope: The key under which a body holds its error object, where the SDK's errors read the whole body.
        advice: The text after the message that there is no reply.
    """

    library: Callable[[], Any]
    error_class: Callable[[str], type[Any]]
    prefix: str
    by_status: Mapping[int, str] = field(default_factory=dict)
    status_of_label: Mapping[str, int] = field(default_factory=dict)
    sdk: Callable[[], Any] | None = None
    overflow_labels: frozenset[str] = frozenset()
    overflow_texts: tuple[str, ...] = ()
    account_texts: Mapping[str, str] = field(default_factory=dict)
    never_retried: frozenset[str] = frozenset()
    always_retried: frozenset[str] = frozenset()
    envelope: str | None = None
    advice: str = ""

    # ------------------------------------------------------------------------------------------ what is raised

    def table(self, secrets: Callable[[], Iterable[str]] = list) -> ErrorTable:
        """Return the table by which `errors.translated` translates errors of the SDK, and of the HTTP library while it reads a body.

        Args:
            secrets: Returns the texts that must not be in any error; called when there is one.
        """
        table: dict[type[BaseException], Callable[[BaseException], BaseException]] = {
            (self.sdk().APIError if self.sdk else ModelError): lambda error: self._translate(error, secrets()),
            TimeoutError: self._timed_out,
        }
        other = (sys.modules.get(name) for name in ("httpx", "httpx2"))  # of a client that the user gave
        for library in (self.library(), *other):
            kinds: list[Any] = [getattr(library, name, None) for name in ("TimeoutException", "TransportError", "DecodingError")]
            if all(kinds):  # another thread may be importing it in this moment
                table |= zip(kinds, (self._timed_out, self._disconnected, self._disconnected), strict=True)
        return table

    def _translate(self, error: Any, secrets: Iterable[str]) -> Exception:
        """Translate an error; errors that are already translated or do not concern the transport are returned unchanged."""
        sent = getattr(getattr(error, "request", None), "headers", None)  # a key from a function, headers of one call
        hide_secrets(error, [*secrets, *header_secrets(sent or {})])
        same: Exception = error
        if self.sdk is None or isinstance(error, ModelError):
            return same
        sdk = self.sdk()
        if isinstance(error, sdk.APITimeoutError):
            return self._timed_out(error)
        if isinstance(error, sdk.APIConnectionError):
            return self._disconnected(error.__cause__ or error, error.request)
        if isinstance(error, sdk.APIStatusError):
            error.__traceback__ = None  # the server refused: where the SDK says so helps nobody, and doubles what is printed
            return self.status_error(_message(error), error.response, error.body)
        return same

    def _timed_out(self, error: Any) -> Exception:
        new: Any = self._class("TimeoutError")(request=public_request(self._request_of(error)))
        new.message = f"{new.message} ({_describe(error.__cause__ or error)})"
        new.args = (new.message,)
        return cast("Exception", new)

    def _disconnected(self, error: Any, request: Any = None) -> Exception:
        own = request or self._request_of(error)
        began = (self.sdk is not None and request is None) or own.extensions.get(ANSWERED)
        request = public_request(own)
        kind = type(error).__name__  # the request can never be sent
        unsendable = kind == "UnsupportedProtocol" or (kind == "LocalProtocolError" and "Illegal header" in str(error))
        if unsendable:
            hide_illegal_values(error)
        origin, what = _origin_url(request.url), _describe(error)
        no_reply = f"The reply from {origin} broke off ({what})" if began else f"No reply from {origin} ({what}){self.advice}"
        message = f"The request cannot be sent ({_describe(error)})" if unsendable else no_reply
        new: Any = self._class("ConnectionError")(message=message, request=request)
        new.is_retryable = not unsendable
        return cast("Exception", new)

    def unreachable(self, message: str, *, passes: bool = True) -> Exception:
        """Return the error for a request that could not be sent, since what it needs cannot be had.

        Args:
            message: The error's message.
            passes: Whether a retry may succeed.
        """
        new: Any = self._class("ConnectionError")(message=message, request=self.library().Request("POST", "http://unknown"))
        new.is_retryable = passes
        return cast("Exception", new)

    def _class(self, name: str) -> Any:
        return self.error_class(f"{self.prefix}{name}")

    def _request_of(self, error: Any) -> Any:
        try:
            return error.request
        except (AttributeError, RuntimeError):  # an HTTP library's error that was made without its request
            return self.library().Request("POST", "http://unknown")

    def status_error(self, message: str, response: Any, body: Any) -> Exception:
        """Return the error for a response with an error status.

        Args:
            message: The error's message.
            response: The HTTP library's response.
            body: Its JSON.
        """
        status = response.status_code
        labels = labels_of(body)
        if 300 <= status < 400:
            message = describe_redirect(response)
        name = {**_BY_STATUS, **self.by_status}.get(status, "APIError" if status >= 500 else "StatusError")
        overflows = status in (400, 413, 422, 500) and self._is_overflow(labels, message)
        if overflows:
            name = "ContextOverflowError"
        elif status == 400:
            name = next((kind for text, kind in self.account_texts.items() if text in message), name)
        new: Any = self._class(name)(message, response=response, body=body)
        new.retry_after = retry_after(response.headers)
        new.is_retryable = not overflows and self._may_succeed(status, labels, response.headers)
        return cast("Exception", new)

    def _may_succeed(self, status: int, labels: frozenset[str], headers: Mapping[str, str]) -> bool:
        """Whether a retry may succeed: by the server's header, else by the error code, else by the status."""
        advised = should_retry(headers)
        if status < 400:  # a redirect that is not followed leads nowhere a second time either
            return False
        if advised is not None:
            return advised
        if labels & self.never_retried:
            return False
        return bool(labels & self.always_retried) or is_transient(status)

    def _is_overflow(self, labels: frozenset[str], message: str) -> bool:
        lowered = message.lower()
        return bool(labels & self.overflow_labels) or any(text.lower() in lowered for text in self.overflow_texts)

    # ------------------------------------------------------------------------------------------ errors inside a reply

    def from_body(self, error: Any, status: int | None = None) -> Exception:
        """Return the error for an error object inside a reply, as if the server had sent it with its HTTP status.

        Args:
            error: The value of `error`.
            status: The HTTP status that the wire named, if it did.

        Returns:
            One of the vendor's errors; an unknown one counts as the server's failure (500).
        """
        body = error if isinstance(error, Mapping) else {"message": error}
        message = body.get("message")
        if not isinstance(message, str) or not message:
            message = json.dumps(error, ensure_ascii=False, default=str)
        library = self.library()
        request = library.Request("POST", "http://unknown")
        response = library.Response(status or self._status_of(body, message), request=request)
        return self.status_error(message, response, {self.envelope: dict(body)} if self.envelope else dict(body))

    def _status_of(self, body: Mapping[str, Any], message: str) -> int:
        for value in (body.get("code"), body.get("status"), body.get("type")):
            number = int(value) if isinstance(value, int | str) and str(value).isdecimal() else 0
            if 400 <= number <= 599:
                return number
            if isinstance(value, str) and value in self.status_of_label:
                return self.status_of_label[value]
        return 400 if self._is_overflow(labels_of(body), message) else 500


def _message(error: Any) -> str:
    """Return the message of an error, also from `detail` or a bare text under `error`.

    A page that is not there is told with its address.
    """
    message = str(error.message)
    detail = error.body.get("detail") if isinstance(error.body, Mapping) else error.body
    message = f"{message}: {detail}" if isinstance(detail, str) and detail not in message else message
    if error.status_code != 404 or (isinstance(error.body, Mapping) and not _NO_PAGE.fullmatch(_text_of(error.body))):
        return message
    return f"{message} {hint_for_missing_page(error.request.url)}"


def _text_of(body: Mapping[str, Any]) -> str:
    """Return the text of an error's body, wherever servers put it."""
    inner = body.get("error", body)
    if not isinstance(inner, Mapping):
        return str(inner)
    return str(inner.get("message") or inner.get("detail") or "").strip()


def hint_for_missing_page(url: Any) -> str:
    """Return a hint for a page that is not there: more likely the address is wrong than the model's name."""
    hint = "see base_url" if _VERSION.search(url.path) else "see base_url, which may lack a /v1 at its end"
    return f"(there is nothing at {_origin_url(url)}{url.path}: {hint})"


def _origin_url(url: Any) -> str:
    """Return the server's URL without user and password."""
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}"


def _describe(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def labels_of(body: Any) -> frozenset[str]:
    """Return the `code` and `type` of an error object, also of one under `error`."""
    if not isinstance(body, Mapping):
        return frozenset()
    inner = body.get("error")
    found = {value for value in (body.get("code"), body.get("type")) if isinstance(value, str)}
    return frozenset(found) | (labels_of(inner) if isinstance(inner, Mapping) else frozenset())


# ---------------------------------------------------------------------------------------------- refusal
# The error for a model's refusal: LangChain core's class (from 1.7.5), or an identical one for older releases.


if TYPE_CHECKING or not hasattr(exceptions, "ModelRefusalError"):

    class ModelRefusalError(ModelError):
        """Raised when the model refuses to give the requested structured output. A retry is unlikely to help.

        Attributes:
            raw_message: The message in which it declined.
        """

        def __init__(
            self, message: str = "Model refused to produce the requested output", *, raw_message: BaseMessage | None = None
        ) -> None:
            self.raw_message = raw_message
            super().__init__(message)
else:
    ModelRefusalError = exceptions.ModelRefusalError


# ---------------------------------------------------------------------------------------------- refusals
# What a server's refusal of a request says: which of the request's keys it is about, and whether the server streams at all.
#
# Words of a refusal count only if they are the server's own: a content filter quotes what the user wrote. So a key that also is in a
# text of the request is never taken for the reason (wire quirk R-08).


_STATUSES = frozenset({400, 403, 404, 405, 415, 422, 501})
_STREAM = r"\bstream(?:s|ed|ing)?\b(?!_)"
_NO_SUPPORT = r"\bnot\b[^.]{0,30}\b(?:support|allow|implement|available|enabled|permit)"
_NOT = rf"{_NO_SUPPORT}|\b(?:unsupported|disabled|unavailable|unimplemented)\b"
_NO_STREAM = re.compile(rf"{_STREAM}[^.]{{0,80}}(?:{_NOT})|(?:{_NOT})[^.]{{0,60}}{_STREAM}|must be verified to stream", re.IGNORECASE)

_OF_REQUESTS = (400, 422)
_REFUSED = rf"{_NO_SUPPORT}|incompatible|not compatible|(?:may|can) ?not\b|un(?:known|expected|recognized|supported)|forbidden|\bextra\b"
_MISSED = r"must be (?:passed|returned|provided|sent|included)|missing|\brequired\b"
_OTHER_REASONS = frozenset(
    {
        *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation", "DataInspectionFailed", "tool_use_failed"),
        *("context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "insufficient_quota", "rate_limit_exceeded"),
    }
)
_NEAR = 80
_TOKENS = re.compile(r"\w+")


class Refusal(NamedTuple):
    """The reason of a refusal: the request's key that it is about, and whether the server misses that key or refuses it."""

    key: str
    missed: bool


def read_refusal(error: Any, keys: Sequence[str], body: bytes) -> Refusal | None:
    """Return the reason of a refused request; None if it is none of these keys, or the words may be the request's own.

    The key is the one that the error's `param` or `loc` names, else one whose name is beside a word for unknown, unsupported, missing
    or required.

    Args:
        error: The SDK's error.
        keys: The keys that are known, the likeliest first.
        body: The JSON of the refused request.
    """
    said = getattr(error, "body", None)
    if refused_status(error) not in _OF_REQUESTS or _OTHER_REASONS & {*_values(said, ("code", "type"))}:
        return None
    text = f"{error} {said}"
    named = {token for place in _values(said, ("param", "loc")) for token in _TOKENS.findall(place)}
    for key in [key for key in keys if key in named] or keys:
        missed = _is_beside(key, text, _MISSED) and not _is_beside(key, text, _REFUSED)
        if (key in named or missed or _is_beside(key, text, _REFUSED)) and not is_quoted(key, body):
            return Refusal(key, missed)
    return None


def is_quoted(word: str, body: bytes) -> bool:
    """Whether a text of a request holds the word, so that an error may quote it.

    Args:
        word: The word.
        body: The JSON of the request.
    """
    return any(re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for text in _texts(json.loads(body)))


def refused_status(error: Any) -> Any:
    """Return the HTTP status of an error of any SDK; None if it has none."""
    return getattr(error, "status_code", None) or getattr(error, "code", None)


def is_streaming_unsupported(error: Any) -> bool:
    """Whether an error means that the server does not stream, so that the request may succeed without streaming.

    Seen of gateways and of single models: a status of 4xx or 501 and words such as "Streaming is not supported for this model" or
    "Unsupported value: 'stream' does not support true with this model" (wire quirk E-12). A refusal of `stream_options` is none of these.
    """
    return refused_status(error) in _STATUSES and bool(_NO_STREAM.search(str(error)))


def _is_beside(key: str, text: str, words: str) -> bool:
    named = rf"\b{re.escape(key)}\b"
    return re.search(rf"(?s){named}.{{0,{_NEAR}}}?(?:{words})|(?:{words}).{{0,{_NEAR}}}?{named}", text, re.IGNORECASE) is not None


def _values(said: Any, keys: Sequence[str]) -> Iterator[str]:
    """Yield what an error's body has under these keys, at any depth, the places of a list joined."""
    if isinstance(said, list):
        for one in said:
            yield from _values(one, keys)
    if not isinstance(said, Mapping):
        return
    for name, value in said.items():
        if name in keys and isinstance(value, str | list):
            yield value if isinstance(value, str) else " ".join(map(str, value))
        elif name != "input":  # what pydantic repeats of the request
            yield from _values(value, keys)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for one in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(one)
