"""`ToolPolicy`: what it may say, and what it leaves open."""

import pickle
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolCallId

from langchain_autotools import ConfigurationError, RetryPolicy, ToolExecutor, ToolPolicy
from langchain_autotools.executor.policies import Policies
from langchain_autotools.testing import ScriptedChatModel

ONCE = RetryPolicy(attempts=2, wait_scale=0)


def look(place: str) -> str:
    """Look at a place."""
    return place


def configured(place: str, config: RunnableConfig) -> str:
    """Depends on the configuration."""
    return place + str(config)


def marked(place: str, call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Depends on the call."""
    return place + call_id


BAD: list[tuple[dict[str, Any], str]] = [
    ({"timeout": 0}, "timeout must be a positive number"),
    ({"timeout": True}, "timeout must be a positive number"),
    ({"retry": 3, "retry_on": (OSError,)}, "retry must be a RetryPolicy"),
    ({"retry": RetryPolicy()}, "retry needs retry_on"),
    ({"retry_on": OSError}, "retry_on must be a tuple"),
    ({"retry_on": ("OSError",)}, "retry_on must name types of errors"),
    ({"retry_on": (KeyboardInterrupt,)}, "retry_on must name types of errors"),
    ({"cache": 1}, "cache must be a mutable mapping, not int"),
    ({"cache": []}, "cache must be a mutable mapping, not list"),
    ({"cache": True, "cache_key": "place"}, "cache_key must be a function"),
    ({"max_output": 199}, "max_output must be a whole number of at least 200"),
    ({"max_output": True}, "max_output must be a whole number"),
    ({"max_output": 1e4}, "max_output must be a number of characters"),
    ({"exclusive": 1}, "exclusive must be True or False"),
    ({"progress": "yes"}, "progress must be True or False"),
]


@pytest.mark.parametrize(("values", "words"), BAD, ids=str)
def test_a_policy_that_cannot_work_is_refused_by_name(values: dict[str, Any], words: str) -> None:
    """The error says which field is wrong, and what it must be."""
    with pytest.raises(ConfigurationError, match=words):
        ToolPolicy(**values)


def test_a_policy_never_shows_what_its_cache_holds() -> None:
    """Results of tools are in no repr."""
    assert "secret" not in repr(ToolPolicy(cache={"key": "secret"}))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"policies": {"lok": ToolPolicy()}}, "policies names tools that do not exist: 'lok'"),
    ({"policies": {"look": 5}}, r"policies\['look'\] must be a ToolPolicy"),
    ({"policies": [ToolPolicy()]}, "policies must be a mapping"),
    ({"default_policy": {"timeout": 1}}, "default_policy must be a ToolPolicy"),
    ({"policies": {"look": ToolPolicy(cache_key=str)}}, "has a cache_key and no cache"),
]


@pytest.mark.parametrize(("options", "words"), WRONG, ids=str)
def test_what_is_no_policy_of_a_tool_is_refused(options: dict[str, Any], words: str) -> None:
    """By the executor and by the model, when they are made, and by a call."""
    with pytest.raises(ConfigurationError, match=words):
        ToolExecutor([look], **options)
    with pytest.raises(ValueError, match=words):
        ScriptedChatModel(replies=[], tools=[look], **options)
    with pytest.raises(ConfigurationError, match=words):
        ScriptedChatModel(replies=[], tools=[look]).invoke("Hi", **options)


@pytest.mark.parametrize("tool", [configured, marked])
def test_the_cache_of_a_tool_with_context_needs_a_key(tool: Any) -> None:
    """The same arguments may mean something else elsewhere: a default policy does not pass over that either."""
    with pytest.raises(ConfigurationError, match=f"{tool.__name__}.*its cache needs a cache_key"):
        ToolExecutor([look, tool], default_policy=ToolPolicy(cache=True))
    ToolExecutor([look, tool], policies={tool.__name__: ToolPolicy(cache=False)}, default_policy=ToolPolicy(cache=True))
    ToolExecutor([tool], default_policy=ToolPolicy(cache=True, cache_key=lambda args: args["place"]))


def test_what_a_policy_leaves_open_the_next_one_says() -> None:
    """Field by field: what is None says nothing, what is False does."""
    own = ToolPolicy(cache=False, max_output=300)
    whole = own.over(ToolPolicy(cache=True, exclusive=True, max_output=900, retry=ONCE, retry_on=(OSError,)))
    assert (whole.cache, whole.max_output, whole.exclusive, whole.retry, whole.retry_on) == (False, 300, True, ONCE, (OSError,))


def test_a_model_without_tools_may_have_policies() -> None:
    """They wait for the tools that a copy of it is given."""
    assert ScriptedChatModel(replies=["Hello."], policies={"look": ToolPolicy(max_output=300)}).invoke("Hi").text == "Hello."


def test_policies_travel_with_an_executor_and_a_model() -> None:
    """Through a pickle, where they can."""
    policy = ToolPolicy(retry_on=(OSError,), cache={}, max_output=300)
    executor = pickle.loads(pickle.dumps(ToolExecutor([look], policies={"look": policy})))
    assert executor.policies == Policies({"look": policy})
    model = pickle.loads(pickle.dumps(ScriptedChatModel(replies=[], tools=[look], policies={"look": policy})))
    assert model.policies == {"look": policy}
