"""Every text of the pages in examples, measured against what is behind it, in both schemes and in each state that a page has."""

import pytest

from tests.browser.chat_program import MAIL, Chat
from tests.browser.contrast import contrasts, poor
from tests.browser.visited import SECONDS
from tests.support.http_server import Gate
from tests.support.script import Call, Events, Failure, Turn

pytestmark = [pytest.mark.browser]
MARKDOWN = "It is **21 °C** in `Rome`.\n\n- A [jacket](http://example.org) will do.\n\n> Quoted.\n\n```py\nprint('Rome', 21)  # warm\n```\n\n| City | Warm |\n|---|---|\n| Rome | 21 |"


@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_texts_of_a_finished_conversation_can_be_read(chat: Chat) -> None:
    """Reasoning, a call that is open, Markdown, and what is written meanwhile."""
    pytest.importorskip("gradio", reason="the example needs its extra")
    assert poor(chat.page) == []
    gate = Gate()
    looks = Turn("Let me look.", [Call("get_temperature", {"city": "Rome"})], reasoning="A tool knows this.")
    chat.ask("How warm is it?", looks, Turn(MARKDOWN, holds={3: gate}))
    chat.reads("It is")
    chat.say("And in Oslo?")
    chat.unread.wait_for(timeout=SECONDS * 1000)
    assert poor(chat.page) == []
    chat.program.vendor.extend([Turn("Cold.")])
    gate.open()
    chat.reads("Cold.")
    chat.can_send()
    for name in ("Reasoning", "get_temperature"):
        chat.page.get_by_role("button", name=name).click()
    chat.reads('"city": "Rome"')
    chat.look("30_finished")
    assert poor(chat.page) == []


@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_texts_of_a_call_that_waits_can_be_read(chat: Chat) -> None:
    """Its editor, and what is refused of it."""
    chat.ask("Mail Anna.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]), Turn("That is settled."))
    chat.approve.wait_for(timeout=SECONDS * 1000)
    chat.can_send()
    chat.look("31_waits")
    assert poor(chat.page) == []
    chat.write('"to"', '"cc"')
    chat.press("Approve")
    chat.refuses("'cc' is no argument of the tool")
    chat.look("32_refused")
    assert poor(chat.page) == []
    assert any("is no argument" in one["text"] for one in contrasts(chat.page))
    chat.press("Reject")
    chat.reads("That is settled.")


@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_texts_of_a_run_that_failed_can_be_read(chat: Chat) -> None:
    """The sentence, and the button that tries it again."""
    chat.ask("Hello?", Failure(400, "secret"))
    chat.reads("The run failed")
    chat.page.get_by_role("button", name="Try again").wait_for(timeout=SECONDS * 1000)
    chat.look("33_failed")
    assert poor(chat.page) == []
