"""The same conversation with a loop of one's own: `bind_tools` declares, `ToolExecutor` executes, the program decides."""

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.tools import tool

from langchain_autotools import ChatOpenAI, ToolExecutor


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def main() -> None:
    """Ask, execute what was asked for, and go on until there is an answer."""
    executor = ToolExecutor([get_temperature])
    model = ChatOpenAI(model="gpt-5").bind_tools([get_temperature])
    messages: list[BaseMessage] = [HumanMessage("How warm is it in Paris and in Rome?")]
    answer = model.invoke(messages)
    messages.append(answer)
    while answer.tool_calls:
        for call in answer.tool_calls:
            print(f"{call['name']}({call['args']})")
        messages += executor.execute_all(answer)
        answer = model.invoke(messages)
        messages.append(answer)
    print(answer.text)


if __name__ == "__main__":
    main()
