"""Runs of one tool whose calls wait for a human, for tests of what becomes of arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel

from langchain_autotools import PendingCall, ToolExecutor, pending_calls
from langchain_autotools.testing import ScriptedChatModel
from tests.contract.wires import WIRES
from tests.laws.ways import run
from tests.support.desk import asking, call

QUESTION = HumanMessage("Go.")
CONFIG: Any = {"configurable": {"user": "alice"}}
FORGED = {"configurable": {"user": "root"}, "messages": []}
WAYS = ("executor", "invoke", "astream")
OWN = [wire for wire in WIRES if not wire.name.startswith("azure")]


def ways(test: Callable[..., None]) -> Callable[..., None]:
    """Make one test of each way to run: what fails says which."""

    @functools.wraps(test)
    def each(**values: Any) -> None:
        for way in WAYS:
            try:
                test(way=way, **values)
            except BaseException as error:
                error.add_note(f"in the way {way!r}")
                raise

    signature = inspect.signature(test)
    left = [one for one in signature.parameters.values() if one.name != "way"]
    each.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
    return each


class Run:
    """Calls of one tool that wait, and what came of them.

    Args:
        way: How they run: by an executor alone, or in a run of a model.
        given: The tool.
        written: The arguments of each call.
        edits: The arguments that a human gives in place of those of a call, by its place.
        options: Of the executor, or the model.

    Attributes:
        pending: The calls that waited.
        results: Their results.
    """

    def __init__(self, way: str, given: Any, *written: Any, edits: Mapping[int, Any] = {}, config: Any = CONFIG, **options: Any) -> None:
        self.edits = edits
        name = next(iter(ToolExecutor([given]).tools))
        answer = asking(*(call(name, str(number), **{}) | {"args": args} for number, args in enumerate(written)))
        options = {"requires_approval": True, "max_concurrency": 1, **options}
        self.pending: list[PendingCall] = []
        self.results: list[ToolMessage] = []
        (self._execute if way == "executor" else self._run)(way, given, answer, options, config)

    def _decided(self, pending: list[PendingCall]) -> list[Any]:
        self.pending = pending
        return [one.edit(self.edits[int(one.id)]) if int(one.id) in self.edits else one.approve() for one in pending]

    def _execute(self, way: str, given: Any, answer: AIMessage, options: Any, config: Any) -> None:
        executor = ToolExecutor([given], **options)
        decisions = self._decided(executor.pending_calls(answer)) if executor.approvals else None
        self.results = executor.execute_all(answer, messages=[QUESTION, answer], decisions=decisions, config=config)

    def _run(self, way: str, given: Any, answer: AIMessage, options: Any, config: Any) -> None:
        model = ScriptedChatModel(tools=[given], replies=[answer, "Done."], **options)
        first = run(way, model, [QUESTION], config=config)
        assert first.error is None, first.error
        history = [QUESTION, *first.new]
        if decisions := self._decided(pending_calls(history)):
            ran = run(way, model, history, config=config, resume=decisions)
            assert ran.error is None, ran.error
            history += ran.new
        self.results = [one for one in history if isinstance(one, ToolMessage)]

    @property
    def succeeded(self) -> list[bool]:
        """Whether each call has."""
        return [one.status == "success" for one in self.results]


def declared(given: Any) -> dict[str, Any]:
    """The schema that a model is told of a tool; `bind_tools` declares the same arguments."""
    model = ScriptedChatModel(tools=[given], replies=["Fine."])
    model.invoke("x")
    (told,), (bound,) = model.requests[0].tools, ScriptedChatModel(replies=[]).bind_tools([given]).kwargs["tools"]
    schema: dict[str, Any] = dict(told["function"]["parameters"])
    assert bound["function"]["parameters"].get("properties") == schema.get("properties")
    return schema


def refusals(given: Any, *where: str) -> list[str]:
    """What is said of a tool that is refused where it is given."""
    gives: Mapping[str, Callable[[], Any]] = {
        "executor": lambda: ToolExecutor([given]),
        "model": lambda: ScriptedChatModel(tools=[given]),
        "bound": lambda: ScriptedChatModel().bind_tools([given]),
    }
    found = []
    for one in where:
        with pytest.raises(ValueError) as caught:
            gives[one]()
        found.append(str(caught.value))
    return found


def deploy_with(**fields: Any) -> StructuredTool:
    """A tool with a `config`, which fails as it is told, with these fields."""

    def deploy(config: dict[str, Any]) -> Any:
        if "error" in config:
            raise ToolException(config["error"])
        return ("Done.", {"size": config["size"]}) if "size" in config else "Done."

    return StructuredTool(
        name="deploy",
        description="Deploy.",
        args_schema={"type": "object", "properties": {"config": {"type": "object"}}},
        func=deploy,
        **fields,
    )


class Heard(BaseCallbackHandler):
    """Notes the runs of tools."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.ended: list[Any] = []
        self.failed: list[Any] = []
        self.chains: list[Any] = []
        self.runs: list[Any] = []

    def on_tool_start(self, serialized: Any, input_str: str, *, run_id: Any, inputs: Any = None, **more: Any) -> None:
        """Note the inputs."""
        self.inputs.append(inputs)
        self.runs.append(run_id)

    def on_tool_end(self, output: Any, **more: Any) -> None:
        """Note the result."""
        self.ended.append(output)

    def on_tool_error(self, error: BaseException, **more: Any) -> None:
        """Note the error."""
        self.failed.append(error)

    def on_chain_start(self, serialized: Any, inputs: Any, *, parent_run_id: Any = None, **more: Any) -> None:
        """Note what it is called in."""
        self.chains.append(parent_run_id)


class Two(BaseModel):
    city: str
    unit: str = "C"


class City(BaseModel):
    city: str
