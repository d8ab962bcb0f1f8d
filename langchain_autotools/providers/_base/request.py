"""What every vendor's requests say besides their messages: parameters in the wire's names, and what only the HTTP client needs."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from .._transport.secrets import SecretDict
from .._transport.timeouts import read_timeout, request_timeout
from .checks import extra_headers
from .structured_output import StructuredChatModel

__all__ = ["RequestChatModel"]


class RequestChatModel(StructuredChatModel):
    """A chat model that knows the parameters of its requests."""

    stream_chunk_timeout: float | None = None
    """Timeout in seconds between two events of a stream. None: as long as `timeout` allows between two bytes."""
    model_kwargs: dict[str, Any] = Field(default_factory=dict)
    """Request parameters that this class does not name."""

    _model_field: ClassVar[str] = "model"
    _timeout_field: ClassVar[str] = "timeout"
    """What the class calls the fields that every vendor's has."""
    _wire_names: ClassVar[Mapping[str, str]] = {}
    """The fields that are sent, by the parameter that each becomes. None and an empty list are not sent."""
    _synonyms: ClassVar[Mapping[str, str]] = {}
    """The wire's names of parameters, by other names that a call or `model_kwargs` may use for them."""
    _client_keywords: ClassVar[frozenset[str]] = frozenset({"extra_headers", "extra_query", "extra_body", "timeout", "stream_usage"})
    """Keywords of a call that are no parameters of its request."""

    @abstractmethod
    def _request_params(self, stop: list[str] | None, kwargs: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
        """All parameters of one request, in the wire's names. Keywords of the call go before the constructor's; None means: do not send.

        Args:
            stop: The call's stop sequences.
            kwargs: The call's keywords, `tools` and `tool_choice` among them; names that are not known go to the wire as they are.
            stream: Whether a stream is asked for.
        """

    def _default_params(self) -> dict[str, Any]:
        """The parameters that the constructor sets, in the wire's names."""
        return {"model": self._wire_model, **self._field_params(), **self._renamed(self.model_kwargs)}

    def _field_params(self) -> dict[str, Any]:
        """The parameters that fields set, in the wire's names."""
        fields = {wire: getattr(self, name) for name, wire in self._wire_names.items()}
        return {name: value for name, value in fields.items() if value is not None and value != []}

    def _call_keywords(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters that the keywords of a call set, in the wire's names."""
        return self._renamed({name: value for name, value in kwargs.items() if name not in self._client_keywords})

    def _renamed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters under the wire's names."""
        return {self._synonyms.get(name, name): value for name, value in params.items()}

    def _extra_body(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of a request's JSON that win over everything else: the constructor's and the call's."""
        return {**(getattr(self, "extra_body", None) or {}), **(kwargs.get("extra_body") or {})}

    def _request_options(
        self, kwargs: Mapping[str, Any], *, stream: bool, headers: Mapping[str, Any] = {}, query: Mapping[str, Any] = {}
    ) -> dict[str, Any]:
        """What the HTTP client is told with one request: `headers`, `params` and `timeout`, each where there is anything to say.

        Args:
            kwargs: The call's keywords; its `extra_headers` and `extra_query` win.
            stream: Whether a stream is asked for.
            headers: Headers of this request, besides those of every request, which the client has.
            query: Query parameters of this request.
        """
        options = {
            "headers": SecretDict({**headers, **extra_headers(kwargs)}),
            "params": SecretDict({**query, **(kwargs.get("extra_query") or {})}),
            "timeout": self._client_timeout(kwargs, self.stream_chunk_timeout if stream else None),
        }
        return {name: value for name, value in options.items() if value not in (None, {})}

    def _client_timeout(self, kwargs: Mapping[str, Any], idle_timeout: float | None) -> Any:
        """The timeout of a request, as the client takes it; None leaves it to the client."""
        return request_timeout(self._error_mapping.sdk, self._timeout(kwargs), idle_timeout)

    @property
    def _wire_model(self) -> str:
        """What requests call the model."""
        return str(getattr(self, self._model_field))

    def _timeout(self, kwargs: Mapping[str, Any]) -> Any:
        """The timeout that a call or the constructor says."""
        return kwargs.get("timeout") or getattr(self, self._timeout_field)

    def _idle_timeout(self, kwargs: Mapping[str, Any]) -> float | None:
        """Seconds that may pass between two events of a reply; None for any time."""
        return self.stream_chunk_timeout or read_timeout(self._timeout(kwargs))
