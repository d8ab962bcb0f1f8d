"""What travels: every public class pickles, and a model's copy sends the same bytes; what cannot travel is refused by its name."""

import copy
import importlib.util
import inspect
import pickle
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from google.auth.credentials import AnonymousCredentials
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.rate_limiters import InMemoryRateLimiter
from langchain_core.tools import BaseTool, StructuredTool, tool

import langchain_autotools
from langchain_autotools import (
    Agent,
    AzureChatOpenAI,
    ChatGoogleGenerativeAI,
    ChatLocal,
    ChatOllama,
    ChatOpenAI,
    Compaction,
    Decision,
    DecisionsError,
    FirstToken,
    Handler,
    LimitReachedError,
    McpServer,
    NextTurn,
    PendingCall,
    RetryPolicy,
    RunSoFar,
    ToolCallRecord,
    ToolCallResult,
    ToolContext,
    ToolExecutor,
    ToolPolicy,
    event_types,
    init_chat_model,
    mcp_server,
    new_messages,
)
from langchain_autotools.agent import AgentResult
from langchain_autotools.errors import DecisionProblem
from langchain_autotools.event_types import MessageDone, RunEvent
from langchain_autotools.pricing import RunCost, TurnCost
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import ROWS, Wire
from tests.support.script import Call, Turn
from tests.support.weather import Weather, get_temperature

KEY = "sk-of-this-process-0123"


def plain(city: str) -> str:
    """Name a city."""
    return city


async def later(city: str) -> str:
    """Name a city, later."""
    return city


class Look(BaseTool):
    """A tool that is a class."""

    name: str = "look"
    description: str = "Look."
    prefix: str = ""

    def _run(self, city: str) -> str:
        return self.prefix + city


kept = StructuredTool.from_function(plain, name="kept", description="Kept.")


class Silent(BaseCallbackHandler):
    """A handler that holds nothing."""


def needs(call: ToolCallRecord) -> bool:
    """Whether a call waits."""
    return call.name == "send"


def watch(*args: Any) -> None:
    """Hear of calls and results."""


def token() -> str:
    """A key that is fetched."""
    return KEY


def travelled(value: Any) -> Any:
    """The same in another process, as far as this one can tell."""
    return pickle.loads(pickle.dumps(value))


# ---------------------------------------------------------------------------------------------- models

TOOLS = [get_temperature, plain, later, Look(prefix="x"), kept]
SETTINGS: Mapping[str, Any] = {
    "max_turns": 7,
    "parallel": False,
    "policies": {"plain": ToolPolicy(timeout=3, retry_on=(ConnectionError,), retry=RetryPolicy(attempts=2), cache=True)},
    "default_policy": ToolPolicy(max_output=500),
    "requires_approval": needs,
    "on_executing": watch,
    "on_executed": watch,
    "on_progress": watch,
    "callbacks": [Silent()],
    "tags": ["blue"],
    "metadata": {"team": 1},
    "custom_get_token_ids": plain,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_law_7_a_copy_from_a_pickle_sends_the_same_bytes(row: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tools, policies, callbacks and rules; its key is that of the environment, and no pickle holds one."""
    for name in ("OPENAI", "AZURE_OPENAI", "ANTHROPIC", "GOOGLE", "GEMINI", "OLLAMA"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    script = [Turn("Let me look.", [Call("get_temperature", {"city": "Paris"}, "call_1")]), Turn("21 °C.")]
    with row.serve(script * 2) as server:
        model = row.model(server, tools=TOOLS, **SETTINGS)
        if row.name in ("openai-chat", "anthropic"):
            model = row.model(server, tools=TOOLS, api_key=KEY, **SETTINGS)
        key = getattr(model, model._key_field)
        monkeypatch.setenv(model.lc_secrets[model._key_field], key.get_secret_value() if key else "")
        pickled = pickle.dumps(model)
        assert KEY.encode() not in pickled
        other = pickle.loads(pickled)
        assert other.invoke("How warm is it in Paris?").text == model.invoke("How warm is it in Paris?").text
        first, second = server.exchanges[:2], server.exchanges[2:]
        assert [unsigned(one.body) for one in first] == [unsigned(one.body) for one in second]
        assert [(one.path, one.headers) for one in first] == [(one.path, one.headers) for one in second]


def unsigned(body: bytes) -> bytes:
    """A request without what Google's server puts into each reply anew, to have it back."""
    return re.sub(rb'"thoughtSignature":"[^"]*"', b"", body)


PLACE: dict[str, Any] = {"model": "any", "base_url": "http://127.0.0.1:9", "api_key": KEY}
AZURE: dict[str, Any] = {"azure_endpoint": "http://127.0.0.1:9", "azure_deployment": "m", "api_version": "1"}
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: ChatOpenAI(**PLACE, tools={"add": lambda a: a}), r"ChatOpenAI: tools\['add'\] .*define functions at the top of a module"),
    (lambda: ChatOpenAI(**PLACE, tools=[tool(lambda_named())]), r"ChatOpenAI: tools\[0\] \(inner\) cannot"),
    (lambda: ChatOpenAI(**PLACE, tools=[StructuredTool.from_function(plain, name="p")]), r"ChatOpenAI: tools\[0\] \(p\) cannot"),
    (lambda: ChatOpenAI(**PLACE, tools=ToolExecutor([lambda_named()])), r"ToolExecutor: tools\[0\] \(inner\) cannot"),
    (lambda: ChatOpenAI(**PLACE, tools=[{"type": "mcp", "server_label": "s", "authorization": KEY}]), "ChatOpenAI: tools cannot"),
    *[
        (lambda name=name: ChatOpenAI(**PLACE, tools=[plain], **{name: lambda *args: None}), f"ChatOpenAI: {name} cannot .*at the top")
        for name in ("on_executing", "on_executed", "on_progress", "requires_approval", "approve", "claim")
    ],
    (lambda: ChatOpenAI(**PLACE, tools=[plain], policies={"plain": ToolPolicy(cache=True, cache_key=lambda args: 1)}), "policies cannot"),
    (lambda: ChatOpenAI(**PLACE, rate_limiter=InMemoryRateLimiter()), r"rate_limiter cannot .*make it where it is used"),
    (lambda: ChatOpenAI(**PLACE, callbacks=[lock_of(Silent())]), "callbacks cannot"),
    (lambda: ChatOpenAI(**PLACE, http_client=openai.DefaultHttpxClient()), "http_client cannot"),
    (lambda: ChatGoogleGenerativeAI(**PLACE, http_async_client=httpx.AsyncClient()), "http_async_client cannot"),
    (lambda: ChatOpenAI(**{**PLACE, "api_key": lambda: KEY}), "openai_api_key cannot"),
    (lambda: ChatOpenAI(**PLACE, default_headers={"X-Api-Key": KEY}), r"default_headers\['X-Api-Key'\] cannot"),
    (lambda: ChatOpenAI(**PLACE).bind(extra_headers={"X-Api-Key": KEY}), r"bound to ChatOpenAI: extra_headers\['X-Api-Key'\] cannot"),
    (lambda: ChatOpenAI(**PLACE).bind(on_executing=lambda call: None), "bound to ChatOpenAI: on_executing cannot"),
    (lambda: ChatOpenAI(**PLACE).with_config(callbacks=[lock_of(Silent())]), "bound to ChatOpenAI: config cannot"),
    (lambda: AzureChatOpenAI(**AZURE, azure_ad_token_provider=lambda: KEY), "azure_ad_token_provider cannot"),
    (lambda: ChatGoogleGenerativeAI(model="m", project="p", credentials=AnonymousCredentials()), "credentials cannot"),
    (lambda: ChatGoogleGenerativeAI(**PLACE, client_args={"auth": ("me", KEY)}), r"client_args\['auth'\] cannot"),
    (lambda: ChatOllama(model="m", client_kwargs={"cookies": {"session": KEY}}), r"client_kwargs\['cookies'\]\['session'\] cannot"),
    (lambda: configurable(default_headers={"X-Api-Key": KEY}), r"ConfigurableChatModel: default_headers\['X-Api-Key'\] cannot"),
    (lambda: configurable(http_client=openai.DefaultHttpxClient()), "ConfigurableChatModel: http_client cannot"),
    (lambda: configurable().bind(extra_headers={"X-Api-Key": KEY}), r"ConfigurableChatModel: extra_headers\['X-Api-Key'\] cannot"),
    (lambda: configurable().bind(on_executing=lambda call: None), "ConfigurableChatModel: what is declared on it cannot"),
    (lambda: Agent(ChatOpenAI(**PLACE), tools=[lambda_named()]), r"ChatOpenAI: tools\[0\] \(inner\) cannot"),
    (lambda: ToolExecutor([plain], on_executed=lambda result: None), "ToolExecutor: on_executed cannot"),
    (lambda: ToolExecutor([plain], approve=lambda call: None), "ToolExecutor: approve cannot"),
]


def configurable(**more: Any) -> Any:
    """A model that is made at each call."""
    return init_chat_model("openai:any", configurable_fields="any", api_key=KEY, **more)


def lambda_named() -> Callable[[str], str]:
    """A function that no module holds."""

    def inner(city: str) -> str:
        """Name a city."""
        return city

    return inner


def lock_of(handler: Any) -> Any:
    """The handler, which holds a lock."""
    handler.lock = threading.Lock()
    return handler


@pytest.mark.parametrize(("make", "said"), REFUSED, ids=[said[:40] for _, said in REFUSED])
def test_what_cannot_travel_is_refused_by_name(make: Callable[[], Any], said: str) -> None:
    """Nothing is left out in silence, no secret is said, and copies within the process have it all."""
    made = make()
    with pytest.raises(pickle.PicklingError, match=said) as caught:
        pickle.dumps(made)
    assert KEY not in str(caught.value)
    assert type(copy.copy(made)) is type(made)


def test_a_function_that_gives_a_key_travels_where_a_module_holds_it() -> None:
    """An environment that has a key does not replace it."""
    openai_copy = travelled(ChatOpenAI(**{**PLACE, "api_key": token}))
    assert openai_copy.openai_api_key is token
    azure_copy = travelled(AzureChatOpenAI(**AZURE, azure_ad_token_provider=token))
    assert (azure_copy.azure_ad_token_provider, azure_copy.openai_api_key) == (token, None)


def test_a_copy_of_the_local_model_takes_nothing_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its server has nothing to do with the vendor's key and proxy."""
    model = ChatLocal(model_path=tmp_path / "m.gguf", tools=[plain], context_size=512)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    other = travelled(model)
    assert (other.openai_api_key, other.openai_api_base, other.openai_proxy) == (None, None, None)
    assert (other.model_path, other.context_size, other.tools) == (model.model_path, 512, [plain])


# ---------------------------------------------------------------------------------------------- everything else that is public

RECORD = ToolCallRecord(name="plain", id="c1", arguments='{"city": "Rome"}', args={"city": "Rome"})
PROBLEM = DecisionProblem("u", "c1", "This call does not wait.")
PENDING = PendingCall(id="c1", name="f", args={"a": 1}, kind="approval", uuid="u", digest="d")
SAID: Any = ScriptedChatModel(
    replies=[AIMessage("", tool_calls=[{"name": "plain", "args": {"city": "Rome"}, "id": "c1"}]), "Done."], tools=[plain]
)
VALUES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("run_id", "parent_run_id", "parent_call_id", "position", "name", "message_id", "call_id", "text", "reason", "separator"), "text"
    ),
    **dict.fromkeys(("attempt", "index", "turn", "turns"), 1),
    "duration": 0.5,
    "executed": True,
    **dict.fromkeys(("from_model", "to_model"), "vendor/model"),
    "after_text": True,
    "what": "results",
    **dict.fromkeys(("results", "from_tokens", "to_tokens", "window"), 1000),
    "provisional": True,
    "value": {"done": 3},
    "call": RECORD,
    "calls": [PENDING],
    "message": ToolMessage("Rome", tool_call_id="c1", artifact={"a": 1}),
    "messages": [AIMessage("Hello.")],
    "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    "stop_reason": "complete",
    "error": ValueError("broken"),
    "args": {"query": "Rome"},
    "output": {"found": "Rome"},
    **dict.fromkeys(("status", "mime_type", "url", "title", "document", "quote", "file_id", "data", "sha256", "image"), "text"),
    **dict.fromkeys(("start", "end", "size"), 3),
    "failed": True,
}
OTHERS: Mapping[str, Callable[[], Any]] = {
    "Agent": lambda: Agent(ScriptedChatModel(replies=["Hi."], tools=[plain]), history=[AIMessage("Hello.")]),
    "AgentResult": lambda: Agent(SAID.model_copy()).run("Where?"),
    "Compaction": lambda: Compaction(at=0.7, keep=2),
    "Decision": PENDING.approve,
    "DecisionProblem": lambda: PROBLEM,
    "DecisionsError": lambda: DecisionsError("Not so.", [PROBLEM]),
    "FirstToken": lambda: FirstToken(5),
    "Handler": lambda: Handler(plain, requires_approval=False, policy=ToolPolicy(timeout=3)),
    "LimitReachedError": lambda: LimitReachedError("Enough.", "max_turns"),
    "McpServer": lambda: mcp_server("python server.py", prefix="own_"),
    "NextTurn": lambda: NextTurn(1, (HumanMessage("Hello."),), None, ("plain",), None, {}),
    "PendingCall": lambda: PENDING,
    "RetryPolicy": lambda: RetryPolicy(attempts=7),
    "RunCost": lambda: RunCost([TurnCost("a", "b", {"input": Decimal("0.1")})]),
    "RunSoFar": lambda: RunSoFar((AIMessage("Hello."),), 1, 0, None),
    "ToolCallRecord": lambda: RECORD,
    "ToolCallResult": lambda: ToolCallResult(RECORD, ToolMessage("Rome", tool_call_id="c1"), error=None, duration=0.5),
    "ToolContext": lambda: ToolContext(RECORD, messages=[AIMessage("Hello.")], turn=2, config={"tags": ["blue"]}),
    "ToolExecutor": lambda: ToolExecutor(TOOLS, default_policy=ToolPolicy(timeout=3), requires_approval=needs, on_executed=watch),
    "ToolPolicy": lambda: SETTINGS["policies"]["plain"],
    "TurnCost": lambda: TurnCost("a", "b", {"input": Decimal("0.1")}, unpriced=["audio"]),
}
NAMED = {name: getattr(module, name) for module in (langchain_autotools, event_types) for name in module.__all__}
PUBLIC = {
    **{name: value for name, value in NAMED.items() if inspect.isclass(value)},
    **{one.__name__: one for one in (AgentResult, DecisionProblem, RunCost, TurnCost)},
}


def sample(name: str) -> Any:
    """An instance of a public class."""
    kind = PUBLIC[name]
    if name in OTHERS:
        return OTHERS[name]()
    if issubclass(kind, RunEvent):
        return kind(**{field.name: VALUES[field.name] for field in fields(kind) if field.init})
    assert issubclass(kind, Exception), f"{name}: give OTHERS an instance of it"
    return kind("Broken.")


@pytest.mark.parametrize("kind", [RunEvent, Exception, object])
def test_every_public_class_pickles(kind: type) -> None:
    """What comes out says the same; a class that is new here needs a line above. (Models: see the law above.)"""
    kinds = (RunEvent, Exception, object)
    names = [name for name, one in PUBLIC.items() if next(base for base in kinds if issubclass(one, base)) is kind]
    for name in sorted(names):
        if issubclass(PUBLIC[name], BaseChatModel) or (name == "McpServer" and not importlib.util.find_spec("mcp")):
            continue
        if name == "ToolsAndMessagesMixin":
            continue  # not a class of its own: the models have it
        made = sample(name)
        other = travelled(made)
        assert type(other) is type(made) and repr(other) == repr(made)
        if not isinstance(made, Agent | McpServer | ToolExecutor | ToolContext | Exception) and name not in ("RunFailed", "ModelChanged"):
            assert other == made, name
        assert told(other) == told(made), name


def told(value: Any) -> Any:
    """What a value holds, for comparison: its plain attributes."""
    if isinstance(value, tuple):
        return value
    tools = getattr(value, "tools", ())
    own = {**vars(value), "tools": [] if callable(tools) else list(tools), "_given": None}
    return {key: held for key, held in own.items() if isinstance(held, str | int | float | list | dict | bool | BaseMessage)}


def test_a_program_can_send_its_models_by_whatever_made_them() -> None:
    """Bindings, structured output, chains and models that are made at each call answer as before."""
    model = ChatOpenAI(**PLACE, tools=[plain])
    for made in (
        model.bind_tools([get_temperature]),
        model.with_structured_output(Weather),
        model.with_structured_output(Weather, method="function_calling"),
        model.with_retry(),
        model | new_messages,
        Decision,
    ):
        assert type(travelled(made)) is type(made)


def test_a_model_that_is_made_at_each_call_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its tools and what is declared on it, and without its key, which a copy within the process keeps."""
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    made = configurable(base_url="http://127.0.0.1:9", tools=[get_temperature]).bind_tools([kept]).with_config(tags=["blue"])
    pickled = pickle.dumps(made)
    assert KEY.encode() not in pickled
    other, same, deep = (one._model(None) for one in (pickle.loads(pickled), copy.copy(made), copy.deepcopy(made)))
    assert [one.bound.openai_api_key.get_secret_value() for one in (other, same, deep)] == ["another", KEY, KEY]
    assert other.bound.tools == [get_temperature] and other.kwargs == same.kwargs and other.config["tags"] == ["blue"]


def test_an_artifact_that_cannot_travel_holds_nothing_back() -> None:
    """Of an error of the package, an event and a result it is marked, as in what a run message carries."""
    result = ToolMessage("Rome", tool_call_id="c1", artifact=threading.Lock())

    @tool(response_format="content_and_artifact")
    def look() -> tuple[str, Any]:
        """Look around."""
        return "A lock.", threading.Lock()

    asking = [AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": str(number)}]) for number in range(2)]
    with pytest.raises(LimitReachedError) as caught:
        ScriptedChatModel(replies=asking, tools=[look], max_turns=1, on_limit="raise").invoke("Look.")
    found = [new_messages(travelled(caught.value))[1], travelled(MessageDone(run_id="r", message=result)).message]
    found.append(travelled(ToolCallResult(RECORD, result)).message)
    assert [one.artifact["autotools"] for one in found] == ["artifact not carried"] * 3
    kept_artifact: Any = travelled(MessageDone(run_id="r", message=ToolMessage("", tool_call_id="c", artifact={1, 2}))).message
    assert kept_artifact.artifact == {1, 2}
