"""What a vendor does by itself, and what waits for the user's machine, on the pages of examples/web in a real browser."""

import base64
import json
import signal
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from langchain_autotools import ChatOpenAI, Handler
from tests.browser.test_ai_sdk_page import Opened, opened
from tests.browser.test_durable_page import COMMAND, ask
from tests.browser.visited import SECONDS, Visited
from tests.providers.openai.test_client_calls import PATCH, RAN, SHELL, message, reply
from tests.support import vendor_replies
from tests.support.http_server import Gate
from tests.support.openai_server import OpenAIServer
from tests.support.responses_server import ResponsesServer
from tests.support.script import Events, Turn
from tests.support.served_program import ServedProgram

__all__ = ["opened"]

pytestmark = pytest.mark.browser

HOSTILE = {"type": "url_citation", "url": "javascript:alert(1)", "title": "<b>Run me</b>", "start_index": 0, "end_index": 1}


def picture(width: int, height: int, red: int) -> str:
    """A PNG in base64, from one colour to another."""
    rows = b"".join(b"\0" + bytes(part for x in range(width) for part in (red, 255 * x // width, 255 * y // height)) for y in range(height))
    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", size), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    made = (struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(made)).decode()


PARTIAL, WHOLE = picture(240, 135, 220), picture(1600, 900, 60)


def with_picture(said: Events) -> Events:
    """The reply with a picture that is wider than the page in place of a single pixel."""
    events, whole = json.loads(json.dumps([said.events, said.whole]).replace(vendor_replies.PIXEL, WHOLE))
    return Events(events, whole)


def drawn(gate: Gate) -> Events:
    """A reply that searches, draws, cites and calls a tool, held after the partial image."""
    events: list[Any] = list(with_picture(vendor_replies.responses()).events)
    for event in events:
        for part in (event.get("item") or {}).get("content") or ():
            part["annotations"] = [*part["annotations"], HOSTILE]
        if event["type"].endswith("partial_image"):
            event["partial_image_b64"] = PARTIAL
            event["output_format"] = "png"
    place = next(place for place, event in enumerate(events) if event["type"].endswith("partial_image"))
    return Events([*events[: place + 1], gate, *events[place + 1 :]])


@pytest.fixture
def vendor(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> Iterator[ResponsesServer]:
    """The server that the page's model asks, with the vendor's tools for the user's machine."""
    with ResponsesServer(rules=None) as server:
        example = opened.example
        tools = [*example.model.tools, {"type": "shell"}, {"type": "apply_patch"}]
        handlers = {"shell": Handler(lambda _: RAN), "apply_patch": Handler(lambda _: {"status": "completed", "output": "Updated a.txt"})}
        known: dict[str, Any] = {"model": "any", "base_url": server.url, "api_key": "key", "use_responses_api": True}
        model = ChatOpenAI(**known, tools=tools, handlers=handlers, approval_key=example.key)
        monkeypatch.setattr(example, "model", model)
        yield server


def images(page: Any) -> list[tuple[str, int]]:
    """The images of a page that the browser could read: their names and widths."""
    page.wait_for_function("[...document.images].every(one => one.complete)")
    found = page.locator("img").evaluate_all("all => all.map(one => [one.alt, one.naturalWidth])")
    return [(str(name), int(width)) for name, width in found]


def links(page: Any) -> list[tuple[str, str]]:
    """The links of a page: their words and addresses."""
    return [(str(a), str(b)) for a, b in page.locator("main a").evaluate_all("all => all.map(one => [one.textContent, one.href])")]


def test_what_the_vendor_does_is_seen_as_it_comes(opened: Opened, vendor: ResponsesServer) -> None:
    """A call by its name, a partial image until the whole one is there, sources as links; an address of another kind is text."""
    gate = Gate()
    vendor.extend([drawn(gate), Turn("It is 21 °C in Oslo.")])
    opened.page.get_by_label("Message").fill("Draw Oslo.")
    opened.press("Send")
    opened.sees("web_search", "code_interpreter", "image_generation", "partial image …")
    assert images(opened.page) == [("partial image", 240)]
    opened.look("23_partial_image")
    gate.open()
    opened.sees("A page", "<b>Run me</b>", "plot.csv", "failed")
    opened.tool_goes_on.release(2)
    opened.sees("It is 21 °C in Oslo.")
    opened.look("24_vendor_items")
    opened.page.get_by_alt_text("image").scroll_into_view_if_needed()
    opened.look("24_vendor_image")
    assert images(opened.page) == [("image", 1600)]
    assert links(opened.page) == [("A page", vendor_replies.PAGE["url"])]
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_commands_and_patches_wait_for_the_user(opened: Opened, vendor: ResponsesServer) -> None:
    """Both are shown whole, with a button for each answer; what was approved runs, and its result is below."""
    vendor.extend([reply(message("Look."), SHELL, PATCH), Turn("Fine.")])
    opened.page.get_by_label("Message").fill("Clean up.")
    opened.press("Send")
    opened.sees("shell_call", "apply_patch_call", "waits for you")
    cards = opened.page.locator(".call")
    assert ['"ls"' in cards.nth(0).inner_text(), '"delete_file"' in cards.nth(1).inner_text()] == [True, True]
    opened.look("25_commands_wait")
    opened.page.get_by_role("button", name="Approve").first.click()
    opened.press("Reject")
    opened.sees("done", "rejected", "Fine.")
    assert "a.txt" in cards.nth(0).inner_text()
    opened.look("26_commands_decided")


@pytest.fixture(params=["light", "dark"])
def followed(request: pytest.FixtureRequest, browser: Any, tmp_path: Path) -> Iterator[tuple[Visited, OpenAIServer]]:
    """The page of the durable example, and the server that its model asks."""
    pytest.importorskip("dbos", reason="needs the extra `durable`")
    with OpenAIServer(rules=None) as server:
        program = ServedProgram(COMMAND, tmp_path, OPENAI_API_KEY="key", OPENAI_BASE_URL=server.url)
        program.start()
        page = browser.new_page(color_scheme=request.param, viewport={"width": 390, "height": 700})
        page.goto(program.address)
        yield Visited(page, request.param), server
        page.close()
        program.end(signal.SIGKILL)


def test_a_durable_page_has_what_the_vendor_did(followed: tuple[Visited, OpenAIServer]) -> None:
    """The search by name, the source as a link, the image; a page that is loaded again has the same."""
    opened, server = followed
    server.extend([with_picture(vendor_replies.chat()), Turn("It is 21 °C in Oslo.")])
    ask(opened, "Draw Oslo.")
    for _ in range(2):
        opened.sees("It is 21 °C in Oslo.", 'search {"query":"oslo"} → done')
        assert images(opened.page) == [("image", 1600)]
        assert links(opened.page) == [("A page", vendor_replies.PAGE["url"])]
        assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        opened.look("durable_4_vendor_items")
        opened.page.reload()
        opened.page.get_by_text("It is 21").wait_for(timeout=SECONDS * 1000)
