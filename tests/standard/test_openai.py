"""langchain-tests' standard suites for ChatOpenAI and AzureChatOpenAI over real HTTP. The servers are as strict as OpenAI and Azure."""

from typing import Any, ClassVar

from langchain_autotools import AzureChatOpenAI, ChatOpenAI
from tests.standard import suites
from tests.standard.suites import Subject, usage_details
from tests.support.azure_server import VERSION, AzureServer
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer, SemanticResponses
from tests.support.semantic_openai import SemanticOpenAI


class OpenAI(Subject):
    chat_model = ChatOpenAI
    arguments: ClassVar[dict[str, Any]] = {"model": "gpt-test", "api_key": "key"}


class Unit(OpenAI, suites.Unit):
    environment: ClassVar[dict[str, str]] = {"OPENAI_API_KEY": "secret", "OPENAI_ORG_ID": "org", "OPENAI_API_BASE": "http://127.0.0.1:9/v1"}
    attributes: ClassVar[dict[str, Any]] = {
        "openai_api_key": "secret",
        "openai_organization": "org",
        "openai_api_base": "http://127.0.0.1:9/v1",
    }


class Integration(OpenAI, suites.Integration):
    mind = SemanticOpenAI
    serve = OpenAIServer
    arguments: ClassVar[dict[str, Any]] = {**OpenAI.arguments, "stream_usage": True}
    thinking: ClassVar[dict[str, Any]] = {"reasoning_effort": "low"}
    supports_json_mode = True
    supports_image_urls = True
    supports_pdf_inputs = True
    supports_audio_inputs = True
    supports_pdf_tool_message = True
    enable_vcr_tests = True
    model_override_value = "gpt-other"
    supported_usage_metadata_details = usage_details("audio_input", "reasoning_output", "cache_read_input")


class ResponsesUnit(Unit):
    arguments: ClassVar[dict[str, Any]] = {**OpenAI.arguments, "use_responses_api": True}


class ResponsesIntegration(Integration):
    mind = SemanticResponses
    serve = ResponsesServer
    arguments = ResponsesUnit.arguments
    supported_usage_metadata_details = usage_details("reasoning_output", "cache_read_input")


class AzureUnit(Unit):
    chat_model = AzureChatOpenAI
    arguments: ClassVar[dict[str, Any]] = {**OpenAI.arguments, "azure_endpoint": "http://127.0.0.1:9", "api_version": VERSION}
    environment: ClassVar[dict[str, str]] = {"AZURE_OPENAI_API_KEY": "secret", "OPENAI_ORG_ID": "org"}
    attributes: ClassVar[dict[str, Any]] = {"openai_api_key": "secret", "openai_organization": "org"}


class AzureIntegration(Integration):
    chat_model = AzureChatOpenAI
    serve = AzureServer
    arguments: ClassVar[dict[str, Any]] = {**OpenAI.arguments, "api_version": VERSION}


globals().update(suites.classes_to_test(__name__, Unit, Integration))
globals().update(suites.classes_to_test(__name__, ResponsesUnit, ResponsesIntegration, "Responses"))
globals().update(suites.classes_to_test(__name__, AzureUnit, AzureIntegration, "Azure"))
