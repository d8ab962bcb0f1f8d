"""Approvals in a graph: one node runs the model until calls wait, the next one interrupts the graph, and resumes with what was decided."""

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from langchain_autotools import ChatOpenAI, PendingCall, new_messages, pending_calls


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Run the graph until it asks, and go on with a human's answers, until it asks no more."""
    model = ChatOpenAI(model="gpt-5", tools=[send_mail], requires_approval=True)

    def run(state: MessagesState) -> dict[str, object]:
        return {"messages": new_messages(model.invoke(state["messages"]))}

    def ask(state: MessagesState) -> dict[str, object]:
        decisions = interrupt([call.to_dict() for call in pending_calls(state["messages"])])
        return {"messages": new_messages(model.resume(state["messages"], decisions))}

    def following(state: MessagesState) -> str:
        return "ask" if pending_calls(state["messages"]) else END

    builder = StateGraph(MessagesState).add_node("run", run).add_node("ask", ask).add_edge(START, "run")
    builder.add_conditional_edges("run", following).add_conditional_edges("ask", following)
    graph = builder.compile(checkpointer=InMemorySaver())
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}  # the human may answer days later, in another process
    state = graph.invoke({"messages": [HumanMessage("Tell Anna that dinner is at eight.")]}, thread)
    while "__interrupt__" in state:
        calls = [PendingCall.from_dict(shown) for shown in state["__interrupt__"][0].value]
        decisions = [call.approve() if input(f"{call.name}({call.args})? [y/n] ") == "y" else call.reject() for call in calls]
        state = graph.invoke(Command(resume=[decision.to_dict() for decision in decisions]), thread)
    print(state["messages"][-1].text)


if __name__ == "__main__":
    main()
