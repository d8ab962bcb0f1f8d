"""A chat page over conversations that outlive this program: they stand in chats.sqlite. Needs the extra `examples`.

`python examples/chat_app.py` asks the embedded local model (extra `local`), `python examples/chat_app.py openai:gpt-5` another one.
"""

import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from langchain_autotools import PendingCall, ToolContext, init_chat_model
from langchain_autotools.durable import Conversations, launch
from langchain_autotools.showing import gradio_chat

ONLY_FROM_HERE = """<meta http-equiv="Content-Security-Policy" content="default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:">"""


def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    for number, source in enumerate(("station", "satellite"), 1):
        context.report(f"asking the {source} ({number} of 2)")
        time.sleep(1)
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def page(chats: Conversations) -> gr.Blocks:
    """The page of these conversations. Which one it shows stands in its address."""

    def begin(request: gr.Request) -> gr.Radio:
        known = [one.id for one in chats.list(50)]
        chosen = request.query_params.get("chat") or (known or ["First conversation"])[0]
        return gr.Radio(known if chosen in known else [chosen, *known], value=chosen)

    async def follow(chosen: str) -> AsyncIterator[Any]:
        async for chat in gradio_chat(chats.aevents(chosen, follow=True)):
            buttons = gr.Textbox(submit_btn=not chat.is_running, stop_btn=chat.is_running)
            yield chat.messages, buttons, [call.to_dict() for call in chat.pending]

    def editors(chosen: str, waiting: list[dict[str, Any]]) -> None:
        for call in map(PendingCall.from_dict, waiting):
            args = gr.Code(json.dumps(call.args, indent=2, ensure_ascii=False), "json", label=call.name, interactive=True)
            with gr.Row():
                approve, reject = gr.Button("Approve", variant="primary"), gr.Button("Reject")
            approve.click(lambda text, call=call: chats.decide(chosen, [call.edit(json.loads(text))]) and None, args)
            reject.click(lambda call=call: chats.decide(chosen, [call.reject()]) and None)

    with (blocks := gr.Blocks(title="Chat", analytics_enabled=False, fill_height=True, fill_width=True)):
        waiting = gr.State([])
        with gr.Sidebar(width=260):
            new = gr.Button("New conversation")
            chosen = gr.Radio([], label="Conversations")
        messages = gr.Chatbot(scale=1, height=200, show_label=False, buttons=[])
        with gr.Column(scale=0):
            gr.render([chosen, waiting], show_progress="hidden")(editors)
        box = gr.Textbox(placeholder="Message", show_label=False)  # `follow` shows its button
        box.submit(lambda chosen, text: text.strip() and chats.send(chosen, text) and "", [chosen, box], box, show_progress="hidden")
        box.stop(chats.cancel, chosen)
        messages.clear(chats.delete, chosen).then(None, js="() => location.assign('?')")
        new.click(None, js="() => location.assign('?chat=' + new Date().toLocaleString())")
        chosen.input(None, chosen, js="chosen => location.assign('?chat=' + encodeURIComponent(chosen))")
        begun = blocks.load(begin, None, chosen, show_progress="hidden")
        begun.then(follow, chosen, [messages, box, waiting], concurrency_limit=None, show_progress="hidden")
    return blocks


if __name__ == "__main__":
    tools = [get_temperature, send_mail]
    model: Any = init_chat_model(sys.argv[1] if sys.argv[1:] else "local", tools=tools, requires_approval=["send_mail"])
    chats = Conversations(model, "sqlite:///chats.sqlite", rerun=["get_temperature"])
    launch()  # goes on at once with what a killed program has left
    theme = gr.themes.Soft(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    page(chats).launch(theme=theme, head=ONLY_FROM_HERE, footer_links=[], show_error=True)
