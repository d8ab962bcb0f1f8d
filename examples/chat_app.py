"""A chat page over conversations that outlive this program: they are in chats.sqlite. Needs the extra `examples`.

`python examples/chat_app.py` asks the embedded local model (extra `local`), `python examples/chat_app.py openai:gpt-5` another one.
Copy this for a chat that is there in a minute; for a page of your own product copy `web/ai_sdk_endpoint.py`, which looks better.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Collection
from itertools import takewhile
from typing import Any
from uuid import uuid4

import gradio as gr
from langchain_core.messages import HumanMessage

from langchain_autotools import DecisionsError, PendingCall, ToolContext, init_chat_model
from langchain_autotools.durable import Conversations, launch
from langchain_autotools.showing import CHAT_HEAD, MATH_DELIMITERS, gradio_chat, gradio_words_of_tool

OPEN = "chosen => location.assign('?chat=' + encodeURIComponent(chosen))"
STAY = "chosen => history.replaceState(null, '', '?chat=' + encodeURIComponent(chosen))"
RESTORE = "text => text || keptDraft()"  # what is typed outlives a restart of this program
READABLE = {  # colours of texts that Gradio's theme makes too faint
    "body_text_color_subdued": "*neutral_600",
    "block_label_text_color": "*primary_700",
    "block_title_text_color": "*primary_700",
    "input_placeholder_color": "*neutral_500",
    "input_placeholder_color_dark": "*neutral_300",
    "button_primary_background_fill": "*primary_600",
    "button_primary_background_fill_hover": "*primary_700",
    "button_primary_background_fill_dark": "*primary_600",
    "button_primary_background_fill_hover_dark": "*primary_700",
    "checkbox_label_background_fill_selected": "*primary_600",
}
WIDE = "() => innerWidth > 768"  # on a phone the list of conversations would hide the chat


def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    for number, source in enumerate(("station", "satellite"), 1):
        context.report(f"asking the {source} ({number} of 2)")
        time.sleep(1)
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def decide(chats: Conversations, chosen: str, call: PendingCall, text: str) -> gr.Textbox:
    """Let a call run with the arguments of its editor; show what is wrong with them."""
    try:
        chats.decide(chosen, [(call.respond if call.kind == "elicitation" else call.edit)(json.loads(text))])
    except DecisionsError as error:  # not what the tool takes, or decided elsewhere: the editor stays
        return gr.Textbox(" ".join(problem.words for problem in error.problems), visible=True)
    except ValueError as error:  # no JSON
        return gr.Textbox(str(error), visible=True)
    return gr.Textbox(visible=False)


class Unread:
    """What users have said and no run has read yet."""

    def __init__(self, chats: Conversations) -> None:
        self._chats = chats
        self._texts: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by conversation and id

    async def load(self, chosen: str) -> None:
        """Begin with what the conversation ends with: what is read of it is told by its events."""
        last = takewhile(lambda one: one.type == "human", reversed(await self._chats.amessages(chosen)))
        self._texts[chosen] = {str(one.id): one.text for one in reversed([*last])}

    def send(self, chosen: str, text: str, running: bool) -> tuple[str, gr.Textbox]:
        """Send a message; a run that goes on reads it between two requests."""
        if text.strip():
            message = HumanMessage(text, id=uuid4().hex)
            self._texts[chosen][str(message.id)] = text
            self._chats.send(chosen, message, while_running="steer")
        return "", self.shown(chosen, running)

    def shown(self, chosen: str, running: bool, read: Collection[str] = ()) -> gr.Textbox:
        """Show what waits while a run goes on, without what was read."""
        texts = self._texts[chosen]
        for one in [one for one in texts if one in read]:
            del texts[one]
        return gr.Textbox("\n".join(texts.values()), visible=running and bool(texts))


def page(chats: Conversations) -> gr.Blocks:
    """The page of these conversations. Which one it shows is in its address."""

    edited: dict[str, str] = {}  # what is in an editor outlives that another call is decided
    unread = Unread(chats)

    def begin(chosen: str | None, request: gr.Request) -> gr.Radio:
        known = {one.id: one.title or "Without a title" for one in chats.list(50, order="activity")}
        chosen = chosen or request.query_params.get("chat") or next(iter(known), uuid4().hex)
        choices = known if chosen in known else {chosen: "New conversation", **known}
        return gr.Radio([(title, one) for one, title in choices.items()], value=chosen)

    async def follow(chosen: str) -> AsyncIterator[Any]:
        await unread.load(chosen)
        async for chat in gradio_chat(chats.aevents(chosen, follow=True), show_waiting=False):  # they are in `editors`
            waiting = [call.to_dict() for call in chat.pending]
            buttons = gr.Textbox(interactive=True, submit_btn=True, stop_btn=chat.is_running)
            shown = chat.messages, buttons, unread.shown(chosen, chat.is_running, chat.read), chat.is_running
            yield *shown, waiting, chat.failed, gr.Button(visible=bool(chat.failed))

    def editors(chosen: str, waiting: list[dict[str, Any]]) -> None:
        for call in map(PendingCall.from_dict, waiting):
            is_question = call.kind == "elicitation"  # of an MCP server
            label = call.args["message"] if is_question else f"{' > '.join([*call.path, call.name])} waits for you"
            args = "{}" if is_question else json.dumps(call.args, indent=2, ensure_ascii=False)
            with gr.Column(elem_classes="approval"):
                editor = gr.Code(edited.get(call.digest, args), "json", label=label, interactive=True, wrap_lines=True)
                gr.Markdown(words := gradio_words_of_tool(call), visible=bool(words))
                refused = gr.Textbox(visible=False, show_label=False, interactive=False, elem_classes="refused")
                with gr.Row():
                    approve = gr.Button("Answer" if is_question else "Approve", variant="primary", min_width=80)
                    reject = gr.Button("Decline" if is_question else "Reject", min_width=80)

            editor.input(lambda text, call=call: edited.update({call.digest: text}), editor, show_progress="hidden")
            approve.click(lambda text, call=call: decide(chats, chosen, call, text), editor, refused)
            reject.click(lambda call=call: chats.decide(chosen, [call.reject()]) and None)

    with (blocks := gr.Blocks(title="Chat", analytics_enabled=False, fill_height=True, fill_width=True)):
        waiting, failed, running = gr.State([]), gr.State(), gr.State(False)
        with gr.Sidebar(open=False, width=260) as sidebar:
            new = gr.Button("New conversation")
            chosen = gr.Radio([], label="Conversations")
        messages = gr.Chatbot(scale=1, height=200, show_label=False, buttons=[], latex_delimiters=MATH_DELIMITERS)
        with gr.Column(scale=0):
            gr.render([chosen, waiting], triggers=[waiting.change], show_progress="hidden")(editors)
        again = gr.Button("Try again", visible=False)
        unread_box = gr.Textbox(visible=False, label="Waiting to be read", interactive=False, elem_classes="unread")
        box = gr.Textbox(placeholder="Message", show_label=False, elem_classes="draft", interactive=False)  # until `follow` tells
        sent = box.submit(unread.send, [chosen, box, running], [box, unread_box], show_progress="hidden")
        sent.then(begin, chosen, chosen, show_progress="hidden")
        box.stop(chats.cancel, chosen)
        again.click(lambda failed: chats.retry(failed) and None, failed)
        messages.clear(chats.delete, chosen).then(None, js="() => location.assign('?')")
        new.click(lambda: uuid4().hex, None, chosen).then(None, chosen, js=OPEN)
        chosen.input(None, chosen, js=OPEN)
        # One after another: Gradio drops the rest where one of several events ends before the others are known to the page.
        begun = blocks.load(begin, chosen, chosen, show_progress="hidden")
        begun = begun.then(lambda wide: gr.Sidebar(open=wide), gr.Checkbox(visible=False), sidebar, js=WIDE, show_progress="hidden")
        begun = begun.then(None, chosen, js=STAY).then(None, box, box, js=RESTORE)
        outputs = [messages, box, unread_box, running, waiting, failed, again]
        begun.then(follow, chosen, outputs, concurrency_limit=None, show_progress="hidden")
    return blocks


if __name__ == "__main__":
    tools = [get_temperature, send_mail]
    model: Any = init_chat_model(sys.argv[1] if sys.argv[1:] else "local", tools=tools, requires_approval=["send_mail"])
    chats = Conversations(model, "sqlite:///chats.sqlite", rerun=["get_temperature"])
    launch()  # goes on at once with what a killed program has left
    theme = gr.themes.Soft(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    page(chats).launch(theme=theme.set(**READABLE), head=CHAT_HEAD, footer_links=[], show_error=True)
