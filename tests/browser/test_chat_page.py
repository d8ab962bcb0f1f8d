"""What others write in examples/chat_app.py, in a real browser: text, images, on a large screen and on a phone."""

import os
import socket
import subprocess
import sys
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser.chat_program import EXAMPLE, MAIL, Chat, Program
from tests.browser.visited import SECONDS
from tests.support.script import Call, Turn

pytest.importorskip("gradio", reason="the example needs its extra")
pytestmark = pytest.mark.browser

HOSTILE = """<form style="position:fixed;inset:0" action="{0}"><input name="password"><button>Log in</button></form> &lt;b&gt; `<i>`

| a | `<form action="{0}">|` |
|---|---|
| <u>1</u> | [x](javascript:alert(1)) <img src="{0}/1.png"> ![i]({0}/?secret) |

```html
<form action="{0}">`x`</form>
```

- > ```
  > <form action="{0}">

$$1 < 2 \\href{{{0}}}{{x}}$$ and \\(x<form action="{0}">\\)

```bash
echo $$ <form action="{0}">
```
$$

<div><form action="{0}">

    <form action="{0}">

```mermaid
graph TD; A["<form action='{0}'>"]-->B
```
<!-- <style>* {{ display: none }}</style> --> %%%LATEX_BLOCK_0%%% <math><mtext><form></form><style>*{{display:none}}</style>
"""


POST = """async address => {
    const refused = new Promise(done => document.addEventListener('securitypolicyviolation', one => done(one.violatedDirective)));
    const form = document.body.appendChild(document.createElement('form'));
    form.action = address;
    form.submit();
    return await refused;
}"""
"""Posts a form to an address; returns the directive of the page's policy that refuses it."""


def test_what_others_write_is_text(chat: Chat, program: Program) -> None:
    """No tag of a model, a tool or a user becomes one, wherever in Markdown it is; code shows it as it is. Nothing is fetched, and
    no form could be posted."""
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        hostile = HOSTILE.format(address)
        for size in (3000, 7):  # at once, and piece by piece
            call = Call("<form>**x**", {"<b>city</b>": hostile})
            chat.ask(f"Hello {hostile}", Turn(hostile, [call], characters=size), Turn(f"So **far** {size}"))
            chat.reads(f"So far {size}")
            chat.can_send()
        chat.look("19_hostile")
        for button in chat.page.get_by_role("button", name="<form>**x**").all():
            button.click()
        own = "[aria-label='chatbot conversation'] :is(form, input, img, style, u, i, script, math mtext form, a[href^='javascript'])"
        assert chat.page.locator(own).count() == 0
        for text in (
            "<form style=",
            "&lt;b&gt;",
            '<form action="{0}">`x`</form>',
            "echo $$ <form",
            "A[",
            "%%%LATEX_BLOCK_0%%%",
            "<!-- <style>",
        ):
            assert text.format(address) in chat.said, text
        assert chat.page.locator(".katex").count() > 0 and chat.page.get_by_role("cell", name="<u>1</u>").count() > 0
        elsewhere.settimeout(0.5)
        with pytest.raises(TimeoutError):
            elsewhere.accept()
        assert chat.page.evaluate(POST, address) == "form-action"


SEND_IMAGES = """
import sys
from langchain_core.messages import AIMessage, HumanMessage
from langchain_autotools.durable import Conversations
from langchain_autotools.testing import ScriptedChatModel

image = {"type": "image", "base64": sys.argv[2], "mime_type": "image/png"}
elsewhere = {"type": "image", "url": "http://127.0.0.1:9/1.png"}
chats = Conversations(ScriptedChatModel(replies=[]), "sqlite:///chats.sqlite", max_concurrency=0)
look, see = {"type": "text", "text": "Look:"}, {"type": "text", "text": "I see."}
chats.append(sys.argv[1], [HumanMessage([look, image]), AIMessage([see, image, elsewhere])])
"""
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def test_images_are_shown(chat: Chat, program: Program) -> None:
    """The user's and the model's, by their data. Of one that is elsewhere the address is shown."""
    conversation = unquote(chat.page.url.partition("?chat=")[2])
    paths = {"PYTHONPATH": str(EXAMPLE.parents[1])}
    command = [sys.executable, "-c", SEND_IMAGES, conversation, PIXEL]
    subprocess.run(command, cwd=program.folder, env={**os.environ, **paths}, check=True, capture_output=True, timeout=120)
    chat.reads("Look:", "I see.", "http://127.0.0.1:9/1.png")
    images = chat.page.get_by_label("chatbot conversation").get_by_alt_text("image")
    assert images.evaluate_all("all => all.map(one => one.naturalWidth)") == [1, 1]
    chat.look("20_images")


ON_TOP = """one => {
    const {x, y, width, height} = one.getBoundingClientRect();
    return one.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}"""
"""Whether an element is seen, and nothing hides it."""


def test_on_a_phone_the_chat_is_seen_first(browser: Any, program: Program) -> None:
    """The conversations are behind a button; a call that waits is scrolled to. Nothing is wider than the phone."""
    context = browser.new_context(viewport={"width": 390, "height": 500})
    chat = Chat(context.new_page(), program)
    chat.page.goto(program.address)
    chat.can_send()
    assert chat.page.get_by_placeholder("Message").evaluate(ON_TOP)
    both = [Call("send_mail", {"to": "Anna", "text": "word " * 60}), Call("send_mail", MAIL)]
    chat.ask("Mail them. " + "And be polite. " * 40, Turn("Two mails.", both))
    chat.approve.nth(1).wait_for(timeout=SECONDS * 1000)
    chat.page.wait_for_timeout(1000)
    chat.look("21_phone")
    assert chat.approve.first.evaluate(ON_TOP)
    assert chat.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    chat.page.locator(".toggle-button").first.click()
    chat.page.get_by_role("button", name="New conversation").wait_for(timeout=SECONDS * 1000)
    chat.page.wait_for_timeout(500)
    chat.look("22_phone_conversations")
    assert chat.page.get_by_role("button", name="New conversation").evaluate(ON_TOP)
    context.close()


def test_pictures_that_a_model_names_are_not_fetched(chat: Chat, program: Program) -> None:
    """Their addresses may carry away what was said."""
    asked: list[str] = []
    chat.page.on("requestfinished", lambda one: asked.append(one.url))
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        address = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        chat.ask("Show me.", Turn(f"Look: ![one]({address}/1.png) <img src='{address}/2.png'> done", characters=200))
        chat.reads("done")
        chat.page.wait_for_timeout(500)
        elsewhere.settimeout(0.5)
        with pytest.raises(TimeoutError):
            elsewhere.accept()
    assert not [url for url in asked if url.startswith(address)]
