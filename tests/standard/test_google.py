"""langchain-tests' standard suites for ChatGoogleGenerativeAI over real HTTP: plain, with a tool never called, with one called first.

The server (semantic_google.py) is as strict as Google and decides from tools, tool choice, schemas and messages. Nothing is xfailed.
"""

from collections import Counter
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any, ClassVar

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from langchain_autotools import ChatGoogleGenerativeAI
from tests.support.google_server import GoogleServer
from tests.support.http_server import Exchange
from tests.support.script import Turn
from tests.support.semantic_google import SemanticGoogle

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


class Listening(SemanticGoogle):
    """The thinking model, and which tools it has called."""

    def __init__(self) -> None:
        super().__init__()
        self.called: Counter[str] = Counter()

    def __call__(self, exchange: Exchange) -> Turn:
        """The reply to a request."""
        turn = super().__call__(exchange)
        self.called.update(call.name for call in turn.calls)
        return turn


class Unit(ChatModelUnitTests):
    own_tools: ClassVar[list[Any]] = []

    @property
    def chat_model_class(self) -> type[ChatGoogleGenerativeAI]:
        """The class under test."""
        return ChatGoogleGenerativeAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "gemini-test", "tools": self.own_tools, "api_key": "key"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment variables, constructor arguments, and the attributes they give."""
        environment = {"GOOGLE_API_KEY": "secret", "GOOGLE_GENAI_API_VERSION": "v1"}
        return environment, {"model": "gemini-test"}, {"google_api_key": "secret", "api_version": "v1"}


class TestUnit(Unit):
    """Without tools of its own."""


class TestUnitWithATool(Unit):
    """With a tool of its own."""

    own_tools: ClassVar[list[Any]] = [read_clock]


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    RAN.clear()
    mind = Listening()
    with GoogleServer(mind, signed=False) as serving:
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
    def chat_model_class(self) -> type[ChatGoogleGenerativeAI]:
        """The class under test."""
        return ChatGoogleGenerativeAI

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {"model": "gemini-test", "api_key": "key", "base_url": self.url, "tools": self.own_tools}

    supports_image_inputs = True
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_audio_inputs = True
    supports_video_inputs = True
    supports_anthropic_inputs = True
    supports_image_tool_message = True
    supports_pdf_tool_message = True
    supports_json_mode = True
    enable_vcr_tests = True
    model_override_value = "gemini-other"
    supported_usage_metadata_details: ClassVar[dict[str, list[str]]] = {
        "invoke": ["cache_read_input", "reasoning_output"],
        "stream": ["cache_read_input", "reasoning_output"],
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

    def invoke_with_reasoning_output(self, *, stream: bool = False) -> AIMessage:
        """A request that thinks."""
        return self.ask("Think.", stream, include_thoughts=True)


class TestPlain(Suite):
    """Without tools of its own."""


class TestToolNeverCalled(Suite):
    """With a tool of its own that the model never calls."""

    own_tools: ClassVar[list[Any]] = [archive_record]


class TestToolCalledFirst(Suite):
    """With a tool of its own that the model calls before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]


class TestThinking(Suite):
    """With a tool called first and thoughts, whose signatures go back."""

    own_tools: ClassVar[list[Any]] = [read_clock]

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        return {**super().chat_model_params, "include_thoughts": True, "thinking_level": "low"}
