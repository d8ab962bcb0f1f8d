"""What one request says besides its messages: parameters in the wire's names, caching, and what only the HTTP client needs."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from .._base import parameters
from .._transport.timeouts import request_timeout
from .errors import sdk
from .parameters import SENT_FIELDS, AnthropicParameters
from .structured import output_format
from .tools import choice_with_parallel, format_tool_choice, is_builtin

__all__ = [
    "HEADERS",
    "cache_mark",
    "default_params",
    "is_thinking",
    "may_hold_blocks",
    "request_options",
    "request_params",
    "with_cache_marks",
    "with_container",
]

_logger = logging.getLogger("langchain_autotools")

_CLIENT_KEYWORDS = frozenset(
    {
        *("extra_headers", "extra_query", "timeout", "stream_usage", "extra_body", "parallel_tool_calls", "response_format"),
        *("reasoning_effort", "effort", "betas", "prompt_caching"),
    }
)
# What LangChain users call it, and what the wire calls it.
_SYNONYMS = {"max_tokens_to_sample": "max_tokens", "model_name": "model", "stop": "stop_sequences"}
_SAMPLING = ("temperature", "top_k", "top_p")
_FORCED = ("any", "tool")
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
_BETA_OF_PARAMETER = {
    "mcp_servers": "mcp-client-2025-11-20",
    "user_profile_id": "user-profiles-2026-03-24",
}
_BETA_OF_EDITS = "context-management-2025-06-27"
_BETA_OF_COMPACTION = "compact-2026-01-12"
_BETA_OF_EXAMPLES = "advanced-tool-use-2025-11-20"
_BETA_OF_BUDGET = "task-budgets-2026-03-13"
_BETA_OF_UPDATES = "thinking-display-updates-2026-08-18"
_BETA_OF_TOOL_CHANGES = "mid-conversation-tool-changes-2026-07-01"
_BETA_OF_INLINE_TOOLS = "inline-tools-2026-09-15"
HEADERS = {"user_profile_id": "anthropic-user-profile-id", "workspace_id": "anthropic-workspace-id"}
"""Parameters that a header says, not the body."""
_IMPLIED = {"type": "adaptive", "display": "summarized"}


def default_params(model: AnthropicParameters) -> dict[str, Any]:
    """The parameters that the constructor sets, in the wire's names."""
    fields = {name: getattr(model, name) for name in SENT_FIELDS}
    said = {name: value for name, value in fields.items() if value is not None and value != []}
    if model.reasoning_effort:
        said["output_config"] = {**(said.get("output_config") or {}), "effort": model.reasoning_effort}
    return {"model": model.model, **said, **_renamed(model.model_kwargs)}


def request_params(model: AnthropicParameters, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Every parameter of one request. Keywords of the call go before the constructor's; None means: do not send.

    Args:
        model: The model, for what its constructor set.
        stop: The call's stop sequences.
        kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
        stream: Whether a stream is asked for.
    """
    called = _renamed({name: value for name, value in kwargs.items() if name not in _CLIENT_KEYWORDS})
    params = {**default_params(model), **called, **({} if stop is None else {"stop_sequences": stop})}
    for name in _SAMPLING:
        if name not in called and model._profile_for(str(params["model"])).get("temperature") is False:
            params.pop(name, None)
    params["output_config"] = _output_config(default_params(model), called, kwargs)
    if params.get("tools"):
        params["tool_choice"] = _tool_choice(params, kwargs.get("parallel_tool_calls"))
    else:
        params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice")}
    if "thinking" not in params and (model.reasoning_effort or _effort(kwargs)):
        params["thinking"] = _implied_thinking(model, params)
    body = {**(model.extra_body or {}), **(kwargs.get("extra_body") or {})}
    params = {**params, "stream": True if stream else None}
    return {name: value for name, value in params.items() if value is not None} | body


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    return {_SYNONYMS.get(name, name): value for name, value in params.items()}


def _tool_choice(params: Mapping[str, Any], parallel: bool | None) -> dict[str, Any] | None:
    """The choice; one that forces a call is not sent to a model that thinks, which the vendor refuses (wire quirk C-18)."""
    choice = params.get("tool_choice")
    choice = format_tool_choice(choice, params["tools"])
    if choice and choice["type"] in _FORCED and is_thinking(params.get("thinking")):
        _logger.warning("a model that thinks cannot be forced to call a tool: the forced tool_choice is not sent")
        single = choice.get("disable_parallel_tool_use")
        choice = None if single is None else {"type": "auto", "disable_parallel_tool_use": single}
    return choice_with_parallel(choice, parallel)


def _effort(kwargs: Mapping[str, Any]) -> Any:
    return kwargs.get("effort") or kwargs.get("reasoning_effort")


def _output_config(default: Mapping[str, Any], called: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the call says of the output, and of the rest what the constructor says; None of the call unsets all."""
    unset = "output_config" in called and called["output_config"] is None
    config = {} if unset else {**(default.get("output_config") or {}), **(called.get("output_config") or {})}
    if _effort(kwargs):
        config["effort"] = _effort(kwargs)
    if kwargs.get("response_format") is not None:
        config["format"] = output_format(kwargs["response_format"])
    return config or None


def _implied_thinking(model: AnthropicParameters, params: Mapping[str, Any]) -> dict[str, Any] | None:
    """How a model thinks that is told an effort and nothing of thinking, as of langchain-anthropic: of those that take every effort,
    as it likes, summarized. Where a call is forced nothing is said: the vendor refuses both together."""
    forced = (params.get("tool_choice") or {}).get("type") in _FORCED
    return None if forced or "xhigh" not in (model._profile_for(str(params["model"])).get("reasoning_effort_levels") or ()) else _IMPLIED


def with_container(container: Any, last: str | None) -> Any:
    """The `container` of a request: the last one where the parameter names none; skills and the like stay beside its id."""
    if last is None or isinstance(container, str) or (isinstance(container, Mapping) and container.get("id")):
        return container
    return {**container, "id": last} if isinstance(container, Mapping) else last


def is_thinking(thinking: Any) -> bool:
    """Whether a thinking parameter lets the model think."""
    return isinstance(thinking, Mapping) and thinking.get("type") not in (None, "disabled")


def may_hold_blocks(params: Mapping[str, Any], body: bytes) -> bool:
    """Whether the reply may hold anything besides one text: then its content is a list of blocks from the start.

    Args:
        params: The request's parameters.
        body: The request's JSON.
    """
    if params.get("tools") or any(params.get(name) for name in _OTHER_BLOCKS[1:]) or is_thinking(params.get("thinking")):
        return True
    return b'"citations"' in body or b'"search_result"' in body


# ---------------------------------------------------------------------------------------------- caching


def cache_mark(model: AnthropicParameters, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any] | None:
    """The `cache_control` that this request's breakpoints carry; None for no breakpoints."""
    wanted = kwargs.get("prompt_caching", model.prompt_caching)
    if wanted == "auto":
        own = model.anthropic_api_url is None or urlsplit(model.anthropic_api_url).hostname == _OWN_HOST
        wanted = own and bool(params.get("tools"))
    if not wanted:
        return None
    return {"type": "ephemeral", "ttl": "1h"} if wanted == "1h" else {"type": "ephemeral"}


def with_cache_marks(params: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with a breakpoint after the last tool, and one that the vendor moves along the messages.

    A mark within the messages would have to move from request to request, and with it bytes that were sent before.
    """
    marked = {**params, "cache_control": params.get("cache_control") or mark}
    tools: Sequence[Mapping[str, Any]] = params.get("tools") or ()
    if tools and not is_builtin(tools[-1]) and not tools[-1].get("defer_loading"):
        marked["tools"] = [*tools[:-1], {**tools[-1], "cache_control": mark}]
    return marked


# ---------------------------------------------------------------------------------------------- for the HTTP client


def request_options(
    model: AnthropicParameters, params: Mapping[str, Any], kwargs: Mapping[str, Any], body: bytes, *, stream: bool
) -> dict[str, Any]:
    """Headers, query and timeout of one request, as the SDK's request options. The constructor's headers are the client's."""
    timeout = request_timeout(sdk, model._timeout(kwargs), model.stream_chunk_timeout if stream else None)
    betas = _betas(params, [*(model.betas or ()), *(kwargs.get("betas") or ()), *_betas_of_messages(body)])
    said = {"anthropic-beta": ",".join(betas), **{header: params.get(name) for name, header in HEADERS.items()}}
    headers = {"accept": "text/event-stream" if stream else "application/json", **{name: value for name, value in said.items() if value}}
    return parameters.request_options(kwargs, timeout, headers, {})


def _betas(params: Mapping[str, Any], asked: Sequence[str]) -> list[str]:
    """The betas that were asked for, and those that a tool or parameter needs."""
    tools = params.get("tools") or ()
    needed = [_BETA_OF_TOOL.get(str(tool.get("type"))) for tool in tools]
    needed += [beta for name, beta in _BETA_OF_PARAMETER.items() if params.get(name)]
    needed += _betas_of_edits(params.get("context_management"))
    needed += [_BETA_OF_EXAMPLES] if any(tool.get("input_examples") for tool in tools) else []
    needed += [_BETA_OF_BUDGET] if (params.get("output_config") or {}).get("task_budget") else []
    needed += [_BETA_OF_UPDATES] if (params.get("thinking") or {}).get("display") == "updates" else []
    return list(dict.fromkeys([*asked, *(beta for beta in needed if beta)]))


def _betas_of_edits(management: Any) -> list[str]:
    """The betas of what the vendor is to do to long contexts: compaction has one of its own."""
    if not isinstance(management, Mapping) or not management:
        return []
    edits: Sequence[Mapping[str, Any]] = management.get("edits") or ({},)
    compacting = {str(edit.get("type")).startswith("compact_") for edit in edits}
    return [beta for of_compaction, beta in ((False, _BETA_OF_EDITS), (True, _BETA_OF_COMPACTION)) if of_compaction in compacting]


def _betas_of_messages(body: bytes) -> list[str]:
    """The beta of messages that change the tools: one that brings a tool's whole definition needs another than one that names it."""
    if not any(b'"type":"%s"' % change in body for change in (b"tool_addition", b"tool_removal")):
        return []
    return [_BETA_OF_INLINE_TOOLS if b'"type":"tool_definition"' in body else _BETA_OF_TOOL_CHANGES]
