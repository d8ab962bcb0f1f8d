"""langchain-tests' standard suites for ChatOllama over real HTTP. The server is as strict as Ollama. Nothing is xfailed."""

from typing import Any, ClassVar

from langchain_autotools import ChatOllama
from tests.standard import suites
from tests.standard.suites import Subject, read_clock
from tests.support.ollama_server import OllamaServer
from tests.support.semantic_ollama import SemanticOllama


class Ollama(Subject):
    chat_model = ChatOllama
    arguments: ClassVar[dict[str, Any]] = {"model": "qwen-test"}


class Unit(Ollama, suites.Unit):
    environment: ClassVar[dict[str, str]] = {"OLLAMA_API_KEY": "secret", "OLLAMA_HOST": "http://127.0.0.1:9"}
    attributes: ClassVar[dict[str, Any]] = {"api_key": "secret", "base_url": "http://127.0.0.1:9"}


class Integration(Ollama, suites.Integration):
    mind = SemanticOllama
    serve = OllamaServer
    has_tool_choice = False  # the protocol has none
    supports_json_mode = True
    enable_vcr_tests = True
    model_override_value = "qwen-other"

    @property
    def has_structured_output(self) -> bool:
        """Its tests count one model run; where a tool runs first, tests/contract/test_output.py has it."""
        return read_clock not in self.own_tools


class TestThinking(Integration):
    """With a tool called first and thinking, which goes back with the calls."""

    own_tools: ClassVar[list[Any]] = [read_clock]
    arguments: ClassVar[dict[str, Any]] = {**Integration.arguments, "reasoning": True}


globals().update(suites.classes_to_test(__name__, Unit, Integration))
