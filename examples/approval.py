"""A human decides on the calls of some tools: the others run at once, these wait, and what was decided goes to `resume`."""

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import ChatOpenAI, Decision, PendingCall, new_messages, pending_calls


def get_weather(city: str) -> str:
    """Say what the weather is like."""
    return "21 °C"


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def ask(call: PendingCall) -> Decision:
    """Show the call to the user. (A service stores `call.to_dict()`, and gets the decision's dict back, days later.)"""
    agreed = input(f"{call.name}({call.args})? [y/n] ").strip() == "y"
    return call.approve() if agreed else call.reject("The user said no.")


def main() -> None:
    """Ask, and go on with what was decided until no call waits."""
    model = ChatOpenAI(model="gpt-5", tools=[get_weather, send_mail], requires_approval=["send_mail"])
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail how warm it is in Paris.")]
    run = model.invoke(history)
    history += new_messages(run)  # get_weather has run; send_mail waits
    while calls := pending_calls(run):
        run = model.resume(history, [ask(call) for call in calls])
        history += new_messages(run)
    print(run.text)


if __name__ == "__main__":
    main()
