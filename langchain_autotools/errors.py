"""The package's errors, with the translation of foreign ones.

```
AutoToolsError
 ├─ ConfigurationError        (ValueError)  an argument that cannot work; says what would
 │   └─ DecisionsError                      decisions about calls that cannot be carried out; `.problems` says which and why
 ├─ LoginError                              a login at an MCP server that failed, or a token that could not be renewed
 │   └─ LoginNeededError                    a human has to log in at an MCP server; `.url` says where
 ├─ UnsupportedFeatureError   (ValueError)  a message or tool that this wire cannot carry
 ├─ StreamError               (ModelError)  the bytes of a reply broke its protocol
 ├─ CallsPendingError         (OutputParserException)  calls wait for approval where a run's output was to be parsed
 ├─ AlreadyResumedError                     every call that was to run has been taken by another run
 ├─ OutcomeUnknownError       (ToolException)  of a tool: nobody knows what its call did; defined in `executor`
 ├─ EventsInterruptedError                  the process that read kept events shuts down; a reader that comes back misses nothing
 └─ LimitReachedError                       a run hit a limit and `on_limit="raise"`; `.stop_reason` says which
```

What a vendor answers (rate limits, refused keys, ...) is raised as the vendor SDK's own error that is also one of
`langchain_core.exceptions`, made under `providers/`.
"""

import sysconfig
from collections.abc import Callable, Iterable, Mapping
from traceback import StackSummary, format_exception, format_exception_only, walk_tb
from types import FrameType, TracebackType
from typing import Any, Final, NamedTuple

from langchain_core.exceptions import ModelError, OutputParserException

__all__ = [
    "AlreadyResumedError",
    "AutoToolsError",
    "CallsPendingError",
    "ConfigurationError",
    "DecisionProblem",
    "DecisionsError",
    "EventsInterruptedError",
    "LimitReachedError",
    "LoginError",
    "LoginNeededError",
    "StreamError",
    "UnsupportedFeatureError",
    "concise",
    "translated",
]

_INSTALLED: Final = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_OF_INPUT: Final = "_convert_input"  # core's method that reads what a model is given
_INTERNAL: Final = frozenset({__name__.partition(".")[0], "langchain_core", "contextlib"})


def reduced(error: Any) -> tuple[Any, ...]:
    """Return the `__reduce__` value of an error whose constructor takes other arguments than its text."""
    return _restored, (type(error), error.args, dict(vars(error)))


def _restored(cls: type[Any], args: tuple[Any, ...], fields: dict[str, Any]) -> Any:
    error = cls.__new__(cls, *args)
    error.args = args
    vars(error).update(fields)
    return error


class BriefInNotebooks(Exception):
    """An error that IPython shows with only the user's own lines and the text."""

    def _render_traceback_(self) -> list[str]:
        """Return the lines to show; IPython calls this method."""
        frames = [(frame, line) for frame, line in walk_tb(self.__traceback__) if _is_users(frame)]
        if not frames or any(one.__traceback__ for one in _with_causes(self.__cause__)):
            return format_exception(self)
        return [*StackSummary.extract(iter(frames)).format(), *format_exception_only(self)]


class AutoToolsError(BriefInNotebooks):
    """Base class of every error that this package defines."""

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)


class ConfigurationError(AutoToolsError, ValueError):
    """Raised for an argument that cannot work. The text names the argument and what would work."""


class DecisionProblem(NamedTuple):
    """The reason why a decision about a call cannot be carried out, as plain data.

    Attributes:
        uuid: The `uuid` of the pending call; empty where it has none.
        id: The id of the call; empty where the problem is not about one call.
        words: What is wrong, for the person who decides.
    """

    uuid: str
    id: str
    words: str


class DecisionsError(ConfigurationError):
    """Raised for decisions about pending calls that cannot be carried out. Nothing has run, and the calls wait as before.

    Attributes:
        problems: All that is wrong with the decisions, each once; what `check` returns.
    """

    def __init__(self, message: str, problems: Iterable[DecisionProblem]) -> None:
        self.problems = list(dict.fromkeys(problems))
        super().__init__(message, self.problems)

    def __str__(self) -> str:
        return str(self.args[0])


class LoginError(AutoToolsError):  # no `ValueError`: pydantic would put an error of its own in its place where a model is made
    """Raised when a login at an MCP server fails, or when its access token cannot be renewed. The call that needed it has not run."""


class LoginNeededError(LoginError):
    """Raised when a human has to log in at an MCP server. The call that needed it has not run.

    Attributes:
        url: The page on which they log in; empty where no redirect URI is known: `login_url(redirect_uri)` of the server returns it then.
    """

    def __init__(self, message: str, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class UnsupportedFeatureError(AutoToolsError, ValueError):
    """Raised for a message, content block or tool that the wire cannot carry."""


class StreamError(AutoToolsError, ModelError):
    """Raised when the bytes of a reply violate their protocol: no events, no JSON, or a premature end."""

    is_retryable = True


class CallsPendingError(AutoToolsError, OutputParserException):
    """Raised when a run with `with_structured_output` ends with calls that wait for approval instead of its output.

    `new_messages(error)` brings the run's messages; append them to the history, show its `pending_calls`, and go on with
    `invoke(history, resume=decisions)` of what `with_structured_output` returned.
    """


class AlreadyResumedError(AutoToolsError):
    """Raised when another run carries out decisions about the same calls, has carried them out, or has taken over what this one did.

    If nothing ran here, no message is in `new_messages(error)`, and the history is as it was. Where a store only takes keys it may not be
    known what became of the other run: give the calls their results by hand then (`PendingCall.respond`), or reject them.
    """


class EventsInterruptedError(AutoToolsError):
    """Raised when reading of stored events is interrupted because the reading process shuts down.

    Nothing is wrong with the run: its events are kept, and whoever reads on after the last `position` misses nothing. Server-sent events
    end without a last frame, so that a browser comes back by itself.
    """

    is_retryable = True


class LimitReachedError(AutoToolsError):
    """Raised when a run reaches one of its limits with `on_limit="raise"`.

    Attributes:
        stop_reason: which limit it was, one of `StopReason`.
    """

    def __init__(self, message: str, stop_reason: str) -> None:
        super().__init__(message, stop_reason)
        self.stop_reason = stop_reason

    def __str__(self) -> str:
        return str(self.args[0])


def translated(error: BaseException, table: Mapping[type[BaseException], Callable[[BaseException], BaseException]]) -> BaseException:
    """Return what a table makes of an error, by the nearest class of the error's MRO; the error itself where the table has none.

    An entry may return the error itself, too. Else the traceback of the original is cut, which is kept as the cause of the new one.
    """
    translate = next((table[cls] for cls in type(error).__mro__ if cls in table), None)
    new = error if translate is None else translate(error)
    for one in _with_causes(error) if new is not error else ():  # a refused connection has 80 lines of library code
        if not any(_is_users(frame) for frame, _ in walk_tb(one.__traceback__)):  # such as an HTTP transport of their own
            one.__traceback__ = None
    return new


def _with_causes(error: BaseException | None) -> list[BaseException]:
    """Return an error and its causes, each once even if they form a cycle."""
    found: list[BaseException] = []
    while error is not None and error not in found:
        found.append(error)
        error = error.__cause__ or error.__context__
    return found


def _is_users(frame: FrameType) -> bool:
    """Whether a frame's code is the user's: not this package's, not installed, not Python's own."""
    path = frame.f_code.co_filename
    return not (_is_internal(frame) or path.startswith(_INSTALLED) or path.startswith("<frozen "))


class concise:
    """A context manager that cuts the traceback of self-explanatory errors of its body to the caller's line.

    Such errors are those of an argument, a content block or an input that cannot work, and of a vendor's server. It stays whole where
    code of anybody else is in between.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: TracebackType | None) -> None:
        if trace is None:
            return
        frames = [frame for frame, _ in walk_tb(trace)]
        is_plain = isinstance(error, ConfigurationError | ModelError | UnsupportedFeatureError) or frames[-1].f_code.co_name == _OF_INPUT
        if is_plain and all(map(_is_internal, frames)):
            trace.tb_next = None


def _is_internal(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _INTERNAL
