"""langchain-tests' standard suites for ChatGoogleGenerativeAI over real HTTP. The server is as strict as Google. Nothing is xfailed."""

from typing import Any, ClassVar

from langchain_autotools import ChatGoogleGenerativeAI
from tests.standard import suites
from tests.standard.suites import Listening, Subject, read_clock, usage_details
from tests.support.google_server import GoogleServer
from tests.support.semantic_google import SemanticGoogle


class Google(Subject):
    chat_model = ChatGoogleGenerativeAI
    arguments: ClassVar[dict[str, Any]] = {"model": "gemini-test", "api_key": "key"}


class Unit(Google, suites.Unit):
    environment: ClassVar[dict[str, str]] = {"GOOGLE_API_KEY": "secret", "GOOGLE_GENAI_API_VERSION": "v1"}
    attributes: ClassVar[dict[str, Any]] = {"google_api_key": "secret", "api_version": "v1"}


class Integration(Google, suites.Integration):
    mind = SemanticGoogle
    thinking: ClassVar[dict[str, Any]] = {"include_thoughts": True}
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_audio_inputs = True
    supports_video_inputs = True
    supports_pdf_tool_message = True
    supports_json_mode = True
    enable_vcr_tests = True
    model_override_value = "gemini-other"
    supported_usage_metadata_details = usage_details("cache_read_input", "reasoning_output")

    @classmethod
    def serve(cls, replies: Listening) -> GoogleServer:
        """A server that is as strict as Google's, but for signatures and ids: the suite brings some of its own."""
        return GoogleServer(replies, signed=False)


class TestThinking(Integration):
    """With a tool called first and thoughts, whose signatures go back."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    arguments: ClassVar[dict[str, Any]] = {**Integration.arguments, "include_thoughts": True, "thinking_level": "low"}


globals().update(suites.classes_to_test(__name__, Unit, Integration))
