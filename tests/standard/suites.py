"""What langchain-tests' standard suites need for any class of ours: own tools, a server that listens, and the test classes.

A class under test gives a `Subject` with its constructor's arguments, a `Unit` and an `Integration` with what is particular to it. From
these `classes_to_test` makes the test classes: without tools of its own, with one never called, with one called before anything else.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import reduce
from operator import add
from typing import Any, ClassVar

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.scripted_server import ScriptedServer

RAN: Counter[str] = Counter()


@tool
def archive_record(record: str) -> str:
    """Archive a record. Only when asked for by name."""
    RAN["archive_record"] += 1
    return f"archived {record}"


@tool
def read_clock() -> str:
    """Tell the time. Call this tool first, before anything else."""
    RAN["read_clock"] += 1
    return "12:00"


class Listening:
    """A thinking model, and which tools it has called."""

    def __init__(self, mind: Callable[[Exchange], Turn]) -> None:
        self._mind = mind
        self.called: Counter[str] = Counter()

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        turn = self._mind(exchange)
        self.called.update(call.name for call in turn.calls)
        return turn


class Subject:
    """The class under test, and how both suites construct it."""

    chat_model: ClassVar[type[BaseChatModel]]
    arguments: ClassVar[dict[str, Any]]
    own_tools: ClassVar[list[Any]] = []

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        """The class under test."""
        return self.chat_model

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {**self.arguments, "tools": self.own_tools}


class Unit(Subject, ChatModelUnitTests):
    """The suite without requests. `attributes` are what the variables of `environment` give."""

    environment: ClassVar[dict[str, str]]
    attributes: ClassVar[dict[str, Any]]

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment variables, constructor arguments, and the attributes they give."""
        return self.environment, {name: value for name, value in self.arguments.items() if name != "api_key"}, self.attributes


@pytest.mark.usefixtures("server")
class Integration(Subject, ChatModelIntegrationTests):
    """The suite with requests, to a server of `serve` that `mind` answers. `thinking` are the arguments that make a model think."""

    url = ""
    thinking: ClassVar[dict[str, Any]] = {}
    supports_image_inputs = True
    supports_anthropic_inputs = True
    supports_image_tool_message = True

    @classmethod
    def mind(cls) -> Callable[[Exchange], Turn]:
        """A model that decides from tools, tool choice, schemas and messages."""
        raise NotImplementedError

    @classmethod
    def serve(cls, replies: Listening) -> AbstractContextManager[ScriptedServer]:
        """A server that is as strict as the vendor's."""
        raise NotImplementedError

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {**super().chat_model_params, "base_url": self.url}

    def ask(self, content: Any, stream: bool, **more: Any) -> AIMessage:
        """One answer, either way."""
        model = self.chat_model_class(**self.chat_model_params)
        messages = [{"role": "user", "content": content}]
        return reduce(add, model.stream(messages, **more)) if stream else model.invoke(messages, **more)

    def invoke_with_cache_read_input(self, *, stream: bool = False) -> AIMessage:
        """A request that was made before."""
        self.ask("The same again.", stream)
        return self.ask("The same again.", stream)

    def invoke_with_cache_creation_input(self, *, stream: bool = False) -> AIMessage:
        """A request that was not made before."""
        return self.ask("Something new.", stream)

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        """A request that makes the model reason."""
        return self.ask("Think.", stream, **self.thinking)

    def invoke_with_audio_input(self, *, stream: bool = False) -> AIMessage:
        """A request with sound."""
        sound = {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}
        return self.ask([{"type": "text", "text": "Hear this."}, sound], stream)


def usage_details(*names: str) -> dict[str, list[str]]:
    """The usage details that come with a reply, streamed or whole."""
    return {"invoke": list(names), "stream": list(names)}


OWN_TOOLS: dict[str, list[Any]] = {"Plain": [], "ToolNeverCalled": [archive_record], "ToolCalledFirst": [read_clock]}


def classes_to_test(module: str, unit: type[Unit], integration: type[Integration], name: str = "", **particular: Any) -> dict[str, type]:
    """The test classes of one chat model, by name: what its module is to hold.

    Args:
        module: The module's name.
        unit: The chat model's suite without requests.
        integration: Its suite with requests.
        name: What is in the names of the classes, where a module has those of several models.
        particular: More attributes of the classes.
    """
    bases: list[tuple[str, type[Subject], list[Any]]] = [("Unit", unit, []), ("UnitWithATool", unit, [read_clock])]
    bases += [(words, integration, own) for words, own in OWN_TOOLS.items()]
    made = {}
    for words, base, own in bases:
        said = {"__module__": module, "__doc__": f"{name} {words}.".lstrip(), "own_tools": own, **particular}
        made[f"Test{name}{words}"] = type(f"Test{name}{words}", (base,), said)
    return made
