"""Law 8 for media: histories with pictures, files and sound go over every wire, also when the provider changes in the middle."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_autotools.history import repair
from langchain_autotools.messages.metadata import KEY
from langchain_autotools.providers.anthropic.mapper import MessagesMapper
from langchain_autotools.providers.google.mapper import GenerateContentMapper
from langchain_autotools.providers.ollama.mapper import OllamaMapper
from langchain_autotools.providers.openai.mapper import ChatCompletionsMapper
from langchain_autotools.providers.openai.responses_mapper import ResponsesMapper
from tests.contract import media
from tests.laws.ways import law
from tests.support import strict_anthropic, strict_google, strict_ollama, strict_openai, strict_responses
from tests.support.strict import Rules

CHECKS: Mapping[str, tuple[Any, str, Callable[[bytes], Any]]] = {
    "openai-chat": (ChatCompletionsMapper, "openai", lambda body: strict_openai.check_request(body, Rules())),
    "openai-responses": (
        ResponsesMapper,
        "openai",
        lambda body: strict_responses.check_responses_request(body, Rules(longest_id=64), strict_responses.Memory()),
    ),
    "anthropic": (MessagesMapper, "anthropic", strict_anthropic.check_request),
    "google": (GenerateContentMapper, "google_genai", lambda body: strict_google.check_request(body, strict_google.Known(signed=False))),
    "ollama": (OllamaMapper, "ollama", strict_ollama.check_request),
}


class Told(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a text."""
        self.texts.append(record.getMessage())


@cache
def carried_by_all() -> tuple[str, ...]:
    """The blocks that a user may give to every wire."""
    return tuple(block for (place, block), cell in media.stored().items() if place == "user" and media.REFUSED not in cell.values())


def content_of(chance: random.Random, names: tuple[str, ...], texts: list[str]) -> list[Any]:
    """Texts and blocks in any order; the texts and the names of files are added to those that must be found."""
    every = media.blocks()
    content: list[Any] = []
    for _ in range(chance.randrange(1, 5)):
        if chance.random() < 0.5:
            texts.append(f"words {chance.randrange(10**9)}")
            content.append({"type": "text", "text": texts[-1]} if chance.random() < 0.8 else texts[-1])
        else:
            one = every[chance.choice(names)]
            texts += [one.name] if one.name else []
            content.append(one.block)
    return content


def history_of(chance: random.Random, providers: tuple[str, str]) -> tuple[list[BaseMessage], list[str]]:
    """A random history, whose first half one wire has written and the second another; and what must be found of it."""
    texts: list[str] = []
    every, messages = tuple(media.blocks()), list[BaseMessage]()
    turns = chance.randrange(1, 6)
    for turn in range(turns):
        provider = providers[2 * turn >= turns]
        messages.append(HumanMessage(content_of(chance, carried_by_all(), texts)))
        count = chance.randrange(0, 3)
        calls = [{"name": "look", "args": {"n": number}, "id": f"call_{turn}_{number}"} for number in range(count)]
        told = {"model_provider": CHECKS[provider][1], KEY: {"origin": provider}}
        messages.append(AIMessage(content_of(chance, every, texts), tool_calls=calls, response_metadata=told, id=f"m{chance.random()}"))
        for call in calls:
            status: Any = chance.choice(["success", "error"])
            found = content_of(chance, every, texts)
            messages.append(ToolMessage(found, tool_call_id=call["id"], name="look", status=status))
    return [*messages, HumanMessage("Last words.")], texts


@law(40, 10_000, shrinks=False)
def test_a_history_with_media_goes_over_every_wire(data: Any) -> None:
    """Every strict server takes it; each text and the name of each file is found in the request or in a warning."""
    chance = random.Random(data.draw(st.integers(0, 2**48)))
    providers = chance.choice([*CHECKS]), chance.choice([*CHECKS])
    messages, texts = history_of(chance, providers)
    told = Told()
    logger = logging.getLogger("langchain_autotools")
    logger.addHandler(told)
    try:
        for name, (mapper, _, check) in CHECKS.items():
            params = {"anthropic": {"model": "any", "max_tokens": 5}, "google": {}}.get(name, {"model": "any"})
            body = mapper(origin=name).encode_request(repair(messages), params)
            check(body)
            said = json.dumps(json.loads(body), ensure_ascii=False) + "\n".join(told.texts)
            assert [text for text in texts if text not in said] == [], name
    finally:
        logger.removeHandler(told)
