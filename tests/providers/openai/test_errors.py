"""What OpenAI answers instead of a reply: errors that are both the SDK's and LangChain's, and tell no secrets."""

import subprocess
import sys
import traceback
from typing import Any

import openai
import pytest
from langchain_core import exceptions

from langchain_autotools import ChatOpenAI
from langchain_autotools.providers.openai import error_types, errors
from tests.support.http_server import HttpReply, LoopbackServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Events, Failure, Raw

KEY = "sk-proj-1234567890abcdef"


def raised_by(failure: Any, **more: Any) -> Any:
    """The error that a model raises when the server answers this."""
    with OpenAIServer([failure]) as server:
        model = ChatOpenAI(**{"model": "any", "base_url": server.url, "api_key": KEY, "max_retries": 0, **more})
        with pytest.raises(Exception) as raised:
            model.invoke("Hi")
    return raised.value


@pytest.mark.parametrize(
    ("status", "name", "sdk", "core", "retryable"),
    [
        (400, "OpenAIInvalidRequestError", "BadRequestError", "ModelInvalidRequestError", False),
        (401, "OpenAIAuthenticationError", "AuthenticationError", "ModelAuthenticationError", False),
        (402, "OpenAIStatusError", "APIStatusError", "ModelError", False),
        (403, "OpenAIPermissionDeniedError", "PermissionDeniedError", "ModelPermissionDeniedError", False),
        (404, "OpenAIModelNotFoundError", "NotFoundError", "ModelNotFoundError", False),
        (408, "OpenAIRequestTimeoutError", "APIStatusError", "ModelTimeoutError", True),
        (409, "OpenAIConflictError", "ConflictError", "ModelAPIError", True),
        (422, "OpenAIUnprocessableEntityError", "UnprocessableEntityError", "ModelInvalidRequestError", False),
        (429, "OpenAIRateLimitError", "RateLimitError", "ModelRateLimitError", True),
        (500, "OpenAIAPIError", "InternalServerError", "ModelAPIError", True),
        (529, "OpenAIAPIError", "InternalServerError", "ModelAPIError", True),
    ],
)
def test_each_status_has_its_error(status: int, name: str, sdk: str, core: str, retryable: bool) -> None:
    """`except` of the SDK's class, of LangChain's and of ours all catch it; it says what the server said."""
    error = raised_by(Failure(status, "what the server said", code="some_code", headers={"x-request-id": "req_7"}))
    assert type(error) is getattr(errors, name)
    assert isinstance(error, getattr(openai, sdk))
    assert isinstance(error, getattr(exceptions, core))
    assert error.is_retryable is retryable
    assert (error.status_code, error.code, error.request_id) == (status, "some_code", "req_7")
    assert "what the server said" in str(error)
    assert isinstance(error.__cause__, openai.APIStatusError)


@pytest.mark.parametrize(
    "failure",
    [
        Failure(400, "Too long.", code="context_length_exceeded"),
        Failure(400, "Too long.", type="exceed_context_size_error"),
        Failure(400, "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."),
        Failure(400, "the request exceeds the available context size, try increasing it"),
        Failure(500, "Input tokens exceed the configured limit of 1000 tokens."),
    ],
)
def test_a_context_that_is_too_long(failure: Failure) -> None:
    """However a server says it, it is LangChain's ContextOverflowError, and no retry will help."""
    error = raised_by(failure)
    assert isinstance(error, exceptions.ContextOverflowError)
    assert isinstance(error, openai.BadRequestError)
    assert error.is_retryable is False


@pytest.mark.parametrize(
    ("said", "name", "status"),
    [
        ({"message": "slow", "type": "tokens", "code": "rate_limit_exceeded"}, "OpenAIRateLimitError", 429),
        ({"message": "busy", "type": "server_error", "code": None}, "OpenAIAPIError", 500),
        ({"message": "gateway", "code": 502}, "OpenAIAPIError", 502),
        ({"message": "gateway", "code": "429"}, "OpenAIRateLimitError", 429),
        ({"message": "no", "type": "invalid_request_error"}, "OpenAIInvalidRequestError", 400),
        ({"message": "long", "type": "exceed_context_size_error"}, "OpenAIContextOverflowError", 400),
        ({"message": "prompt is too long: 300 tokens"}, "OpenAIContextOverflowError", 400),
        ("out of memory", "OpenAIAPIError", 500),
        ({"detail": "odd"}, "OpenAIAPIError", 500),
    ],
)
def test_errors_inside_a_reply_are_typed_like_the_others(said: Any, name: str, status: int) -> None:
    """An error object in a stream that began with status 200 counts as what it would have been outside."""
    error: Any = errors.error_from_body(said)
    assert type(error) is getattr(errors, name)
    assert error.status_code == status
    text = said if isinstance(said, str) else said.get("message", "odd")
    assert text in str(error)


def test_an_error_in_a_stream_reaches_the_caller_typed() -> None:
    """Over HTTP, streamed."""
    with OpenAIServer([Events([{"error": {"message": "slow down", "code": "rate_limit_exceeded"}}])]) as server:
        model = ChatOpenAI(model="any", base_url=server.url, api_key=KEY, max_retries=0)
        with pytest.raises(openai.RateLimitError) as raised:
            list(model.stream("Hi"))
    assert isinstance(raised.value, exceptions.ModelRateLimitError)


def test_an_error_event_is_an_error_too() -> None:
    """`event: error` with the error object as its data."""
    body = b'event: error\ndata: {"message": "slow down", "code": "rate_limit_exceeded"}\n\n'
    with OpenAIServer([Raw([body])]) as server, pytest.raises(openai.RateLimitError, match="slow down"):
        list(ChatOpenAI(model="any", base_url=server.url, api_key=KEY, max_retries=0).stream("Hi"))


def test_a_body_that_is_no_object_is_kept() -> None:
    """A page where an error object should be: the status decides, and the page is on the error."""
    error = raised_by(Raw([b"<html>Bad gateway</html>"], "text/html", status=502))
    assert isinstance(error, exceptions.ModelAPIError)
    assert error.body == "<html>Bad gateway</html>"


def test_an_address_that_leads_nowhere_is_told() -> None:
    """Where no error object says that the model is missing, it is the path: most often `/v1` is."""
    page = HttpReply([b"404 page not found"], status=404, headers={"content-type": "text/plain"})
    with LoopbackServer(lambda exchange: page) as server:
        address = server.address.replace("//", "//user:password-1@")
        with pytest.raises(errors.OpenAIModelNotFoundError) as raised:
            ChatOpenAI(model="any", api_key="key", base_url=address, max_retries=0).invoke("Hi")
    assert f"there is nothing at {server.address}/chat/completions: see base_url" in str(raised.value)


def test_an_sdk_error_of_another_kind_stays_itself() -> None:
    """Only what says something of the transport is translated."""
    error = openai.APIError("odd", errors.ERRORS.library().Request("POST", "http://a"), body={"message": f"{KEY} {[KEY]}", "list": [KEY]})
    assert errors.ERRORS.table(lambda: [KEY])[openai.APIError](error) is error
    assert error.body == {"message": "*** ['***']", "list": ["***"]}


@pytest.mark.parametrize("callable_key", [False, True], ids=["a key", "a function"])
def test_no_key_stands_in_an_error(callable_key: bool) -> None:
    """A server that repeats the key in its error does not put it into the error, its cause or the traceback."""
    token = "Bearer tok-9876543210"
    error = raised_by(
        Failure(401, f"Incorrect API key provided: {KEY}. Your header was {token}."),
        api_key=(lambda: KEY) if callable_key else KEY,
        default_headers={"x-auth-token": token},
    )
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.body) + str(error.__cause__.body)
    assert KEY not in shown
    assert token not in shown
    assert "Incorrect API key provided: ***" in str(error)


def test_short_words_are_not_taken_for_secrets() -> None:
    """A placeholder key such as "x" leaves texts readable."""
    error = raised_by(Failure(400, "Unexpected extra text"), api_key="x")
    assert "Unexpected extra text" in str(error)


def test_every_name_is_importable() -> None:
    """`from ...errors import OpenAIRateLimitError` works for each class; an unknown name is an AttributeError."""
    names = {name for name in vars(error_types) if name.startswith("OpenAI")}
    for name in names:
        kind = getattr(errors, name)
        assert kind is getattr(error_types, name)
        assert issubclass(kind, openai.OpenAIError)
        assert issubclass(kind, exceptions.ModelError)
        assert kind.__module__ == errors.__name__
        assert kind.__doc__
    for module in (errors, error_types):
        with pytest.raises(AttributeError, match="OpenAINoSuchError"):
            module.OpenAINoSuchError  # noqa: B018


@pytest.mark.further
def test_importing_the_module_loads_no_sdk() -> None:
    """The classes are made when one is first asked for."""
    code = "import sys; from langchain_autotools.providers.openai import errors; print('openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
