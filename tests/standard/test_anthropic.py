"""langchain-tests' standard suites for ChatAnthropic over real HTTP: without own tools, with one never called, with one called first.

The server (semantic_anthropic.py) is as strict as Anthropic and decides from tools, tool choice, schemas and messages. Nothing is xfailed.
"""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_autotools import ChatAnthropic
from tests.support.anthropic_server import AnthropicServer
from tests.support.own_tools import RAN, Listening, archive_record, read_clock
from tests.support.semantic_anthropic import SemanticAnthropic


class Unit(ChatModelUnitTests):
    own_tools: ClassVar[list[Any]] = []

    @property
    def chat_model_class(self) -> type[ChatAnthropic]:
        """The class under test."""
        return ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "claude-test", "tools": self.own_tools, "api_key": "key"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment variables, constructor arguments, and the attributes they give."""
        environment = {"ANTHROPIC_API_KEY": "secret", "ANTHROPIC_API_URL": "http://127.0.0.1:9"}
        attributes = {"anthropic_api_key": "secret", "anthropic_api_url": "http://127.0.0.1:9"}
        return environment, {"model": "claude-test"}, attributes


class TestUnit(Unit):
    """Without tools of its own."""


class TestUnitWithATool(Unit):
    """With a tool of its own."""

    own_tools: ClassVar[list[Any]] = [read_clock]


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    RAN.clear()
    mind = Listening(SemanticAnthropic())
    with AnthropicServer(mind, signed=False) as serving:
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
    def chat_model_class(self) -> type[ChatAnthropic]:
        """The class under test."""
        return ChatAnthropic

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "claude-test", "api_key": "key", "base_url": self.url, "tools": self.own_tools}

    supports_image_inputs = True
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_anthropic_inputs = True
    supports_image_tool_message = True
    supports_pdf_tool_message = True
    enable_vcr_tests = True
    model_override_value = "claude-other"
    supported_usage_metadata_details: ClassVar[dict[str, list[str]]] = {
        "invoke": ["cache_read_input", "cache_creation_input"],
        "stream": ["cache_read_input", "cache_creation_input"],
    }

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


class TestPlain(Suite):
    """Without tools of its own."""


class TestToolNeverCalled(Suite):
    """With a tool of its own that the model never calls."""

    own_tools: ClassVar[list[Any]] = [archive_record]


class TestToolCalledFirst(Suite):
    """With a tool of its own that the model calls before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]


class TestThinking(Suite):
    """With a tool called first and thinking, whose blocks go back signed."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    has_tool_choice = False  # the vendor refuses to force a model that thinks

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {**super().chat_model_params, "thinking": {"type": "adaptive"}}
