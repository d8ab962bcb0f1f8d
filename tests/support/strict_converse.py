"""Refuses what Bedrock's Converse refuses, with its words.

Shapes, lengths and patterns: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html and the pages of the types
it links to. What an error says where the pages do not: the reports named beside it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests.support.strict import Rejection

_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_REQUEST = {
    *("messages", "system", "inferenceConfig", "toolConfig", "guardrailConfig", "additionalModelRequestFields", "promptVariables"),
    *("additionalModelResponseFieldPaths", "requestMetadata", "performanceConfig", "serviceTier", "outputConfig", "projectIdentifier"),
}
_OF_ROLE = {
    "user": {"text", "image", "document", "video", "audio", "toolResult", "guardContent", "cachePoint", "searchResult"},
    "assistant": {"text", "toolUse", "reasoningContent", "citationsContent", "cachePoint", "image"},
}
_OF_RESULT = {"json", "text", "image", "document", "video", "searchResult"}


def check_request(body: bytes) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`."""
    try:
        request: dict[str, Any] = json.loads(body)
    except ValueError:
        raise Rejection("Unable to parse request body") from None
    unknown = sorted(request.keys() - _REQUEST)
    _need(not unknown, f"Unexpected field: {unknown}")
    for place, block in enumerate(request.get("system", ())):
        _need("text" not in block or bool(block["text"].strip()), f"The text field in system.{place} is blank.")
    _check_inference(request.get("inferenceConfig", {}))
    _check_tools(request.get("toolConfig"))
    messages = request.get("messages") or []
    _check_messages(messages)
    # https://github.com/langgenius/dify/issues/17545
    used = any({"toolUse", "toolResult"} & block.keys() for message in messages for block in message["content"])
    told = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
    _need(not used or bool(request.get("toolConfig")), told)
    return request


def _need(holds: bool, message: str) -> None:
    if not holds:
        raise Rejection(message)


def _check_inference(config: Mapping[str, Any]) -> None:
    _need(config.get("maxTokens", 1) >= 1, "The value at inferenceConfig.maxTokens must be greater than or equal to 1")
    _need(0 <= config.get("temperature", 0) <= 1, "The value at inferenceConfig.temperature must be between 0 and 1")
    _need(all(stop.strip() for stop in config.get("stopSequences", ())), "A stop sequence in inferenceConfig.stopSequences is blank.")


def _check_tools(config: Mapping[str, Any] | None) -> None:
    if config is None:
        return
    _need(bool(config.get("tools")), "The value at toolConfig.tools failed to satisfy constraint: Member must have length >= 1")
    specs = [tool["toolSpec"] for tool in config["tools"] if "toolSpec" in tool]
    for spec in specs:
        _need(bool(_NAME.fullmatch(spec["name"])), f"The value {spec['name']!r} at toolSpec.name does not match [a-zA-Z0-9_-]+")
        _need(spec.get("description", "x") != "", "The value at toolSpec.description must have length greater than or equal to 1")
        _need(spec["inputSchema"]["json"].get("type") == "object", "toolConfig.tools.inputSchema.json.type must be one of: object.")
    names = [spec["name"] for spec in specs]
    _need(len({*names}) == len(names), "The toolConfig.tools list contains duplicate names.")
    choice = config.get("toolChoice")
    _need(choice is None or (len(choice) == 1 and {*choice} <= {"auto", "any", "tool"}), "Invalid union at toolConfig.toolChoice")
    _need(not choice or "tool" not in choice or choice["tool"]["name"] in names, "toolConfig.toolChoice.tool.name is no declared tool.")


def _check_messages(messages: Sequence[Mapping[str, Any]]) -> None:
    _need(bool(messages), "The messages field is empty.")
    start = "A conversation must start with a user message. Try again with a conversation that starts with a user message."
    _need(messages[0]["role"] == "user", start)
    waiting: Collection[str] = ()
    used: set[str] = set()
    for number, message in enumerate(messages):
        if number:  # https://github.com/langchain-ai/langchain-aws/issues/192
            _need(message["role"] != messages[number - 1]["role"], "A conversation must alternate between user and assistant roles.")
        blocks = message["content"]
        # https://github.com/archestra-ai/archestra/pull/4220
        _need(bool(blocks), f"The content field in the Message object at messages.{number} is empty.")
        for place, block in enumerate(blocks):
            _check_block(block, message["role"], f"messages.{number}.content.{place}")
        _check_results([block["toolResult"]["toolUseId"] for block in blocks if "toolResult" in block], waiting, number)
        calls = [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]
        _need(len({*calls}) == len(calls) and used.isdisjoint(calls), f"messages.{number}: duplicate toolUse ids")
        waiting = calls
        used.update(calls)
    _check_results([], waiting, len(messages))


def _check_results(answered: Sequence[str], waiting: Collection[str], number: int) -> None:
    """Each call has its result in the next message: https://github.com/agno-agi/agno/issues/6698."""
    exceeds = f"The number of toolResult blocks at messages.{number}.content exceeds the number of toolUse blocks of previous turn."
    _need(len(answered) <= len(waiting) and {*answered} <= {*waiting}, exceeds)
    missing = [one for one in waiting if one not in answered]
    _need(not missing, f"Expected toolResult blocks at messages.{number}.content for the following Ids: {', '.join(missing)}")


def _check_block(block: Mapping[str, Any], role: str, where: str) -> None:
    _need(len(block) == 1 and {*block} <= _OF_ROLE[role], f"Invalid ContentBlock at {where} for role {role}: {sorted(block)}")
    ((kind, value),) = block.items()
    if kind == "text":  # https://github.com/boto/botocore/issues/3525
        _need(bool(value.strip()), f"The text field in the ContentBlock object at {where} is blank. Add text to the text field.")
    elif kind == "toolUse":
        _check_id(value["toolUseId"], where)
        _need(bool(_NAME.fullmatch(value["name"])), f"The value at {where}.toolUse.name does not match [a-zA-Z0-9_-]+")
        _need(isinstance(value["input"], dict), f"The format of the value at {where}.toolUse.input is invalid. Provide a json object.")
    elif kind == "toolResult":
        _check_id(value["toolUseId"], where)
        _check_result(value, where)
    elif kind == "reasoningContent" and "reasoningText" in value:
        _need(bool(value["reasoningText"].get("signature")), f"{where}.reasoningContent.reasoningText.signature: Field required")


def _check_id(identifier: str, where: str) -> None:
    _need(bool(_ID.fullmatch(identifier)), f"The value {identifier!r} at {where}.toolUseId does not match [a-zA-Z0-9_.:-]+")


def _check_result(result: Mapping[str, Any], where: str) -> None:
    inner = result.get("content", [])
    _need(all(len(block) == 1 and {*block} <= _OF_RESULT for block in inner), f"Invalid ToolResultContentBlock at {where}.toolResult")
    # https://github.com/aws-samples/sample-multi-agent-orchestration-chat-on-agentcore/issues/15
    empty = f"The content field at {where}.toolResult cannot be empty when status value is error."
    _need(bool(inner) or result.get("status") != "error", empty)
    _need(all(block.get("text", "x").strip() for block in inner), f"The text field at {where}.toolResult.content is blank.")
