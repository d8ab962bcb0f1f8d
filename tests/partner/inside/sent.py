"""What our classes really send, under the names by which the partner packages' tests ask for it.

Their tests call private helpers that build a request. Here the model is invoked as a user would, and what it is about to send is taken
where the vendor's client would get it. What a client makes of an argument of the SDK (`betas` becomes a header) is turned back.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from langchain_core.messages import BaseMessage, HumanMessage

import langchain_autotools
from langchain_autotools.providers._base.http_model import HttpChatModel
from langchain_autotools.providers._transport.exchange import Exchange

HEADERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "anthropic-beta": ("betas", lambda value: value.split(",")),
    "anthropic-user-profile-id": ("user_profile_id", str),
}
"""Headers that stand for arguments of an SDK's method, and how each is read."""


asked: list[HttpChatModel] = []
"""The models whose requests the running test has asked for."""


class Text(list[Any]):
    """The content of one text block and nothing else: for the vendor, and so for the tests, the same as the text alone."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return list(self) in (other, [{"type": "text", "text": other}])

    def __ne__(self, other: object) -> bool:
        return not self == other


class Sent(BaseException):
    """The request, on its way out. No `Exception`: nobody is to answer it, nor to try it again."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self.exchange = exchange


def stop_at_the_door(model: HttpChatModel, exchange: Exchange) -> Any:
    """In place of sending the request."""
    raise Sent(exchange)


def sent(model: Any, messages: Any, stop: Sequence[str] | None = None, **kwargs: Any) -> Exchange:
    """The request that `model.invoke` sends for these messages, or `model.stream` where `stream=True` is asked."""
    asked.append(model)
    streams = kwargs.pop("stream", None)
    with patch.object(HttpChatModel, "_open", stop_at_the_door):
        try:
            if streams:
                list(model.stream(messages, stop=stop, **kwargs))
            else:
                model.invoke(messages, stop=stop, **kwargs)
        except Sent as request:
            return request.exchange
    raise AssertionError("the model sent nothing")


def request_payload(model: Any, input_: Any, *, stop: Sequence[str] | None = None, **kwargs: Any) -> dict[str, Any]:
    """`_get_request_payload`: the request's JSON, and what the SDK's clients send as headers."""
    exchange = sent(model, input_, stop, **kwargs)
    body: dict[str, Any] = json.loads(exchange.body)
    if isinstance(model, langchain_autotools.ChatAnthropic):
        for part, name in ((body, "system"), *((message, "content") for message in body["messages"])):
            part |= {name: Text(part[name])} if isinstance(part.get(name), list) else {}
    headers = {name.lower(): value for name, value in exchange.options.get("headers", {}).items()}
    return body | {argument: read(headers[name]) for name, (argument, read) in HEADERS.items() if name in headers}


def uses_responses(model: Any, payload: dict[str, Any]) -> bool:
    """`_use_responses_api`: whether a request with these parameters goes to the Responses API."""
    return sent(model, "Hello", **payload).path == "/responses"


def format_messages(
    messages: Sequence[BaseMessage], *, model: str | None, mid_conversation_system_messages: bool = False
) -> tuple[Any, list[Any]]:
    """langchain-anthropic's `_format_messages`: the system prompt and the messages of a request."""
    profile = {"mid_conversation_system_messages": mid_conversation_system_messages}
    body = request_payload(langchain_autotools.ChatAnthropic(model=model or "claude", profile=profile), messages)
    return body.get("system"), body["messages"]


def responses_input(messages: Sequence[BaseMessage], *, store: bool | None = None) -> list[Any]:
    """langchain-openai's `_construct_responses_api_input`: the items of a request."""
    model = langchain_autotools.ChatOpenAI(model="gpt-5", use_responses_api=True, store=store)
    items: list[Any] = request_payload(model, messages)["input"]
    return items


def google_request(model: Any, messages: Any, *, stop: Sequence[str] | None = None, **kwargs: Any) -> dict[str, Any]:
    """langchain-google-genai's `_prepare_request`: the request as google-genai's own objects."""
    from google.genai import types

    body = json.loads(sent(model, messages, stop, **kwargs).body)
    contents = [types.Content.model_validate(content) for content in body.pop("contents")]
    config = types.GenerateContentConfig.model_validate({**body.pop("generationConfig", {}), **body})
    return {"model": model.model, "contents": contents, "config": config}


def message_of(model: Any, message: BaseMessage) -> dict[str, Any]:
    """`_convert_message_to_dict`: a message as it is first in a request."""
    first: dict[str, Any] = request_payload(model, [message])["messages"][0]
    return first


def openrouter_message(message: BaseMessage) -> dict[str, Any]:
    """langchain-openrouter's `_convert_message_to_dict`."""
    return message_of(langchain_autotools.ChatOpenRouter(model="openai/gpt-4o-mini", api_key="unused"), message)


def openrouter_content(content: Any) -> Any:
    """langchain-openrouter's `_format_message_content`: what a user says."""
    return openrouter_message(HumanMessage(content))["content"]


def groq_content(content: Any) -> Any:
    """langchain-groq's `_format_message_content`: what a user says."""
    return message_of(langchain_autotools.ChatGroq(model="llama-3.3-70b-versatile", api_key="unused"), HumanMessage(content))["content"]


METHODS = {"_get_request_payload": request_payload, "_prepare_request": google_request, "_use_responses_api": uses_responses}
FUNCTIONS = {
    "langchain_groq.chat_models._format_message_content": groq_content,
    "langchain_openrouter.chat_models._convert_message_to_dict": openrouter_message,
    "langchain_openrouter.chat_models._format_message_content": openrouter_content,
    "langchain_anthropic.chat_models._format_messages": format_messages,
    "langchain_openai.chat_models.base._construct_responses_api_input": responses_input,
}


def give() -> None:
    """Put the methods on our classes, in this process."""
    for name, method in METHODS.items():
        setattr(HttpChatModel, name, method)
