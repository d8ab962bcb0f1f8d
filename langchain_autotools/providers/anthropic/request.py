"""Request parameters by their wire names, cache breakpoints, and options of the HTTP client."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from .._base.chat_model import ProviderChatModel
from .encode import SUMMARY
from .parameters import SENT_FIELDS
from .structured import output_format
from .tools import choice_with_parallel, format_tool_choice, is_builtin, read_choice

if TYPE_CHECKING:
    from .parameters import AnthropicParameters
else:
    AnthropicParameters = object  # a class of pydantic's between the fields and the chat model would cost more than most imports

_logger = logging.getLogger("langchain_autotools")

_SAMPLING = ("temperature", "top_k", "top_p")
_OWN_HOST = "api.anthropic.com"
_OTHER_BLOCKS = ("thinking", "mcp_servers", "container", "context_management")

_BETA_OF_TOOL = {
    "web_fetch_20250910": "web-fetch-2025-09-10",
    "code_execution_20250522": "code-execution-2025-05-22",
    "mcp_toolset": "mcp-client-2025-11-20",
    "memory_20250818": "context-management-2025-06-27",
    "computer_20250124": "computer-use-2025-01-24",
    "computer_20251124": "computer-use-2025-11-24",
    "tool_search_tool_regex_20251119": "advanced-tool-use-2025-11-20",
    "tool_search_tool_bm25_20251119": "advanced-tool-use-2025-11-20",
    "advisor_20260301": "advisor-tool-2026-03-01",
}
_BETA_OF_SUMMARIES = "compact-2026-09-04"
# And whether the parameters of a request need it. (Compaction of a long context has one of its own.)
_BETAS_OF_PARAMETERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "mcp-client-2025-11-20": lambda params: params.get("mcp_servers"),
    "user-profiles-2026-03-24": lambda params: params.get("user_profile_id"),
    "context-management-2025-06-27": lambda params: False in _compacting(params.get("context_management")),
    "compact-2026-01-12": lambda params: True in _compacting(params.get("context_management")),
    "advanced-tool-use-2025-11-20": lambda params: any(tool.get("input_examples") for tool in params.get("tools") or ()),
    _BETA_OF_SUMMARIES: lambda params: params.get("compaction"),
    "task-budgets-2026-03-13": lambda params: (params.get("output_config") or {}).get("task_budget"),
    "thinking-display-updates-2026-08-18": lambda params: (params.get("thinking") or {}).get("display") == "updates",
}
_BETA_OF_TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
_BETA_OF_INLINE_TOOLS = "inline-tools-2026-09-15"
HEADERS = {"user_profile_id": "anthropic-user-profile-id", "workspace_id": "anthropic-workspace-id"}
"""Parameters that are sent as headers, not in the body."""
_IMPLIED = {"type": "adaptive", "display": "summarized"}


class AnthropicRequests(AnthropicParameters):
    """Request parameters of a chat model for the Messages API."""

    _wire_names: ClassVar[Mapping[str, str]] = {name: name for name in SENT_FIELDS}
    _synonyms: ClassVar[Mapping[str, str]] = {"max_tokens_to_sample": "max_tokens", "model_name": "model", "stop": "stop_sequences"}
    _first_request_only: ClassVar[frozenset[str]] = frozenset({"compaction"})
    _client_keywords: ClassVar[frozenset[str]] = ProviderChatModel._client_keywords | {
        *("parallel_tool_calls", "response_format", "reasoning_effort", "effort", "betas", "prompt_caching"),
    }

    def _field_params(self) -> dict[str, Any]:
        params = super()._field_params()
        if self.reasoning_effort:
            params["output_config"] = {**(params.get("output_config") or {}), "effort": self.reasoning_effort}
        return params

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called, default = self._call_keywords(kwargs), self._request_defaults()
        params = {**default, **called, **({} if stop is None else {"stop_sequences": stop})}
        for name in _SAMPLING:
            if name not in called and self._profile_for(str(params["model"])).get("temperature") is False:
                params.pop(name, None)
        params["output_config"] = _output_config(default, called, kwargs)
        if params.get("tools"):
            params["tool_choice"] = _tool_choice(params, kwargs.get("parallel_tool_calls"))
        else:
            params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice")}
        if "thinking" not in params and (self.reasoning_effort or _effort(kwargs)):
            params["thinking"] = _implied_thinking(self._profile_for(str(params["model"])), params)
        params = {**params, "stream": True if stream else None}
        return {name: value for name, value in params.items() if value is not None} | self._extra_body(kwargs)

    def _headers_for(self, params: Mapping[str, Any], kwargs: Mapping[str, Any], body: bytes, *, stream: bool) -> dict[str, Any]:
        """Return the headers of one request in addition to those of every request.

        Args:
            params: The request's parameters.
            kwargs: The call's keywords.
            body: The request's JSON.
            stream: Whether a stream is asked for.
        """
        betas = _betas(params, [*(self.betas or ()), *(kwargs.get("betas") or ()), *_betas_of_messages(body)])
        headers = {"anthropic-beta": ",".join(betas), **{header: params.get(name) for name, header in HEADERS.items()}}
        accept = "text/event-stream" if stream else "application/json"
        return {"accept": accept, **{name: value for name, value in headers.items() if value}}


def _tool_choice(params: Mapping[str, Any], parallel: bool | None) -> dict[str, Any] | None:
    """Return the tool choice. A forced one is not sent to a thinking model, because the vendor rejects it (wire quirk C-18)."""
    choice = read_choice(format_tool_choice(params.get("tool_choice"), params["tools"]))
    if choice.forced and is_thinking(params.get("thinking")):
        _logger.warning("a model that thinks cannot be forced to call a tool: the forced tool_choice is not sent")
        return choice_with_parallel(choice.lasting, parallel)
    return choice_with_parallel(choice.asked, parallel)


def _effort(kwargs: Mapping[str, Any]) -> Any:
    return kwargs.get("effort") or kwargs.get("reasoning_effort")


def _output_config(default: Mapping[str, Any], called: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Merge the output settings of the call over the constructor's; None in the call unsets all."""
    unset = "output_config" in called and called["output_config"] is None
    config = {} if unset else {**(default.get("output_config") or {}), **(called.get("output_config") or {})}
    if _effort(kwargs):
        config["effort"] = _effort(kwargs)
    if kwargs.get("response_format") is not None:
        config["format"] = output_format(kwargs["response_format"])
    return config or None


def _implied_thinking(profile: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the thinking setting for a request with an effort and no `thinking`, as langchain-anthropic does.

    Models with every effort level think adaptively, with summaries. None with a forced tool call, which the vendor rejects
    together with thinking.
    """
    forced = read_choice(params.get("tool_choice")).forced
    return None if forced or "xhigh" not in (profile.get("reasoning_effort_levels") or ()) else _IMPLIED


def with_container(container: Any, last: str | None) -> Any:
    """Return the `container` of a request.

    Args:
        container: The parameter. What it says besides an id (skills, say) stays.
        last: The id of the last container, for a parameter that names none.
    """
    if last is None or isinstance(container, str) or (isinstance(container, Mapping) and container.get("id")):
        return container
    return {**container, "id": last} if isinstance(container, Mapping) else last


def is_thinking(thinking: Any) -> bool:
    """Whether a thinking parameter lets the model think."""
    return isinstance(thinking, Mapping) and thinking.get("type") not in (None, "disabled")


def demands_thinking(thinking: Any) -> bool:
    """Whether a thinking parameter has the API demand that an open tool loop begins with thinking: `adaptive` does not."""
    return isinstance(thinking, Mapping) and thinking.get("type") == "enabled"


def may_hold_blocks(params: Mapping[str, Any], body: bytes) -> bool:
    """Whether the reply may hold more than one text block, so that its content is a list of blocks from the start.

    Args:
        params: The request's parameters.
        body: The request's JSON.
    """
    if params.get("tools") or any(params.get(name) for name in _OTHER_BLOCKS[1:]) or is_thinking(params.get("thinking")):
        return True
    return b'"citations"' in body or b'"search_result"' in body


# ---------------------------------------------------------------------------------------------- caching


def cache_mark(model: AnthropicParameters, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the `cache_control` of this request's cache breakpoints; None for no breakpoints.

    Args:
        model: The model, for what its constructor says.
        params: The request's parameters.
        kwargs: The call's keywords.
    """
    wanted = kwargs.get("prompt_caching", model.prompt_caching)
    if wanted == "auto":
        wanted = bool(params.get("tools")) and _is_vendors(model.anthropic_api_url)
    if not wanted:
        return None
    return {"type": "ephemeral", "ttl": "1h"} if wanted == "1h" else {"type": "ephemeral"}


def _is_vendors(address: str | None) -> bool:
    """Whether an address is the vendor's own."""
    host, port = (urlsplit(address).hostname, urlsplit(address).port) if address is not None else (_OWN_HOST, None)
    if host == _OWN_HOST:
        return True
    _tell_unmarked(f"{host}:{port}" if port else str(host))
    return False


@lru_cache(1_000)
def _tell_unmarked(server: str) -> None:
    """Log, once per server, that its requests carry no cache marks: other libraries' middleware sets none on this class."""
    _logger.warning("requests to %s do not mark what Anthropic should cache: prompt_caching=True marks it, False is silent", server)


def with_cache_marks(params: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters with a cache breakpoint after the last tool, and one that the vendor moves along the messages.

    A mark within the messages would have to move from request to request, and with it bytes that were sent before.
    """
    marked = {**params, "cache_control": params.get("cache_control") or mark}
    tools: Sequence[Mapping[str, Any]] = params.get("tools") or ()
    if tools and not is_builtin(tools[-1]) and not tools[-1].get("defer_loading"):
        marked["tools"] = [*tools[:-1], {**tools[-1], "cache_control": mark}]
    return marked


# ---------------------------------------------------------------------------------------------- betas


def _betas(params: Mapping[str, Any], requested: Sequence[str]) -> list[str]:
    """Return the requested beta features, and those that a tool or parameter needs."""
    of_tools = [_BETA_OF_TOOL.get(str(tool.get("type"))) for tool in params.get("tools") or ()]
    of_parameters = [beta for beta, is_needed in _BETAS_OF_PARAMETERS.items() if is_needed(params)]
    return list(dict.fromkeys([*requested, *filter(None, of_tools), *of_parameters]))


def _compacting(management: Any) -> set[bool]:
    """Return whether each of the context edits is a compaction."""
    edits: Sequence[Mapping[str, Any]] = (management.get("edits") or ({},)) if isinstance(management, Mapping) and management else ()
    return {str(edit.get("type")).startswith("compact_") for edit in edits}


def _betas_of_messages(body: bytes) -> list[str]:
    """Return the beta features that messages need: for a summary, and for messages that change the tools.

    A message with a tool's whole definition needs another feature than one with the tool's name.
    """
    return [*([_BETA_OF_SUMMARIES] if SUMMARY in body and b'"signature"' in body else []), *_betas_of_tool_changes(body)]


def _betas_of_tool_changes(body: bytes) -> list[str]:
    if not any(b'"type":"%s"' % change in body for change in (b"tool_addition", b"tool_removal")):
        return []
    return [_BETA_OF_INLINE_TOOLS if b'"type":"tool_definition"' in body else _BETA_OF_TOOL_CHANGES]
