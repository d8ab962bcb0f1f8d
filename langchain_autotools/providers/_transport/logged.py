"""Addresses of requests without user, password and query, for the HTTP libraries' logs and for errors.

They log each request with its whole address. The address of a request is replaced once its authorization has been made of its user
and password; the one that takes its place goes to the same target and is written without its query, which may hold keys.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from .bounded import EVENT_HOOKS

Hooks = Mapping[str, Sequence[Callable[..., Any]]]


@cache
def _shown_without_query(address: Hashable) -> Any:
    """Return a subclass of an HTTP library's URL class whose text omits the query."""
    base: Any = address

    class ShownWithoutQuery(base):  # type: ignore[misc]
        is_concealed = True

        def __str__(self) -> str:
            return str(super().__str__()).partition("?")[0]

        def __repr__(self) -> str:
            return f"{base.__name__}({str(self)!r})"

    return ShownWithoutQuery


def _conceal(request: Any) -> None:
    url, kind = request.url, cast("Hashable", type(request.url))
    if (url.userinfo or url.query) and not getattr(url, "is_concealed", False):
        request.url = _shown_without_query(kind)(url.copy_with(userinfo=b""))


async def _aconceal(request: Any) -> None:
    _conceal(request)


def hooks(own: Hooks | None = None, *, concealing: bool = True) -> dict[str, list[Any]]:
    """Return the event hooks of the package's own synchronous client.

    Args:
        own: The user's. They get each request as it is sent.
        concealing: Whether addresses are shown without secrets; not where the user's own transport may read them as texts.
    """
    given = own or {}
    requests = [*EVENT_HOOKS["request"], *given.get("request", ()), *([_conceal] if concealing else ())]
    return {"request": requests, "response": [*EVENT_HOOKS["response"], *given.get("response", ())]}


def async_hooks(own: Hooks | None = None, *, concealing: bool = True) -> dict[str, list[Any]]:
    """Return the event hooks of the package's own asynchronous client, like `hooks`."""
    given = own or {}
    requests = [*given.get("request", ()), *([_aconceal] if concealing else ())]
    return {"request": requests, "response": [*given.get("response", ())]}
