"""What each request of a run says besides its messages, and what of a model's fields and a call's keywords makes a run's settings."""

from typing import Any

import pytest
from langchain_core.tools import tool

from langchain_autotools import ConfigurationError, ToolExecutor
from langchain_autotools.run.settings import RunSettings, run_settings, toolbox_of
from langchain_autotools.run.turn_wrappers import WireForm
from langchain_autotools.testing import ScriptedChatModel
from langchain_autotools.turn.tools import ToolChoice


@tool
def f() -> str:
    """Do something."""
    return "1"


@tool
def g() -> str:
    """Do something else."""
    return "2"


DECLARED = [{"name": "f"}]


def test_a_request_without_tools_and_choice_says_nothing() -> None:
    """No keyword is made up."""
    assert WireForm().keywords("requested") == WireForm().keywords("auto") == {}
    assert WireForm(tools=DECLARED).keywords("requested") == {"tools": DECLARED}


@pytest.mark.parametrize(("choice", "said"), [("requested", "any"), ("auto", "rest"), ("none", "none")])
def test_each_request_has_its_choice(choice: Any, said: str) -> None:
    """The first what was asked, later ones what stays of it, the last what leads to an end."""
    form = WireForm(tools=DECLARED, choice=ToolChoice("any", "rest"))
    assert form.keywords(choice) == {"tools": DECLARED, "tool_choice": said}


def test_a_choice_that_is_over_is_said_to_be() -> None:
    """A model's own default choice must not come back in place of the one that was asked for."""
    assert WireForm(choice=ToolChoice("any", None)).keywords("auto") == {"tool_choice": None}


def settings_of(model: ScriptedChatModel, **keywords: Any) -> RunSettings:
    """The settings of one call."""
    return run_settings(model, toolbox_of(model), keywords)


def names(settings: RunSettings) -> list[str]:
    """The names of the declared tools."""
    return [declared["function"]["name"] if "function" in declared else declared["name"] for declared in settings.request.form.tools]


def test_own_tools_come_first_and_a_bound_one_wins() -> None:
    """A name in both is the caller's, declared once."""
    settings = settings_of(ScriptedChatModel(tools=[f, g]), tools=[g])
    assert names(settings) == ["f", "g"]
    assert settings.plan.caller_tools == {"g"}
    assert names(settings_of(ScriptedChatModel(tools=[f]))) == ["f"]


def test_without_bound_tools_nobody_must_end_the_run() -> None:
    """A forced call of an own tool is asked for once."""
    settings = settings_of(ScriptedChatModel(tools=[f]), tool_choice="any")
    assert (list(settings.plan.ends), settings.request.form.choice.lasting, settings.request.form.last_choice) == ([], None, "none")
    assert settings.request.form.choice.forced


def test_a_forced_call_of_a_bound_tool_ends_the_run() -> None:
    """It is asked for until it comes; at the end by its name, of several by the word for any."""
    one = settings_of(ScriptedChatModel(tools=[f]), tools=[g], tool_choice="any")
    assert (list(one.plan.ends), one.request.form.choice.lasting) == (["g"], one.request.form.choice.asked)
    assert one.request.form.last_choice != one.request.form.choice.lasting
    two = settings_of(ScriptedChatModel(tools=[f]), tools=[f, g], tool_choice="any")
    assert (sorted(two.plan.ends), two.request.form.last_choice) == (["f", "g"], two.request.form.choice.lasting)
    free = settings_of(ScriptedChatModel(tools=[f]), tools=[g])
    assert (list(free.plan.ends), free.request.form.choice.lasting) == ([], None)


@pytest.mark.parametrize(
    ("keywords", "parsed"),
    [
        ({}, False),
        ({"response_format": {"type": "text"}}, False),
        ({"response_format": {"type": "json_object"}}, True),
        ({"response_format": "json"}, True),
        ({"ls_structured_output_format": {}}, True),
    ],
)
def test_text_is_withheld_where_a_parser_reads_it(keywords: dict[str, Any], parsed: bool) -> None:
    """Structured output, or any format but text."""
    assert settings_of(ScriptedChatModel(), **keywords).last_text_only is parsed


def test_polling_tools_must_be_there() -> None:
    """A name that no tool has is a mistake; of a model without tools nothing is known."""
    assert settings_of(ScriptedChatModel(tools=[f]), polling_tools=["f"]).plan.limits.polling_tools == ["f"]
    assert settings_of(ScriptedChatModel(), polling_tools=["f"]).plan.limits.polling_tools == ["f"]
    with pytest.raises(ConfigurationError, match="polling_tools names tools that do not exist: 'x'"):
        settings_of(ScriptedChatModel(tools=[f]), polling_tools=["f", "x"])


@pytest.mark.parametrize("tools", ["f", 3])
def test_tools_must_be_tools(tools: Any) -> None:
    """One text is no list of tools."""
    model = ScriptedChatModel()
    model.__dict__["tools"] = tools
    with pytest.raises(ConfigurationError, match="tools must be a list, a mapping or a ToolExecutor"):
        toolbox_of(model)


def test_tools_in_every_form() -> None:
    """A list, a mapping, an executor, none."""
    for tools, executed in (([f], ["f"]), ({"f": f}, ["f"]), (ToolExecutor([f]), ["f"]), (None, [])):
        assert list(toolbox_of(ScriptedChatModel(tools=tools)).executor.tools) == executed
