"""Law 11: no key, header or password is in a repr, traceback, pickle, log or trace, wherever it was given."""

import asyncio
import gc
import pickle
import traceback
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ModelError
from langchain_core.load import dumps
from langchain_core.messages import HumanMessage

from langchain_autotools import AzureChatOpenAI, ChatAnthropic, ChatGoogleGenerativeAI, ChatOllama, ChatOpenAI, ConfigurationError
from langchain_autotools.turn.model import names_of
from tests.contract.wires import ROWS, WIRES, Wire
from tests.providers.test_secrets_shown import HEADER, KEY, PASSWORD, secretive
from tests.support.ollama_server import OllamaServer
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Failure, Raw, Turn
from tests.support.weather import get_temperature

SECRETS = (KEY, HEADER, PASSWORD)
BODY = {"data_sources": [{"authentication": {"type": "api_key", "key": KEY}, "endpoint": "here"}], "session_token": HEADER, "top_k": 3}


class Told(BaseCallbackHandler):
    """Keeps what a tracer is told of a run."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        """Keep it."""
        self.said.append(f"{args} {kwargs}")

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        """Keep it."""
        self.said.append(f"{args} {kwargs}")

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        """Keep it."""
        self.said.append(f"{error!r} {kwargs}")


def refused(row: Wire, model: Any, name: str) -> None:
    """Every way to give a keyword to a call refuses this one and does not say its value."""
    told = Told()
    given: dict[str, Any] = {name: KEY}
    ways = [
        lambda: model.bind(**given),
        lambda: model.bind_tools([get_temperature], **given),
        lambda: model.with_structured_output({"title": "Any", "type": "object", "properties": {}}, **given),
        lambda: model.invoke("Hi", {"callbacks": [told]}, **given),
        lambda: list(model.stream("Hi", {"callbacks": [told]}, **given)),
        lambda: asyncio.run(model.ainvoke("Hi", {"callbacks": [told]}, **given)),
        lambda: model.generate([[("user", "Hi")]], callbacks=[told], **given),
        lambda: list(model.raw_stream([], **given)),
    ]
    for way in ways:
        with pytest.raises(ConfigurationError, match=f"{name} is for the constructor") as caught:
            way()
        assert KEY not in str(caught.value) + str(told.said)


@pytest.mark.parametrize("row", [*WIRES, ROWS[-1]], ids=lambda row: row.name)
def test_a_call_cannot_say_how_to_reach_the_server(row: Wire) -> None:
    """A key, an address, headers or a client given to a call are refused: never sent, never traced. So are other classes' names."""
    with row.serve([]) as server:
        own = {
            name for field in row.chat_model._connection & row.chat_model.model_fields.keys() for name in names_of(row.chat_model, field)
        }
        own |= {"api_key", "base_url", "organization", "default_headers", "mistral_api_key"}
        model = row.model(server)
        some = row.model(server, tools=[get_temperature])
        for name in sorted(own):
            with pytest.raises(ConfigurationError, match=f"{name} is for the constructor"):
                some.invoke("Hi", **{name: KEY})
        refused(row, model, min(own))
        assert server.exchanges == []


def shown_locals(error: BaseException) -> Iterator[tuple[str, str]]:
    """File and text of the local variables that a report of this error shows, the test's own apart."""
    rest: list[Any] = [traceback.TracebackException.from_exception(error, capture_locals=True)]
    while rest:
        told = rest.pop()
        if told is None:
            continue
        rest.append(told.__cause__ or (None if told.__suppress_context__ else told.__context__))
        for frame in told.stack:
            if __file__ != frame.filename:
                yield from ((frame.filename, f"{frame.name} {name}={value}") for name, value in (frame.locals or {}).items())


@pytest.mark.parametrize("way", ["invoke", "astream"])
@pytest.mark.parametrize("row", WIRES, ids=lambda row: row.name)
def test_a_traceback_with_locals_shows_no_secret(row: Wire, way: str) -> None:
    """Of a refused request, a reply that breaks off, and a request that reaches nobody.

    The SDKs show some in their own frames, however they are used: addresses with their query, and the key for Azure.
    """
    given = {name: value for name, value in secretive(row).items() if "proxy" not in name and name != "client_args"}
    given |= {"client_kwargs": {"headers": {"x-api-token": HEADER}}} if "client_kwargs" in given else {}
    given |= {"default_query": {"api_key": PASSWORD}} if "default_query" in row.chat_model.model_fields else {}

    async def streamed(model: Any) -> None:
        async for _ in model.astream("Hi"):
            pass

    script = [Failure(401, f"No {KEY}, no {HEADER}.", "invalid_request_error"), Raw([b"data: {broken\n\n"])]
    with row.serve(script) as server:
        server.check_place = lambda exchange: None  # type: ignore[attr-defined] - any key
        model = row.model(server, **{"max_retries": 0, **given})
        nobody = {"azure_endpoint": "http://127.0.0.1:1"} if "azure" in row.name else {"base_url": "http://127.0.0.1:1"}
        for asked in (model, model, row.model(server, **{"max_retries": 0, **given, **nobody})):
            told = Told()
            asked = asked.model_copy(update={"callbacks": [told]})
            with pytest.raises(ModelError) as caught:
                asyncio.run(streamed(asked)) if way == "astream" else asked.invoke("Hi")
            found = list(shown_locals(caught.value))
            texts = [str(caught.value), *told.said, *(text for file, text in found if "langchain_autotools" in file)]
            assert [text for text in texts if any(secret in text for secret in SECRETS)] == []
            assert [text for _, text in found if HEADER in text or (KEY in text and "azure" not in row.name)] == []


def test_secrets_of_the_body_are_hidden() -> None:
    """In the model's repr and JSON, and in traces, given to the constructor or to a call. They are sent; the rest is shown."""
    told = Told()
    with OpenAIServer([Turn("Hi."), Turn("Hi.")], rules=None) as server:
        common = {"model": "any", "base_url": server.url, "api_key": "key"}
        for more, call in (({"extra_body": BODY, "model_kwargs": {"access_token": PASSWORD}}, {}), ({}, {"extra_body": BODY})):
            model = ChatOpenAI(**common, **more)
            model.invoke("Hi", {"callbacks": [told]}, **call)
            shown = [repr(model), str(model), model.model_dump_json(), dumps(model), *told.said, refusal(model) if more else ""]
            shown += [str(model.model_dump()), str(model._identifying_params)]
            assert not [secret for secret in SECRETS for text in shown if secret in text]
        assert [request["session_token"] for request in server.requests] == [HEADER, HEADER]
        assert server.requests[0]["access_token"] == PASSWORD
    assert "'endpoint': 'here'" in told.said[0] and "'top_k': 3" in repr(ChatOpenAI(**common, extra_body=BODY))
    assert pickle.loads(pickle.dumps(ChatOpenAI(**common, extra_body={"top_k": 3}))).extra_body == {"top_k": 3}


def refusal(model: Any) -> str:
    """Why a model cannot be pickled, with the local variables that a traceback would show of this package."""
    with pytest.raises(pickle.PicklingError) as caught:
        pickle.dumps(model)
    return "".join([str(caught.value), *(text for file, text in shown_locals(caught.value) if "langchain_autotools" in file)])


def test_a_refused_pickle_shows_no_secret_of_a_declared_tool() -> None:
    """Nor of a remote MCP server, whatever it is that cannot be pickled."""

    def local(city: str) -> str:
        """A tool that no other process finds."""
        return city

    remote = {"type": "mcp", "server_label": "x", "server_url": "https://x", "authorization": KEY, "headers": {"Authorization": HEADER}}
    server = {"type": "url", "name": "x", "url": "https://x", "authorization_token": KEY}
    openai = {"model": "m", "api_key": "key", "use_responses_api": True}
    models: list[Any] = [
        ChatOpenAI(**openai, tools=[remote]),
        ChatOpenAI(**openai, tools=[remote, local]),
        ChatOpenAI(**openai).bind_tools([remote]),
        ChatOpenAI(**openai).bind(tools=[remote], requires_approval=lambda call: True),
        ChatAnthropic(model="m", api_key="key", mcp_servers=[server]),
    ]
    assert not [secret for model in models for secret in SECRETS if secret in refusal(model)]


def test_a_pickle_holds_no_password_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor keys of the query: it is made where the environment says the same address, and else refused."""
    address = f"http://user:{PASSWORD}@127.0.0.1:1"
    azure = AzureChatOpenAI(model="m", base_url=f"{address}/openai", api_version="1", api_key="key")
    openai = ChatOpenAI(model="m", base_url=address, api_key="key", default_query={"api_key": KEY, "version": "2"})
    anthropic = ChatAnthropic(model="m", base_url=address, api_key="key")
    google = ChatGoogleGenerativeAI(model="m", base_url=address, api_key="key")
    for model in (azure, openai, anthropic, google, ChatOllama(model="m", base_url=address)):
        said = refusal(model)
        assert "_base" in said or "base_url" in said or "_api_url" in said
        assert not [secret for secret in SECRETS if secret in said]
        assert model.model_copy().__dict__ == model.__dict__  # a copy keeps it
    assert "default_query['api_key']" in refusal(openai)
    openai.default_query = {"version": "2"}
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OLLAMA_HOST"):
        monkeypatch.setenv(name, address)
    assert pickle.loads(pickle.dumps(openai)).openai_api_base == address
    assert pickle.loads(pickle.dumps(anthropic)).anthropic_api_url == address
    assert pickle.loads(pickle.dumps(google)).base_url == address
    assert pickle.loads(pickle.dumps(ChatOllama(model="m", base_url=address))).base_url == address
    held = pickle.dumps(openai)
    assert not [secret for secret in SECRETS if secret.encode() in held]
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{PASSWORD}@127.0.0.1:2")
    assert pickle.loads(held).openai_api_base == "http://127.0.0.1:1"
    assert "OPENAI_API_BASE or OPENAI_BASE_URL" in refusal(openai)


def test_a_key_given_as_a_header_is_hidden_without_its_scheme() -> None:
    """Where a server repeats it."""
    with OllamaServer([Failure(401, f"invalid key {KEY}")]) as server:
        model = ChatOllama(model="m", base_url=server.url, max_retries=0, client_kwargs={"headers": {"Authorization": f"Bearer {KEY}"}})
        with pytest.raises(ModelError) as caught:
            model.invoke("Hi")
    assert "invalid key ***" in str(caught.value) and KEY not in repr(vars(caught.value))


def test_secrets_of_an_address_are_hidden_where_a_server_repeats_them() -> None:
    """The password, and a key of the query."""
    with OpenAIServer([Failure(400, f"bad: {PASSWORD} {KEY}")]) as server:
        address = server.url.replace("//", f"//user:{PASSWORD}@")
        model = ChatOpenAI(model="m", base_url=address, api_key="key", max_retries=0, default_query={"subscription-key": KEY})
        server.check_place = lambda exchange: None  # type: ignore[method-assign]
        with pytest.raises(ModelError, match=r"bad: \*\*\* \*\*\*"):
            model.invoke("Hi")


SAID, OF_A_CALL = "what somebody said", "a header of one call"  # which no other test says: its objects may be alive
_SHOWS_MESSAGES = ("event_types", "executor", "loop", "calls", "wire", "mapper", "slot", "incremental.GrowingHistory", "encoder")
"""Records of calls, results and events, which are there to show them, and copies of what is sent."""


def shown_by_the_package() -> Iterator[tuple[str, str]]:
    """The reprs of all objects of the package's classes that are alive, each with its class."""
    for one in gc.get_objects():
        kind = type(one)
        if str(getattr(kind, "__module__", "")).startswith("langchain_autotools.") and not isinstance(one, type):
            yield f"{kind.__module__}.{kind.__qualname__}", repr(one)


@pytest.mark.parametrize("row", [row for row in WIRES if row.name in ("openai-chat", "anthropic")], ids=lambda row: row.name)
def test_nothing_that_a_run_keeps_shows_a_header_or_what_was_said(row: Wire) -> None:
    """In the middle of a run and at its end: tracebacks with local variables show the reprs of all that."""
    with row.serve([Turn(f"{SAID}?", [Call("get_temperature", {"city": "Rome"})]), Turn("21 °C.")]) as server:
        stream = row.model(server, tools=[get_temperature]).stream([HumanMessage(SAID)], extra_headers={"x-api-token": OF_A_CALL})
        found = []
        for _ in stream:
            found += [(kind, text) for kind, text in shown_by_the_package() if OF_A_CALL in text or SAID in text]
    assert [kind for kind, text in found if OF_A_CALL in text] == []
    kinds = {kind for kind, _ in found if not any(name in kind for name in _SHOWS_MESSAGES)}
    assert kinds == set()


def test_settings_of_an_azure_client_show_no_password_of_its_address() -> None:
    """As those of the other classes."""
    model = AzureChatOpenAI(azure_endpoint=f"https://user:{PASSWORD}@localhost", azure_deployment="d", api_version="1", api_key=KEY)
    assert PASSWORD not in repr(model._client_settings()) and KEY not in repr(model._client_settings())
