"""The policies of tools: timeouts, retries, caches, output limits, exclusive execution.

`ToolPolicy` is one flat record. What it leaves open (None), the next one says: of a tool's own policies that of a call goes first, then the
executor's, then the model's; after them come the default policies, in the same order.
"""

import copy
import hashlib
import json
import logging
import math
import os
import threading
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self, cast
from weakref import WeakValueDictionary

from langchain_core.messages import ToolMessage

from ..errors import ConfigurationError
from ..messages.calls import ToolCallRecord
from ..retry import RetryPolicy, RetryStrategies, check_synchronous, checked_retry
from .names import tool_keys
from .results import ToolCallResult

if TYPE_CHECKING:
    from tenacity import BaseRetrying


_MIN_OUTPUT = 200
"""The minimum of `max_output`, which leaves room for the note about the omitted text."""


@dataclass(frozen=True, kw_only=True)
class ToolPolicy:
    """The policy of a tool's calls. None leaves a setting to the default policy, without effect if that has none either.

    Attributes:
        timeout: Timeout of one attempt in seconds; `math.inf`: no limit, whatever the default policy sets.
        retry: Retries of failed calls and the waits between them: a `RetryPolicy`, or tenacity's `Retrying` or `AsyncRetrying`,
            whose strategies are kept. `RetryPolicy()` where only `retry_on` is given.
        retry_on: The errors after which a call is tried again; `()` for none, whatever the default policy says. Our own timeout of an
            asynchronous tool is a `TimeoutError`; that of a synchronous one is never retried, because the tool may still be running.
            Where nobody knows what a call did, it is not repeated either: see `rerun`.
        rerun: Whether a call is tried again also where nobody knows what it did: after an `OutcomeUnknownError`, and after a timeout of a
            tool of a server (MCP), which may still be at work. None: if the tool's server says that it is idempotent or only reads.
        cache: True: calls of one run with the same arguments run once. A mutable mapping keeps the results beyond the run: one for the
            process (a dict) or on disk. False: never. Errors are not kept.
        cache_key: Called with the arguments of a call; what it returns (text, or anything that JSON can write) stands for them. Needed
            for a tool that is given more than its arguments (the messages, the configuration).
        max_output: Maximum number of characters of a result's text, at least 200. A longer one is cut to its head and tail.
        exclusive: Whether no other call of the same turn runs beside one of this tool.
        progress: Whether what a generator tool yields is reported as progress, and what it returns is the result.

    Raises:
        ConfigurationError: A value cannot work, or `retry` does not say by `retry_on` what it is for.
    """

    timeout: float | None = None
    retry: "RetryPolicy | RetryStrategies | BaseRetrying | None" = None
    retry_on: tuple[type[Exception], ...] | None = None
    rerun: bool | None = None
    cache: bool | MutableMapping[str, Any] | None = field(default=None, repr=False)
    cache_key: Callable[[Mapping[str, Any]], Any] | None = field(default=None, repr=False)
    max_output: int | None = None
    exclusive: bool | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        """Raise if a setting cannot work."""
        if self.timeout is not None:
            if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or not self.timeout > 0:
                raise ConfigurationError(f"timeout must be a positive number of seconds, or None, not {self.timeout!r}")
            object.__setattr__(self, "timeout", float(self.timeout))
        if self.retry is not None:
            object.__setattr__(self, "retry", checked_retry("retry", self.retry))
        _check("retry_on", self.retry_on, tuple, "a tuple of error types")
        for kind in self.retry_on or ():
            if not (isinstance(kind, type) and issubclass(kind, Exception)):
                raise ConfigurationError(f"retry_on must name types of errors, not {kind!r}")
        if self.retry is not None and self.retry_on is None:
            raise ConfigurationError("retry needs retry_on: the errors after which a call is tried again, such as (ConnectionError,)")
        _check("rerun", self.rerun, bool, "True or False")
        if not isinstance(self.cache, bool):
            checked_cache("cache", self.cache)
        if self.cache_key is not None and not callable(self.cache_key):
            raise ConfigurationError(f"cache_key must be a function of the arguments, not {type(self.cache_key).__name__}")
        _check("max_output", self.max_output, int, "a number of characters")
        if isinstance(self.max_output, bool) or (self.max_output is not None and self.max_output < _MIN_OUTPUT):
            raise ConfigurationError(f"max_output must be a whole number of at least {_MIN_OUTPUT} characters, not {self.max_output!r}")
        _check("exclusive", self.exclusive, bool, "True or False")
        _check("progress", self.progress, bool, "True or False")

    def over(self, other: "ToolPolicy | None") -> "ToolPolicy":
        """Return this policy with its unset fields taken from the other one."""
        unset = [one.name for one in fields(self) if getattr(self, one.name) is None]
        return self if other is None else replace(self, **{name: getattr(other, name) for name in unset})

    @property
    def retry_settings(self) -> RetryPolicy | RetryStrategies | None:
        """The value of `retry` as retry settings."""
        return cast("RetryPolicy | RetryStrategies | None", self.retry)

    def check_synchronous(self) -> None:
        """Raise if the retry settings have asynchronous strategies, for a call of a synchronous run.

        Raises:
            ConfigurationError: There is one.
        """
        if self.retry_settings is not None:
            check_synchronous(self.retry_settings)

    @property
    def seconds(self) -> float | None:
        """The timeout; None for no limit."""
        return None if self.timeout == math.inf else self.timeout

    @property
    def caches(self) -> bool:
        """Whether results are cached, also in an empty mapping."""
        return self.cache is not None and self.cache is not False


def checked_cache(name: str, cache: Any) -> Any:
    """Return the cache, or None; raise if it is not a mapping or the like.

    Raises:
        ConfigurationError: It cannot keep them.
    """
    keeps = isinstance(cache, MutableMapping) or (hasattr(cache, "__setitem__") and not isinstance(cache, Sequence))
    if cache is not None and not keeps:
        raise ConfigurationError(f"{name} must be a mutable mapping, not {type(cache).__name__}")
    return cache


def _check(name: str, value: Any, kind: Any, words: str) -> None:
    if value is not None and not isinstance(value, kind):
        raise ConfigurationError(f"{name} must be {words}, not {value!r}")


@dataclass(frozen=True)
class Policies:
    """The policies of several tools.

    Attributes:
        named: By tool name.
        default: For what they leave open, and for all other tools.
    """

    named: Mapping[str, ToolPolicy] = field(default_factory=dict)
    default: ToolPolicy | None = None

    @classmethod
    def read(cls, policies: Any = None, default_policy: Any = None) -> Self:
        """Return the policies as a caller gives them.

        Raises:
            ConfigurationError: They are none.
        """
        _check("policies", policies, Mapping, "a mapping of tool names to ToolPolicy")
        for name, policy in (policies or {}).items():
            if not isinstance(policy, ToolPolicy):
                raise ConfigurationError(f"policies[{name!r}] must be a ToolPolicy, not {policy!r}")
        _check("default_policy", default_policy, ToolPolicy, "a ToolPolicy")
        return cls(dict(policies or {}), default_policy)

    def over(self, other: "Policies") -> "Policies":
        """Return these policies with unset fields taken from the others."""
        named = {**other.named, **{name: policy.over(other.named.get(name)) for name, policy in self.named.items()}}
        return Policies(named, other.default if self.default is None else self.default.over(other.default))

    def for_tools(self, tools: Mapping[str, Any]) -> "Policies":
        """Return these policies by the keys of the tools that their names mean; what comes last for one tool is the nearest."""
        if self.named.keys() <= tools.keys():
            return self
        found: dict[str, ToolPolicy] = {}
        for name, policy in self.named.items():
            found |= {key: policy.over(found.get(key)) for key in tool_keys([name], tools)}
        return replace(self, named=found)

    def timeouts(self) -> dict[str, float | None]:
        """Return the tools' own timeouts in seconds, by name; None for no limit."""
        return {name: policy.seconds for name, policy in self.named.items() if policy.timeout is not None}

    def of_tools(self, names: Mapping[str, Any]) -> dict[str, ToolPolicy]:
        """Return the policy of each tool that has one with more than a timeout.

        Raises:
            ConfigurationError: A tool does not exist, or its policy has a key for a cache and no cache, or `rerun` and no `retry_on`.
        """
        unknown = self.named.keys() - names.keys()
        if unknown:
            raise ConfigurationError(f"policies names tools that do not exist: {', '.join(sorted(map(repr, unknown)))}")
        own = {name: self.named.get(name, ToolPolicy()) for name in names}
        found = {name: policy.over(self.default) for name, policy in own.items()}
        for name, policy in found.items():
            if own[name].rerun and not policy.retry_on:
                raise ConfigurationError(f"the policy of {name!r} has rerun and no retry_on, so that nothing is tried again")
            if policy.cache_key is not None and policy.cache is None:
                raise ConfigurationError(f"the policy of {name!r} has a cache_key and no cache")
        settings = {name: (one.retry_on, one.caches, one.max_output, one.exclusive, one.progress) for name, one in found.items()}
        return {name: policy for name, policy in found.items() if any(settings[name])}


# ---------------------------------------------------------------------------------------------- cache
#
# Cached results of calls, shared between equal calls that run at the same time.

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


SharedFuture = Future[SharedResult | None]
"""A running call shared by equal calls. Its result is None if it is not valid for them, so that one of them must run."""


@dataclass(eq=False, repr=False)
class CachedCall:
    """One call whose result may be cached, or in progress.

    Attributes:
        call: The call.
        mapping: Keeps the results.
        cache_key: Gives what stands for the arguments; None where they do.
        direct: Whether the tool's results go to the user.
    """

    call: ToolCallRecord
    mapping: MutableMapping[str, Any]
    cache_key: Callable[[Mapping[str, Any]], Any] | None
    direct: bool = False
    _key: str = ""
    _token: Token[Any] | None = None

    def __post_init__(self) -> None:
        self._results = _results_in(self.mapping)

    def enter(self) -> ToolCallResult | SharedFuture | None:
        """Return the cached result, or the flight to wait for. None: the caller runs the call, then leaves.

        Raises:
            ConfigurationError: The key of the call is nothing that JSON can write.
        """
        self._key = self._key or _cache_key(self.call, self.cache_key)
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
        update = {"tool_call_id": self.call.id, "name": self.call.spelling, "id": None, "content": copy.deepcopy(result.message.content)}
        message = result.message.model_copy(update=update)
        return replace(result, call=self.call, message=message, duration=0.0, executed=False, attempts=0)

    def _kept(self, found: Mapping[str, Any]) -> ToolCallResult:
        message = ToolMessage(
            content=copy.deepcopy(found["content"]),
            artifact=found.get("artifact"),
            tool_call_id=self.call.id,
            name=self.call.spelling,
        )
        return ToolCallResult(self.call, message, return_direct=self.direct, executed=False, attempts=0)


def _cache_key(call: ToolCallRecord, cache_key: Callable[[Mapping[str, Any]], Any] | None) -> str:
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
