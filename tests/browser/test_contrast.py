"""Every text of the pages in examples, measured against what is behind it, in both schemes and in each state that a page has."""

import json
from importlib.util import find_spec
from typing import Any

import pytest

from langchain_autotools.event_types import TextDelta
from langchain_autotools.showing.page import part_html
from langchain_autotools.showing.view_model import ViewModel
from tests.browser.chat_program import EXAMPLE, MAIL, Chat
from tests.browser.contrast import contrasts, poor
from tests.browser.test_ai_sdk_page import Opened, opened
from tests.browser.visited import SECONDS
from tests.support.http_server import Gate
from tests.support.script import Call, Failure, Turn

__all__ = ["opened"]
pytestmark = pytest.mark.browser
needs_gradio = pytest.mark.skipif(find_spec("gradio") is None, reason="the example needs its extra")
MARKDOWN = """It is **21 °C** in `Rome`.

- A [jacket](http://example.org) will do.

> Quoted.

```py
print('Rome', 21)  # warm
```

| City | Warm |
|---|---|
| Rome | 21 |"""


@needs_gradio
@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_texts_of_a_finished_conversation_can_be_read(chat: Chat) -> None:
    """Reasoning, a call that is open, Markdown, and what is written meanwhile."""
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


@needs_gradio
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


@needs_gradio
@pytest.mark.parametrize("chat", ["light", "dark"], indirect=True)
def test_texts_of_a_run_that_failed_can_be_read(chat: Chat) -> None:
    """The sentence, and the button that tries it again."""
    chat.ask("Hello?", Failure(400, "secret"))
    chat.reads("The run failed")
    chat.page.get_by_role("button", name="Try again").wait_for(timeout=SECONDS * 1000)
    chat.look("33_failed")
    assert poor(chat.page) == []


def test_texts_of_the_page_of_the_ai_sdk_can_be_read(opened: Opened) -> None:
    """While a reply is written and something waits to be read, with calls, an editor and what is refused of it, and after a failure."""
    gate = Gate()
    looks = Turn("Let me look.", [Call("get_temperature", {"city": "Rome"})], reasoning="A tool knows this.")
    opened.tool_goes_on.release(2)
    opened.ask("How warm is it?", looks, Turn("It is warm.", holds={2: gate}))
    assert gate.reached.wait(SECONDS)
    opened.say("And in Oslo?")
    opened.sees("waiting to be read")
    opened.look("34_ai_sdk_unread")
    assert poor(opened.page) == []
    opened.vendor.extend([Turn("I have a mail ready.", [Call("send_mail", MAIL)])])
    gate.open()
    opened.sees("waits for you")
    opened.has_ended()
    opened.press("Edit")
    box = opened.page.locator("textarea")
    box.fill(box.input_value().replace('"to"', '"cc"'))
    opened.press("Approve")
    opened.sees("'cc' is no argument of the tool.")
    opened.look("35_ai_sdk_refused")
    assert poor(opened.page) == []
    opened.vendor.extend([Failure(400, "secret")])
    opened.press("Reject")
    opened.page.get_by_text("The run failed").wait_for(timeout=SECONDS * 1000)
    opened.look("36_ai_sdk_failed")
    assert poor(opened.page) == []


@pytest.mark.parametrize(("ink", "paper"), [("#000", "#fff"), ("#ddd", "#111")], ids=["light", "dark"])
def test_texts_of_a_notebook_can_be_read(ink: str, paper: str, browser: Any) -> None:
    """On the papers of its editors' themes, which no style can ask for: the outputs of the example, and of a run that failed."""
    cells = json.loads((EXAMPLE.parent / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output.get("data", {}).get("text/html", "") for cell in cells for output in cell.get("outputs", ())]
    runs = ViewModel()
    runs.break_off(ValueError("secret"))
    runs.apply(TextDelta(run_id="r", message_id="m", text="See https://example.org"))
    html = "".join(["".join(output) for output in outputs] + [part_html(part) for part in runs.parts])
    page = browser.new_page(viewport={"width": 900, "height": 1500}, color_scheme="light" if ink == "#000" else "dark")
    page.set_content(f"<body style='font: 14px system-ui; background: {paper}; color: {ink}'>{html}</body>")
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert poor(page) == []
    page.close()
