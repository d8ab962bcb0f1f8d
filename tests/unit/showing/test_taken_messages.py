"""A message of the user that a resumed run took (`message=`), wherever a run is shown: between the results and the reply."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_autotools import events, new_messages, pending_calls
from langchain_autotools.encoders.finished_runs import events_of
from langchain_autotools.messages.display import markdown_of
from langchain_autotools.showing import GradioChat, show
from langchain_autotools.showing.page import part_text
from langchain_autotools.showing.view_model import ViewModel
from tests.support.desk import QUESTION, Desk, asking, call

SAID = "Be *quick*,\nplease."


def resumed() -> Any:
    """The stream of a run that takes a message."""
    rule: dict[str, Any] = {"requires_approval": ["send"]}
    first = Desk().model(asking(call("send", "1", to="Anna")), **rule).invoke([QUESTION])
    history, decisions = [QUESTION, *new_messages(first)], [one.approve() for one in pending_calls(first)]
    return Desk().model(**rule).stream(history, resume=decisions, message=HumanMessage(SAID))


@cache
def ran() -> tuple[list[Any], AIMessage]:
    """The events of the run, and its run message."""
    told = events(resumed())
    return list(told), told.message


@pytest.fixture(params=["its events", "its run message"])
def told(request: pytest.FixtureRequest) -> list[Any]:
    """What the run is shown of."""
    return ran()[0] if request.param == "its events" else list(events_of(ran()[1]))


def test_a_notebook_shows_it(told: list[Any]) -> None:
    """As a message of the user's."""
    runs = ViewModel()
    for event in told:
        runs.apply(event)
    shown = [part_text(part).partition("\n")[0] for part in runs.parts]
    assert shown[:3] == ['→ send(to="Anna")' if told is ran()[0] else "→ send()", "> Be *quick*,", "Done."]


def test_a_gradio_page_shows_it_once(told: list[Any]) -> None:
    """On the user's side."""
    chat = GradioChat()
    for event in told:
        chat.show(event)
    assert [one["role"] for one in chat.messages] == ["assistant", "user", "assistant"]


def test_lines_show_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Quoted, as questions are."""
    show(resumed())
    written = "".join(capsys.readouterr())
    assert written.index("← send") < written.index("> Be *quick*,\n> please.") < written.index("Done.")


def test_markdown_quotes_it() -> None:
    """So that nobody takes it for the model's."""
    assert "\n\n> Be \\*quick\\*,  \n> please.\n\nDone." in markdown_of(ran()[1])
    assert markdown_of(HumanMessage("Hello.")) == "Hello."
