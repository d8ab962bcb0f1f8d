"""langchain-tests' standard suites for Bedrock's classes behind the mixin, over HTTP to a server that is as strict as Bedrock."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import langchain_aws
import pytest
from langchain_tests.integration_tests import chat_models

from langchain_autotools import ToolsAndMessagesMixin
from tests.named.bedrock import MODEL
from tests.standard import conftest as standard
from tests.standard import suites
from tests.standard.suites import RAN, Listening, read_clock, usage_details
from tests.support.bedrock_server import BedrockServer
from tests.support.semantic_converse import SemanticBedrock

_PLACE = {"model": MODEL, "region_name": "us-east-1"}


_IN_BLOCKS = "the calls of a stream stand in `tool_calls`, not among the class's `content_blocks`"
_TURNS = "an empty text block of the turn with the call stands in the sum"
_OWN_TESTS = "of the class itself: a snapshot of its arguments, a warning of its own"
_DIFFERS = {
    ("Converse", "test_tool_calling[model0]"): _IN_BLOCKS,
    ("Converse", "test_tool_calling_async"): _IN_BLOCKS,
    ("Bedrock", "test_tool_calling[model0]"): _IN_BLOCKS,
    ("Bedrock", "test_tool_calling_async"): _IN_BLOCKS,
    ("WithATool", "test_stream[model1]"): _TURNS,
    ("WithATool", "test_astream[model1]"): _TURNS,
    ("Unit", "test_serdes"): _OWN_TESTS,
    ("Unit", "test_with_structured_output[PersonA]"): _OWN_TESTS,
}


@pytest.fixture(autouse=True)
def differs(request: pytest.FixtureRequest) -> None:
    """What is known to differ is skipped, with the reason."""
    suite = request.cls.__name__
    reason = next((why for (part, test), why in _DIFFERS.items() if part in suite and test == request.node.name), None)
    if reason:
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def media_without_internet(monkeypatch: pytest.MonkeyPatch) -> None:
    """The suites download pictures and documents; here they get tiny ones."""

    def get(url: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(content=standard._MEDIA[url.rsplit(".", 1)[1]])

    monkeypatch.setattr(chat_models, "httpx", SimpleNamespace(get=get))


@pytest.fixture
def vcr() -> SimpleNamespace:
    """A recorder that has recorded nothing."""
    return SimpleNamespace(responses=[])


@pytest.fixture(scope="class")
def server(request: pytest.FixtureRequest) -> Iterator[None]:
    """One server for a suite. Afterwards: no request was refused, and the model's own tool ran as often as it was called."""
    suite: Any = request.cls
    RAN.clear()
    listening = Listening(SemanticBedrock())
    with BedrockServer(listening) as serving:
        suite.url = serving.url
        yield
        assert [rejection.message for rejection in serving.rejections] == []
    for own in suite.own_tools:
        assert RAN[own.name] == listening.called[own.name]


class Converse(ToolsAndMessagesMixin, langchain_aws.ChatBedrockConverse):
    """Converse and ConverseStream, by boto3."""


class Bedrock(ToolsAndMessagesMixin, langchain_aws.ChatBedrock):
    """InvokeModel with Anthropic's messages, by boto3."""


class AnthropicBedrock(ToolsAndMessagesMixin, langchain_aws.ChatAnthropicBedrock):
    """InvokeModel with Anthropic's messages, by Anthropic's client."""


class Integration(suites.Integration):
    """What Bedrock's classes share."""

    arguments: ClassVar[dict[str, Any]] = {**_PLACE, "max_tokens": 1000}
    supports_image_inputs = False  # each class converts pictures in its own way, which is not this package's
    supports_image_tool_message = False
    supports_anthropic_inputs = False
    model_override_value = None  # the model is in the path of a request

    @property
    def chat_model_params(self) -> dict[str, Any]:
        """How to construct it."""
        params = {key: value for key, value in super().chat_model_params.items() if key != "base_url"}
        return {**params, **({} if self.chat_model is AnthropicBedrock else {"endpoint_url": self.url})}

    @pytest.fixture(autouse=True)
    def address(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Anthropic's client takes the server's from the environment."""
        monkeypatch.setenv("ANTHROPIC_BEDROCK_BASE_URL", self.url)


class TestConverse(Integration):
    """Converse, without tools of its own."""

    chat_model = Converse
    supported_usage_metadata_details = usage_details("cache_read_input", "cache_creation_input")


class TestConverseWithATool(TestConverse):
    """Converse, with a tool that is called before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]


class TestBedrock(Integration):
    """InvokeModel by boto3."""

    chat_model = Bedrock


class TestBedrockWithATool(TestBedrock):
    """InvokeModel by boto3, with a tool that is called before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]


class TestAnthropicBedrock(Integration):
    """InvokeModel by Anthropic's client."""

    chat_model = AnthropicBedrock
    supported_usage_metadata_details = usage_details("cache_read_input", "cache_creation_input")


class TestAnthropicBedrockWithATool(TestAnthropicBedrock):
    """InvokeModel by Anthropic's client, with a tool that is called before anything else."""

    own_tools: ClassVar[list[Any]] = [read_clock]


class Unit(suites.Unit):
    """The suite without requests."""

    arguments: ClassVar[dict[str, Any]] = {**_PLACE, "api_key": "key"}
    environment: ClassVar[dict[str, str]] = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    attributes: ClassVar[dict[str, Any]] = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}


class TestConverseUnit(Unit):
    """Converse."""

    chat_model = Converse


class TestBedrockUnit(Unit):
    """InvokeModel by boto3."""

    chat_model = Bedrock


class TestAnthropicBedrockUnit(Unit):
    """InvokeModel by Anthropic's client."""

    chat_model = AnthropicBedrock
