"""The page of examples/web in a real browser: what a user sees, presses and stops. SCREENSHOTS=folder keeps a picture of each state."""

import importlib.util
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from langchain_autotools import ChatOpenAI, mcp_server
from tests.browser.visited import SECONDS, Visited
from tests.support.asgi_server import AsgiServer
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.script import Call, Events, Failure, Turn

pytestmark = pytest.mark.browser

WEB = Path(__file__).resolve().parents[2] / "examples" / "web"
MCP_PROGRAM = WEB.parents[1] / "tests" / "support" / "mcp_program.py"
MAIL = {"to": "Anna", "text": "It is 21 °C in Rome. Bring a light jacket."}


class Opened(Visited):
    """The page as a user has it.

    Attributes:
        page: The browser's page.
        vendor: The server that the model asks.
        example: The module that serves the page.
        histories: The histories that the endpoint keeps.
        tool_goes_on: Lets the running tool take its next step.
    """

    def __init__(self, page: Any, vendor: OpenAIServer, example: Any, scheme: str) -> None:
        super().__init__(page, scheme)
        self.vendor, self.example, self.histories = vendor, example, example.histories
        self.tool_goes_on = threading.Semaphore(0)
        example.time = SimpleNamespace(sleep=lambda _: self.tool_goes_on.acquire(timeout=SECONDS))

    def ask(self, text: str, *turns: Any) -> None:
        """Send a message, which the model answers with these turns."""
        self.vendor.extend(turns)
        self.page.get_by_label("Message").fill(text)
        self.press("Send")

    def has_ended(self) -> None:
        """Nothing goes on any more."""
        self.page.get_by_role("button", name="Stop").wait_for(state="detached", timeout=SECONDS * 1000)

    def say(self, text: str) -> None:
        """Type a message, and Enter."""
        self.page.get_by_label("Message").fill(text)
        self.page.get_by_label("Message").press("Enter")

    @property
    def shown(self) -> list[str]:
        """The texts of both sides, in order."""
        return [str(text) for text in self.page.locator("main > .user, main > .text").all_inner_texts()]

    @property
    def history(self) -> list[Any]:
        """What the endpoint has kept of the conversation."""
        (history,) = self.histories.values()
        return history


@pytest.fixture(params=["light", "dark"])
def opened(request: pytest.FixtureRequest, browser: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """The example, served, and its page in the browser; it asks nobody but its server, and makes no errors."""
    with OpenAIServer() as vendor:
        monkeypatch.setenv("OPENAI_API_KEY", "key")
        monkeypatch.setenv("OPENAI_BASE_URL", vendor.url)
        monkeypatch.setenv("CHATS", ":memory:")
        spec = importlib.util.spec_from_file_location("ai_sdk_endpoint", WEB / "ai_sdk_endpoint.py")
        assert spec is not None and spec.loader is not None
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        with AsgiServer(example.app) as server:
            page = browser.new_page(viewport={"width": 820, "height": 720}, color_scheme=request.param)
            asked, errors = [], []
            page.on("request", lambda one: asked.append(one.url))
            page.on("pageerror", lambda error: errors.append(str(error)))
            page.goto(server.address)
            yield Opened(page, vendor, example, request.param)
            page.close()
            assert errors == [] and {url.startswith(server.address) for url in asked} == {True}
        assert vendor.rejections == []


def test_text_calls_progress_and_results_are_seen_as_they_come(opened: Opened) -> None:
    """The text while it is written, the call while it is written and while it runs, then its result and the answer."""
    gates = Gate(), Gate(), Gate()
    looks = Turn("Let me look that up.", [Call("get_temperature", {"city": "Rome"})], holds={3: gates[0], 8: gates[1]})
    answers = Turn("It is 21 °C in Rome.\n\nA light jacket will do.", holds={4: gates[2]})
    opened.ask("How warm is it in Rome?", looks, answers)
    opened.page.get_by_text("Let me").wait_for(timeout=SECONDS * 1000)
    assert opened.page.get_by_role("button", name="Stop").is_visible()
    opened.look("1_streaming")
    gates[0].open()
    opened.sees("get_temperature", "writing …")
    opened.look("2_call_written")
    gates[1].open()
    opened.sees("running …", "asking the station (1 of 2)")
    opened.look("3_call_running")
    opened.tool_goes_on.release(2)
    opened.sees("21 °C", "done")
    gates[2].open()
    opened.sees("It is 21 °C in Rome.\n\nA light jacket will do.")
    opened.has_ended()
    opened.look("4_answered")
    assert [message.type for message in opened.history] == ["human", "ai", "tool", "ai"]


@pytest.mark.parametrize(
    ("presses", "result", "state"),
    [(["Approve"], "Sent to Anna.", "done"), (["Reject"], None, "rejected"), (["Edit", "Approve"], "Sent to Ben.", "done")],
    ids=["approve", "reject", "edit"],
)
def test_a_call_waits_for_the_user(presses: list[str], result: str | None, state: str, opened: Opened) -> None:
    """He approves it, rejects it, or edits what it runs with; the run goes on in the same message."""
    opened.ask("Mail Anna how warm it is.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]))
    opened.sees("send_mail", "waits for you")
    opened.look("5_approval")
    opened.vendor.extend([Turn("That is settled.")])
    for name in presses:
        opened.press(name)
        if name == "Edit":
            box = opened.page.locator("textarea")
            box.fill(box.input_value().replace("Anna", "Ben")[:-1])
            opened.press("Approve")
            opened.sees("This is no JSON.")
            box.fill(box.input_value() + "}")
            opened.look("6_edited")
    opened.sees(state, "That is settled.")
    opened.look(f"7_{'_'.join(presses).lower()}")
    told = opened.history[2].content
    assert (result in told) if result else ("denied" in told)
    assert opened.page.locator(".call").count() == 1 and opened.page.locator("button").count() == 1


def test_all_calls_are_decided_before_the_run_goes_on(opened: Opened) -> None:
    """The first answer waits for the second."""
    opened.ask("Mail them.", Turn(calls=[Call("send_mail", MAIL), Call("send_mail", {"to": "Ben", "text": "Hi."})]))
    opened.sees("waits for you")
    opened.page.get_by_role("button", name="Approve").first.click()
    opened.sees("answered", "waits for you")
    opened.look("7_one_of_two")
    assert len(opened.vendor.exchanges) == 1
    opened.vendor.extend([Turn("That is settled.")])
    opened.press("Reject")
    opened.sees("done", "rejected", "That is settled.")


def test_an_editor_stays_open_with_what_is_wrong(opened: Opened) -> None:
    """What the tool does not take is told beside the call; nothing has run, what else was decided is asked again, and all go on mended."""
    opened.ask("Mail them.", Turn(calls=[Call("send_mail", MAIL), Call("send_mail", {"to": "Ben", "text": "Hi."})]))
    opened.sees("waits for you")
    opened.page.get_by_role("button", name="Edit").first.click()
    box = opened.page.locator("textarea")
    box.fill(box.input_value().replace('"to"', '"cc"'))
    for _ in range(2):
        opened.page.get_by_role("button", name="Approve").first.click()
    opened.sees("'cc' is no argument of the tool.", "waits for you")
    opened.look("7_refused")
    assert opened.page.get_by_text("'cc' is no argument of the tool.").count() == 1
    assert len(opened.vendor.exchanges) == 1 and opened.page.get_by_role("button", name="Approve").count() == 2
    opened.vendor.extend([Turn("That is settled.")])
    box.fill(box.input_value().replace('"cc"', '"to"'))
    for _ in range(2):
        opened.page.get_by_role("button", name="Approve").first.click()
    opened.sees("done", "That is settled.")


def test_stop_ends_the_run(opened: Opened) -> None:
    """The server is left, which ends the run there; the conversation can go on."""
    opened.ask("Tell me a long story.", Turn("Once upon a time there was a king.", holds={4: Gate()}))
    opened.page.get_by_text("Once").wait_for(timeout=SECONDS * 1000)
    opened.press("Stop")
    opened.sees("Stopped.")
    opened.look("8_stopped")
    opened.ask("Go on.", Turn("He had a castle."))
    opened.sees("He had a castle.")
    assert isinstance(opened.history[-1], AIMessage)


def test_a_call_that_is_stopped_says_so(opened: Opened) -> None:
    """It neither runs on on the page nor is done."""
    opened.ask("How warm is it in Rome?", Turn(calls=[Call("get_temperature", {"city": "Rome"})]))
    opened.sees("asking the station (1 of 2)")
    opened.press("Stop")
    opened.sees("stopped")
    opened.look("9_stopped_call")
    opened.tool_goes_on.release(2)


def test_a_failure_is_a_plain_sentence(opened: Opened) -> None:
    """Its class, and nothing of what the server said."""
    opened.ask("Hello?", Failure(400, "secret"))
    opened.page.get_by_text("The run failed.").wait_for(timeout=SECONDS * 1000)
    opened.look("10_failed")
    assert "secret" not in opened.page.content()


FIELDS = {
    "city": {"type": "string", "title": "City"},
    "seats": {"type": "integer"},
    "class": {"type": "string", "enum": ["first", "second"]},
    "meals": {"type": "array", "items": {"type": "string", "enum": ["vegan", "fish"]}},
    "window": {"type": "boolean"},
    "note": {"type": "string"},
}
BOOKED = {"city": "Rome", "seats": 2, "class": "second", "meals": ["fish"], "window": True}


@pytest.mark.parametrize("action", ["accept", "decline", "cancel"])
def test_a_question_of_a_server_is_a_form(action: str, opened: Opened, tmp_path: Path) -> None:
    """Its fields are those of the schema; what the user answers reaches the server, and one that does not fit can be answered again."""
    pytest.importorskip("mcp_types")
    program = tmp_path / "server.py"
    question = {
        "mode": "form",
        "message": "Which seats?",
        "requestedSchema": {"type": "object", "properties": FIELDS, "required": ["city"]},
    }
    program.write_text(
        MCP_PROGRAM.read_text().replace("ASKED = {", f"ASKED: dict[str, Any] = {question!r}\n_OTHER: dict[str, Any] = {{", 1)
    )
    with mcp_server([sys.executable, str(program), str(tmp_path / "notes"), "modern"]) as server:
        opened.example.model = ChatOpenAI(model="gpt-5", tools=[server])
        opened.ask("Book.", Turn("Well.", [Call("ask", {})]))
        opened.sees("Which seats?", "asks you")
        opened.look("7_question")
        if action == "accept":
            opened.press("Answer")
            opened.page.get_by_text("'city' is a required property").first.wait_for(timeout=SECONDS * 1000)
            opened.page.get_by_label("City").fill("Rome")
            opened.page.get_by_label("seats").fill("2")
            opened.page.get_by_label("class").select_option("second")
            opened.page.get_by_label("meals").select_option(["fish"])
            opened.page.get_by_label("window").check()
            opened.look("8_question_answered")
        opened.vendor.extend([Turn("That is settled.")])
        opened.press({"accept": "Answer", "decline": "Decline", "cancel": "Not now"}[action])
        opened.sees("That is settled.")
        opened.look(f"9_{action}")
    content = {"content": BOOKED} if action == "accept" else {}
    assert json.loads(opened.history[-2].text) == {"city": {"action": action, **content}}


def test_what_is_said_while_a_reply_runs_is_shown_where_it_was_read(opened: Opened) -> None:
    """It waits beneath, and the box stays usable; then it is between the two replies, also on a page that is loaded again."""
    gates = Gate(), Gate()
    opened.ask(
        "How warm is it in Paris?", Turn("Let me think about it.", holds={3: gates[0]}), Turn("Rome has 21 °C.", holds={4: gates[1]})
    )
    opened.page.get_by_text("Let me").wait_for(timeout=SECONDS * 1000)
    opened.say("I meant Rome.")
    opened.say("And in Celsius.")
    opened.sees("I meant Rome.", "And in Celsius.", "waiting to be read")
    assert opened.page.get_by_label("Message").input_value() == ""
    opened.look("11_waiting")
    gates[0].open()
    opened.page.get_by_text("Rome has").wait_for(timeout=SECONDS * 1000)
    opened.look("12_read")
    gates[1].open()
    opened.has_ended()
    answered = ["How warm is it in Paris?", "Let me think about it.", "I meant Rome.", "And in Celsius.", "Rome has 21 °C."]
    assert opened.shown == answered and opened.page.locator(".waits").count() == 0
    assert [message.type for message in opened.history] == ["human", "ai", "human", "human", "ai"]
    opened.page.reload()
    opened.sees("Rome has 21 °C.")
    assert opened.shown == answered


@pytest.mark.parametrize("end", ["stop", "failure"])
def test_what_was_not_read_is_not_lost(end: str, opened: Opened) -> None:
    """After a stop it is the next question; after a failure it waits, and the next thing that is said takes it along."""
    gate = Gate()
    broken = Events([gate, {"error": {"message": "secret", "type": "invalid_request_error", "code": "invalid_prompt"}}])
    opened.ask("Tell me a long story.", broken if end == "failure" else Turn("Once upon a time.", holds={4: gate}))
    assert gate.reached.wait(SECONDS)
    opened.vendor.extend([Turn("He had a castle.")])
    opened.say("Of a king.")
    opened.sees("waiting to be read")
    if end == "stop":
        opened.press("Stop")
    else:
        gate.open()
        opened.page.get_by_text("The run failed.").wait_for(timeout=SECONDS * 1000)
        opened.look("13_failed_with_a_message")
        assert opened.shown[-1] == "Of a king." and opened.page.locator(".waits").count() == 2
        opened.say("In prose.")
    opened.sees("He had a castle.")
    opened.has_ended()
    opened.look(f"14_{end}_and_on")
    said = ["Of a king."] if end == "stop" else ["Of a king.", "In prose."]
    assert opened.shown[-1 - len(said) :] == [*said, "He had a castle."]
    assert opened.page.locator(".waits").count() == 0
    assert [message.text for message in opened.history][-1 - len(said) :] == [*said, "He had a castle."]


def test_what_waits_with_calls_is_read_when_they_are_decided(opened: Opened) -> None:
    """The message stays beneath the calls; the run that goes on has it behind their results."""
    gate = Gate()
    opened.ask("Mail Anna how warm it is.", Turn("I have a mail ready.", [Call("send_mail", MAIL)], holds={3: gate}))
    opened.page.get_by_text("I have").wait_for(timeout=SECONDS * 1000)
    opened.say("And be quick.")
    gate.open()
    opened.sees("waits for you", "And be quick.", "waiting to be read")
    opened.has_ended()
    opened.look("15_approval_with_a_message")
    opened.vendor.extend([Turn("That is settled.")])
    opened.press("Approve")
    opened.sees("That is settled.")
    opened.has_ended()
    opened.look("16_approved_with_a_message")
    assert opened.shown == ["Mail Anna how warm it is.", "I have a mail ready.", "And be quick.", "That is settled."]
    assert [message.type for message in opened.history] == ["human", "ai", "tool", "human", "ai"]


def test_a_message_with_a_decision_is_shown_once(opened: Opened) -> None:
    """Although the stream tells it where the run took it."""
    opened.ask("Mail Anna how warm it is.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]))
    opened.sees("waits for you")
    opened.has_ended()
    opened.vendor.extend([Turn("That is settled.")])
    opened.page.get_by_label("Message").fill("And be quick.")
    opened.press("Approve")
    opened.sees("That is settled.")
    opened.has_ended()
    assert opened.shown.count("And be quick.") == 1
    assert [message.type for message in opened.history] == ["human", "ai", "tool", "human", "ai"]


def test_a_page_that_is_loaded_again_shows_its_conversation(opened: Opened) -> None:
    """By its address, or the one that the browser was at last; a new conversation is empty."""
    opened.ask(
        "How warm is it in Rome?", Turn("Let me look that up.", [Call("get_temperature", {"city": "Rome"})]), Turn("It is **21 °C**.")
    )
    opened.tool_goes_on.release(2)
    opened.sees("It is **21 °C**.")
    opened.has_ended()
    opened.ask("Mail Anna.", Turn("I have a mail ready.", [Call("send_mail", MAIL)]))
    opened.sees("waits for you")
    opened.has_ended()
    shown, bare = opened.shown, opened.page.url.partition("#")[0]
    for again in (opened.page.reload, lambda: opened.page.goto("about:blank"), lambda: opened.page.goto(bare)):
        again()
    opened.sees("done", "waits for you")
    assert opened.shown == shown and len(shown) == 5
    opened.look("17_loaded_again")
    opened.vendor.extend([Turn("That is settled.")])
    opened.press("Approve")
    opened.sees("Sent to Anna.", "That is settled.")
    opened.page.get_by_text("New conversation").click()
    opened.page.get_by_text("That is settled.").wait_for(state="detached", timeout=SECONDS * 1000)
    assert opened.shown == [] and opened.page.url.partition("#")[2] not in ("", bare)


def test_a_page_that_is_loaded_in_the_middle_of_a_reply_goes_on(opened: Opened) -> None:
    """The reply is asked for again; one that the user has stopped is not."""
    opened.ask("Tell me a story.", Turn("Once upon a time there was a king.", holds={4: Gate()}))
    opened.page.get_by_text("Once").wait_for(timeout=SECONDS * 1000)
    opened.vendor.extend([Turn("He had a castle.", holds={2: Gate()})])
    opened.page.reload()
    opened.page.get_by_text("He").last.wait_for(timeout=SECONDS * 1000)
    assert opened.shown[0] == "Tell me a story." and len(opened.shown) == 2
    opened.press("Stop")
    opened.sees("Stopped.")
    opened.page.reload()
    opened.sees("Tell me a story.")
    opened.page.wait_for_timeout(1000)
    assert opened.shown == ["Tell me a story."] and len(opened.vendor.exchanges) == 2
    assert [message.type for message in opened.history] == ["human"]
