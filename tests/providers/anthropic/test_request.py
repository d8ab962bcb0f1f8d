"""What `ChatAnthropic` asks for over real HTTP: thinking and output as the partner package does, betas, changing tools, schemas."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import BaseModel, Field, FilePath

from langchain_autotools import ChatAnthropic, UnsupportedFeatureError
from tests.support.anthropic_server import AnthropicServer
from tests.support.script import Turn
from tests.support.weather import get_temperature


def model(server: AnthropicServer, **more: Any) -> ChatAnthropic:
    """A model that asks the server."""
    return ChatAnthropic(**{"model": "claude-test", "base_url": server.url, "api_key": "sk-secret-1234", "max_retries": 0, **more})


def test_effort_alone_asks_for_thinking() -> None:
    """As with the partner package, a model that takes every effort and is told one thinks, unless the caller says how, or forces a call."""
    effort = {"effort": "low"}
    cases: list[tuple[dict[str, Any], dict[str, Any], Any]] = [
        ({"model": "claude-opus-5", **effort}, {}, {"type": "adaptive", "display": "summarized"}),
        ({"model": "claude-opus-5"}, {"reasoning_effort": "high"}, {"type": "adaptive", "display": "summarized"}),
        ({"model": "claude-opus-5", "output_config": effort}, {}, None),
        ({"model": "claude-opus-5", "thinking": {"type": "disabled"}, **effort}, {}, {"type": "disabled"}),
        ({"model": "claude-opus-5", **effort}, {"thinking": None}, None),
        ({"model": "claude-opus-5", **effort}, {"tools": [get_temperature], "tool_choice": "any"}, None),
        ({"model": "claude-opus-4-5", **effort}, {}, None),
        ({"model": "unheard-of", **effort}, {}, None),
    ]
    with AnthropicServer([Turn("a")] * len(cases), strict=False) as server:
        for made, called, thinking in cases:
            model(server, **made).invoke("x", **called)
            assert server.requests[-1].get("thinking") == thinking


def test_what_a_call_says_of_the_output_joins_what_the_constructor_says() -> None:
    """A call that asks for a format keeps the constructor's effort."""
    wanted = {"type": "json_schema", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    with AnthropicServer([Turn("{}")] * 3, strict=False) as server:
        for made in ({"output_config": {"effort": "high"}}, {"effort": "high"}):
            model(server, **made).invoke("x", output_config={"format": wanted})
            assert server.requests[-1]["output_config"] == {"effort": "high", "format": wanted}
        model(server, effort="high").invoke("x", output_config=None)
        assert "output_config" not in server.requests[-1]


def test_what_needs_a_beta_or_a_header_gets_it() -> None:
    """Tools and parameters that the vendor keeps behind a beta take part in it by themselves; a user profile is named by a header."""
    search = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
    shown = {"name": "f", "input_schema": {"type": "object", "properties": {}}, "input_examples": [{}]}
    cases: dict[str, dict[str, Any]] = {
        "advanced-tool-use-2025-11-20": {"tools": [search, shown]},
        "task-budgets-2026-03-13": {"output_config": {"task_budget": {"type": "tokens", "total": 20_000}}},
        "thinking-display-updates-2026-08-18": {"thinking": {"type": "adaptive", "display": "updates"}},
        "context-management-2025-06-27": {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}},
        "compact-2026-01-12": {"context_management": {"edits": [{"type": "compact_20260112"}]}},
        "user-profiles-2026-03-24": {"user_profile_id": "uprof_1"},
    }
    with AnthropicServer([Turn("a")] * len(cases), strict=False) as server:
        for beta, called in cases.items():
            model(server).invoke("x", **called)
            assert server.exchanges[-1].headers["anthropic-beta"] == beta
        assert server.exchanges[-1].headers["anthropic-user-profile-id"] == "uprof_1"
        assert "user_profile_id" not in server.requests[-1]


def test_tools_that_change_in_the_middle() -> None:
    """A system message may add and remove tools where the model takes it; the beta that this needs is taken part in."""
    definition = {"name": "tell_time", "input_schema": {"type": "object", "properties": {}}}
    added: Any = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
    removed: Any = {"type": "tool_removal", "tool": {"type": "tool_reference", "tool_name": "f"}}
    wrapped: Any = {"type": "non_standard", "value": removed}
    with AnthropicServer([Turn("a"), Turn("b")], strict=False) as server:
        asked = model(server, model="claude-opus-5-5")
        for block, sent, beta in (
            (added, added, "inline-tools-2026-09-15"),
            (wrapped, removed, "mid-conversation-tool-changes-2026-07-01"),
        ):
            asked.invoke([HumanMessage("x"), SystemMessage([block])])
            assert server.messages[-1][-1] == {"role": "system", "content": [sent]}
            assert server.exchanges[-1].headers["anthropic-beta"] == beta
        with pytest.raises(UnsupportedFeatureError, match="in the middle"):
            model(server, model="claude-opus-4-5").invoke([HumanMessage("x"), SystemMessage([added])])


class Paid(BaseModel):
    """A bill that is paid."""

    kind: Literal["paid"]
    receipt: FilePath


class Due(BaseModel):
    """A bill that is due."""

    kind: Literal["due"]
    day: date


class Bill(BaseModel):
    """A bill."""

    state: Annotated[Paid | Due, Field(discriminator="kind")]
    notes: list[str] = []


def test_a_schema_says_what_the_vendor_takes() -> None:
    """Alternatives are `anyOf`, unknown formats and defaults are told, and discriminators not sent."""
    with AnthropicServer([Turn('{"state": {"kind": "due", "day": "2026-11-22"}}')]) as server:
        bill = model(server).with_structured_output(Bill, method="json_schema").invoke("x")
        assert bill.state == Due(kind="due", day=date(2026, 11, 22))
        schema = server.requests[0]["output_config"]["format"]["schema"]
    assert schema["properties"]["state"] == {"anyOf": [{"$ref": "#/$defs/Paid"}, {"$ref": "#/$defs/Due"}]}
    assert schema["$defs"]["Paid"]["properties"]["receipt"] == {"type": "string", "description": "{format: file-path}"}
    assert schema["properties"]["notes"]["description"] == "{default: []}"
    assert schema["$defs"]["Due"]["properties"]["day"] == {"type": "string", "format": "date"}
    assert not any(word in json.dumps(schema) for word in ("oneOf", "discriminator", '"default"'))
