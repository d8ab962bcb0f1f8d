"""What becomes of tools, choices and schemas: what is sent for them, and what structured output yields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

from langchain_core.tools import tool
from pydantic import BaseModel

from tests.support.script import Call, Turn
from tests.surface.observed import Seen, flat, of_failure, plain
from tests.surface.pairs import Stage
from tests.surface.replied import QUESTION, gathered, outcome


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


@tool
def now() -> str:
    """The time."""
    return "noon"


class Weather(BaseModel):
    """The weather of a city."""

    city: str
    degrees: int
    notes: list[str]


class WeatherDict(TypedDict):
    """The weather of a city."""

    city: str
    degrees: int
    notes: list[str]


_OUTPUT = {"city": "Paris", "degrees": 2100, "notes": ["sunny in the morning", "later cloudy"]}
_SCHEMAS: Mapping[str, Any] = {"pydantic": Weather, "typed dict": WeatherDict, "JSON schema": Weather.model_json_schema()}
_METHODS = ("default", "function_calling", "json_schema", "json_mode")
_KEYS = ("tool_choice", "parallel_tool_calls", "toolConfig", "response_format", "text", "format", "output_config", "generationConfig")

_CHOICES: Mapping[str, Mapping[str, Any]] = {
    "nothing": {},
    "auto": {"tool_choice": "auto"},
    "any": {"tool_choice": "any"},
    "required": {"tool_choice": "required"},
    "none": {"tool_choice": "none"},
    "True": {"tool_choice": True},
    "False": {"tool_choice": False},
    "a name": {"tool_choice": "now"},
    "OpenAI's form": {"tool_choice": {"type": "function", "function": {"name": "now"}}},
    "Anthropic's form": {"tool_choice": {"type": "tool", "name": "now"}},
    "an unknown name": {"tool_choice": "nowhere"},
    "parallel_tool_calls": {"parallel_tool_calls": False},
    "strict": {"strict": True},
    "not strict": {"strict": False},
}


def bound(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """What is sent of `bind_tools`, beside the tools' own declarations."""
    stage.reply = Turn("Hello there.")
    for name, more in _CHOICES.items():
        yield name, "", outcome(lambda: _sent(stage, lambda model: model.bind_tools([get_temperature, now], **more)))  # noqa: B023 - called at once


def _sent(stage: Stage, change: Callable[[Any], Any]) -> Seen:
    """The keys of a request that say how it is to be answered; of tools their names, and whether they are strict."""
    body = stage.sent(lambda: change(stage.model()).invoke(QUESTION))
    shown = {key: body[key] for key in _KEYS if key in body}
    seen = flat({key: value for key, value in shown.items() if key not in ("response_format", "text", "format", "output_config")})
    seen |= {key: plain(str(value)) for key, value in shown.items() if key not in seen and not any(one.startswith(key) for one in seen)}
    tools = json.dumps(body.get("tools") or [])
    names = [name for name in ("get_temperature", "now", "Weather", "WeatherDict") if f'"{name}"' in tools]
    return {**seen, "tools": " ".join(names), "strict": plain('"strict": true' in tools)}


def structured(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """What structured output sends and yields, with each kind of schema and method, raw and not, whole and streamed."""
    for (name, schema), method in ((one, method) for one in _SCHEMAS.items() for method in _METHODS):
        for raw in (False, True) if name == "pydantic" else (False,):
            given = {**({} if method == "default" else {"method": method}), **({"include_raw": True} if raw else {})}
            case = f"{name}, {method}{', raw' if raw else ''}"
            for way in ("invoke", "stream") if method == "json_mode" or raw else ("invoke", "stream", "astream"):
                yield case, way, outcome(lambda: _yielded(stage, schema, given, way), lambda seen: seen)  # noqa: B023 - called at once


def _yielded(stage: Stage, schema: Any, given: Mapping[str, Any], way: str) -> Seen:
    chain = stage.model().with_structured_output(schema, **given)
    stage.server._script = lambda exchange: _reply(exchange.json)
    try:
        found = (
            [chain.invoke(QUESTION)]
            if way == "invoke"
            else list(chain.stream(QUESTION))
            if way == "stream"
            else gathered(chain.astream(QUESTION))
        )
    finally:
        stage.server._script = lambda exchange: stage.reply
    last = found[-1]
    pieces = {} if way == "invoke" else {"pieces": "one" if len(found) == 1 else "several"}
    if isinstance(last, dict) and {"raw", "parsed", "parsing_error"} & last.keys():
        keys = sorted({key for one in found for key in one})
        merged = {key: value for one in found for key, value in one.items()}
        return {**pieces, "keys": " ".join(keys), "parsed": _shown(merged.get("parsed")), "error": plain(type(merged.get("parsing_error")))}
    return {**pieces, "parsed": _shown(last)}


def _shown(output: Any) -> str:
    said = output.model_dump() if isinstance(output, BaseModel) else output
    return f"{type(output).__name__} {'whole' if said == _OUTPUT else 'otherwise'}"


def _reply(body: Mapping[str, Any]) -> Turn:
    """The output as a call of the schema's tool, where there is one, else as text."""
    declared = json.dumps(body.get("tools") or [])
    name = next((name for name in ("WeatherDict", "Weather") if f'"{name}"' in declared), None)
    return Turn(calls=[Call(name, _OUTPUT)]) if name else Turn(json.dumps(_OUTPUT))


_SPOILT: Mapping[str, str] = {
    "not JSON": "It is warm.",
    "half": '{"city": "Paris", "deg',
    "another schema": '{"town": "Paris"}',
    "fenced": '```json\n{"city": "Paris", "degrees": 2100, "notes": ["sunny in the morning", "later cloudy"]}\n```',
}


def spoilt_output(stage: Stage) -> Iterator[tuple[str, str, Seen]]:
    """What structured output makes of replies that do not fit."""
    for (name, text), method in ((one, method) for one in _SPOILT.items() for method in ("json_schema", "json_mode")):
        stage.reply = Turn(text)
        for raw in ({}, {"include_raw": True}):
            chain = stage.model().with_structured_output(Weather, method=method, **raw)
            yield name, f"{method}{', raw' if raw else ''}", outcome(lambda: _read(chain.invoke(QUESTION)), lambda seen: seen)  # noqa: B023


def _read(output: Any) -> Seen:
    if isinstance(output, dict):
        error = output.get("parsing_error")
        return {"parsed": _shown(output.get("parsed")), **({} if error is None else of_failure(error))}
    return {"parsed": _shown(output)}
