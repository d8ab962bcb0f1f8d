"""The pages of the vendors do what they say: their Python runs against each vendor's strict server and prints what they show."""

import json
import re

import pytest

from tests.providers.presets.conftest import Start
from tests.support.pages import REPOSITORY, run_page
from tests.support.script import Call, Raw, Reply, Turn
from tests.support.vendor_server import VendorServer
from tests.support.vendors import Vendor
from tests.support.weather import get_temperature

THOUGHT = "I need both temperatures."


def asks_for(*cities: str, thought: str = "") -> Turn:
    """A turn that looks up the temperature of cities."""
    return Turn(calls=[Call("get_temperature", {"city": city}) for city in cities], reasoning=thought)


TALK = [asks_for("Paris", "Rome"), Turn("Paris has 21 °C, Rome 24 °C.")]
COMPARISON = [asks_for("Paris", "Rome", thought=THOUGHT), Turn("Rome is warmer.")]
REFUSED = {
    "message": "tool call validation failed: missing properties: 'city'",
    "type": "invalid_request_error",
    "code": "tool_use_failed",
    "failed_generation": '{"name": "get_temperature", "arguments": {"town": "Paris"}}',
}
MISTAKE = Raw([json.dumps({"error": REFUSED}).encode()], "application/json", 400, framing="length")
SPECIAL: dict[str, list[Reply]] = {
    "cohere": [Turn(calls=[Call("get_wind", {"city": "Rome"})]), Turn("Windy.")],
    "deepseek": COMPARISON,
    "fireworks": COMPARISON,
    "groq": [
        *[MISTAKE, asks_for("Paris"), Turn("Paris has 21 °C.")],  # a call that Groq refuses, and the model's next try
        *[asks_for("Paris"), Turn(calls=[Call("Weather", {"city": "Paris", "temperature": "21 °C"})])],  # structured output
    ],
    "mistralai": [Turn("Yes."), Turn(" a time")],
    "openrouter": COMPARISON,
    "together": [asks_for("Rome"), Turn("Rome has 24 °C.")],
    "xai": COMPARISON,
}


def test_the_python_of_the_page_runs(vendor: Vendor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Its blocks print what the page shows, and the vendor takes every request."""
    name = vendor.chat_model.__name__
    monkeypatch.setenv(vendor.key, "key")
    with VendorServer(vendor, [*TALK, *SPECIAL[vendor.name]]) as server:
        page = REPOSITORY / "docs" / f"chat_{vendor.name}.md"
        run_page(page, capsys, lambda code: code.replace(f"{name}(", f'{name}(base_url="{server.url}", '))
        assert [rejection.message for rejection in server.rejections] == []
        assert server.left == 0


def test_the_table_of_parameters_is_true(start: Start, vendor: Vendor) -> None:
    """`max_tokens` goes under the name that the page says, and no other."""
    page = (REPOSITORY / "docs" / f"chat_{vendor.name}.md").read_text(encoding="utf-8")
    [said] = re.findall(r"^\| `max_tokens`.*? \| `(\w+)` \|$", page, re.MULTILINE)
    model, server = start(vendor, [Turn("Hi.")], max_tokens=50)
    model.invoke("Hi.")
    assert {"max_tokens", "max_completion_tokens"} & set(server.requests[0]) == {said}


def test_a_named_tool_is_offered_alone_in_the_first_turn(start: Start) -> None:
    """Cohere's page: where a tool choice names a tool, the first request has it alone, the next has all."""

    def get_wind(city: str) -> str:
        """Wind in a city."""
        return "12 km/h"

    model, server = start("cohere", SPECIAL["cohere"], tools=[get_temperature, get_wind])
    model.invoke("What is the weather in Rome?", tool_choice="get_wind")
    asked = [([tool["function"]["name"] for tool in request["tools"]], request.get("tool_choice")) for request in server.requests]
    assert asked == [(["get_wind"], "required"), (["get_temperature", "get_wind"], None)]
