"""`ChatAnthropic`: a tool-running chat model for Anthropic's Messages API and compatible servers."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from langchain_core.language_models.base import LangSmithParams
from langchain_core.messages import BaseMessage

from ...turn.tool_choice import ToolChoice
from .._base.errors import ErrorMapping
from .._encode.origin import origin_of
from .._transport.exchange import Exchange
from .client import ClientSettings
from .decode import MessagesDecoder
from .errors import ERRORS
from .mapper import MessagesMapper
from .parameters import AnthropicParameters
from .profiles import PROFILES, profile_of
from .request import (
    HEADERS,
    AnthropicRequests,
    cache_mark,
    demands_thinking,
    is_thinking,
    may_hold_blocks,
    with_cache_marks,
    with_container,
)
from .structured import output_format
from .tools import client_tool_names, format_tool, format_tool_choice, read_choice
from .vendor_events import MessagesEvents

_MARK = b'"cache_control":'


class ChatAnthropic(AnthropicRequests, AnthropicParameters):
    """Anthropic's chat models, and every server that speaks the Messages API (`base_url`), with tools that run.

    ```python
    model = ChatAnthropic(model="claude-sonnet-5", tools=[get_temperature])
    for chunk in model.stream("How warm is it in Paris?"):
        print(chunk.text, end="")
    ```

    The arguments that matter first, all optional but `model`:

    - `model`: the model's name.
    - `tools`: functions or tools that the model runs itself. Without them it is
      a plain LangChain chat model.
    - `api_key`: the key, as text; else `ANTHROPIC_API_KEY` of the environment.
    - `base_url`: address of another server.
    - `temperature`, `max_tokens`, `stop`, `reasoning_effort`: of each reply.
    - `timeout`, `max_retries`: seconds without a byte; further attempts.
    - `max_turns`, `max_tool_calls`, `deadline`, `on_limit`: what a run may use.
    - `requires_approval`, `approve`: which calls a human decides about.

    Ask it with `invoke`, `stream`, `batch`, `ainvoke`, `astream`; see also
    `with_structured_output`, `bind_tools`, `resume` and `new_messages`.

    The constructor's names are those of langchain-anthropic's `ChatAnthropic`; an unknown one is an error. The SDK is imported, and
    its client made, at the first request.

    Raises:
        ConfigurationError: An argument is unknown or cannot work.
    """

    lists_content: ClassVar[bool] = True

    _error_mapping: ClassVar[ErrorMapping] = ERRORS
    _schemaless_methods: ClassVar[tuple[str, ...]] = ()
    _methods_beside_tools: ClassVar[tuple[str, ...]] = ("json_schema", "json_mode")

    # ------------------------------------------------------------------------------------------ requests

    def _known_profile(self, model: str) -> Mapping[str, Any]:
        return profile_of(model)

    def known_models(self) -> list[str]:
        """Return the names of the vendor's models that have a built-in profile."""
        return sorted(PROFILES)

    def _served_models(self) -> list[str]:
        client: Any = self._client_settings().synchronous()
        return [entry.id for entry in client.models.list()]

    def _exchange(self, messages: list[BaseMessage], stop: list[str] | None, kwargs: dict[str, Any], *, stream: bool) -> Exchange:
        params = self._request_params(stop, kwargs, stream=stream)
        mapper = self._mapper(str(params["model"]))
        if self.reuse_last_container is not False and kwargs.get("container", "") is not None:
            last = mapper.last_container(messages, ever=bool(self.reuse_last_container))
            params |= {"container": with_container(params.get("container"), last)} if last else {}
        if demands_thinking(params.get("thinking")) and mapper.goes_on_without_thinking(messages):
            params = {name: value for name, value in params.items() if name != "thinking"}
        in_body = {name: value for name, value in params.items() if name not in HEADERS}
        body = mapper.encode_request(messages, in_body)
        mark = cache_mark(self, params, kwargs)
        if mark and _MARK not in body:
            body = mapper.encode_request(messages, with_cache_marks(in_body, mark), cache=mark)
        blocks = may_hold_blocks(params, body)
        usage = not stream or bool(kwargs.get("stream_usage", self.stream_usage))
        return Exchange(
            body=body,
            decoder=partial(MessagesDecoder, origin=mapper.origin, blocks=blocks, usage=usage),
            watch=MessagesEvents,
            options=self._request_options(kwargs, stream=stream, headers=self._headers_for(params, kwargs, body, stream=stream)),
            path="/v1/messages",
            idle_timeout=self._idle_timeout(kwargs),
        )

    def _mapper(self, model: str) -> MessagesMapper:
        """Return the mapper for a model, cached because it keeps the messages that it has encoded."""
        anywhere = bool(self._profile_for(model).get("mid_conversation_system_messages"))
        origin = origin_of(self.anthropic_api_url, model)
        return self._cache.get((origin, anywhere), lambda: MessagesMapper(origin=origin, model=model, system_anywhere=anywhere))

    def _client_settings(self) -> ClientSettings:
        return ClientSettings(**self._client_arguments())

    # ------------------------------------------------------------------------------------------ tools and output

    def format_tool(self, tool: Any, *, strict: bool | None = None) -> dict[str, Any]:
        """A tool as a request declares it; a tool of the vendor's own (a dict of another type) as it is.

        Raises:
            ConfigurationError: It cannot be declared.
        """
        return format_tool(tool, strict=strict)

    def client_tool_names(self, tools: Sequence[Mapping[str, Any]]) -> Mapping[str, str]:
        """Return the names of the vendor's tools that run on the caller's machine, each with the kind of its handlers."""
        return client_tool_names(tools)

    def format_tool_choice(self, choice: Any, tools: Sequence[Mapping[str, Any]]) -> Any:
        """Return a tool choice in the form of a request: `auto`, `none`, `any`, True, a tool's name, or the vendor's own form.

        Raises:
            ConfigurationError: The choice names no declared tool, or is of no known form.
        """
        return format_tool_choice(choice, tools)

    def read_tool_choice(self, choice: Any) -> ToolChoice:
        """Return the effect of a wire choice on a run: a ban on parallel calls stays for every turn."""
        return read_choice(choice)

    def _default_method(self) -> str:
        return "function_calling"

    def _supported_method(self, method: str, schema: Any, strict: bool | None, kwargs: Mapping[str, Any]) -> str:
        """Return the method: `json_schema` for models that cannot be forced to call a tool, and in place of `json_mode`."""
        forced = not is_thinking(kwargs.get("thinking", self.thinking)) and (self.profile or {}).get("tool_choice") is not False
        return "function_calling" if method == "function_calling" and forced else "json_schema"

    def _format_params(self, schema: Any, method: str, strict: bool | None) -> dict[str, Any]:
        return {"output_config": {**(self.output_config or {}), "format": output_format(schema)}}

    def _call_params(self, name: str) -> dict[str, Any]:
        single = {} if self.tools else {"parallel_tool_calls": False}  # the model's own tools may be called side by side
        return {"tool_choice": name, **single}

    # ------------------------------------------------------------------------------------------ what LangChain asks

    @property
    def effort(self) -> str | None:
        """The value of `reasoning_effort`, by the vendor's name."""
        return self.reasoning_effort

    @property
    def _llm_type(self) -> str:
        return "anthropic-chat"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        untold = ("tools", "tool_choice")  # what is not sent of them is to be logged once, by the request
        return super()._get_ls_params(stop, **{name: value for name, value in kwargs.items() if name not in untold})
