"""Request parameters by their wire names, and options of the HTTP client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from .profiles import profile_of
from .structured import response_format

if TYPE_CHECKING:
    from .parameters import OpenAIParameters
else:
    OpenAIParameters = object  # a class of pydantic's between the fields and the chat model would cost more than most imports


class OpenAIRequests(OpenAIParameters):
    """Request parameters of a chat model for chat completions."""

    _synonyms: ClassVar[Mapping[str, str]] = {"max_tokens": "max_completion_tokens", "model_name": "model", "stop_sequences": "stop"}

    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        called = self._call_keywords(kwargs)
        params = {**self._request_defaults(), **called, **({} if stop is None else {"stop": stop})}
        if "temperature" not in called and not self._takes_temperature(params):
            params.pop("temperature", None)
        if params.get("response_format") is not None:
            params["response_format"] = response_format(params["response_format"])
        if not params.get("tools"):
            params = {name: value for name, value in params.items() if name not in ("tools", "tool_choice", "parallel_tool_calls")}
        params |= self._stream_params(params, kwargs) if stream else {"stream": None, "stream_options": None}
        return {name: value for name, value in params.items() if value is not None} | self._extra_body(kwargs)

    def _stream_params(self, params: Mapping[str, Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return `stream`, and `stream_options` if token counts are wanted or other options are set."""
        options = dict(params.get("stream_options") or {})
        settings = [kwargs.get("stream_usage"), options.get("include_usage"), self.stream_usage]
        wanted = next((value for value in settings if isinstance(value, bool)), False)
        if wanted or "include_usage" in options:
            options["include_usage"] = wanted
        disabled = "stream_options" in (self.disabled_params or {})
        return {"stream": True, "stream_options": None if disabled or not options else options}

    def _takes_temperature(self, params: Mapping[str, Any]) -> bool:
        """Whether to send the constructor's temperature: some models reject any but 1, unless their reasoning is off."""
        name = str(params["model"])
        known = profile_of(self.model_name if name == self._wire_model else name)
        profile = self._profile_for(name)
        effort = params.get("reasoning_effort") or (params.get("reasoning") or {}).get("effort")
        if effort == "none" or params.get("temperature") == 1:
            return True
        reasons = bool(effort and known and profile.get("reasoning_output"))
        return profile.get("temperature") is not False and not reasons
