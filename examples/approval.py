"""A human decides on each call: the model has the tool, `bind_tools` leaves its calls to us, `resume` executes what was approved."""

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Ask, show the pending calls, and go on with the user's decisions, until no call is left."""
    asking = ChatOpenAI(model="gpt-5", tools=[send_mail]).bind_tools([send_mail])
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail that dinner is at eight.")]
    answer = asking.invoke(history)
    history += new_messages(answer)
    while answer.tool_calls:
        decisions: dict[str, bool | str] = {}
        for call in answer.tool_calls:
            agreed = input(f"{call['name']}({call['args']})? [y/n] ").strip() == "y"
            decisions[call["id"] or ""] = agreed or "The user said no."
        answer = asking.invoke(history, resume=decisions)
        history += new_messages(answer)
    print(answer.text)


if __name__ == "__main__":
    main()
