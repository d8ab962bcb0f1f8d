"""An agent: a model with tools, a system prompt and a conversation that it keeps. Needs OPENAI_API_KEY."""

from langchain_core.tools import tool

from langchain_autotools import Agent


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return {"Paris": "21 °C", "Rome": "27 °C"}.get(city, "unknown")


def main() -> None:
    """Ask twice: once at a stroke, once piece by piece."""
    agent = Agent("openai:gpt-5", tools=[get_temperature], system_prompt="Answer in one sentence.")
    result = agent.run("How warm is it in Paris?")
    print(result.text, result.stop_reason, result.usage)
    with agent.run_stream("And in Rome?") as stream:
        for chunk in stream:
            print(chunk.text, end="", flush=True)
    print(f"\n{len(stream.result.messages)} new messages, {len(agent.history)} in all")


if __name__ == "__main__":
    main()
