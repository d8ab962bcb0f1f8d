"""The table of Bedrock's classes: a row for each, as the contract's table has one for each wire."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import boto3
import langchain_aws
from botocore.config import Config

from langchain_autotools import init_chat_model
from tests.contract.wires import Results, Wire, raw_value
from tests.support.bedrock_server import BedrockServer
from tests.support.http_server import Exchange

MODEL = "anthropic.claude-sonnet-4-5-20250929-v1:0"


@cache
def _session() -> Any:
    """One for all models: it has read AWS's descriptions of its services, which take longer than a test."""
    return boto3.Session(aws_access_key_id="nobodys", aws_secret_access_key="nobodys", region_name="us-east-1")


@cache
def _control_plane() -> Any:
    return _session().client("bedrock", endpoint_url="http://127.0.0.1:9")


def boto3_model(name: str, server: BedrockServer, **more: Any) -> Any:
    """A model by a name of `init_chat_model`, whose client is boto3's."""
    once = Config(retries={"total_max_attempts": 1}, connect_timeout=60, read_timeout=60)
    client = _session().client("bedrock-runtime", endpoint_url=server.url, config=once)
    given = {"client": client, "bedrock_client": _control_plane(), "region_name": "us-east-1", **more}
    return init_chat_model(f"{name}:{MODEL}", **given)


def anthropic_model(server: BedrockServer, **more: Any) -> Any:
    """A model whose client is Anthropic's, which takes the server's address from the environment."""
    return init_chat_model(f"anthropic_bedrock:{MODEL}", **{"max_retries": 0, "max_tokens": 1000, **more})


def _blocks(exchange: Exchange, kind: str) -> list[dict[str, Any]]:
    last = exchange.json["messages"][-1]["content"]
    return [] if isinstance(last, str) else [block[kind] for block in last if kind in block]


def _converse_results(exchange: Exchange) -> Results:
    results = _blocks(exchange, "toolResult")
    return [(one["toolUseId"], "".join(part.get("text", "") for part in one["content"])) for one in results]


def _question(exchange: Exchange) -> str:
    users = [message["content"] for message in exchange.json["messages"] if message["role"] == "user"]
    texts = (said if isinstance(said, str) else "".join(block.get("text", "") for block in said) for said in reversed(users))
    return next(text for text in texts if text)


def _anthropic_results(exchange: Exchange) -> Results:
    last = exchange.json["messages"][-1]["content"]
    blocks = [] if isinstance(last, str) else [block for block in last if block["type"] == "tool_result"]
    return [(block["tool_use_id"], _text(block["content"])) for block in blocks]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


_row = partial(
    Wire,
    serve=BedrockServer,
    messages=lambda exchange: raw_value(exchange.body, "messages"),
    results=_anthropic_results,
    question=_question,
)

_WHOLE_CALLS = "the class raises a ValidationError of its own where a whole reply's arguments are no object"
_CHOICE = "its `bind_tools` does not know the choice True"
_EVERYWHERE = {
    ("test_a_truncated_call_never_runs", "*invoke-cut by*"): _WHOLE_CALLS,
    ("test_a_truncated_call_never_runs", "*invoke-cut though*"): _WHOLE_CALLS,
    ("test_a_truncated_call_never_runs", "*invoke-no object*"): _WHOLE_CALLS,
    ("test_a_tool_without_arguments", "*invoke-null*"): _WHOLE_CALLS,
    ("test_the_choice_of_one_call_is_said_in_the_words_of_its_wire", "True*"): _CHOICE,
}
_TOOLS = "the test reads `tools` in requests, which stand in `toolConfig` here"
_JUST_ENDS = {("test_a_stream_that_just_ends_is_an_error_or_runs_nothing", "*"): "the class does not tell the end of a stream from its cut"}
_OF_CONVERSE = {(name, "*"): _TOOLS for name in ("test_policies_progress_and_cancelling", "test_any_further_names_are_not_declared")}
_OF_INVOKE = {
    ("test_a_tool_that_returns_an_image", "*"): "the class sends LangChain's image blocks in results as they are, which Bedrock refuses",
    ("test_thoughts_leave_before_the_text", "*"): "LangChain does not read the class's blocks of thoughts as reasoning",
    ("test_the_tools_of_one_call_may_be_functions", "*"): "the class takes only what its `bind_tools` has made",
}
_OF_ANTHROPIC = {("test_the_tools_of_one_call_may_be_functions", "*"): "the class takes only what its `bind_tools` has made"}

ROWS = {
    row.name: row
    for row in (
        _row(
            name="converse",
            chat_model=langchain_aws.ChatBedrockConverse,
            model=partial(boto3_model, "bedrock_converse"),
            results=_converse_results,
            cannot={**_EVERYWHERE, **_OF_CONVERSE},
        ),
        _row(
            name="bedrock",
            chat_model=langchain_aws.ChatBedrock,
            model=partial(boto3_model, "bedrock"),
            cannot={**_EVERYWHERE, **_JUST_ENDS, **_OF_INVOKE},
        ),
        _row(
            name="anthropic-bedrock",
            chat_model=langchain_aws.ChatAnthropicBedrock,
            model=anthropic_model,
            cannot={**_EVERYWHERE, **_JUST_ENDS, **_OF_ANTHROPIC},
        ),
    )
}
