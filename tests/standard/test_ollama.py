"""langchain-tests' standard suites for ChatOllama over real HTTP: without own tools, with one never called, with one called first.

The server (semantic_ollama.py) is as strict as Ollama and decides from tools, tool choice, schemas and messages. Nothing is xfailed.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_autotools import ChatOllama
from tests.support.ollama_server import OllamaServer
from tests.support.own_tools import RAN, Listening, archive_record, read_clock
from tests.support.semantic_ollama import SemanticOllama


class Unit(ChatModelUnitTests):
    own_tools: ClassVar[list[Any]] = []

    @property
    def chat_model_class(self) -> type[ChatOllama]:
        """The class under test."""
        return ChatOllama

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "qwen-test", "tools": self.own_tools}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment variables, constructor arguments, and the attributes they give."""
        environment = {"OLLAMA_API_KEY": "secret", "OLLAMA_HOST": "http://127.0.0.1:9"}
        return environment, {"model": "qwen-test"}, {"api_key": "secret", "base_url": "http://127.0.0.1:9"}


class TestUnit(Unit):
    """Without tools of its own."""


class TestUnitWithATool(Unit):
    """With a tool of its own."""

    own_tools: ClassVar[list[Any]] = [read_clock]


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    RAN.clear()
    mind = Listening(SemanticOllama())
    with OllamaServer(mind) as serving:
        request.cls.url = serving.url
        yield
        assert [rejection.message for rejection in serving.rejections] == []
    for own in request.cls.own_tools:
        assert RAN[own.name] == mind.called[own.name]


@pytest.mark.usefixtures("server")
class Suite(ChatModelIntegrationTests):
    own_tools: ClassVar[list[Any]] = []
    url = ""

    @property
    def chat_model_class(self) -> type[ChatOllama]:
        """The class under test."""
        return ChatOllama

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "qwen-test", "base_url": self.url, "tools": self.own_tools}

    has_tool_choice = False  # the protocol has none
    supports_image_inputs = True
    supports_anthropic_inputs = True
    supports_image_tool_message = True
    supports_json_mode = True
    enable_vcr_tests = True
    model_override_value = "qwen-other"


class TestPlain(Suite):
    """Without tools of its own."""


class TestToolNeverCalled(Suite):
    """With a tool of its own that the model never calls."""

    own_tools: ClassVar[list[Any]] = [archive_record]


class TestToolCalledFirst(Suite):
    """With a tool of its own that the model calls before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    has_structured_output = False  # its tests count one model run, and here the tool runs first: tests/contract/test_output.py has it


class TestThinking(Suite):
    """With a tool called first and thinking, which goes back with the calls."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    has_structured_output = False  # as above

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {**super().chat_model_params, "reasoning": True}
