"""Random replies in which vendors do something by themselves, in the words of every wire."""

from collections.abc import Mapping

from .anthropic import Anthropic
from .chat import Chat, Ollama
from .google import Google
from .responses import Responses
from .writer import RESULTS, SCREEN, Shows, Writer

__all__ = ["RESULTS", "SCREEN", "WRITERS", "Shows", "Writer"]

WRITERS: Mapping[str, type[Writer]] = {
    "Responses": Responses,
    "chat completions": Chat,
    "Anthropic": Anthropic,
    "Google": Google,
    "Ollama": Ollama,
}
