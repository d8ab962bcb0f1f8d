"""What cannot be declared is refused or left out, what a server lists is passed on, and LangChain's promises around a tool hold."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.runnables.config import ensure_config, var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool, ToolException, tool
from pydantic import BaseModel, ConfigDict

from langchain_autotools import mcp_server, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import Wire
from tests.laws.ways import run
from tests.support.approved_runs import CONFIG, FORGED, OWN, QUESTION, City, Heard, Run, Two, declared, deploy_with, refusals, ways
from tests.support.desk import asking, call
from tests.support.script import Call, Turn

# ---------------------------------------------------------------------------------------------- 8: what cannot be declared


class Inner(BaseModel):
    limit: float = float("inf")


def bounded(low: float = float("-inf"), high: float = float("inf"), mark: float = float("nan"), inner: Inner = Inner()) -> str:  # noqa: B008
    """Say the bounds."""
    return f"{low} {high} {mark} {inner.limit}"


_BOUNDS = {"type": "object", "properties": {"high": {"type": "number", "default": float("inf")}}}


def by_schema(high: float = float("inf")) -> str:
    """Say the bound."""
    return str(high)


@pytest.mark.parametrize("wire", OWN, ids=[wire.name for wire in OWN])
def test_a_default_that_json_does_not_know_is_left_out(wire: Wire) -> None:
    """Nothing else of the declaration changes, every request is made, and the function has its default."""
    second = StructuredTool(name="by_schema", description="Say.", args_schema=_BOUNDS, func=by_schema)
    with wire.serve([Turn(calls=[Call("bounded", {}, "1"), Call("by_schema", {}, "2")]), Turn("Done.")]) as server:
        ran = run("stream", wire.model(server, tools=[bounded, second]), [QUESTION])
        assert ran.error is None, ran.error
        text = json.dumps(server.exchanges[0].json["tools"])
        assert [one.message for one in server.rejections] == []
    assert all(name in text for name in ("low", "high", "mark", "inner", "limit"))
    assert not [word for word in ("NaN", "Infinity", "default: null", '"default": null') if word in text]
    assert [one.text for one in ran.new if isinstance(one, ToolMessage)] == ["-inf inf nan inf", "inf"]


class Opaque:
    """Something that no JSON can be."""


class OpaqueArguments(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    thing: Opaque


def opaque() -> list[Any]:
    """Tools that no model can be told of."""

    def hold(thing: Any) -> str:
        """Hold."""
        return "held"

    def call_back(thing: Callable[[], int]) -> str:
        """Call."""
        return "called"

    call_back.__annotations__ = {"thing": Callable[[], int], "return": str}
    return [StructuredTool(name="hold", description="Hold.", args_schema=OpaqueArguments, func=hold), tool(call_back)]


@pytest.mark.parametrize("place", [0, 1])
def test_what_cannot_be_declared_is_refused_with_its_name_where_it_is_given(place: int) -> None:
    """By a model of each vendor when it is made, and by `bind_tools`: an executor alone declares nothing."""
    given = opaque()[place]
    assert all(given.name in text for text in refusals(given, "model", "bound"))
    for wire in OWN:
        with wire.serve([]) as server, pytest.raises(ValueError, match=given.name):
            wire.model(server, tools=[given])


@pytest.mark.parametrize("wire", OWN, ids=[wire.name for wire in OWN])
def test_an_invalid_tool_is_left_out_with_a_warning(wire: Wire, caplog: pytest.LogCaptureFixture) -> None:
    """With `skip_invalid_tools=True` that one tool alone: what cannot be declared, and what cannot be bound."""

    def look(city: str) -> str:
        """Look."""
        return f"{city}: 21"

    lacks = StructuredTool(name="lacks", description="Lack.", args_schema=Two, func=look)
    with wire.serve([Turn(calls=[Call("look", {"city": "Rome"}, "1")]), Turn("Done.")]) as server:
        with caplog.at_level(logging.WARNING, "langchain_autotools"):
            model: Any = wire.model(server, tools=[*opaque(), lacks, look], skip_invalid_tools=True)
            ran = run("invoke", model, [QUESTION])
        assert ran.error is None, ran.error
        text = json.dumps(server.exchanges[0].json["tools"])
    assert [name for name in ("hold", "call_back", "lacks", "look") if f'"{name}"' in text] == ["look"]
    told = " ".join(record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert all(name in told for name in ("hold", "call_back", "lacks"))
    assert [one.text for one in ran.new if isinstance(one, ToolMessage)] == ["Rome: 21"]


# ---------------------------------------------------------------------------------------------- tools of an MCP server

_SERVER = """
import json, sys

TOOLS = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
        result = {"protocolVersion": message["params"]["protocolVersion"], **about}
    elif message["method"] == "tools/list":
        result = {"tools": TOOLS}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": json.dumps(message["params"].get("arguments", {}), sort_keys=True)}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
_HOSTILE = (
    "config",
    "run_manager",
    "callbacks",
    "self",
    "runtime",
    "name",
    "arguments",
    "context",
    "args",
    "kwargs",
    "_id",
    "model_config",
)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts servers with tools of these schemas, each of which returns its arguments."""
    pytest.importorskip("mcp", reason="needs the extra `mcp`")
    program = tmp_path / "server.py"
    program.write_text(_SERVER)
    opened: list[Any] = []

    def start(**schemas: Any) -> Any:
        tools = [{"name": name, "description": name, "inputSchema": schema} for name, schema in schemas.items()]
        opened.append(mcp_server([sys.executable, str(program), json.dumps(tools)]))
        return opened[-1]

    yield start
    for server in opened:
        server.close()


@pytest.mark.parametrize("required", [True, False])
def test_a_server_receives_arguments_of_any_name(serving: Callable[..., Any], required: bool) -> None:
    """Required or not, approved or edited."""
    properties = {name: {"type": "object"} for name in _HOSTILE}
    schema = {"type": "object", "properties": properties, **({"required": [*_HOSTILE]} if required else {})}
    server = serving(echo=schema)
    written = {name: {"of": name} for name in _HOSTILE}
    answer = asking(call("echo", "0") | {"args": written}, call("echo", "1") | {"args": written})
    model = ScriptedChatModel(tools=[server], replies=[answer, "Done."], requires_approval=True)
    history = [QUESTION, *run("invoke", model, [QUESTION]).new]
    assert {*model.requests[0].tools[0]["function"]["parameters"]["properties"]} == {*_HOSTILE}
    first, second = pending_calls(history)
    assert first.args == second.args == written
    edit = {**written, "config": {"of": "somebody else"}}
    ran = run("astream", model, history, resume=[first.approve(), second.edit(edit)])
    one, two = [json.loads(message.text.partition("\n")[0]) if message.text.startswith("{") else message.text for message in ran.new[:2]]
    assert one == written
    assert json.dumps(edit, sort_keys=True) in (two if isinstance(two, str) else json.dumps(two, sort_keys=True))


def test_one_bad_tool_of_a_server_is_left_out_with_a_warning(serving: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    """Whoever wrote the server is somebody else: its other tools work."""
    good = {"type": "object", "properties": {"config": {"type": "object"}}}
    bad = {"type": "object", "$ref": "#/$defs/Missing"}
    with caplog.at_level(logging.WARNING, "langchain_autotools"):
        model = ScriptedChatModel(tools=[serving(good=good, bad=bad)], replies=[asking(call("good", "0", config={"a": 1})), "Done."])
        ran = run("invoke", model, [QUESTION])
    assert ran.error is None, ran.error
    assert [tool["function"]["name"] for tool in model.requests[0].tools] == ["good"]
    assert [one.text for one in ran.new if isinstance(one, ToolMessage)] == ['{"config": {"a": 1}}']
    assert [record for record in caplog.records if record.levelno == logging.WARNING and "bad" in record.getMessage()]


# ---------------------------------------------------------------------------------------------- what LangChain promises around a tool


@ways
def test_errors_are_handled_as_the_tool_says(way: str) -> None:
    """`handle_tool_error` as a text, a function and True; `handle_validation_error` for arguments that the schema refuses."""
    handlers: list[tuple[Any, str]] = [("Sorry.", "Sorry."), (lambda error: f"Handled: {error}", "Handled: no"), (True, "no")]
    for handler, text in handlers:
        (result,) = Run(way, deploy_with(handle_tool_error=handler), {"config": {"error": "no"}}).results
        assert (result.status, result.text) == ("error", text)

    def deploy(config: int) -> str:
        return "Done."

    class Arguments(BaseModel):
        config: int

    given = StructuredTool(
        name="deploy", description="Deploy.", args_schema=Arguments, func=deploy, handle_validation_error="Give a number."
    )
    (result,) = Run(way, given, {"config": "many"}, requires_approval=None).results
    assert (result.status, result.text) == ("error", "Give a number.")


@ways
def test_artifacts_and_traces_are_those_of_the_tool(way: str) -> None:
    """The run of the tool has its name, tags, metadata and handlers, its declared inputs, its result and its errors."""
    heard, own = Heard(), Heard()
    given = deploy_with(response_format="content_and_artifact", callbacks=[own], tags=["mine"], metadata={"of": "me"})
    config = {**CONFIG, "callbacks": [heard]}
    ran = Run(way, given, {"config": {"size": 2}}, {"config": {"error": "no"}}, config=config)
    assert (ran.results[0].text, ran.results[0].artifact, ran.succeeded) == ("Done.", {"size": 2}, [True, False])
    for one in (heard, own):
        assert one.inputs == [{"config": {"size": 2}}, {"config": {"error": "no"}}]
        assert [getattr(output, "artifact", None) for output in one.ended] == [{"size": 2}]
        assert [type(error) for error in one.failed] == [ToolException]


@ways
@pytest.mark.parametrize("is_async", [False, True])
def test_the_configuration_is_in_its_context_variable(way: str, is_async: bool) -> None:
    """What a tool invokes inside is a child of its run, with the configuration of the run around."""
    heard, seen = Heard(), list[Any]()
    inner = RunnableLambda(lambda x: x)

    def deploy(config: dict[str, Any]) -> str:
        """Deploy."""
        seen.append((ensure_config().get("configurable", {}).get("user"), var_child_runnable_config.get() is not None))
        return str(inner.invoke("Done."))

    async def adeploy(config: dict[str, Any]) -> str:
        """Deploy."""
        return deploy(config)

    ran = Run(way, adeploy if is_async else deploy, {"config": {"a": 1}}, config={**CONFIG, "callbacks": [heard]})
    assert (ran.succeeded, seen) == ([True], [("alice", True)])
    assert heard.chains.count(heard.runs[0]) == 1


class Asking(BaseTool):
    """A tool with functions of its own that ask for the configuration and the run manager."""

    name: str = "look"
    description: str = "Look."
    received: list[Any] = []

    def _run(self, city: str, settings: RunnableConfig, run_manager: CallbackManagerForToolRun | None = None) -> str:
        self.received.append((city, (settings.get("configurable") or {}).get("user"), run_manager is not None))
        return city

    async def _arun(self, city: str, settings: RunnableConfig, run_manager: Any = None) -> str:
        self.received.append((city, (settings.get("configurable") or {}).get("user"), run_manager is not None))
        return city


class AskingWithConfig(Asking):
    """The same with a schema, and a configuration under the usual name."""

    args_schema: Any = City

    def _run(self, city: str, config: RunnableConfig, run_manager: CallbackManagerForToolRun | None = None) -> str:  # type: ignore[override]
        return super()._run(city, config, run_manager)

    async def _arun(self, city: str, config: RunnableConfig, run_manager: Any = None) -> str:  # type: ignore[override]
        return await super()._arun(city, config, run_manager)


@ways
@pytest.mark.parametrize("kind", [Asking, AskingWithConfig])
def test_a_tool_with_its_own_run_has_what_it_asks_for(way: str, kind: type[Asking]) -> None:
    """The configuration and the run manager; nothing that the model writes for them."""
    given = kind(received=[])
    assert [*declared(given)["properties"]] == ["city"]
    forged = {"city": "Rome", "settings": FORGED, "run_manager": FORGED, **({} if kind is Asking else {"config": FORGED})}
    assert Run(way, given, {"city": "Rome"}, forged).succeeded == [True, True]
    assert given.received == [("Rome", "alice", True)] * 2
