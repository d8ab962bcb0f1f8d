"""A human decides on each call: the tools are only declared, the run ends with the calls pending, `resume` executes what was approved."""

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, new_messages


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Ask, show the pending calls, and go on with the user's decisions."""
    model = ChatOpenAI(model="gpt-5")
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail that dinner is at eight.")]
    answer = model.bind_tools([send_mail]).invoke(history)
    history += new_messages(answer)
    decisions: dict[str, bool | str] = {}
    for call in answer.tool_calls:
        agreed = input(f"{call['name']}({call['args']})? [y/n] ").strip() == "y"
        decisions[call["id"] or ""] = agreed or "The user said no."
    sender = ChatOpenAI(model="gpt-5", tools=[send_mail])
    result = sender.resume(history, decisions)
    history += new_messages(result)
    print(result.text)


if __name__ == "__main__":
    main()
