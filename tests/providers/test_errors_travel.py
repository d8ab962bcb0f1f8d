"""Errors go to other processes, and into copies, as what they are: class, words, status, ids, and nothing secret."""

import copy
import importlib
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
from langchain_core.exceptions import ModelConnectionError, ModelError
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, LimitReachedError, StreamError, new_messages
from langchain_autotools.providers._base.errors import ProviderError
from tests.contract.wires import WIRES, Wire
from tests.providers.test_secrets_shown import HEADER, KEY, secretive
from tests.support.script import Call, Failure, Turn
from tests.support.weather import get_temperature

VENDORS = ("openai", "anthropic", "google", "ollama")
WAYS: list[Callable[[Any], Any]] = [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]


def error_classes(vendor: str) -> list[type[Any]]:
    """All that a vendor's module of errors defines."""
    module = importlib.import_module(f"langchain_autotools.providers.{vendor}.errors")
    names = vars(importlib.import_module(f"{module.__name__.removesuffix('errors')}error_types"))
    found = [getattr(module, name) for name in names if name.startswith(module.ERRORS.prefix)]
    return [cls for cls in found if issubclass(cls, ProviderError)]


def made(vendor: str, cls: type[Any]) -> Any:
    """An error of a class, as the vendor's module makes them."""
    library = importlib.import_module("httpx" if vendor == "ollama" else "langchain_autotools.providers._transport.exchange")
    library = library.library() if hasattr(library, "library") else library
    request = library.Request("POST", "http://127.0.0.1/v1", headers={"x-title": "blue", "Helicone-Auth": "other-1234567890"})
    response = library.Response(429, headers={"x-request-id": "req_1", "request-id": "req_1"}, content=b'{"a":1}', request=request)
    for arguments in ({"response": response, "body": {"code": "slow"}}, {"request": request}):
        try:
            return cls("Wait.", **arguments) if vendor in ("google", "ollama") or "response" in arguments else cls(**arguments)
        except TypeError:
            continue
    return cls(message="Wait.", request=request)


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_error_can_be_copied_and_pickled(vendor: str) -> None:
    """Whatever its constructor takes; what was set later and notes come along."""
    for cls in error_classes(vendor):
        error = made(vendor, cls)
        error.retry_after, error.is_retryable = 2.5, True
        error.add_note("In the morning.")
        for travelled in (way(error) for way in WAYS):
            assert type(travelled) is cls and str(travelled) == str(error) and travelled.args == error.args
            assert (travelled.retry_after, travelled.is_retryable, travelled.__notes__) == (2.5, True, ["In the morning."])
            for name in ("message", "status_code", "body", "code", "request_id", "status", "error"):
                assert getattr(travelled, name, None) == getattr(error, name, None), (cls, name)


@pytest.mark.parametrize("row", WIRES, ids=lambda row: row.name)
def test_what_a_server_answers_travels_without_secrets(row: Wire) -> None:
    """Nor do traces and the error itself hold those that the server repeats."""
    failure = Failure(
        429, f"Slow down, {KEY} and {HEADER}.", "rate_limit_error", headers={"retry-after": "7", "set-cookie": "id=mine-12345678"}
    )
    given = {name: value for name, value in secretive(row).items() if "proxy" not in name}
    given = {name: {"headers": value["headers"]} if name == "client_kwargs" else value for name, value in given.items()}
    given = {name: value for name, value in given.items() if name != "client_args"}
    with row.serve([failure]) as server:
        server.check_place = lambda exchange: None  # type: ignore[attr-defined] - any key
        with pytest.raises(ModelError) as caught:
            row.model(server, **{"max_retries": 0, **given}).invoke("Hi", extra_headers={"Helicone-Auth": "other-1234567890"})
    error: Any = caught.value
    travelled = pickle.loads(pickle.dumps(error))
    assert type(travelled) is type(error) and travelled.status_code == 429 and travelled.retry_after == 7
    seen = [str(error), repr(vars(error)), pickle.dumps(error).decode("latin1")]
    for name in ("response", "request"):
        held = getattr(error, name, None)
        seen += [repr(held and [*held.headers.items()]), getattr(held, "text", "")]
    for text in seen:
        assert not [secret for secret in (KEY, HEADER, "other-1234567890", "mine-12345678") if secret in text]


def ask_nobody() -> str:
    """A request to where no server is."""
    return ChatOpenAI(model="any", base_url="http://127.0.0.1:1/v1", api_key=KEY, max_retries=0).invoke("Hi").text


@pytest.mark.further
def test_an_error_does_not_break_a_pool_of_processes() -> None:
    """It is raised where the result is asked for, and the pool goes on."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for _ in range(2):
            with pytest.raises(ModelConnectionError, match="No reply from http://127.0.0.1:1"):
                pool.submit(ask_nobody).result()
        assert pool.submit(len, "abc").result() == 3


def test_what_had_completed_travels_with_the_error() -> None:
    """`new_messages` of an unpickled error gives it."""
    row = WIRES[0]
    with row.serve([Turn(calls=[Call("get_temperature", {"city": "Paris"})]), Failure(500)]) as server:
        model = row.model(server, tools=[get_temperature])
        with pytest.raises(ModelError) as caught:
            model.invoke([HumanMessage("How warm?")])
    assert new_messages(pickle.loads(pickle.dumps(caught.value))) == new_messages(caught.value) != []


@tool(response_format="content_and_artifact")
def look() -> tuple[str, Any]:
    """Look around."""
    return "A lock.", threading.Lock()


def test_an_artifact_that_cannot_travel_does_not_hold_the_error_back() -> None:
    """It is marked there; here it is itself."""
    with WIRES[0].serve([Turn(calls=[Call("look")]), Failure(500)]) as server:
        with pytest.raises(ModelError) as caught:
            WIRES[0].model(server, tools=[look]).invoke("What is there?")
    travelled: Any = new_messages(pickle.loads(pickle.dumps(caught.value)))[1]
    assert (travelled.content, travelled.artifact["autotools"]) == ("A lock.", "artifact not carried")


def test_the_packages_own_errors_travel() -> None:
    """With what they say."""
    for error in (StreamError("Broken."), LimitReachedError("Enough.", "max_turns")):
        for travelled in (way(error) for way in WAYS):
            assert type(travelled) is type(error) and str(travelled) == str(error) and vars(travelled) == vars(error)
