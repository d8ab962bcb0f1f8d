"""A tool that knows the conversation and says how far it is while it runs: `ToolContext`, a parameter that no model sees."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, ToolCallRecord, ToolContext


@tool
def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    for share, source in enumerate(("the station", "the satellite"), 1):
        context.report({"asking": source, "done": share / 2})
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def show(call: ToolCallRecord, value: dict[str, object]) -> None:
    """Tell the user what a running call reports."""
    print(f"[{call.name} {call.args}: {value['done']:.0%}, asking {value['asking']}]")


def main() -> None:
    """Stream one conversation; progress comes while the tools run, between the texts."""
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature], on_progress=show)
    for chunk in model.stream([HumanMessage("How warm is it in Paris and in Rome?")]):
        print(chunk.text, end="", flush=True)


if __name__ == "__main__":
    main()
