"""Tools, choices and parameters in the words of the Responses API, as tables."""

import json
from typing import Any

import pytest
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI
from langchain_autotools.providers.openai.responses_request import responses_params, wire_choice, wire_tool
from langchain_autotools.providers.openai.tools import format_tool, format_tool_choice

# ---------------------------------------------------------------------------------------------- tools and parameters


@tool
def get_temperature(city: str, unit: str = "C") -> str:
    """Current temperature."""
    return "21"


def test_tools_are_flat_and_lenient_unless_they_say_otherwise() -> None:
    """Functions say whether they are strict, which this API would else assume; custom and builtin tools keep their keys."""
    function = wire_tool(format_tool(get_temperature))
    assert (function["type"], function["name"], function["strict"]) == ("function", "get_temperature", False)
    assert wire_tool(format_tool(get_temperature, strict=True))["strict"] is True
    flat = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": True}
    assert wire_tool(format_tool(flat))["strict"] is True
    grammar = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: X"}}
    assert wire_tool(format_tool({"type": "custom", "custom": {"name": "run", "format": grammar}})) == {
        "type": "custom", "name": "run", "format": {"type": "grammar", "syntax": "lark", "definition": "start: X"},
    }  # fmt: skip
    for builtin in (
        {"type": "web_search"},
        {"type": "mcp", "server_label": "a", "server_url": "https://e.org"},
        {"type": "custom", "name": "run"},
    ):
        assert wire_tool(format_tool(builtin)) == builtin


CHOICES = [
    ("auto", "auto"),
    ("none", "none"),
    ("any", "required"),
    ("required", "required"),
    (True, "required"),
    (False, None),
    (None, None),
    ("get_temperature", {"type": "function", "name": "get_temperature"}),
    ("run", {"type": "custom", "name": "run"}),
    ("web_search", {"type": "web_search"}),
    ({"type": "function", "function": {"name": "get_temperature"}}, {"type": "function", "name": "get_temperature"}),
    ({"type": "function", "name": "get_temperature"}, {"type": "function", "name": "get_temperature"}),
    ({"type": "tool", "name": "get_temperature"}, {"type": "function", "name": "get_temperature"}),
    ({"type": "web_search"}, {"type": "web_search"}),
    ({"type": "mcp", "server_label": "a"}, {"type": "mcp", "server_label": "a"}),
    (
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_temperature"}}]},
        },
        {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_temperature"}]},
    ),
    (
        {"type": "allowed_tools", "mode": "auto", "tools": ["get_temperature", {"type": "web_search"}]},
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "get_temperature"}, {"type": "web_search"}]},
    ),
]


@pytest.mark.parametrize(("choice", "said"), CHOICES, ids=lambda value: json.dumps(value)[:60])
def test_tool_choices_in_all_spellings(choice: Any, said: Any) -> None:
    """Every spelling of a choice, of any API, is this wire's flat one; also through a request's parameters."""
    tools = [wire_tool(format_tool(one)) for one in (get_temperature, {"type": "custom", "name": "run"}, {"type": "web_search"})]
    assert wire_choice(format_tool_choice(choice, tools)) == said
    model = ChatOpenAI(model="any", use_responses_api=True)
    declared = [model.format_tool(one) for one in (get_temperature, {"type": "custom", "custom": {"name": "run"}}, {"type": "web_search"})]
    params = responses_params(model, None, {"tools": declared, "tool_choice": model.format_tool_choice(choice, declared)}, stream=False)
    assert params.get("tool_choice") == said


@pytest.mark.parametrize(
    ("constructor", "keywords", "said"),
    [
        ({"max_tokens": 9}, {}, {"max_output_tokens": 9}),
        ({"max_tokens": 9}, {"max_output_tokens": 7}, {"max_output_tokens": 7}),
        ({"reasoning_effort": "low"}, {}, {"reasoning": {"effort": "low"}}),
        (
            {"reasoning": {"effort": "high", "summary": "auto"}, "reasoning_effort": "low"},
            {},
            {"reasoning": {"effort": "high", "summary": "auto"}},
        ),
        ({"reasoning": {"effort": "high"}}, {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ({"verbosity": "low"}, {"text": {"format": {"type": "text"}}}, {"text": {"format": {"type": "text"}, "verbosity": "low"}}),
        ({"logprobs": True, "top_logprobs": 2}, {}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}),
        (
            {"truncation": "auto", "include": ["a"]},
            {"previous_response_id": "resp_1"},
            {"truncation": "auto", "include": ["a"], "previous_response_id": "resp_1"},
        ),
        ({"store": False}, {}, {"store": False}),
        ({"store": False, "model": "gpt-5"}, {}, {"store": False, "model": "gpt-5", "include": ["reasoning.encrypted_content"]}),
        ({"context_management": [{"type": "compaction"}]}, {"n": 1}, {"context_management": [{"type": "compaction"}]}),
        (
            {"temperature": 0.5, "top_p": 0.9, "service_tier": "flex"},
            {"stop": []},
            {"temperature": 0.5, "top_p": 0.9, "service_tier": "flex"},
        ),
        ({}, {"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"model": "gpt-5.5", "temperature": 0.5, "reasoning": {"effort": "none"}},
            {},
            {"model": "gpt-5.5", "temperature": 0.5, "reasoning": {"effort": "none"}},
        ),
    ],
)
def test_parameters_in_this_wires_names(constructor: dict[str, Any], keywords: dict[str, Any], said: dict[str, Any]) -> None:
    """The names of langchain-openai become those of the API; a call goes before the constructor."""
    model = ChatOpenAI(**{"model": "any", "use_responses_api": True, **constructor})
    assert responses_params(model, None, keywords, stream=False) == {"model": "any", **said}
    streamed = responses_params(model, None, {**keywords, "stream_usage": True}, stream=True)
    assert streamed == {"model": "any", **said, "stream": True}
