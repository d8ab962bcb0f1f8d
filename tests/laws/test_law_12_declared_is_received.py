"""Law 12: what is declared to the model is what is shown, approved and received, and what belongs to the program is neither.

`signatures.py` makes the tools. A scripted model writes a marked value for every argument of which it is told, alone and with forged
values for what the program fills, under other names, and under both; somebody approves, or edits.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, reject, settings
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from pydantic import ValidationError

from langchain_autotools import ConfigurationError, PendingCall, ToolCallRecord, aevents, events, new_messages, pending_calls
from langchain_autotools.event_types import CallReady
from langchain_autotools.messages.calls import calls_of
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES, Wire
from tests.laws.signatures import QUESTION, SPACE, TOOL, USER, Parameter, Signature, signatures
from tests.laws.ways import run, waited
from tests.support.script import Call, Turn

MANY = int(os.environ.get("SIGNATURES", "100000"))
"""How many signatures the exhaustive test tries."""
FORGED: Mapping[str, Any] = {"configurable": {"user": "root"}, "tool_call_id": "forged", "messages": []}
"""What the model writes for a parameter that belongs to the program."""


REFUSED = (ConfigurationError, ValidationError)
"""How a model that is made says that it cannot have a tool."""


class Traced(BaseCallbackHandler):
    """Notes the inputs of each run of the tool."""

    def __init__(self) -> None:
        self.inputs: dict[str, Mapping[str, Any]] = {}

    def on_tool_start(self, serialized: Any, input_str: str, *, inputs: Any = None, **more: Any) -> None:
        """Note them."""
        self.inputs[str(more.get("tool_call_id"))] = inputs


class Story:
    """The calls that the model makes of one tool, what is decided about them, and what the tool must receive of each.

    Args:
        signature: The tool.
        names: The names under which its parameters are declared.
    """

    def __init__(self, signature: Signature, names: Mapping[str, str]) -> None:
        self.signature = signature
        self.names = names
        parameters = signature.parameters
        required = [one for one in parameters if not one.has_default]
        aliases = {key for one in parameters for key in signature.path(one)[:1]}  # under these the schema reads an argument of the model's
        forged = [name for name, _ in signature.given if name not in aliases]
        self.written: dict[str, dict[str, Any]] = {
            "all": self._values("all", parameters),
            "required": self._values("required", required),
            "edited": self._values("required", required),
            "forged": {**self._values("forged", parameters), **dict.fromkeys(forged, FORGED)},
        }
        self.edit = self._values("edit", parameters)
        self.expected: dict[str, dict[str, Any]] = {
            "all": self._read("all", parameters),
            "required": self._read("required", required),
            "edited": self._read("edit", parameters),
            "forged": self._read("forged", parameters),
        }
        self._add_aliases()

    def _add_aliases(self) -> None:
        """Calls under the names that the schema reads, in place of those that are declared, and beside them."""
        taken = {*self.names, *self.names.values(), *(name for name, _ in self.signature.given)}
        known = [(one, path) for one in self.signature.parameters if (path := self.signature.path(one)) and path[0] not in taken]
        if not known or len({path[0] for _, path in known}) < len(known):
            return
        plain = [one for one in self.signature.parameters if one not in [other for other, _ in known]]
        self.written["aliased"] = {**self._values("aliased", plain)}
        for one, path in known:
            self.written["aliased"] |= _at(path, one.kind.write(self._number("aliased", one)))
        self.expected["aliased"] = self._read("aliased", self.signature.parameters)
        one, path = known[0]
        other = one.kind.write(self._number("edit", one))
        if other != one.kind.write(self._number("both", one)):
            self.written["both"] = {**self._values("both", self.signature.parameters), **_at(path, other)}

    def _number(self, call: str, parameter: Parameter) -> int:
        """The mark of a value: another one for each call and parameter."""
        place = ("all", "edit", "required", "forged", "aliased", "both").index(call)
        return 100 * place + place + 10 * self.signature.parameters.index(parameter)

    def _values(self, call: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
        return {self.names[one.name]: one.kind.write(self._number(call, one)) for one in parameters if one.name in self.names}

    def _read(self, call: str, parameters: Sequence[Parameter]) -> dict[str, Any]:
        """What the function must get: what was written, as its type, and defaults."""
        values = {one.name: one.kind.read(self._number(call, one)) for one in parameters if one.name in self.names}
        if self.signature.form == "adapter" or (self.signature.form == "json schema" and self.signature.takes_anything):
            return values  # nobody knows of defaults
        left = [one for one in self.signature.parameters if one.name not in values]
        return {**values, **{one.name: eval(one.kind.default, dict(SPACE)) for one in left}}

    def raw(self, call: str) -> dict[str, Any]:
        """The values of a call as they were written, or edited."""
        values = self.edit if call == "edited" else self.written[call]
        return {name: value for name, value in values.items() if name in self.names}

    def message(self) -> AIMessage:
        """The reply that makes the calls."""
        calls: Any = [{"name": TOOL, "args": args, "id": name} for name, args in self.written.items()]
        return AIMessage("", tool_calls=calls)


def _at(path: Sequence[str], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return dict(value)


class Played:
    """A conversation with one tool.

    Args:
        signature: The tool.
        is_async: Whether the runs are asynchronous.
    """

    def __init__(self, signature: Signature, *, is_async: bool) -> None:
        self.signature = signature
        self.is_async = is_async
        self.received: list[dict[str, Any]] = []
        self.asked: list[ToolCallRecord] = []
        self.began: dict[str, Any] = {}
        self.traced = Traced()
        try:
            self.given = signature.make(self._note)["given"]
        except Exception:  # LangChain or pydantic says that this is no tool
            reject()

    def begin(self) -> None:
        """Read what is declared of the tool, and tell its story.

        Raises:
            ConfigurationError: The tool is refused.
        """
        ScriptedChatModel(replies=["Fine."], tools=[self.given])  # who only binds it never runs it, and may declare less
        (declaration,) = ScriptedChatModel(replies=["Fine."]).bind_tools([self.given]).kwargs["tools"]
        self.declared = found, required = declared_of(declaration)
        names = {one.name: self.signature.declared_name(one, found) for one in self.signature.parameters}
        self.names = {name: declared for name, declared in names.items() if declared in found}
        self.story = Story(self.signature, self.names)
        left_out = [one for one in self.signature.parameters if one.name not in self.names]
        assert {*found} == {*self.names.values()}, f"declared: {found}"
        assert not left_out or (self.signature.refusable() and all(one.has_default for one in left_out)), f"not declared: {left_out}"
        expected = {self.names[one.name] for one in self.signature.parameters if one.name in self.names and not one.has_default}
        assert {*required} == expected, f"required: {required}"

    def _note(self, values: dict[str, Any]) -> str:
        values.pop("self", None) if self.signature.form in ("class", "class with schema") else None
        self.received.append(values)
        return "Done."

    def rule(self, call: ToolCallRecord) -> bool:
        """Every call waits; note what the rule is asked about."""
        self.asked.append(call)
        return True

    def executing(self, call: ToolCallRecord) -> None:
        """Note a call that begins."""
        self.began[call.id] = call.args

    def model(self) -> Any:
        """A model that has the tool."""
        options = {"requires_approval": self.rule, "max_concurrency": 1, "on_executing": self.executing, "no_progress": None}
        replies = [lambda *_, **__: self.story.message(), "Done."]
        return ScriptedChatModel(tools=[self.given], replies=replies, **options)

    @property
    def config(self) -> dict[str, Any]:
        """The configuration of the runs."""
        return {"configurable": {"user": USER}, "callbacks": [self.traced]}

    def ask(self, model: Any) -> tuple[list[BaseMessage], list[Any], list[PendingCall]]:
        """The history after the first run, its events, and the calls that wait."""
        history: list[BaseMessage] = [HumanMessage(QUESTION)]
        if self.is_async:
            told, message = waited(_listed(model, history, self.config))
        else:
            stream = events(model.stream(history, self.config))
            told, message = list(stream), stream.message
        return [*history, *new_messages(message)], told, pending_calls(message)

    def resume(self, model: Any, history: list[BaseMessage], pending: Sequence[PendingCall]) -> list[ToolMessage]:
        """The results after everything is approved, and one call edited."""
        decisions = [one.edit(self.story.edit) if one.id == "edited" else one.approve() for one in pending]
        ran = run("ainvoke" if self.is_async else "invoke", model, history, config=self.config, resume=decisions)
        assert ran.error is None, repr(ran.error)
        return [one for one in ran.new if isinstance(one, ToolMessage)]

    def values(self, received: Mapping[str, Any]) -> dict[str, Any]:
        """What the function got of the model's arguments."""
        values = {**received, **received.get("others_written", {})}
        return {name: values[name] for name in self.names if name in values}


async def _listed(model: Any, history: list[BaseMessage], config: Any) -> tuple[list[Any], AIMessage]:
    stream = aevents(model.astream(history, config))
    return [event async for event in stream], stream.message


def declared_of(declaration: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The properties in a tool's declaration in any wire's form, and those of them that are required."""
    function = declaration.get("function", declaration)
    schema = next((function[key] for key in ("parameters", "input_schema", "parametersJsonSchema") if key in function), {})
    return [*schema.get("properties", {})], [*schema.get("required", ())]


def check(signature: Signature, *, is_async: bool) -> None:
    """Law 12 of one tool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what pydantic says of names that it has itself
        played = Played(signature, is_async=is_async)
        fields = _fields_of(played.given)
        try:
            model = played.model()
            played.begin()
        except REFUSED as error:
            note(f"refused: {error}")
            assert signature.refusable(), f"refused without a reason: {error}"
            assert TOOL in str(error), f"refused without the tool's name: {error}"
            return
        _check_run(played, model)
        assert _fields_of(played.given) == fields, "the user's own tool was changed"


def _fields_of(given: Any) -> Any:
    """The fields of a tool that a program has made, each by its identity."""
    return {name: id(vars(given)[name]) for name in type(given).model_fields} if isinstance(given, BaseTool) else None


def _check_run(played: Played, model: Any) -> None:
    story = played.story
    history, told, pending = played.ask(model)
    assert declared_of(model.requests[0].tools[0]) == played.declared, "bind_tools declares something else"
    message = next(one for one in history if isinstance(one, AIMessage))
    shown = {one.id: one.args for one in pending}
    assert {**shown, "both": story.written.get("both")} == {"both": None, **story.written}, "shown is not written"
    assert {one.id: one.args for one in calls_of(message)} == story.written, "stored is not written"
    assert {one.call.id: one.call.args for one in told if isinstance(one, CallReady)} == story.written, "told is not written"
    asked = {one.id: {*(one.args or {})} for one in played.asked}
    by_name = [*played.names] == [*played.names.values()]
    for name in ("all", "forged", *(["aliased"] if "aliased" in story.written else [])):
        assert asked[name] == {*played.names} or not by_name, f"{name}: the rule was asked about {asked[name]}"
    results = {one.tool_call_id: one for one in [*history, *played.resume(model, history, pending)] if isinstance(one, ToolMessage)}
    ran = [name for name in story.written if name in story.expected]
    for name in ran:
        assert results[name].status == "success", f"{name}: {results[name].text}"
    if "both" in story.written:
        assert results["both"].status == "error", f"both names: {played.received[-1]}"
    assert len(played.received) == len(ran)
    for name, received in zip(ran, played.received, strict=True):
        _check_received(played, name, received)
    assert {*played.began["all"]} == {*played.names.values()}
    for name in (one for one in ("all", "aliased") if one in story.written):
        assert {*played.traced.inputs[name]} == {*played.names} or not by_name, f"{name}: the trace has {played.traced.inputs[name]}"


def _check_received(played: Played, name: str, received: Mapping[str, Any]) -> None:
    """The function has got what the schema makes of what was approved, and the program's own values."""
    expected, got = played.story.expected[name], played.values(received)
    own = {**expected, **played.story.raw(name)} if played.signature.form == "class" else expected  # core validates nothing there
    assert _texts(got) in (_texts(expected), _texts(own)), f"{name}: received {got}, expected {expected}"
    for parameter, kind in played.signature.given:
        value = received[parameter]
        assert value != FORGED, f"{name}: {parameter} is the model's"
        assert value is not None or kind.default, f"{name}: {parameter} is missing"
        assert kind.holds(value, name), f"{name}: {parameter} is not the program's: {value!r}"


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in values.items()}


# what fails is small, and to make it smaller takes minutes
_DRAWN: Any = {"phases": [Phase.explicit, Phase.reuse, Phase.generate], "suppress_health_check": [*HealthCheck]}


@given(signatures())
@settings(max_examples=30, **_DRAWN)
def test_law_12_what_is_declared_is_received(signature: Signature) -> None:
    """Every argument that was declared reaches its parameter as it was shown and approved; nothing of the program's is the model's."""
    check(signature, is_async=signature.is_async)


@pytest.mark.exhaustive
@pytest.mark.timeout(0)
@given(signatures())
@settings(max_examples=MANY, **_DRAWN)
def test_law_12_what_is_declared_is_received_of_many(signature: Signature) -> None:
    """The same of very many signatures, as many as the variable SIGNATURES says."""
    check(signature, is_async=signature.is_async)


# ---------------------------------------------------------------------------------------------- on the wires

OWN = [wire for wire in WIRES if not wire.name.startswith("azure")]


@pytest.mark.parametrize("wire", OWN, ids=[wire.name for wire in OWN])
def test_law_12_on_the_wires(wire: Wire) -> None:
    """Each vendor is told the same names, in real requests, and what it writes for them is what waits and what is received."""

    @given(signatures(ascii_only=True))
    @settings(max_examples=5, **_DRAWN)
    def check_wire(signature: Signature) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _check_wire(wire, signature)

    check_wire()


def _check_wire(wire: Wire, signature: Signature) -> None:
    played = Played(signature, is_async=signature.is_async)
    try:
        played.begin()
    except REFUSED:
        assert signature.refusable()
        return
    written = played.story.written["forged"]
    with wire.serve([Turn(calls=[Call(TOOL, written, "forged")]), Turn("Done.")]) as server:
        model: Any = wire.model(server, tools=[played.given], requires_approval=True)
        history, _, pending = played.ask(model)
        assert [one.args for one in pending] == [written]
        tools = server.exchanges[0].json["tools"]
        (declaration,) = tools[0].get("functionDeclarations", tools)
        assert {*declared_of(declaration)[0]} == {*played.names.values()}
        played.resume(model, history, pending)
        assert [one.message for one in server.rejections] == []
    (received,) = played.received
    _check_received(played, "forged", received)
