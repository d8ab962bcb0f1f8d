"""An endpoint that speaks OpenAI's chat completions: any page or program that asks OpenAI can ask a model with tools of its own.

    uvicorn --factory examples.web.openai_endpoint:app

The model's own tools run inside; the client sees text and reasoning. Calls of tools that the client declares go to the client, as OpenAI's
would, and their results come with its next request.
"""

import json
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from langchain_core import exceptions
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import convert_to_messages

from langchain_autotools import ChatOpenAI, ConfigurationError, PendingCall, UnsupportedFeatureError, aevents
from langchain_autotools.encoders import Failure, encoded
from langchain_autotools.event_types import CallsPending, ReasoningDelta, RunEnded, RunEvent, TextDelta

FINISH_REASONS = {"refused": "content_filter", "length": "length", "incomplete": "length", "deadline": "length"}
FORWARDED = {name: name for name in ("stop", "temperature", "top_p", "max_tokens")} | {"max_completion_tokens": "max_tokens"}
TYPES: Mapping[str, tuple[Any, str]] = {
    "messages": (list, "an array"),
    "model": (str, "a string"),
    "temperature": ((int, float), "a number"),
    "top_p": ((int, float), "a number"),
    "max_tokens": (int, "an integer"),
    "max_completion_tokens": (int, "an integer"),
    "stop": ((str, list), "a string or an array"),
    "stream": (bool, "a boolean"),
    "tools": (list, "an array"),
}
ROLES = ("system", "developer", "user", "assistant", "tool")
MESSAGE_KEYS = ("role", "content", "name", "tool_calls", "tool_call_id")
ERRORS: Mapping[type[Exception], tuple[int, str, str | None]] = {
    exceptions.ContextOverflowError: (400, "invalid_request_error", "context_length_exceeded"),
    exceptions.ModelInvalidRequestError: (400, "invalid_request_error", None),
    exceptions.ModelRateLimitError: (429, "rate_limit_error", "rate_limit_exceeded"),
    ValueError: (400, "invalid_request_error", None),
}
TOLD = (ConfigurationError, UnsupportedFeatureError)  # their texts say what is wrong with the client's messages or tools


class Refusal(Exception):
    """What the client asks for that cannot be."""

    def __init__(self, message: str, param: str | None = None, code: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        self.error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}


class Completion:
    """Writes the events of a run as the chunks of a completion, and adds them up for those who want it whole."""

    heartbeat = b": heartbeat\n\n"

    def __init__(self, model: str, include_usage: bool) -> None:
        self.head = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": int(time.time()), "model": model}
        self.include_usage = include_usage
        self.message: dict[str, Any] = {}
        self.finish_reason = "stop"
        self.usage: dict[str, int] | None = None
        self.refused: tuple[int, dict[str, Any]] | None = None
        self.source: str | None = None  # the message that the last text is from

    def encode(self, event: RunEvent) -> bytes:
        """The chunk that an event adds. What happens inside tools is not the client's business."""
        delta = self.delta(event) if event.parent_run_id is None else {}
        if not delta:
            return b""
        if not self.message:
            delta = {"role": "assistant", "content": "", **delta}
        for key, value in delta.items():
            self.message[key] = self.message[key] + value if key in self.message else value
        return self.chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def delta(self, event: RunEvent) -> dict[str, Any]:
        """What an event adds to the message."""
        match event:
            case TextDelta():
                text = self.message.get("content")
                separator = "\n" if event.message_id != self.source and text and not text[-1].isspace() else ""
                self.source = event.message_id
                return {"content": separator + event.text}
            case ReasoningDelta():
                return {"reasoning_content": event.text}
            case CallsPending():
                calls = [tool_call(index, call) for index, call in enumerate(one for one in event.calls if one.kind == "caller")]
                return {"tool_calls": calls} if calls else {}
            case RunEnded():
                self.finish_reason = "tool_calls" if "tool_calls" in self.message else FINISH_REASONS.get(event.stop_reason, "stop")
                tokens = event.usage
                if tokens is not None:
                    named = {"prompt": tokens["input_tokens"], "completion": tokens["output_tokens"], "total": tokens["total_tokens"]}
                    self.usage = {f"{name}_tokens": number for name, number in named.items()}
        return {}

    def end(self) -> bytes:
        """The chunks that say why it ended, and what it took."""
        last = self.chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": self.finish_reason}])
        usage = self.chunk([], usage=self.usage) if self.include_usage else b""
        return last + usage + b"data: [DONE]\n\n"

    def fail(self, failure: Failure) -> bytes:
        """An error in the middle of a stream."""
        status, kind, code = next((told for error, told in ERRORS.items() if isinstance(failure.error, error)), (500, "server_error", None))
        text = str(failure.error) if isinstance(failure.error, TOLD) else failure.text
        self.refused = status, {"message": text, "type": kind, "param": None, "code": code}
        return data({"error": self.refused[1]})

    def chunk(self, choices: list[dict[str, Any]], usage: Any = None) -> bytes:
        """One chunk of the stream."""
        told = {"usage": usage} if self.include_usage else {}
        return data({**self.head, "object": "chat.completion.chunk", "choices": choices, **told})

    def whole(self) -> dict[str, Any]:
        """The completion in one piece."""
        message = {"role": "assistant", **self.message, "content": self.message.get("content") or None, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        return {**self.head, "object": "chat.completion", "choices": [choice], "usage": self.usage}


def data(value: Any) -> bytes:
    """One frame of the stream."""
    return f"data: {json.dumps(value)}\n\n".encode()


def tool_call(index: int, call: PendingCall) -> dict[str, Any]:
    """A call of a tool that the client declared."""
    function = {"name": call.name, "arguments": json.dumps(call.args)}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def model_of(name: Any, models: Mapping[str, BaseChatModel]) -> BaseChatModel:
    """The model of a name.

    Raises:
        Refusal: There is none.
    """
    if name not in models:
        raise Refusal(f"The model `{name}` does not exist. There are: {', '.join(models)}.", "model", "model_not_found", 404)
    return models[name]


def checked(body: Any) -> dict[str, Any]:
    """The parameters of a request.

    Raises:
        Refusal: One has the wrong type, or cannot be used here.
    """
    if not isinstance(body, dict):
        raise Refusal("The body must be a JSON object.")
    given = {name: value for name, value in body.items() if value is not None}
    for name in ("model", "messages"):
        if not given.get(name):
            raise Refusal(f"`{name}` is missing or empty.", name)
    for name, (kind, words) in TYPES.items():
        if name in given and (not isinstance(given[name], kind) or (isinstance(given[name], bool) and kind is not bool)):
            raise Refusal(f"`{name}` must be {words}.", name)
    for name in ("n", "functions", "audio", "response_format"):
        if given.get(name) not in (None, 1, {"type": "text"}):
            raise Refusal(f"`{name}` is not supported here.", name, "unsupported_parameter")
    check_parts(given["messages"], given.get("tools", ()))
    return given


def check_parts(messages: list[Any], tools: Sequence[Any]) -> None:
    """Look at each message and each tool.

    Raises:
        Refusal: One cannot be.
    """
    for place, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise Refusal(f"`messages[{place}].role` must be one of: {', '.join(ROLES)}.", f"messages[{place}].role")
        if message["role"] == "tool" and not message.get("tool_call_id"):
            raise Refusal(f"`messages[{place}].tool_call_id` is missing.", f"messages[{place}].tool_call_id")
    for place, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise Refusal(f"`tools[{place}].type` must be `function`: other tools are not supported here.", f"tools[{place}].type")


def asked(body: Any, models: Mapping[str, BaseChatModel]) -> AsyncIterator[Any]:
    """The stream of the run that a request asks for.

    Raises:
        Refusal: It cannot be.
    """
    given = checked(body)
    model = model_of(given["model"], models)
    try:
        messages = convert_to_messages([{name: one.get(name) for name in MESSAGE_KEYS} for one in given["messages"]])
    except Exception as error:  # whatever is wrong with them
        raise Refusal(f"The messages cannot be read: {error}", "messages") from error
    keywords: dict[str, Any] = {ours: given[theirs] for theirs, ours in FORWARDED.items() if theirs in given}
    choice = given.get("tool_choice")
    if not given.get("tools") and choice not in (None, "none", "auto"):
        raise Refusal("`tool_choice` is only allowed where `tools` are given.", "tool_choice")
    if not given.get("tools") or choice == "none":
        return model.astream(messages, **keywords)
    chosen = {name: given[name] for name in ("tool_choice", "parallel_tool_calls") if name in given}
    try:
        return model.bind_tools(given["tools"], **chosen).astream(messages, **keywords)
    except Exception as error:  # whatever is wrong with them
        raise Refusal(f"The tools cannot be used: {error}", "tools") from error


async def completed(request: Request, models: Mapping[str, BaseChatModel]) -> Response:
    """The response to a request for a completion.

    Raises:
        Refusal: It cannot be.
    """
    try:
        body = await request.json()
    except ValueError as error:
        raise Refusal(f"The body is no JSON: {error}") from error
    run = asked(body, models)
    completion = Completion(body["model"], include_usage=body.get("stream_options") == {"include_usage": True})
    stream = encoded(aevents(run), completion, heartbeat=15.0)
    first = await anext(stream)  # an error that comes before anything else has a status of its own
    if body.get("stream") and not completion.refused:
        return StreamingResponse(rest(first, stream), media_type="text/event-stream")
    async with aclosing(stream):
        async for _ in stream:
            if await request.is_disconnected():
                break
    if completion.refused:
        return JSONResponse({"error": completion.refused[1]}, completion.refused[0])
    return JSONResponse(completion.whole())


def described(name: str) -> dict[str, Any]:
    """A model, as clients read it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "this server"}


def serve(models: Mapping[str, BaseChatModel]) -> FastAPI:
    """An endpoint for these models, by the names that clients ask for."""
    app = FastAPI()

    @app.exception_handler(Refusal)
    async def refuse(_: Request, refusal: Refusal) -> Response:
        return JSONResponse({"error": refusal.error}, refusal.status)

    @app.exception_handler(404)
    async def miss(request: Request, _: Exception) -> Response:
        return JSONResponse({"error": Refusal(f"There is no {request.method} {request.url.path} here.").error}, 404)

    @app.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        return {"object": "list", "data": [*map(described, models)]}

    @app.get("/v1/models/{name:path}")
    async def retrieve_model(name: str) -> dict[str, Any]:
        model_of(name, models)
        return described(name)

    @app.post("/v1/chat/completions")
    async def complete(request: Request) -> Response:
        return await completed(request, models)

    return app


async def rest(first: bytes, stream: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """A stream of which the first piece has been read."""
    async with aclosing(stream):
        yield first
        async for piece in stream:
            yield piece


def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return "21 °C"


def app() -> FastAPI:
    """The endpoint with one model."""
    return serve({"assistant": ChatOpenAI(model="gpt-5", tools=[get_temperature], stream_usage=True)})
