"""A program as users write it: type checkers take it in their strict modes (`tests/test_user_types.py`). It is never run."""

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import BaseModel

from langchain_autotools import (
    Agent,
    ChatAnthropic,
    ChatOpenAI,
    LimitReachedError,
    ToolContext,
    ToolPolicy,
    events,
    final_message,
    init_chat_model,
    new_messages,
    pending_calls,
    run_usage,
    show,
    stop_reason,
)
from langchain_autotools.event_types import TextDelta


class Weather(BaseModel):
    """The weather of a city."""

    degrees: float


def get_temperature(city: str, context: ToolContext) -> str:
    """Current temperature of a city."""
    context.report(f"asking the station of {city}")
    return "21 °C"


def talk(history: list[BaseMessage]) -> AIMessage:
    """A stream, approvals, events, limits, structured output, an agent."""
    policies = {"get_temperature": ToolPolicy(timeout=5)}
    model = ChatOpenAI(model="gpt-5", api_key="key", tools=[get_temperature], requires_approval=["get_temperature"], policies=policies)
    for chunk in model.stream(history):
        print(chunk.text, end="")
        history += new_messages(chunk)
    other = init_chat_model("anthropic:claude-sonnet-5", tools={"temperature": get_temperature}, max_turns=3)
    run = other.resume(history, [call.approve() for call in pending_calls(history)])
    weather = model.with_structured_output(Weather).invoke([*history, *new_messages(run)])
    for event in events(ChatAnthropic(model="claude-sonnet-5", api_key="key").stream(f"What to wear at {weather.degrees + 0.5} °C?")):
        if isinstance(event, TextDelta):
            print(event.text, stop_reason(run), run_usage(run))
    try:
        print(Agent(model, output=Weather).run("Rome?").text, show(model.stream("Oslo?")).text)
    except LimitReachedError as error:
        print(error.stop_reason, new_messages(error))
    return final_message(run)


async def talk_async(question: str) -> list[BaseMessage]:
    """The same, asynchronously."""
    history: list[BaseMessage] = [HumanMessage(question)]
    async for chunk in ChatOpenAI(model="gpt-5", tools=[get_temperature]).astream(history):
        history += new_messages(chunk)
    return history
