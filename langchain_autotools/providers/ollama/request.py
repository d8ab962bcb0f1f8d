"""Request parameters by their wire names, and options of the HTTP client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .._base.checks import extra_headers
from .._transport.timeouts import timeout_parts
from .client import DEFAULT_TIMEOUT
from .parameters import OPTIONS, lowered_headers, plain_options
from .schemas import output_format

if TYPE_CHECKING:
    from .parameters import OllamaParameters
else:
    OllamaParameters = object  # a class of pydantic's between the fields and the chat model would cost more than most imports

_JSON = {"content-type": "application/json", "accept": "application/json"}


class OllamaRequests(OllamaParameters):
    """Request parameters of a chat model for /api/chat."""

    _synonyms: ClassVar[Mapping[str, str]] = {
        "reasoning": "think",
        "reasoning_effort": "think",
        "max_tokens": "num_predict",
        "model_name": "model",
    }
    _client_keywords: ClassVar[frozenset[str]] = frozenset(
        {
            *("extra_headers", "timeout", "options", "response_format", "tool_choice"),
            *("strict", "parallel_tool_calls", "stream_usage"),  # other vendors' parameters that callers of any model give
        }
    )

    def _request_defaults(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in OPTIONS}
        options = {name: value for name, value in own.items() if value is not None and value != []} | self.options
        params = {
            "model": self.model,
            "think": self.reasoning,
            "format": self.format,
            "logprobs": True if self.top_logprobs is not None else self.logprobs,
            "top_logprobs": self.top_logprobs,
            "keep_alive": self.keep_alive,
            "options": options or None,
        }
        return {name: value for name, value in params.items() if value is not None} | self.model_kwargs

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        if kwargs.get("response_format") is not None and called.get("format") is None:
            called["format"] = kwargs["response_format"]
        params = {**self._request_defaults(), **called}
        options = {**(params.pop("options", None) or {}), **(plain_options(kwargs.get("options")) or {})}
        options |= {name: params.pop(name) for name in OPTIONS if name in params}
        options |= {} if stop is None else {"stop": stop}
        if params.get("format") is not None:
            params["format"] = output_format(params["format"]) or None
        if not params.get("tools") or kwargs.get("tool_choice") == "none":  # who must not call is told of no tools
            params.pop("tools", None)
        params |= {"options": {name: value for name, value in options.items() if value is not None} or None, "stream": stream}
        return {name: value for name, value in params.items() if value is not None}

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        common = {**_JSON, **self._authorization(), **lowered_headers(self.client_kwargs), **headers}
        given = {"timeout": kwargs.get("timeout"), "extra_headers": {name.lower(): value for name, value in extra_headers(kwargs).items()}}
        return super()._request_options(given, stream=stream, headers=common, query=query)

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        timeout = self._timeout(kwargs)
        if timeout is None and idle_timeout is None:
            return None
        return timeout_parts(DEFAULT_TIMEOUT if timeout is None else timeout, idle_timeout)

    def _authorization(self) -> dict[str, str]:
        """Return the authorization header: the user's own header, else the URL's user, else the key."""
        if any("authorization" in lowered_headers(arguments) for arguments in self.all_client_kwargs):
            return {}
        if self.address.authorization:
            return {"authorization": self.address.authorization}
        return {"authorization": f"Bearer {self.api_key.get_secret_value()}"} if self.api_key else {}
