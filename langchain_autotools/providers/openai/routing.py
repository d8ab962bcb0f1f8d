"""The choice between OpenAI's two APIs for a request: chat completions or Responses.

Wire facts: some models are served by Responses alone ("This model is only supported in v1/responses and not in v1/chat/completions"),
and from gpt-5.4 on chat completions refuses function tools to a model that reasons, as these do unless told otherwise ("Function tools
with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions", openai/openai-openapi#541; langchain-ai/langchain#40346).
langchain-openai goes to Responses for these, for builtin tools, and for parameters that only this API has.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .._encode.origin import origin_of
from .._transport.clients import Shared
from .parameters import RESPONSES_NAMES, OpenAIParameters
from .profiles import refuses_chat_completions, refuses_tools_on_chat_completions

_ASKING = (*RESPONSES_NAMES, "previous_response_id", "text")
_NAMED = {True: re.compile(r"\bv1/responses\b"), False: re.compile(r"\bv1/chat/completions\b")}
_REFUSALS = (400, 404, 405, 422)


class Route(NamedTuple):
    """The data that a request's route depends on.

    Attributes:
        why: The reason for using the Responses API, for an error's text; "" for chat completions.
        firm: Whether the caller chose, so that no server's word changes it.
        key: The common data of requests that a server rejects alike: endpoint, model, tools or none, effort.
    """

    why: str
    firm: bool
    key: tuple[str, bool, str]


def route_of(model: OpenAIParameters, kwargs: Mapping[str, Any]) -> Route:
    """Return the route of a request with these keywords, before any rejection. It is the same for every turn of a run.

    Args:
        model: The model, for what its constructor set.
        kwargs: The call's keywords, `tools` among them.
    """
    params = {**{name: getattr(model, name) for name in (*RESPONSES_NAMES, "reasoning_effort")}, **model.model_kwargs, **kwargs}
    tools = params.get("tools") or ()
    name, effort = str(kwargs.get("model") or kwargs.get("model_name") or model._known_name), str(params.get("reasoning_effort") or "")
    key = (origin_of(model._endpoint, name), bool(tools), effort)
    arguments = [f"{argument}=..." for argument in _ASKING if params.get(argument) is not None]
    if model.use_previous_response_id:
        arguments.append("use_previous_response_id=True")
    if model.use_responses_api is not None:
        return Route((arguments or ["use_responses_api=True"])[0] if model.use_responses_api else "", True, key)
    builtin = [f"the tool of type {tool['type']!r}" for tool in tools if _is_builtin(tool, custom=model._is_vendors)]
    if arguments or builtin:
        return Route((arguments or builtin)[0], True, key)
    return Route(_of_name(name, effort, bool(tools)) if model._is_vendors else "", False, key)


def _is_builtin(tool: Any, *, custom: bool) -> bool:
    """Whether a declared tool exists only in Responses; chat completions, at any server, nest a tool under its type."""
    kind = tool.get("type") if isinstance(tool, Mapping) else None
    if not isinstance(kind, str) or kind == "function" or "function" in tool:
        return False
    return custom if kind == "custom" else not isinstance(tool.get(kind), Mapping)


def _of_name(name: str, effort: str, tools: bool) -> str:
    """Return the reason why a model's name selects Responses at the vendor's own address; "" if it does not."""
    if refuses_chat_completions(name):
        return f"the model {name!r}"
    return f"the model {name!r} with tools" if tools and refuses_tools_on_chat_completions(name, effort) else ""


class LearnedRoutes(Shared):
    """Routes learned from servers' rejections. Safe for threads."""

    def __init__(self) -> None:
        self._learned: dict[tuple[str, bool, str], str] = {}

    def why(self, route: Route) -> str:
        """Return the reason for sending the request to the Responses API; "" for chat completions."""
        return route.why if route.firm else self._learned.get(route.key, route.why)

    def obeys(self, route: Route, used: str, error: Any) -> bool:
        """Whether to follow a rejection that names the other API, from now on. A server that redirects back is not followed.

        Args:
            route: The request's route.
            used: The value of `why` when the rejected request was made.
            error: The SDK's error.
        """
        to_responses = not used
        if route.firm or getattr(error, "status_code", None) not in _REFUSALS or not _NAMED[to_responses].search(f"{error} {error.body}"):
            return False
        learned = self._learned.setdefault(route.key, "the server, which refused it on chat completions" if to_responses else "")
        return bool(learned) is to_responses
