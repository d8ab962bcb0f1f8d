"""langchain-tests' standard suites for ChatAnthropic over real HTTP. The server is as strict as Anthropic. Nothing is xfailed."""

from typing import Any, ClassVar

from langchain_autotools import ChatAnthropic
from tests.standard import suites
from tests.standard.suites import Listening, Subject, read_clock, usage_details
from tests.support.anthropic_server import AnthropicServer
from tests.support.semantic_anthropic import SemanticAnthropic


class Anthropic(Subject):
    chat_model = ChatAnthropic
    arguments: ClassVar[dict[str, Any]] = {"model": "claude-test", "api_key": "key"}


class Unit(Anthropic, suites.Unit):
    environment: ClassVar[dict[str, str]] = {"ANTHROPIC_API_KEY": "secret", "ANTHROPIC_API_URL": "http://127.0.0.1:9"}
    attributes: ClassVar[dict[str, Any]] = {"anthropic_api_key": "secret", "anthropic_api_url": "http://127.0.0.1:9"}


class Integration(Anthropic, suites.Integration):
    mind = SemanticAnthropic
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_pdf_tool_message = True
    enable_vcr_tests = True
    model_override_value = "claude-other"
    supported_usage_metadata_details = usage_details("cache_read_input", "cache_creation_input")

    @classmethod
    def serve(cls, replies: Listening) -> AnthropicServer:
        """A server that is as strict as Anthropic's, but for signatures: the suite brings some of its own."""
        return AnthropicServer(replies, signed=False)


class TestThinking(Integration):
    """With a tool called first and thinking, whose blocks go back signed."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    arguments: ClassVar[dict[str, Any]] = {**Integration.arguments, "thinking": {"type": "adaptive"}}
    has_tool_choice = False  # the vendor refuses to force a model that thinks


globals().update(suites.classes_to_test(__name__, Unit, Integration))
