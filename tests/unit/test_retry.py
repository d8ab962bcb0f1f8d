"""RetryPolicy: how often and after which waits a failed request is made again."""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langchain_autotools import ConfigurationError, RetryPolicy
from langchain_autotools.retry import is_transient, retry_after, should_retry

NOW = 1_800_000_000.0


class Failed(Exception):
    """An error that says whether another attempt may succeed."""

    def __init__(self, is_retryable: bool = True, retry_after: float | None = None) -> None:
        super().__init__("failed")
        self.is_retryable = is_retryable
        self.retry_after = retry_after


class Attempts:
    """Fails with each of the errors in turn, then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.made = 0

    def __call__(self) -> str:
        """One attempt."""
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def threads(policy: RetryPolicy, attempts: Attempts) -> str:
    """Run synchronously."""
    return policy.call(attempts)


def tasks(policy: RetryPolicy, attempts: Attempts) -> str:
    """Run asynchronously."""

    async def attempt() -> str:
        await asyncio.sleep(0)
        return attempts()

    return asyncio.run(policy.acall(attempt))


Run = Callable[[RetryPolicy, Attempts], str]
both = pytest.mark.parametrize("run", [threads, tasks])
FAST = RetryPolicy(wait_scale=0)


@both
def test_a_request_that_succeeds_is_made_once(run: Run) -> None:
    """No error, no second attempt."""
    attempts = Attempts()
    assert (run(FAST, attempts), attempts.made) == ("done", 1)


@both
@pytest.mark.parametrize("failures", [1, 2])
def test_errors_that_may_pass_are_retried(run: Run, failures: int) -> None:
    """Up to the number of attempts, an error that says it is retryable leads to another attempt."""
    attempts = Attempts(*(Failed() for _ in range(failures)))
    assert (run(FAST, attempts), attempts.made) == ("done", failures + 1)


@both
def test_the_last_error_is_raised_as_it_is(run: Run) -> None:
    """When the attempts are used up, the last attempt's own error reaches the caller."""
    errors = [Failed(), Failed(), Failed()]
    attempts = Attempts(*errors)
    with pytest.raises(Failed) as raised:
        run(FAST, attempts)
    assert raised.value is errors[2]
    assert attempts.made == 3


@both
@pytest.mark.parametrize("error", [Failed(is_retryable=False), ValueError("no"), KeyboardInterrupt(), SystemExit()])
def test_other_errors_end_it_at_once(run: Run, error: BaseException) -> None:
    """An error that says nothing of retrying, or forbids it, is raised after one attempt; so is an interruption."""
    attempts = Attempts(error)
    with pytest.raises(type(error)):
        run(FAST, attempts)
    assert attempts.made == 1


async def test_a_cancelled_attempt_is_not_repeated() -> None:
    """Cancelling the task ends it in the middle of an attempt."""
    made, waiting = [], asyncio.Event()

    async def attempt() -> None:
        made.append(1)
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(FAST.acall(attempt))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(made) == 1


@both
def test_one_attempt_means_no_retry(run: Run) -> None:
    """`max_retries=0` makes the request once."""
    attempts = Attempts(Failed())
    with pytest.raises(Failed):
        run(FAST.with_retries(0), attempts)
    assert attempts.made == 1


@both
def test_a_wait_that_is_too_long_is_the_callers(run: Run) -> None:
    """If the server asks for more than `retry_after_max`, the error is raised at once and says for how much."""
    attempts = Attempts(Failed(retry_after=61))
    with pytest.raises(Failed) as raised:
        run(FAST, attempts)
    assert (attempts.made, raised.value.retry_after) == (1, 61)


@both
def test_no_attempt_starts_after_the_timeout(run: Run) -> None:
    """A wait that would pass the policy's timeout is not begun."""
    attempts = Attempts(Failed(retry_after=30))
    with pytest.raises(Failed):
        run(RetryPolicy(timeout=10), attempts)
    assert attempts.made == 1


def test_waits_double_up_to_the_longest() -> None:
    """Without jitter the waits are wait_initial, twice that, and so on, at most wait_max."""
    policy = RetryPolicy(wait_initial=0.5, wait_max=4, jitter=0)
    assert [policy.wait(failures) for failures in range(1, 7)] == [0.5, 1, 2, 4, 4, 4]
    assert policy.wait(10_000) == 4


@given(st.integers(1, 100), st.floats(0, 1))
def test_jitter_only_shortens(failures: int, jitter: float) -> None:
    """A wait lies between (1 - jitter) and 1 times its full length."""
    full = RetryPolicy(jitter=0).wait(failures)
    wait = RetryPolicy(jitter=jitter).wait(failures)
    assert full * (1 - jitter) <= wait <= full


def test_the_servers_wish_goes_before_the_own_waits() -> None:
    """`Retry-After` replaces the computed wait, jitter apart."""
    assert RetryPolicy(wait_max=1).wait(1, 17.5) == 17.5
    assert FAST.wait(1, 17.5) == 0


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({"attempts": 0}, "attempts"), ({"jitter": 2}, "jitter"), ({"wait_max": -1}, "wait_max"), ({"wait_scale": -1}, "wait_scale")],
)
def test_numbers_that_cannot_work_are_refused(arguments: dict[str, Any], named: str) -> None:
    """The error names the argument."""
    with pytest.raises(ConfigurationError, match=named):
        RetryPolicy(**arguments)
    with pytest.raises(ConfigurationError, match="max_retries"):
        RetryPolicy().with_retries(-1)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after": formatdate(NOW + 30, usegmt=True)}, 30),
        ({"retry-after": formatdate(NOW - 30, usegmt=True)}, None),
        ({"retry-after": "0"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "in a while"}, None),
        ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
        ({"retry-after": "Fri, 31 Dec 99999 23:59:59 GMT"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    """Milliseconds, seconds and HTTP dates are read; what makes no sense counts as nothing said."""
    assert retry_after(headers, now=lambda: NOW) == seconds


@given(st.text())
def test_no_header_text_breaks_the_reading(text: str) -> None:
    """Any text gives a positive number or None."""
    said = retry_after({"retry-after": text, "retry-after-ms": text})
    assert said is None or said > 0


def test_the_servers_word_on_retrying() -> None:
    """`x-should-retry` is true, false, or says nothing."""
    assert [should_retry({"x-should-retry": word}) for word in ("true", " False", "maybe")] == [True, False, None]
    assert should_retry({}) is None


def test_transient_statuses() -> None:
    """408, 409, 425, 429 and every 5xx may pass; other statuses do not."""
    assert [status for status in (200, 400, 401, 404, 408, 409, 422, 425, 429, 500, 503, 529) if is_transient(status)] == [
        408,
        409,
        425,
        429,
        500,
        503,
        529,
    ]
