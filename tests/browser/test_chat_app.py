"""examples/chat_app.py in a real browser, its server a process that is killed. SCREENSHOTS=folder keeps a picture of each state."""

import re
from typing import Any

import pytest

from tests.browser.chat_program import MAIL, Chat, Program
from tests.browser.visited import SECONDS
from tests.support.http_server import Gate
from tests.support.script import Call, Events, Failure, Turn

pytest.importorskip("gradio", reason="the example needs its extra")
pytestmark = pytest.mark.browser


@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_a_run_is_seen_while_it_happens(chat: Chat) -> None:
    """Reasoning and text while they are written, the call while it is written and while it runs, its result, the answer."""
    chat.look("1_empty")
    gates = [Gate() for _ in range(4)]
    holds = {2: gates[0], 4: gates[1], 8: gates[2]}
    looks = Turn(
        "Let me look that up.", [Call("get_temperature", {"city": "Rome"})], reasoning="A tool knows this.", characters=9, holds=holds
    )
    answers = Turn("It is **21 °C** in Rome.\n\n- A light jacket will do.", holds={4: gates[3]})
    chat.ask("How warm is it in Rome?", looks, answers)
    chat.reads("How warm is it in Rome?", "Reasoning", "A tool kn")
    assert "Let me" not in chat.said
    chat.page.locator("button.stop-button").wait_for(timeout=SECONDS * 1000)
    chat.look("2_reasoning")
    gates[0].open()
    chat.reads("A tool knows this.", "Let me lo")
    chat.look("3_text")
    gates[1].open()
    chat.reads("Let me look that up.", "get_temperature", "is being written")
    chat.look("4_call_written")
    gates[2].open()
    chat.reads("asking the station (1 of 2)", '"city": "Rome"')
    chat.look("5_call_runs")
    chat.reads("21 °C", "It is 21 °C")
    assert "jacket" not in chat.said
    chat.look("6_answer_begins")
    gates[3].open()
    chat.reads("A light jacket will do.")
    chat.can_send()
    chat.page.get_by_role("button", name="get_temperature").click()
    chat.reads('"city": "Rome"')
    chat.look("7_answered")


HOLD = """
const ask = window.fetch, held = new Promise(done => window.letGo = done)
window.fetch = async (...all) => { if (String(all[0]).includes('/queue/join')) { window.asked = true; await held }; return ask(...all) }
"""
"""Holds back what a page asks its program to do."""


def test_the_first_message_in_a_fresh_browser_is_answered(browser: Any, program: Program) -> None:
    """However early it is typed: the box can be used as soon as the page has its conversation, and not before."""
    for number in range(5):
        context = browser.new_context()
        chat = Chat(context.new_page(), program)
        chat.page.add_init_script(HOLD if number == 0 else "")
        chat.page.goto(program.address)
        box = chat.page.get_by_placeholder("Message")
        if number == 0:
            chat.page.wait_for_function("window.asked")
            assert box.is_disabled()
            chat.page.evaluate("letGo()")
        program.vendor.extend([Turn(f"Hello {number}.")])
        box.fill(f"I am {number}.")
        box.press("Enter")
        chat.reads(f"I am {number}.", f"Hello {number}.")
        chat.can_send()
        context.close()


@pytest.mark.parametrize(
    ("presses", "sent", "told", "answered"),
    [
        ("Approve", "Anna", "Sent to Anna.", "Sent to Anna."),
        ("Approve", "Ben", "Sent to Ben.", "Sent to Ben."),
        ("Reject", "Anna", "Rejected: it did not run.", "denied"),
    ],
)
def test_a_call_waits_for_the_user(chat: Chat, presses: str, sent: str, told: str, answered: str) -> None:
    """They approve it, as it is or with other arguments, or reject it, which is said in a sentence; it keeps its panel."""
    chat.ask("Mail Anna how warm it is.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]), Turn("That is settled."))
    chat.approve.wait_for(timeout=SECONDS * 1000)
    chat.can_send()
    chat.look("8_approval")
    assert chat.page.get_by_text("send_mail").all_inner_texts() == ["send_mail waits for you"] and "Anna" not in chat.said.split("is.")[1]
    chat.page.reload()
    chat.approve.wait_for(timeout=SECONDS * 1000)
    if sent != "Anna":
        chat.write('"Anna"', "Ben")
        chat.press("Approve")
        chat.refuses("Expecting value")
        chat.look("9_no_json")
        chat.write('"to": Ben', '"cc": "Ben"')
        chat.press("Approve")
        chat.refuses("'cc' is no argument of the tool")
        chat.look("9_no_argument")
        chat.write('"cc"', '"to"')
    chat.press(presses)
    chat.reads("That is settled.")
    if sent != "Anna":
        chat.can_send()
        chat.page.get_by_role("button", name="send_mail (edited)").click()  # its line begins with what was changed
    chat.reads(told)
    chat.approve.wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.look(f"10_{presses}_{sent}".lower())
    assert chat.said.count("send_mail") == 1
    assert answered in chat.program.vendor.messages[-1][-1]["content"]
    assert "error" not in chat.said


def test_each_call_is_decided_by_itself(chat: Chat) -> None:
    """The other one waits on, with what was written in its arguments."""
    both = [Call("send_mail", MAIL), Call("send_mail", {"to": "Ben", "text": "Hi."})]
    chat.ask("Mail them.", Turn(calls=both), Turn("One is sent."))
    chat.approve.nth(1).wait_for(timeout=SECONDS * 1000)
    chat.look("11_two_wait")
    chat.page.locator(".cm-content").nth(1).fill('{"to": "Bob", "text": "Hi."}')
    chat.approve.first.click()
    chat.reads("Sent to Anna.")
    chat.approve.nth(1).wait_for(state="detached", timeout=SECONDS * 1000)
    assert '"to": "Bob"' in chat.page.locator(".cm-content").inner_text()
    chat.press("Reject")
    chat.reads("One is sent.")


def test_stop_ends_the_run(chat: Chat) -> None:
    """In the middle of a reply; the conversation goes on after it."""
    chat.ask("Tell me a long story.", Turn("Once upon a time there was a king.", holds={4: Gate()}))
    chat.reads("Once")
    chat.page.locator("button.stop-button").click()
    chat.reads("The run was stopped: cancelled")
    chat.can_send()
    chat.look("12_stopped")
    chat.ask("Go on.", Turn("He had a castle."))
    chat.reads("He had a castle.")


def test_what_is_said_while_a_reply_runs_is_shown_where_it_was_read(chat: Chat) -> None:
    """The box stays usable; the message waits beneath, also in a second tab, and then is between the two replies."""
    gates = Gate(), Gate()
    chat.ask("How warm is it in Paris?", Turn("Let me think about it.", holds={3: gates[0]}), Turn("Rome has 21 °C.", holds={4: gates[1]}))
    chat.reads("Let me")
    chat.page.locator("button.stop-button").wait_for(timeout=SECONDS * 1000)
    for text in ("I meant Rome.", "And in Celsius."):
        chat.say(text)
        chat.page.wait_for_function("text => document.querySelector('.unread textarea')?.value.endsWith(text)", arg=text)
    assert (chat.unread.input_value(), "Rome" in chat.said) == ("I meant Rome.\nAnd in Celsius.", False)
    chat.look("19_waiting")
    chat.page.reload()
    chat.unread.wait_for(timeout=SECONDS * 1000)
    assert (chat.unread.input_value(), "Rome" in chat.said) == ("I meant Rome.\nAnd in Celsius.", False)
    gates[0].open()
    chat.reads("Rome has")
    chat.unread.wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.look("20_read")
    gates[1].open()
    chat.reads("Rome has 21 °C.")
    chat.can_send()
    texts = ["How warm is it in Paris?", "Let me think about it.", "I meant Rome.", "And in Celsius.", "Rome has 21 °C."]
    assert [line for line in chat.said.splitlines() if line in texts] == texts
    assert [message["role"] for message in chat.program.vendor.messages[-1]] == ["user", "assistant", "user", "user"]


def test_what_was_not_read_is_the_next_question(chat: Chat) -> None:
    """A run that fails leaves it."""
    gate = Gate()
    broken = Events([gate, {"error": {"message": "secret", "type": "invalid_request_error", "code": "invalid_prompt"}}])
    chat.ask("Tell me a long story.", broken, Turn("He had a castle."))
    assert gate.reached.wait(SECONDS)
    chat.page.locator("button.stop-button").wait_for(timeout=SECONDS * 1000)
    chat.say("Of a king.")
    chat.unread.wait_for(timeout=SECONDS * 1000)
    gate.open()
    chat.reads("The run failed", "Of a king.", "He had a castle.")
    chat.can_send()
    assert chat.unread.count() == 0
    chat.look("21_after_a_failure")


def test_conversations_stay_apart(chat: Chat) -> None:
    """A new one is empty; each is there again when it is chosen, when the page is loaded again, and in a second tab; one is deleted."""
    chat.ask("My name is Ann.", Turn("Hello Ann."))
    chat.reads("Hello Ann.")
    chat.press("New conversation")
    chat.page.get_by_text("Hello Ann.").wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.can_send()
    assert re.fullmatch(r"[0-9a-f]{32}", chat.page.url.partition("?chat=")[2]), "its address cannot be guessed"
    chat.ask("What is my name?", Turn("I do not know."))
    chat.reads("I do not know.")
    assert "Ann" not in str(chat.program.vendor.messages[-1])
    chat.look("13_second_conversation")
    chat.page.reload()
    chat.reads("I do not know.")
    chat.page.get_by_label("My name is Ann.").click()
    chat.reads("Hello Ann.")
    tab = chat.page.context.new_page()
    tab.goto(chat.page.url)
    chat.ask("And now?", Turn("Still Ann."))
    tab.get_by_text("Still Ann.").wait_for(timeout=SECONDS * 1000)
    tab.close()
    chat.reads("Still Ann.")
    chat.look("14_first_again")
    chat.page.get_by_role("button", name="Clear").click()
    chat.page.get_by_label("My name is Ann.").wait_for(state="detached", timeout=SECONDS * 1000)


def test_a_failure_is_a_plain_sentence_and_can_be_tried_again(chat: Chat) -> None:
    """It says what failed, nothing of what the server said. The message is not sent a second time, and what had completed stays."""
    looks = Turn("Let me look that up.", [Call("get_temperature", {"city": "Rome"})])
    chat.ask("How warm is it in Rome?", looks, Failure(400, "secret"))
    chat.reads("The run failed: the model's server refused the request (OpenAIInvalidRequestError)")
    chat.look("15_failed")
    assert "secret" not in chat.page.content()
    chat.program.vendor.extend([Failure(401, "secret")])
    chat.press("Try again")
    chat.reads("the model's server did not accept the key")
    chat.program.vendor.extend([Turn("It is 21 °C in Rome.")])
    chat.press("Try again")
    chat.reads("It is 21 °C in Rome.")
    chat.can_send()
    chat.page.get_by_role("button", name="Try again").wait_for(state="hidden", timeout=SECONDS * 1000)
    chat.look("15_tried_again")
    assert [message["role"] for message in chat.program.vendor.messages[-1]] == ["user", "assistant", "tool"]
    assert chat.said.count("How warm is it in Rome?") == 1 and chat.said.count("get_temperature") == 1


def test_a_killed_server_loses_nothing(chat: Chat, program: Program) -> None:
    """Killed in the middle of a reply and started again: the page comes back by itself, with what was being typed. The reply is asked for
    again, the conversation and the others are there."""
    chat.ask(
        "How warm is it in Rome?", Turn(calls=[Call("get_temperature", {"city": "Rome"})]), Turn("It is wrong in Rome.", holds={3: Gate()})
    )
    chat.reads("It is wrong")
    program.kill()
    chat.page.get_by_placeholder("Message").fill("And in Oslo?")
    chat.page.wait_for_timeout(1000)
    chat.look("16_killed")
    gate = Gate()
    program.vendor.extend([Turn("It is 21 °C in Rome.", holds={3: gate})])
    program.start()
    chat.page.wait_for_function("!document.body.innerText.includes('wrong')")
    chat.reads("How warm is it in Rome?", "get_temperature", "It is 21 °C")
    assert "wrong" not in chat.said
    chat.look("17_goes_on")
    gate.open()
    chat.reads("It is 21 °C in Rome.")
    chat.can_send()
    assert chat.page.get_by_placeholder("Message").input_value() == "And in Oslo?"
    chat.ask("And in Oslo?", Turn("I did not ask."))
    chat.reads("I did not ask.")
    chat.look("18_and_on")
    assert [message["role"] for message in program.vendor.messages[-1]] == ["user", "assistant", "tool", "assistant", "user"]
