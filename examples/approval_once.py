"""A call that was approved runs once, however often and in however many processes its history is resumed: `claims` sees to it."""

from langchain_core.messages import BaseMessage, HumanMessage

from langchain_autotools import ChatOpenAI, claims, new_messages, pending_calls


def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    return f"Sent to {to}."


def main() -> None:
    """Approve a call, and resume its history twice, as a user does who clicks twice: one mail is sent, and both runs have its result."""
    model = ChatOpenAI(model="gpt-5", tools=[send_mail], requires_approval=["send_mail"], claim=claims("sqlite:///claims.db"))
    history: list[BaseMessage] = [HumanMessage("Tell Anna by mail that dinner is at eight.")]
    history += new_messages(model.invoke(history))
    decisions = [call.approve() for call in pending_calls(history)]
    print(model.resume(history, decisions).text, model.resume(history, decisions).text)


if __name__ == "__main__":
    main()
