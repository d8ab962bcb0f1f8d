"""Cached results of calls, shared between equal calls that run at the same time."""

import copy
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import Future
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakValueDictionary

from langchain_core.messages import ToolMessage

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from .results import ToolCallResult

_logger = logging.getLogger("langchain_autotools")


@dataclass(frozen=True)
class SharedResult:
    """The result of a call that ran for all equal calls made meanwhile.

    Attributes:
        result: Its result.
        timeout: The seconds it had, where these were too few; else None.
    """

    result: ToolCallResult
    timeout: float | None = None

    def is_for(self, timeout: float | None) -> bool:
        """Whether the result is valid for a call with this timeout (None: none): one with a longer timeout may succeed."""
        return self.timeout is None or (timeout is not None and timeout <= self.timeout)


SharedFuture = Future[SharedResult | None]
"""A running call shared by equal calls. Its result is None if it is not valid for them, so that one of them must run."""


class CachedCall:
    """One call whose result may be cached, or in progress.

    Args:
        call: The call.
        mapping: Keeps the results.
        cache_key: Gives what stands for the arguments; None where they do.
        direct: Whether the tool's results go to the user.
    """

    def __init__(
        self,
        call: ToolCallRecord,
        mapping: MutableMapping[str, Any],
        cache_key: Callable[[Mapping[str, Any]], Any] | None,
        *,
        direct: bool = False,
    ) -> None:
        self._call = call
        self._results = _results_in(mapping)
        self._cache_key = cache_key
        self._direct = direct
        self._key = ""
        self._token: Token[Any] | None = None

    def enter(self) -> ToolCallResult | SharedFuture | None:
        """Return the cached result, or the flight to wait for. None: the caller runs the call, then leaves.

        Raises:
            ConfigurationError: The key of the call is nothing that JSON can write.
        """
        self._key = self._key or _key(self._call, self._cache_key)
        led, this = _led.get(), (id(self._results), self._key)
        inside = this in led  # this very call is being run around this one: waiting for that would never end
        found = self._results.read(self._key) if inside else self._results.enter(self._key)
        if found is None and not inside:
            self._token = _led.set(led | {this})
        return self._kept(found) if isinstance(found, Mapping) else found

    def leave(self, landing: SharedResult | None) -> None:
        """End the flight with the call's outcome; None if it is not valid for others."""
        leads, self._token = self._token, None
        result = None if landing is None else landing.result
        if result is not None and result.message.status != "error" and not result.commands:
            self._results.write(self._key, result)
        if leads is not None:
            _led.reset(leads)
            self._results.leave(self._key, landing)

    def landed(self, result: ToolCallResult) -> ToolCallResult:
        """Return the result of a flight as this call's own."""
        update = {"tool_call_id": self._call.id, "name": self._call.spelling, "id": None, "content": copy.deepcopy(result.message.content)}
        message = result.message.model_copy(update=update)
        return replace(result, call=self._call, message=message, duration=0.0, executed=False, attempts=0)

    def _kept(self, found: Mapping[str, Any]) -> ToolCallResult:
        message = ToolMessage(
            content=copy.deepcopy(found["content"]),
            artifact=found.get("artifact"),
            tool_call_id=self._call.id,
            name=self._call.spelling,
        )
        return ToolCallResult(self._call, message, return_direct=self._direct, executed=False, attempts=0)


def _key(call: ToolCallRecord, cache_key: Callable[[Mapping[str, Any]], Any] | None) -> str:
    """Return the cache key of a call, equal for equal arguments however they were written."""
    args = call.args or {}
    key = args if cache_key is None else cache_key(args)
    try:
        text = json.dumps(key, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(
            f"the cache_key of {call.name!r} must be something that JSON can write, not {type(key).__name__}"
        ) from error
    return f"{call.name}:{hashlib.sha256(text.encode()).hexdigest()}"


# ---------------------------------------------------------------------------------------------- one for all who share a mapping


class _Results:
    """The results in a mapping, and the flights of its users. Shared by threads, event loops and executors."""

    def __init__(self, mapping: MutableMapping[str, Any]) -> None:
        self._mapping = mapping
        self.begin_anew()

    def begin_anew(self) -> None:
        """Reset the state in a forked child process, which has none of its parent's threads but maybe a held lock."""
        self._lock = threading.RLock()
        self._flights: dict[str, SharedFuture] = {}

    def enter(self, key: str) -> Mapping[str, Any] | SharedFuture | None:
        """Return the cached result, or the flight to wait for; None: a flight has begun."""
        with self._lock:
            found = self._flights.get(key) or self.read(key)
            if found is None:
                self._flights[key] = Future()
            return found

    def leave(self, key: str, landing: SharedResult | None) -> None:
        """End a flight."""
        with self._lock:
            flight = self._flights.pop(key, None)
        if flight is not None:
            flight.set_result(landing)

    def read(self, key: str) -> Mapping[str, Any] | None:
        """Return the cached value; None if there is none, or an invalid one."""
        try:
            with self._lock:
                found = self._mapping[key]
        except KeyError:
            return None
        except Exception as error:
            _logger.warning("the cache of a tool cannot be read (%s): the tool runs", type(error).__name__)
            return None
        if isinstance(found, Mapping) and "content" in found:
            return found
        _logger.warning("the cache of a tool holds something that is no result: the tool runs")
        return None

    def write(self, key: str, result: ToolCallResult) -> None:
        """Cache a result. A failure is only logged, because the call has run and its result must not be lost."""
        kept = {"content": copy.deepcopy(result.message.content), "artifact": result.message.artifact}
        try:
            with self._lock:
                self._mapping[key] = kept
        except Exception as error:
            _logger.warning("the result of a tool cannot be kept in its cache (%s)", type(error).__name__)


_lock = threading.Lock()
_known: WeakValueDictionary[int, _Results] = WeakValueDictionary()
_led: ContextVar[frozenset[tuple[int, str]]] = ContextVar("autotools_led_flights", default=frozenset())


def _results_in(mapping: MutableMapping[str, Any]) -> _Results:
    """Return the single record of a mapping. The record keeps the mapping alive, so its id stays unique."""
    with _lock:
        results = _known.get(id(mapping))
        if results is None:
            results = _known[id(mapping)] = _Results(mapping)
        return results


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for results in list(_known.values()):
        results.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
