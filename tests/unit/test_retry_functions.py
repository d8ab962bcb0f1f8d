"""What a RetryPolicy and tenacity's own objects say about a retry besides numbers: predicates, hooks, strategies."""

import asyncio
import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import tenacity

from langchain_autotools import ChatOpenAI, ConfigurationError, RetryPolicy, ToolPolicy
from tests.unit.test_retry import Attempts, Failed, Run, both, tasks

PLACE: dict[str, Any] = {"model": "any", "base_url": "http://127.0.0.1:9", "api_key": "key"}


def is_busy(error: BaseException) -> bool:
    """Whether an error says that a server is busy."""
    return getattr(error, "is_busy", False)


@both
def test_a_predicate_forbids_retries(run: Run) -> None:
    """It is called with each error after which another attempt may be made, and with no other."""
    busy, idle, final = Failed(), Failed(), Failed(is_retryable=False)
    seen: list[BaseException] = []

    def retry_if(error: BaseException) -> bool:
        seen.append(error)
        return error is busy

    policy = RetryPolicy(attempts=9, wait_scale=0, retry_if=retry_if)
    for errors, made, asked in (([busy, idle], 2, [busy, idle]), ([busy, final], 2, [busy])):
        attempts = Attempts(*errors)
        seen.clear()
        with pytest.raises(Failed) as raised:
            run(policy, attempts)
        assert (raised.value, attempts.made, seen) == (errors[-1], made, asked)


@both
def test_a_strategy_of_tenacity_is_a_predicate_too(run: Run) -> None:
    """With its own signature."""
    attempts = Attempts(Failed(), ValueError("no"))
    policy = RetryPolicy(wait_scale=0, retry_if=tenacity.retry_if_exception_type(ValueError))
    with pytest.raises(Failed):
        run(policy, attempts)
    assert attempts.made == 1


@both
def test_a_hook_sees_each_wait(run: Run) -> None:
    """Before each wait, and neither before the first attempt nor after the last one."""
    seen: list[Any] = []

    def before_sleep(state: tenacity.RetryCallState) -> None:
        assert state.next_action is not None and state.outcome is not None
        seen.append((state.attempt_number, state.outcome.exception(), state.next_action.sleep))

    errors = [Failed(), Failed(retry_after=0.002), Failed()]
    with pytest.raises(Failed):
        run(RetryPolicy(wait_initial=0.001, jitter=0, before_sleep=before_sleep), Attempts(*errors))
    assert seen == [(1, errors[0], 0.001), (2, errors[1], 0.002)]


@both
def test_what_a_hook_raises_is_raised(run: Run) -> None:
    """Nothing is swallowed: the error of the request is its context."""
    failed = Failed()

    def before_sleep(state: tenacity.RetryCallState) -> None:
        raise RuntimeError("the hook fails")

    attempts = Attempts(failed)
    with pytest.raises(RuntimeError, match="the hook fails") as raised:
        run(RetryPolicy(wait_scale=0, before_sleep=before_sleep), attempts)
    assert raised.value.__context__ is failed and attempts.made == 1


async def never(error: BaseException) -> bool:
    """An asynchronous predicate."""
    await asyncio.sleep(0)
    return False


class AsyncHook:
    """An asynchronous hook that is an object."""

    called = 0

    async def __call__(self, state: tenacity.RetryCallState) -> None:
        """Count the calls."""
        await asyncio.sleep(0)
        self.called += 1


def test_asynchronous_functions_are_awaited() -> None:
    """Predicates and hooks, in an asynchronous run."""
    hook = AsyncHook()
    assert tasks(RetryPolicy(wait_scale=0, before_sleep=hook), Attempts(Failed(), Failed())) == "done"
    assert hook.called == 2
    attempts = Attempts(Failed())
    with pytest.raises(Failed):
        tasks(RetryPolicy(wait_scale=0, retry_if=never), attempts)
    assert attempts.made == 1


@pytest.mark.parametrize(("name", "function"), [("retry_if", never), ("before_sleep", AsyncHook())])
def test_asynchronous_functions_are_refused_in_a_synchronous_run(name: str, function: Any) -> None:
    """Before the first attempt, by name."""
    attempts = Attempts(Failed())
    with pytest.raises(ConfigurationError, match=f"^{name} of retry= is asynchronous"):
        RetryPolicy(**{name: function}).call(attempts)
    assert attempts.made == 0


def test_a_function_that_returns_a_coroutine_is_refused_when_it_does() -> None:
    """It cannot be known before; the coroutine is closed."""
    attempts = Attempts(Failed())
    with pytest.raises(ConfigurationError, match="^retry_if of retry= is asynchronous"):
        RetryPolicy(wait_scale=0, retry_if=lambda error: never(error)).call(attempts)
    assert attempts.made == 1


@pytest.mark.parametrize("name", ["retry_if", "before_sleep"])
@pytest.mark.parametrize("value", [3, (ConnectionError,), ConnectionError])
def test_what_is_no_function_is_refused(name: str, value: Any) -> None:
    """A type too, which would permit everything."""
    with pytest.raises(ConfigurationError, match=f"{name} must be a function"):
        RetryPolicy(**{name: value})


# ---------------------------------------------------------------------------------------------- tenacity's objects

STOP, WAIT = tenacity.stop_after_attempt(7), tenacity.wait_fixed(1)
OBJECTS = [tenacity.Retrying, tenacity.AsyncRetrying]
REFUSED: dict[str, Any] = {
    "sleep": lambda seconds: None,
    "before": tenacity.before_log,
    "after": tenacity.after_log,
    "retry_error_cls": type("Own", (tenacity.RetryError,), {}),
    "retry_error_callback": lambda state: None,
}


@pytest.mark.parametrize("kind", OBJECTS)
@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("make", [lambda one: ChatOpenAI(**PLACE, retry=one), lambda one: ToolPolicy(retry=one, retry_on=(OSError,))])
def test_an_argument_without_effect_is_refused_by_name(kind: Any, name: str, make: Callable[[Any], Any]) -> None:
    """When the object is given, and with what there is instead."""
    with pytest.raises(ConfigurationError, match=rf"\b{name}= of tenacity's {kind.__name__} has no effect here: \w"):
        make(kind(**{name: REFUSED[name]}))


@pytest.mark.parametrize("value", [3, tenacity.retry, tenacity.stop_after_attempt(3), RetryPolicy])
def test_what_are_no_settings_of_retries_is_refused(value: Any) -> None:
    """By models and policies, in the same words."""
    for make in (lambda: ChatOpenAI(**PLACE, retry=value), lambda: ToolPolicy(retry=value, retry_on=(OSError,))):
        with pytest.raises(ConfigurationError, match="retry must be a RetryPolicy, or tenacity's Retrying or AsyncRetrying, not"):
            make()


@pytest.mark.parametrize("kind", OBJECTS)
def test_strategies_are_equal_and_shown(kind: Any) -> None:
    """What two models have of one object is equal; a copy of whatever depth has the same strategies; the repr names what was given."""
    retrying = kind(stop=STOP, wait=WAIT)
    model = ChatOpenAI(**PLACE, retry=retrying)
    assert model.retry == ChatOpenAI(**PLACE, retry=retrying).retry == ChatOpenAI(**PLACE, retry=model.retry).retry
    assert model.retry != ChatOpenAI(**PLACE, retry=kind()).retry
    assert copy.deepcopy(model).retry == model.model_copy(deep=True).retry == model.retry
    assert "stop_after_attempt" in repr(model) and "RetryStrategies(stop=" in repr(ToolPolicy(retry=retrying, retry_on=(OSError,)))
    assert ToolPolicy(retry=retrying, retry_on=(OSError,)) == ToolPolicy(retry=retrying, retry_on=(OSError,))


def test_functions_stand_in_no_repr() -> None:
    """They may hold what is secret."""
    assert "is_busy" not in repr(RetryPolicy(retry_if=is_busy))
    assert "is_busy" not in repr(ChatOpenAI(**PLACE, retry=tenacity.Retrying(before_sleep=is_busy)))


@pytest.mark.parametrize("retry", [RetryPolicy(retry_if=is_busy), tenacity.Retrying(stop=STOP, wait=WAIT, before_sleep=is_busy)])
def test_what_a_module_holds_travels(retry: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model and a policy with such settings can be pickled."""
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    for made in (ChatOpenAI(**PLACE, retry=retry), ToolPolicy(retry=retry, retry_on=(OSError,))):
        other = pickle.loads(pickle.dumps(made)).retry
        assert type(other) is type(made.retry) and other.functions.keys() == made.retry.functions.keys()
        assert is_busy in other.functions.values()


@pytest.mark.parametrize(
    "retry", [RetryPolicy(retry_if=lambda error: True), tenacity.Retrying(retry=tenacity.retry_if_exception(lambda error: True))]
)
def test_what_no_module_holds_is_refused_by_name(retry: Any) -> None:
    """By a model, which still can be copied."""
    model = ChatOpenAI(**PLACE, retry=retry)
    with pytest.raises(pickle.PicklingError, match="ChatOpenAI: retry cannot be pickled"):
        pickle.dumps(model)
    assert copy.copy(model).retry == model.retry
