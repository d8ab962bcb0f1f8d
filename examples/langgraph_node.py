"""A model with its own tools as one node of a LangGraph graph: each message of the run lands in the state."""

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph

from langchain_autotools import ChatOpenAI, new_messages


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def main() -> None:
    """Build the graph, run it once and show the state's messages."""
    model = ChatOpenAI(model="gpt-5", tools=[get_temperature])

    def talk(state: MessagesState) -> dict[str, object]:
        return {"messages": new_messages(model.invoke(state["messages"]))}

    builder = StateGraph(MessagesState)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    state = builder.compile().invoke({"messages": [HumanMessage("How warm is it in Paris and in Rome?")]})
    for message in state["messages"]:
        print(f"{message.type}: {message.text!r}")


if __name__ == "__main__":
    main()
