"""What a vendor does by itself, as notebooks, Gradio and terminals show it."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage

from langchain_autotools import events
from langchain_autotools.encoders.finished_runs import events_of
from langchain_autotools.event_types import FileMade, MessageDiscarded, RunEvent, SourceFound
from langchain_autotools.messages.display import text_and_media
from langchain_autotools.showing import GradioChat
from langchain_autotools.showing.page import part_html, part_text
from langchain_autotools.showing.view_model import Lines, SourcesView, ViewModel
from tests.providers.test_vendor_events import ROWS
from tests.support.script import Turn
from tests.support.seen_runs import answered, begun, ready, record
from tests.support.vendor_replies import LARGE, PAGE, PIXEL, RUN, large_file, shown_run
from tests.support.weather import get_temperature


def page(events: list[RunEvent]) -> str:
    """What a notebook shows after these events."""
    model = ViewModel()
    for event in events:
        model.apply(event)
    return "".join(map(part_html, model.parts))


def test_a_notebook_shows_a_search_while_it_runs() -> None:
    """By its name and what it does; a partial image until the whole one has come."""
    running = page(shown_run()[:5])
    assert "web_search" in running and "searching" in running and f"base64,{PIXEL}" in running
    ended = page(shown_run()[:6])
    assert "oslo" in ended and "pages" in ended and PIXEL not in ended


def test_a_notebook_shows_images_and_links_its_sources() -> None:
    """An image from its data; a page as a link where its address is one of the web, each source once, and no markup of anybody's."""
    shown = page(shown_run())
    assert f'<img src="data:image/png;base64,{PIXEL}" alt="image"' in shown
    assert shown.count(f'<a href="{PAGE["url"]}" target="_blank" rel="noopener noreferrer nofollow">A page</a>') == 1
    assert "javascript:" not in shown and "&lt;b&gt;Run me&lt;/b&gt;" in shown and "notes.pdf" in shown
    assert "plot.csv (text/csv)" in shown


@pytest.mark.parametrize("kept", [False, True], ids=["live", "kept"])
def test_a_notebook_shows_a_large_image(kept: bool) -> None:
    """Where its event was kept without the data, once its message has come."""
    assert page(large_file(kept=kept)).count(LARGE) == 1


@pytest.mark.parametrize("wire", ROWS)
def test_an_ended_run_shows_the_same_images_and_pages(wire: str) -> None:
    """Its stored message, of any vendor's, has the pages that were cited and the images that were made."""
    row = ROWS[wire]
    with row.server([row.reply(), Turn("21.")]) as server:
        stream = events(row.model(server, tools=[get_temperature]).stream("Where?"))
        live, run = list(stream), stream.message
    ended = list(events_of(run))
    for kind, name in ((SourceFound, "url"), (FileMade, "data")):
        known = [getattr(event, name) for event in live if isinstance(event, kind) and getattr(event, name)]
        assert [getattr(event, name) for event in ended if isinstance(event, kind)] == known
    assert [page(list(events_of(run))).count(one) for one in (PIXEL, f'href="{PAGE["url"]}"')] == [
        int(wire != "Anthropic"),
        int(wire != "Ollama"),
    ]


def test_an_image_is_one_or_it_is_words() -> None:
    """Nothing but the characters of base64 gets into the address, and no image that may hold a program."""
    for kind, data in (("image/svg+xml", "PHN2Zz4="), ("image/png", '"><script>')):
        events = shown_run()
        events[11] = type(events[11])(**{**RUN, "message_id": "m1"}, mime_type=kind, data=data, size=3)  # type: ignore[call-arg]
        shown = page(events)
        assert "<script" not in shown and "svg+xml;base64" not in shown and "<img" not in shown


def test_sources_of_a_void_message_are_dropped() -> None:
    """As its text is."""
    model = ViewModel()
    for event in [*shown_run()[:-2], MessageDiscarded(**RUN, message_id="m1", attempt=1)]:
        model.apply(event)
    assert [part.sources for part in model.parts if isinstance(part, SourcesView)] == [[]]


def test_text_beside_html_says_the_same() -> None:
    """For places without HTML."""
    model = ViewModel()
    for event in shown_run():
        model.apply(event)
    text = "\n".join(map(part_text, model.parts))
    assert "⌕ web_search oslo (done)" in text and f"[1] A page <{PAGE['url']}>" in text and "[file (image/png, 0.1 kB)]" in text


def test_lines_name_the_search_and_list_the_sources() -> None:
    """Behind the text of their message."""
    output = io.StringIO()
    lines = Lines(output, output)
    for event in shown_run():
        lines.show(event)
    assert output.getvalue().splitlines() == [
        "⌕ web_search…",
        "⌕ web_search: oslo",
        "Oslo.",
        "[file (image/png, 0.1 kB)]",
        "[plot.csv (text/csv)]",
        f"[1] A page <{PAGE['url']}>",
        "[2] <b>Run me</b>",
        "[3] notes.pdf",
        "[1 turn]",
    ]


@pytest.mark.parametrize(("events", "word"), [(3, "searching"), (4, "searching"), (6, "oslo"), (-1, "failed oslo")])
def test_the_heading_of_gradios_panel_says_how_a_call_stands(events: int, word: str) -> None:
    """What the vendor does while it runs, and whether it has failed; nothing of it once it is done."""
    told = shown_run()
    if events < 0:
        told[5] = replace(told[5], failed=True)  # type: ignore[call-arg]
    chat = GradioChat()
    for event in told[: events if events > 0 else 6]:
        chat.show(event)
    (call,) = [message for message in chat.messages if (message.get("metadata") or {}).get("title") == "web_search"]
    assert call["metadata"]["log"].split() == word.split()


def test_gradio_shows_a_panel_and_links() -> None:
    """The image is in its message, once."""
    chat = GradioChat()
    for event in shown_run(files=[{"type": "image", "base64": PIXEL, "mime_type": "image/png"}]):
        chat.show(event)
    contents = "\n".join(message["content"] for message in chat.messages)
    (call,) = [message for message in chat.messages if (message.get("metadata") or {}).get("title") == "web_search"]
    assert (call["metadata"]["status"], call["metadata"]["log"]) == ("done", "oslo")
    assert contents.count(PIXEL) == 1 and PAGE["url"] in contents and "javascript" not in contents and "<b>" not in contents


def test_objects_in_a_result_are_shown_as_json() -> None:
    """What a handler of a shell returns is read everywhere, with its text and media; a model's own blocks are not."""
    ran = {"stdout": "é", "outcome": {"exit_code": 1}}
    written = '{"stdout": "é", "outcome": {"exit_code": 1}}'
    assert text_and_media(ToolMessage([ran, ran], tool_call_id="1")) == f"{written}\n{written}"
    mixed: Any = ["Look", {"type": "image", "base64": PIXEL, "mime_type": "image/png"}, ran]
    assert text_and_media(ToolMessage(mixed, tool_call_id="1")) == f"Look\n[image]\n{written}"
    assert text_and_media(AIMessage([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}])) == "Yes."
    call = record("1", "shell_call", {})
    told = [*begun(), *ready(call), answered(call, "")]
    told[-1] = replace(told[-1], message=ToolMessage([ran], tool_call_id="1"))  # type: ignore[call-arg]
    chat, output = GradioChat(), io.StringIO()
    lines = Lines(output, output)
    for event in told:
        chat.show(event)
        lines.show(event)
    assert "stdout" in str(chat.messages) and "stdout" in page(told) and "stdout" in output.getvalue()


def test_a_line_says_that_a_vendors_call_has_failed() -> None:
    """Also where there are no colours."""
    output = io.StringIO()
    lines = Lines(output, output)
    for event in shown_run()[:2]:
        lines.show(event)
    lines.show(replace(shown_run()[5], failed=True))  # type: ignore[call-arg]
    assert output.getvalue().splitlines()[-1] == "⌕ web_search: oslo (failed)"
