"""A run shown while it happens: its text, its calls as they are written, their progress and results in the order in which they come."""

from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, ToolContext, events
from langchain_autotools.event_types import CallArgumentsDelta, CallProgress, CallResult, CallStarted, RunEnded, TextDelta


@tool
def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    context.report("asking the station")
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def main() -> None:
    """Read the events of one run."""
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])
    for event in events(model.stream("How warm is it in Paris and in Rome?")):
        if isinstance(event, TextDelta | CallArgumentsDelta):
            print(event.text, end="", flush=True)
        elif isinstance(event, CallStarted):
            print(f"\n{event.name} ", end="")
        elif isinstance(event, CallProgress | CallResult):
            print(f"\n[{event.call_id}: {event.value if isinstance(event, CallProgress) else event.message.text}]", end="")
        elif isinstance(event, RunEnded):
            print(f"\n{event.stop_reason}: {event.usage and event.usage['total_tokens']} tokens")


if __name__ == "__main__":
    main()
