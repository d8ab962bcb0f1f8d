"""Keywords of a call as arguments of the constructor: the same request byte for byte, for every name of every vendor's request type."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.messages import HumanMessage
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from pydantic import BaseModel

from langchain_autotools import AzureChatOpenAI, ChatOpenAI, ConfigurationError
from langchain_autotools.providers.google.decode import snake
from tests.contract.wires import ROWS, Wire
from tests.support.http_server import Exchange
from tests.support.script import Call, Turn
from tests.vendor_types.asking import Asked
from tests.vendor_types.asking_rows import ASKED
from tests.vendor_types.samples import plain

WIRES = {wire.name: wire for wire in ROWS}
TYPES = {
    "openai-chat": "Chat completions: parameters",
    "openai-responses": "Responses: parameters",
    "azure-chat": "Chat completions: parameters",
    "azure-responses": "Responses: parameters",
    "anthropic": "Messages: parameters",
    "google": "generateContent: parameters",
    "ollama": "/api/chat: parameters",
}
REQUESTS = {row.name: row for row in ASKED}
VOLATILE = {"host", "content-length", "traceparent", "idempotency-key", "x-stainless-retry-count"}
SIGNED = re.compile(rb"c2ln\d{4}call")  # what Google's server signs its calls with, each with its own
WHAT: dict[str, list[Any]] = {
    "tool_choice": ["required", "auto", "none", "look_up", None],
    "parallel_tool_calls": [False, True, None],
    "response_format": [{"type": "json_object"}, {"type": "text"}],
    "extra_headers": [{"X-Team": "blue"}],
    "extra_query": [{"team": "blue"}],
    "stream_options": [{"include_usage": True}],
    "generation_config": [{"temperature": 0.5}],
    "code_execution": [True],
    "system_instruction": [{"parts": [{"text": "Be kind."}]}],
    "tool_config": [{"functionCallingConfig": {"mode": mode}} for mode in ("NONE", "ANY", "AUTO")],
}
WAYS = ("invoke", "stream", "a run", "bound tools")


def look_up(key: str) -> str:
    """Look something up."""
    return f"{key} is here"


def measure(key: str) -> str:
    """Measure something."""
    return key


def values_of(wire: Wire) -> Iterator[tuple[str, Any]]:
    """Each keyword that the constructor takes, with values: those of the vendor's type, and ours."""
    names: frozenset[str] = getattr(wire.chat_model, "_call_names")  # noqa: B009
    row = REQUESTS.get(TYPES.get(wire.name, ""))
    sampled: dict[str, list[Any]] = {name: list(WHAT.get(name, ())) for name in sorted(names)}
    for path, sample in row.samples() if row else ():
        if snake(path) in names and snake(path) not in ("tool_choice", "tool_config", "system_instruction"):
            sampled[snake(path)].append(plain(sample))
    for name, values in sampled.items():
        for value in values or ["given"]:
            yield name, value


def replied(wire: Wire, exchange: Exchange) -> Turn:
    """A call to a request that declares a tool and holds no result yet, else a text."""
    declares = b'"look_up"' in exchange.body and not wire.results(exchange)
    return Turn(calls=[Call("look_up", {"key": "it"}, "call_1")]) if declares else Turn('{"done": true}')


def told(wire: Wire, server: Any, way: str, constructor: Mapping[str, Any], call: Mapping[str, Any]) -> list[Any]:
    """What a way of asking sends, and what comes of it."""
    before = len(server.exchanges)
    try:
        model = wire.model(server, **({"tools": [look_up]} if way == "a run" else {}), **constructor)
        asked = model.bind_tools([look_up]) if way == "bound tools" else model
        question = [HumanMessage("Where? In JSON.")]
        text = "".join(chunk.text for chunk in asked.stream(question, **call)) if way == "stream" else asked.invoke(question, **call).text
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
    sent = server.exchanges[before:]
    headers = [{name: value for name, value in one.headers.items() if name.lower() not in VOLATILE} for one in sent]
    return [text, [(one.path, SIGNED.sub(b"", one.body)) for one in sent], headers]


@pytest.mark.further
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WIRES)
def test_the_constructor_sends_what_the_call_sends(name: str, way: str) -> None:
    """Each name of the request type with each kind of value: path, headers and body of every request are the same, and so is the text."""
    wire = WIRES[name]
    with wire.serve(lambda exchange: replied(wire, exchange)) as server:
        count = 0
        for keyword, value in values_of(wire):
            if way in ("invoke", "stream") and keyword in ("tool_choice", "tool_config"):
                continue  # without tools the constructor's says nothing
            by_call = told(wire, server, way, {}, {keyword: value})
            by_constructor = told(wire, server, way, {keyword: value}, {})
            if by_call[1] or by_constructor[1]:
                assert by_constructor == by_call, (keyword, value)
            else:  # an error says so, the sooner the better
                assert by_constructor[0].partition(":")[0] == by_call[0].partition(":")[0] == "ConfigurationError", (keyword, value)
            count += bool(by_call[1])
    assert count >= 4


def refusal(wire: Wire, name: str) -> str:
    """Why the constructor does not take an argument; "" if it does."""
    try:
        wire.model(type("Server", (), {"url": "http://127.0.0.1:9", "address": "http://127.0.0.1:9"}), **{name: "given"})
    except ConfigurationError as error:
        return str(error)
    return ""


@pytest.mark.further
@pytest.mark.parametrize("name", TYPES)
def test_no_name_of_a_request_type_is_unknown(name: str) -> None:
    """Each is an argument, or its refusal says what to use instead; those that the package writes itself are refused."""
    wire, row = WIRES[name], REQUESTS[TYPES[name]]
    fields = {snake(field) for field in _fields(row)} | {"messages", "stream", "functions", "function_call", "input", "contents"}
    for field in fields - getattr(wire.chat_model, "_argument_names")() - getattr(wire.chat_model, "_call_names"):  # noqa: B009
        assert refusal(wire, field) and "model_kwargs" not in refusal(wire, field), field
    for field in ("messages", "stream", "functions", "function_call", "input", "contents"):
        assert f"has no argument '{field}': " in refusal(wire, field)


def _fields(row: Asked) -> set[str]:
    from tests.vendor_types.samples import fields_of

    return set(fields_of(row.type))


@pytest.mark.further
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        *[("temprature", "temperature"), ("temperatur", "temperature"), ("max_token", "max_tokens"), ("maxTokens", "max_tokens")],
        *[("tool", "tools"), ("baseurl", "base_url"), ("apikey", "api_key"), ("tool_choise", "tool_choice"), ("modle", "model")],
        *[("parallel_tool_call", "parallel_tool_calls"), ("response_fromat", "response_format"), ("max_retrys", "max_retries")],
        *[("stremaing", "streaming"), ("time_out", "timeout"), ("max_turn", "max_turns"), ("reasoning_efort", "reasoning_effort")],
    ],
)
def test_a_misspelt_name_is_told_the_right_one(name: str, meant: str) -> None:
    """Arguments of ours, of LangChain's class and of the vendor's request type alike."""
    with pytest.raises(ConfigurationError, match=f"no argument '{name}': did you mean '{meant}'?"):
        ChatOpenAI(model="any", api_key="key", **{name: 1})


@pytest.mark.further
@pytest.mark.parametrize("name", WIRES)
def test_a_name_of_another_vendor_is_not_taken_for_a_misspelling(name: str) -> None:
    """What another vendor's class takes and this one does not is refused without a suggestion, unless both mean the same."""
    wire = WIRES[name]
    taken = {other.name: getattr(other.chat_model, "_argument_names")() | getattr(other.chat_model, "_call_names") for other in ROWS}  # noqa: B009
    foreign = set().union(*taken.values()) - taken[name]
    wrong = {field: text for field in sorted(foreign) if "did you mean" in (text := refusal(wire, field))}
    assert wrong == {field: text for field, text in wrong.items() if any(f"mean '{right}'" in text for right in SAME.get(field, ()))}


SAME: dict[str, tuple[str, ...]] = {
    "api_base": ("xai_api_base",),
    "client_args": ("client_kwargs",),
    "client_kwargs": ("client_args",),
    "compaction": ("compact",),
    "default_request_timeout": ("request_timeout",),
    "mirostat_target": ("mirostat_tau",),
    "mirostat_tau": ("mirostat_target",),
    "models": ("model",),
    "repeat_penalty": ("repetition_penalty",),
    "repetition_penalty": ("repeat_penalty",),
    "request_timeout": ("default_request_timeout",),
    "retries": ("max_retries",),
    "top_logprobs": ("logprobs",),
    "user_id": ("user",),
    "xai_api_base": ("api_base",),
    "xai_api_key": ("api_key",),
}
"""Names of other vendors for the same, each with the names that are rightly suggested."""


# ---------------------------------------------------------------------------------------------- which one holds


class City(BaseModel):
    """A city."""

    name: str


Resized = type("City", (BaseModel,), {"__annotations__": {"size": int}, "__module__": __name__, "__doc__": City.__doc__})
"""Another class under the same name, as a notebook has it whose cell was changed and run again."""
FORM = {"type": "json_object"}


@pytest.mark.further
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize("name", WIRES)
def test_structured_output_goes_before_a_form_of_the_constructor(name: str, method: str) -> None:
    """The requests are those of a model without that form."""
    wire = WIRES[name]

    def city(exchange: Exchange) -> Turn:
        return Turn(calls=[Call("City", {"name": "Oslo"})]) if b'"tools":' in exchange.body else Turn('{"name": "Oslo"}')

    with wire.serve(city) as server:
        for fields in ({}, {"response_format": FORM}):
            assert wire.model(server, **fields).with_structured_output(City, method=method).invoke("Where? In JSON.") == City(name="Oslo")
        plainly, formed = [exchange.body for exchange in server.exchanges]
    assert plainly == formed


@pytest.mark.further
@pytest.mark.parametrize("name", WIRES)
def test_the_call_goes_before_the_constructor(name: str) -> None:
    """What a call says, None included, replaces the constructor's; a forced choice gives way to another one."""
    wire = WIRES[name]
    with wire.serve(lambda exchange: Turn("{}")) as server:
        model, bare = wire.model(server, response_format=FORM, tool_choice="required"), wire.model(server)
        for one in (model, bare):
            one.bind_tools([look_up, measure], tool_choice="auto").invoke("In JSON?", response_format=None)
        model.invoke("In JSON?", response_format=None)
        bare.invoke("In JSON?")
        first, second, third, fourth = [exchange.body for exchange in server.exchanges]
    assert (first, third) == (second, fourth)


# ---------------------------------------------------------------------------------------------- where they show


class Traces(BaseTracer):
    """Keeps the runs of models."""

    def __init__(self) -> None:
        super().__init__()
        self.parameters: list[Any] = []

    def _persist_run(self, run: Run) -> None:
        self.parameters.append((run.extra or {}).get("invocation_params"))


@pytest.mark.further
@pytest.mark.parametrize("name", WIRES)
def test_models_that_differ_in_it_share_no_cached_reply(name: str) -> None:
    """Copies, pickles and serialized models have it; traces show it; secrets in it do not show."""
    wire, cache = WIRES[name], InMemoryCache()
    secret = "sk-0123456789abcdef"
    variants: list[dict[str, Any]] = [
        *({"tool_choice": choice} for choice in ("none", "required")),
        *({"response_format": form} for form in ([FORM] if name == "deepseek" else [FORM, City, Resized])),
        *({"extra_headers": {"X-Key": key}} for key in (secret, secret[::-1])),
    ]
    with wire.serve(lambda exchange: Turn("{}")) as server:
        models = [wire.model(server, cache=cache, **variant) for variant in ({}, *variants)]
        for number, model in enumerate(models, 1):
            copies = [model.model_copy(), model.model_copy(deep=True)]
            copies += [] if "extra_headers" in model.model_kwargs else [type(model)(**model.model_dump())]
            for again in copies:
                assert again.model_kwargs == model.model_kwargs
            model.invoke("In JSON?")
            model.invoke("In JSON?")
            assert len(server.exchanges) == number
            assert secret not in f"{model!r} {model._identifying_params} {model.model_dump_json(exclude={'cache'}, fallback=str)}"
        assert pickle.loads(pickle.dumps(wire.model(server, tool_choice="none"))).model_kwargs == {"tool_choice": "none"}
        traces = Traces()
        wire.model(server, tool_choice="none", response_format=FORM).invoke("In JSON?", {"callbacks": [traces]})
    assert "none" in traces.parameters[0].values() and FORM in traces.parameters[0].values()


@pytest.mark.further
def test_a_value_that_cannot_work_is_refused_where_it_is_given() -> None:
    """In one line; so is a name in two places. None sets nothing, and a field of a subclass stays its own."""
    for wrong in ({"tool_choice": 5}, {"response_format": 5}, {"extra_headers": "a"}, {"user": "a", "model_kwargs": {"user": "a"}}):
        with pytest.raises(ConfigurationError) as caught:
            ChatOpenAI(model="any", api_key="key", **wrong)
        assert "\n" not in str(caught.value)
        assert next(iter(wrong)) in str(caught.value)
    assert "model_kwargs" not in ChatOpenAI(model="any", api_key="key", user=None, tool_choice=None).model_fields_set

    class Own(ChatOpenAI):
        user: str = "nobody"

    assert (Own(model="any", api_key="key", user="a").user, Own(model="any", api_key="key", user="a").model_kwargs) == ("a", {})
    azure: Any = {"azure_endpoint": "https://me.openai.azure.com", "azure_deployment": "any", "api_version": "1", "api_key": "key"}
    assert AzureChatOpenAI(**azure, user="a").model_kwargs == {"user": "a"}
