"""What a request can be asked for: each parameter reaches the server in its wire's words, or the class says why it does not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from langchain_autotools import ConfigurationError
from tests.contract.wires import Wire
from tests.support.script import Turn

_UNSENT = "accepted, logged and not sent: the wire has no word for it"
_UNKNOWN = "no argument of the constructor; what the API knows besides goes in `model_kwargs`"

PARAMETERS: dict[str, list[dict[str, Any]]] = {
    "temperature": [{"temperature": 0.5}],
    "top_p": [{"top_p": 0.5}],
    "top_k": [{"top_k": 5}],
    "max_tokens": [{"max_tokens": 100}],
    "stop": [{"stop": ["."]}],
    "seed": [{"seed": 7}],
    "presence_penalty": [{"presence_penalty": 0.5}],
    "frequency_penalty": [{"frequency_penalty": 0.5}],
    "logit_bias": [{"logit_bias": {1: 1}}],
    "logprobs": [{"logprobs": True}],
    "reasoning_effort": [{"reasoning_effort": "low"}, {"reasoning": "low"}],
    "verbosity": [{"verbosity": "low"}],
    "service_tier": [{"service_tier": "auto"}],
    "store": [{"store": True}],
}
"""Arguments of constructors, each under the names that classes have for it."""

CHOICES: dict[str, dict[str, Any]] = {
    "tool_choice='any'": {"tool_choice": "any"},
    "tool_choice='none'": {"tool_choice": "none"},
    "parallel_tool_calls=False": {"parallel_tool_calls": False},
}
"""Keywords of `bind_tools`."""


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def refusal(model: Callable[..., dict[str, Any]], arguments: dict[str, Any]) -> str:
    """Why a constructor's argument is not sent; "" if it is."""
    try:
        return "" if model(**arguments) != model() else _UNSENT
    except ConfigurationError as error:
        [name] = arguments
        text = str(error)
        if "did you mean" in text or "model_kwargs" in text:
            return _UNKNOWN
        return re.split(r"[;(]", text[text.index(name) :].partition(": ")[2])[0].strip()


def test_what_a_request_can_be_asked_for(wire: Wire, record_property: Callable[[str, object], None]) -> None:
    """Each parameter is sent in the wire's words, or its refusal says why not; no server refuses what is sent."""
    with wire.serve(lambda exchange: Turn("hello")) as server:

        def sent(*, bound: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
            model = wire.model(server, **arguments)
            (model if bound is None else model.bind_tools([add], **bound)).invoke("x")
            return dict(server.exchanges[-1].json)

        found: dict[str, str] = {}
        for name, alternatives in PARAMETERS.items():
            reasons = [refusal(sent, arguments) for arguments in alternatives]
            found[name] = reasons[0] if all(reasons) else ""
        for name, bound in CHOICES.items():
            found[name] = _UNSENT if sent(bound=bound) == sent(bound={}) else ""
        assert [rejection.message for rejection in server.rejections] == []
    record_property("found", json.dumps(found))
    assert found["temperature"] == found["max_tokens"] == found["tool_choice='none'"] == ""
    assert all(reason == "" or len(reason) > 10 for reason in found.values())
