"""Environment variables and pickling of vendors' chat models: a pickle holds everything but secrets and connections.

A pickle that would leave anything else out in silence is refused: keys apart, a copy that is made here must be as the model is.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import SecretStr

from ...pickling import differing, findable, left_out, refuse
from .._transport.secrets import has_password, portable, secret_names, secret_values, with_user
from .parameters import Environment
from .structured_output import StructuredChatModel


class PortableChatModel(StructuredChatModel, defer_build=True):
    """A vendor's chat model that can be copied and pickled without secrets."""

    _environment: ClassVar[Environment] = Environment()
    """The environment variables of missing constructor arguments."""
    _key_field: ClassVar[str] = "api_key"
    _url_field: ClassVar[str] = "base_url"
    _proxy_field: ClassVar[str] = ""
    _headers_field: ClassVar[str] = "default_headers"
    """The names of the class's fields for the key, the base URL, the proxy and the headers; "": the class has no such field."""

    _uncopied: ClassVar[tuple[str, ...]] = ("http_client", "http_async_client")
    """Fields whose objects a copy shares because they hold locks and connections."""

    def _variable(self, what: str) -> str | None:
        """Return the environment's key, base URL, organization or proxy."""
        return self._environment.read(what)

    @property
    def _proxy(self) -> str | None:
        """Return the URL of the proxy."""
        proxy: str | None = getattr(self, self._proxy_field) if self._proxy_field else None
        return proxy

    @property
    def _headers(self) -> Mapping[str, str]:
        """Return the headers of every request."""
        return getattr(self, self._headers_field) or {}

    def _secrets(self) -> list[str]:
        key = getattr(self, self._key_field)
        text = key.get_secret_value() if isinstance(key, SecretStr) else key
        url: str | None = getattr(self, self._url_field)
        return [*([text] if text and isinstance(text, str) else []), *secret_values(self._headers, self._proxy, url)]

    @property
    def _keys(self) -> tuple[str, ...]:
        """The fields that every process reads from its own environment."""
        return (self._key_field,)

    def _portable_fields(self) -> dict[str, Any]:
        """Return replacements for the fields that hold secrets, clients and connections, for a pickle."""
        hidden = {**dict.fromkeys(self._uncopied), self._key_field: findable(getattr(self, self._key_field))}
        return {**hidden, self._proxy_field: None if has_password(self._proxy) else self._proxy} if self._proxy_field else hidden

    def __getstate__(self) -> dict[Any, Any]:
        """Return the state without secrets, clients and connections: an unpickled model takes its keys from the environment.

        Raises:
            PicklingError: Something else is secret, or cannot be pickled, and the environment does not say it.
        """
        state = self._without_secrets(super().__getstate__())
        problem = self._what_is_lost(state)
        if problem is not None:
            state = {}  # it may hold secrets of declared tools: a traceback that shows local variables shows none
            refuse(problem)
        return state

    def _without_secrets(self, state: dict[Any, Any]) -> dict[Any, Any]:
        fields = {name: portable(name, value) for name, value in state["__dict__"].items()}
        return {**state, "__dict__": {**fields, **self._portable_fields()}}

    def _what_is_lost(self, state: dict[Any, Any]) -> str | None:
        """Describe the settings, apart from keys, that a copy made here would lack, and the remedy; None if none is lost."""
        fields = state["__dict__"]
        other = type(self).__new__(type(self))
        other.__setstate__({**state, "__dict__": {**fields}, "__pydantic_fields_set__": set(state["__pydantic_fields_set__"])})
        own = {name: value for name, value in self.__dict__.items() if name in fields and name not in ("tools", "approval_key")}
        changed = {name: value for name, value in own.items() if fields[name] != value and (name not in self._keys or callable(value))}
        lost = [one for name, value in changed.items() for one in differing(name, value, getattr(other, name))]
        declared = [tool for tool in self.tools if isinstance(tool, Mapping)] if isinstance(self.tools, Sequence) else []
        remote = secret_names({"tools": declared, "mcp_servers": getattr(self, "mcp_servers", None)})
        return left_out(type(self).__name__, [*lost, *remote], self._advice(lost))

    def _advice(self, lost: Sequence[str]) -> str | None:
        """Return where a copy finds the settings that a pickle does not hold."""
        places = {self._url_field: self._environment.base_url, self._proxy_field: self._environment.proxy}
        if not lost or not all(places.get(name) for name in lost):
            return None
        found = " and ".join(f"{name} from {' or '.join(places[name])}" for name in lost)
        return f"no pickle holds a secret, and a copy takes {found}: set that in both processes"

    def _secret_names(self, kwargs: Mapping[str, Any]) -> list[str]:
        return secret_names(kwargs)

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        key = self._variable("key")
        if getattr(self, self._key_field) is None:
            setattr(self, self._key_field, SecretStr(key) if key else None)
        setattr(self, self._url_field, with_user(getattr(self, self._url_field), self._variable("base_url")))
        if self._proxy_field:
            setattr(self, self._proxy_field, self._proxy or self._variable("proxy"))

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Return a deep copy that shares the HTTP clients."""
        held = [getattr(self, name, None) for name in self._uncopied]
        return super().__deepcopy__({**(memo or {}), **{id(value): value for value in held if value is not None}})
