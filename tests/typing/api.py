"""What users write, as type checkers see it. Checked by mypy in CI, never run."""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, TypedDict, assert_type

from langchain_core.language_models import BaseChatModel, FakeListChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import tool
from pydantic import BaseModel, SecretStr

from langchain_autotools import (
    AzureChatOpenAI,
    ChatAnthropic,
    ChatGoogleGenerativeAI,
    ChatGroq,
    ChatLocal,
    ChatOllama,
    ChatOpenAI,
    Decision,
    LimitReachedError,
    ProviderError,
    ToolCallResult,
    ToolExecutor,
    ToolsAndMessagesMixin,
    final_message,
    init_chat_model,
    markdown_of,
    new_messages,
    pending_calls,
    repair,
    run_usage,
    with_tools,
)
from langchain_autotools.history import explain
from langchain_autotools.messages import text_of
from langchain_autotools.mixin import ToolRunningModel
from langchain_autotools.testing import ScriptedChatModel


@tool
def get_temperature(city: str) -> str:
    """Current temperature of a city."""
    return city


def constructors() -> None:
    """The names that the pages use are those that type checkers know."""
    tools = [get_temperature]
    ChatOpenAI(model="gpt-5", tools=tools, max_tokens=9, stop=["."], timeout=60, max_retries=2, base_url="http://host/v1")
    ChatAnthropic(model="claude-sonnet-5", tools=tools, max_tokens=9, stop=["."], timeout=60, max_retries=2, reasoning_effort="low")
    ChatGoogleGenerativeAI(model="gemini-3.5-flash", tools=tools, max_output_tokens=9, stop=["."], timeout=60, max_retries=2, base_url="x")
    ChatOpenAI(model="gpt-5", tool_choice="required", parallel_tool_calls=False, user="me", response_format={"type": "json_object"})
    ChatAnthropic(model="claude-sonnet-5", tool_choice={"type": "any"}, service_tier="auto")
    ChatOllama(model="qwen3", tools=tools, num_predict=9, stop=["."], timeout=60, max_retries=2, reasoning=True)
    ChatGroq(model="any", tools=tools, max_tokens=9, stop=["."], timeout=60, max_retries=2)
    ChatLocal(tools=tools, max_tokens=9, model_path="own.gguf")


def misspelt() -> None:
    """A name that is no argument is refused, of a setting of runs and of one that an executor has too."""
    ChatOpenAI(model="gpt-5", max_turn=3)  # type: ignore[call-arg]
    ChatOpenAI(model="gpt-5", require_approval=True)  # type: ignore[call-arg]
    ChatOpenAI(model="gpt-5", max_turns="3", max_concurrency="2")  # type: ignore[arg-type]
    ToolExecutor([], max_concurrent=3)  # type: ignore[call-arg]


def by_name() -> None:
    """A model made by its name is a chat model like any other, and knows what the package's classes know."""
    model = init_chat_model("openai:gpt-5", tools=[get_temperature])
    chat_model: BaseChatModel = model
    assert_type(model.resume("history", True), AIMessage)
    assert_type(model.resume("history", True, message="And be quick."), AIMessage)
    assert_type(model.with_structured_output(Weather).invoke("Paris?"), Weather)
    configurable = init_chat_model(configurable_fields=("model", "temperature"))
    assert_type(configurable.with_structured_output(Weather).invoke("Paris?"), Weather)
    assert_type(chat_model.invoke("Hi"), AIMessage)


def plain_function(city: str) -> str:
    """A tool may be an ordinary function."""
    return city


class Weather(BaseModel):
    """A schema."""

    city: str


def models() -> list[BaseChatModel]:
    """Every model class is a BaseChatModel; tools come as a list or a mapping."""
    return [
        ChatOpenAI(model="a", tools=[get_temperature, plain_function], max_turns=3, on_limit="raise", temperature=0),
        ChatOpenAI(model="a", tools={"temperature": plain_function}),
        ChatLocal(tools=[get_temperature]),
        ScriptedChatModel(replies=["hello"]),
    ]


class City(TypedDict):
    """A schema of a dict."""

    name: str


def structured_output(model: ChatOpenAI, google: ChatGoogleGenerativeAI, is_raw: bool) -> None:
    """A pydantic class gives objects of it, every other schema dicts, as does `include_raw`."""
    assert_type(model.with_structured_output(Weather).invoke("Paris?"), Weather)
    assert_type(google.with_structured_output(Weather, "function_calling").invoke("Paris?"), Weather)
    assert_type(model.with_structured_output(City).invoke("Paris?"), dict[str, Any])
    assert_type(model.with_structured_output({"title": "City", "type": "object"}).invoke("Paris?"), dict[str, Any])
    assert_type(model.with_structured_output(method="json_mode").invoke("Paris?"), dict[str, Any])
    assert_type(model.with_structured_output(Weather, include_raw=True).invoke("Paris?"), dict[str, Any])
    assert_type(model.with_structured_output(Weather, include_raw=is_raw).invoke("Paris?"), Any)


def keys() -> None:
    """A key is given as text or as a secret, and is held as a secret."""
    ChatOpenAI(model="a", api_key="key", approval_key="key")
    ChatOpenAI(model="a", api_key=lambda: "key", approval_key=SecretStr("key"))
    AzureChatOpenAI(azure_endpoint="https://host", api_key="key", azure_ad_token="token")
    ChatGroq(model="a", api_key="key")
    ChatGoogleGenerativeAI(model="a", api_key="key")
    ChatOllama(model="a", api_key="key")
    assert_type(ChatAnthropic(model="a", api_key="key").anthropic_api_key, SecretStr | None)


def conversation(model: ChatOpenAI, history: list[BaseMessage]) -> str:
    """The usual ways in give LangChain's own types."""
    for chunk in model.stream(history):
        assert_type(chunk, AIMessageChunk)
        history += new_messages(chunk)
    result = model.invoke(history)
    assert_type(result, AIMessage)
    assert_type(new_messages(result), list[BaseMessage])
    assert_type(final_message(result), AIMessage)
    assert_type(run_usage(result), UsageMetadata | None)
    assert_type(markdown_of(result), str)
    assert_type(model.batch([history]), list[AIMessage])
    assert_type(model.resume(history, {"call_1": True, "call_2": "no"}), AIMessage)
    decisions = [call.approve() for call in pending_calls(result)]
    assert_type(decisions, list[Decision])
    assert_type(model.resume(history, [*decisions, decisions[0].to_dict()]), AIMessage)
    return text_of(result)


async def conversation_async(model: ChatOpenAI, history: list[BaseMessage]) -> AIMessage:
    """The asynchronous twins give the same types."""
    async for chunk in model.astream(history):
        assert_type(chunk, AIMessageChunk)
    return await model.ainvoke(history)


def composition(model: ChatOpenAI, history: list[BaseMessage]) -> Weather:
    """Chains, declared tools and structured output."""
    chain = model | final_message
    chain.invoke(history)
    assert_type(model.bind_tools([get_temperature, plain_function, Weather]).invoke(history), AIMessage)
    return model.with_structured_output(Weather).invoke(history)


def explicit_loop(history: list[BaseMessage], answer: AIMessage) -> list[BaseMessage]:
    """The executor alone."""
    executor = ToolExecutor([get_temperature])
    assert_type(executor.execute_all(answer), list[ToolMessage])
    for result in executor.stream(answer.tool_calls):
        assert_type(result, ToolCallResult)
        assert_type(result.message, ToolMessage)
    assert_type(repair(history), list[BaseMessage])
    assert_type(explain(history), str)
    return [*history, answer, *executor.execute_all(answer)]


def failures(model: ChatOpenAI, history: list[BaseMessage]) -> str:
    """An error says which limit it was, and brings what had completed."""
    try:
        model.invoke(history)
    except LimitReachedError as error:
        history += new_messages(error)
        return error.stop_reason
    return ""


class OwnModel(ToolsAndMessagesMixin, BaseChatModel):
    """A model of one's own."""

    @property
    def _llm_type(self) -> str:
        return "own"

    def raw_stream(self, messages: Sequence[BaseMessage], stop: list[str] | None = None, **kwargs: Any) -> Iterator[AIMessageChunk]:
        """One request."""
        yield AIMessageChunk(content=messages[-1].text)

    async def araw_stream(
        self, messages: Sequence[BaseMessage], stop: list[str] | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """One request, asynchronously."""
        yield AIMessageChunk(content=messages[-1].text)


def tools_for_a_model_that_exists(model: ChatOpenAI, own: OwnModel, any_model: BaseChatModel) -> None:
    """A model of a class of this package keeps its class; another package's has the methods of one."""
    assert_type(with_tools(model, [get_temperature], max_turns=3), ChatOpenAI)
    assert_type(with_tools(own, {"temperature": plain_function}), OwnModel)
    assert_type(with_tools(any_model, []), ToolRunningModel)
    made = with_tools(FakeListChatModel(responses=["Hello"]), [get_temperature])
    assert_type(made, ToolRunningModel)
    assert_type(with_tools(made, []), ToolRunningModel)
    assert_type(made.with_tools([]), ToolRunningModel)
    assert_type(made.invoke("Hi"), AIMessage)
    assert_type(made.resume("history", True), AIMessage)
    for chunk in made.stream("Hi"):
        assert_type(chunk, AIMessageChunk)
    assert_type(made.with_structured_output(Weather).invoke("Paris?"), Weather)
    assert_type(made.with_structured_output(City).invoke("Paris?"), dict[str, Any])
    assert_type(made.with_structured_output(Weather, include_raw=True).invoke("Paris?"), dict[str, Any])
    assert_type(with_tools(made.bind(stop=["."]), []).invoke("Hi"), AIMessage)
    made.resumed("history")  # type: ignore[attr-defined]
    with_tools(FakeListChatModel, [])  # type: ignore[call-overload]


def errors(model: ChatOpenAI) -> None:
    """What an error of any vendor says is known."""
    try:
        model.invoke("Hi")
    except ProviderError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.is_retryable, bool)
