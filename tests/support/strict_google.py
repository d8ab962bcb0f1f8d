"""Refuses what Google's generateContent refuses, with its words (from its documentation and from reports of its errors)."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.support.strict import Rejection

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_ANY_SIGNATURE = "skip_thought_signature_validator"
_REQUEST = {
    *("contents", "tools", "toolConfig", "safetySettings", "systemInstruction", "generationConfig", "cachedContent", "labels"),
    *("serviceTier", "store"),
    "continuationToken",
}
_GENERATION = {
    *("temperature", "topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "presencePenalty", "frequencyPenalty"),
    *("seed", "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities", "mediaResolution", "imageConfig"),
    *("thinkingConfig", "speechConfig", "responseLogprobs", "logprobs"),
}
_DATA = {
    *("text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"),
    *("toolCall", "toolResponse"),
}
_BESIDE = {"thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata"}
_OF_USER = {"text", "inlineData", "fileData", "functionResponse"}
_OF_MODEL = {"text", "inlineData", "fileData", "functionCall", "executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
_TOOL = {"functionDeclarations", "googleSearch", "codeExecution", "urlContext", "googleMaps", "fileSearch", "computerUse"}
_DECLARATION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"}
_OPENAPI = {
    *("type", "format", "title", "description", "nullable", "enum", "maxItems", "minItems", "properties", "required", "minProperties"),
    *("maxProperties", "minLength", "maxLength", "pattern", "example", "anyOf", "propertyOrdering", "default", "items", "minimum"),
    "maximum",
}
_MODES = {"AUTO", "ANY", "NONE", "VALIDATED"}
_LEVELS = {"MINIMAL", "LOW", "MEDIUM", "HIGH"}


@dataclass
class Known:
    """What the server has written: signatures with the parts that carried them, and ids of calls.

    Attributes:
        signed: Whether signatures and ids are checked at all.
        ids: Whether calls have ids; where they have none, the key is unknown.
    """

    signed: bool = True
    ids: bool = True
    signatures: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)

    def remember(self, parts: Sequence[Mapping[str, Any]]) -> None:
        """Note the parts of a reply."""
        self.signatures.update(_mark(part) for part in parts if part.get("thoughtSignature"))
        self.given.update(part["functionCall"].get("id") or "" for part in parts if part.get("functionCall"))

    def wrote(self, part: Mapping[str, Any]) -> bool:
        """Whether a signed part is as it was written, or carries the word for parts of others."""
        return not self.signed or part["thoughtSignature"] == _ANY_SIGNATURE or _mark(part) in self.signatures


def _mark(part: Mapping[str, Any]) -> str:
    """A part as the server recognises it: what it says and its signature."""
    call = part.get("functionCall")
    if call and not isinstance(call.get("args", {}), dict | None):
        call = {**call, "args": None}  # what a gateway garbled cannot come back as it was
    said = {key: value for key, value in part.items() if key != "functionCall"}
    if call:
        said["functionCall"] = {key: value for key, value in call.items() if value}  # no id and no arguments are said in several ways
    return json.dumps(said, sort_keys=True)


def check_request(body: bytes, known: Known) -> dict[str, Any]:
    """The parsed body, or the vendor's `Rejection`."""
    try:
        request = json.loads(body)
    except ValueError:
        raise Rejection("Invalid JSON payload received. Unexpected end of string.") from None
    keys(request, _REQUEST, "")
    need(bool(request.get("contents")), "* GenerateContentRequest.contents: contents is not specified\n")
    names = _check_tools(request)
    _check_config(request, names, vertex=not known.ids)
    if "systemInstruction" in request:
        for part in request["systemInstruction"]["parts"]:
            need(set(part) == {"text"}, "System instruction only supports text.")
    _check_contents(request["contents"], known)
    return request  # type: ignore[no-any-return]


def need(holds: bool, message: str) -> None:
    """Refuse with this message unless it holds."""
    if not holds:
        raise Rejection(message)


def keys(value: Any, allowed: Collection[str], where: str) -> None:
    """An object with no key but these."""
    need(isinstance(value, dict), f"Invalid JSON payload received. Invalid value at '{where}'")
    for key in value:
        place = f" at '{where}'" if where else ""
        need(key in allowed, f'Invalid JSON payload received. Unknown name "{key}"{place}: Cannot find field.')


# ---------------------------------------------------------------------------------------------- tools and settings


def _check_tools(request: Mapping[str, Any]) -> set[str]:
    names: set[str] = set()
    for position, tool in enumerate(request.get("tools", ())):
        keys(tool, _TOOL, f"tools[{position}]")
        need(len(tool) == 1, f"tools[{position}].tool_type: one tool type must be set.")
        for number, declared in enumerate(tool.get("functionDeclarations", ())):
            where = f"tools[{position}].function_declarations[{number}]"
            keys(declared, _DECLARATION, where)
            name = declared.get("name", "")
            need(bool(_NAME.fullmatch(name)), f"* GenerateContentRequest.{where}.name: Invalid function name. Must start with a letter.")
            need(name not in names, f"Duplicate function declaration found: {name}")
            names.add(name)
            _check_schema(declared, where)
    return names


def _check_schema(declared: Mapping[str, Any], where: str) -> None:
    need(not ("parameters" in declared and "parametersJsonSchema" in declared), f"{where}: parameters are set twice")
    if "parameters" in declared:
        _check_openapi(declared["parameters"], f"{where}.parameters")
    schema = declared.get("parametersJsonSchema")
    if schema is not None:
        need(isinstance(schema, dict) and schema.get("type") == "object", f"{where}.parameters_json_schema: must describe an object")
        _check_references(schema, schema)


def _check_openapi(schema: Any, where: str) -> None:
    keys(schema, _OPENAPI, where)
    need(not isinstance(schema.get("type"), list), f"Invalid value at '{where}.type': Proto field is not repeating, cannot start list.")
    for name, inner in (schema.get("properties") or {}).items():
        _check_openapi(inner, f"{where}.properties[{name}]")
    for inner in [*(schema.get("anyOf") or ()), *([schema["items"]] if "items" in schema else [])]:
        _check_openapi(inner, f"{where}.any_of")


def _check_references(node: Any, root: Mapping[str, Any]) -> None:
    if isinstance(node, list):
        for item in node:
            _check_references(item, root)
    if not isinstance(node, dict):
        return
    reference = node.get("$ref")
    if isinstance(reference, str):
        beside = sorted(key for key in node if not key.startswith("$"))  # https://ai.google.dev/api/generate-content, responseJsonSchema
        need(not beside, f"a sub-schema with $ref must not have {beside}")
        name = reference.removeprefix("#/$defs/")
        need(name in root.get("$defs", {}), f"reference {reference} cannot be resolved")
    for item in node.values():
        _check_references(item, root)


def _check_config(request: Mapping[str, Any], names: Collection[str], *, vertex: bool) -> None:
    given = request.get("toolConfig") or {}
    mixed = bool(names) and any("functionDeclarations" not in tool for tool in request.get("tools", ()))
    text = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
    need(vertex or not mixed or given.get("includeServerSideToolInvocations") is True, text)
    need(not vertex or "includeServerSideToolInvocations" not in given, 'Unknown name "includeServerSideToolInvocations"')
    config = given.get("functionCallingConfig")
    if config is not None:
        need(bool(names), "Function calling config is set without function_declarations.")
        keys(config, {"mode", "allowedFunctionNames"}, "tool_config.function_calling_config")
        need(config.get("mode") in _MODES, "Invalid value at 'tool_config.function_calling_config.mode'")
        allowed = config.get("allowedFunctionNames", [])
        need(not allowed or config["mode"] in {"ANY", "VALIDATED"}, "allowed_function_names should be set only when mode is ANY.")
        need(set(allowed) <= set(names), "allowed_function_names: must be among the function declarations.")
    generation = request.get("generationConfig", {})
    keys(generation, _GENERATION, "generation_config")
    need(0 <= generation.get("temperature", 1) <= 2, "temperature must be in the range [0.0, 2.0]")
    need(generation.get("maxOutputTokens", 1) >= 1, "max_output_tokens must be positive.")
    need(len(generation.get("stopSequences", ())) <= 5, "the number of stop_sequences must be at most 5")
    if "responseJsonSchema" in generation:
        need(generation.get("responseMimeType") == "application/json", "response_json_schema needs response_mime_type application/json")
        _check_references(generation["responseJsonSchema"], generation["responseJsonSchema"])
    thinking = generation.get("thinkingConfig", {})
    keys(thinking, {"includeThoughts", "thinkingBudget", "thinkingLevel"}, "generation_config.thinking_config")
    need(not {"thinkingBudget", "thinkingLevel"} <= thinking.keys(), "You can only set only one of thinking budget and thinking level.")
    need(thinking.get("thinkingLevel", "LOW") in _LEVELS, "Invalid value at 'generation_config.thinking_config.thinking_level'")


# ---------------------------------------------------------------------------------------------- contents


def _check_contents(contents: Sequence[Mapping[str, Any]], known: Known) -> None:
    need(contents[0].get("role") == "user", "Please ensure that multiturn requests begin with a user turn.")
    calls: list[Mapping[str, Any]] = []
    asked = [place for place, content in enumerate(contents) if content.get("role") == "user" and _says(content)]
    turn = max(asked, default=0)
    before = "user"
    for position, content in enumerate(contents):
        keys(content, {"role", "parts"}, f"contents[{position}]")
        need(content.get("role") in {"user", "model"}, "Please use a valid role: user, model.")
        need(bool(content.get("parts")), f"* GenerateContentRequest.contents[{position}].parts: contents.parts must not be empty.\n")
        for number, part in enumerate(content["parts"]):
            _check_part(part, content["role"], f"contents[{position}].parts[{number}]", known)
        responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        _check_responses(responses, calls, content["parts"])
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        need(
            not calls or before == "user",
            "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
        )
        if calls and position > turn and known.signed:
            first = next(part for part in content["parts"] if "functionCall" in part)
            text = "Function call is missing a thought_signature in functionCall parts."
            need(bool(first.get("thoughtSignature")), f"{text} Additional data, function call `default_api:{calls[0]['name']}`.")
        before = content["role"]
    _check_responses([], calls, [])


def _says(content: Mapping[str, Any]) -> bool:
    return any("text" in part for part in content.get("parts") or ())


def _check_responses(responses: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]], parts: Sequence[Any]) -> None:
    """The responses right after a turn of calls: as many, in their order, alone."""
    need(
        len(responses) == len(calls),
        "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.",
    )
    need(len(parts) in {0, len(responses)} or not responses, "Function responses may not stand beside other parts.")
    for response, call in zip(responses, calls, strict=True):
        need(response["name"] == call["name"], "Please ensure that function response names match the function calls.")
        need(response.get("id") == call.get("id"), "Please ensure that function response ids match the function calls.")


def _check_part(part: Any, role: str, where: str, known: Known) -> None:
    keys(part, _DATA | _BESIDE, where)
    data = part.keys() & _DATA
    need(len(data) == 1, f"* GenerateContentRequest.{where}.data: required oneof field 'data' must have one initialized field\n")
    kind = next(iter(data))
    need(kind in (_OF_USER if role == "user" else _OF_MODEL), f"{where}: {kind} may not be said by {role}")
    if part.get("thoughtSignature"):
        need(known.wrote(part), "Thought signature is not valid.")
    value = part[kind]
    if kind == "text":
        need(bool(value) or bool(part.get("thoughtSignature")), f"Unable to submit request because {where} must have a non-empty text.")
    elif kind == "functionCall":
        _check_call(value, where, known)
    elif kind == "functionResponse":
        _check_response(value, where, known)
    elif kind in {"inlineData", "fileData"}:
        _check_media(value, kind, where)


def _check_call(call: Mapping[str, Any], where: str, known: Known) -> None:
    keys(call, {"name", "args"} | ({"id"} if known.ids else set()), f"{where}.function_call")
    need(bool(_NAME.fullmatch(call.get("name", ""))), f"* GenerateContentRequest.{where}.function_call.name: Invalid function name.")
    need(
        isinstance(call.get("args", {}), dict),
        f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct)",
    )
    need("id" not in call or not known.signed or call["id"] in known.given, f"{where}: unknown function call id {call.get('id')}")


def _check_response(response: Mapping[str, Any], where: str, known: Known) -> None:
    keys(response, {"name", "response", "parts"} | ({"id"} if known.ids else set()), f"{where}.function_response")
    need(bool(response.get("name")), f"* GenerateContentRequest.{where}.function_response.name: Name cannot be empty.\n")
    need(isinstance(response.get("response"), dict), f"Invalid value at '{where}.function_response.response' (Struct)")
    need('"$ref"' not in json.dumps(response["response"]), "$ref in a function response must name one of its parts.")
    need(response.get("parts") != [], f"* GenerateContentRequest.{where}.function_response.parts must not be empty.")
    for part in response.get("parts", ()):
        kind = next(iter(part))
        need(kind in {"inlineData", "fileData"}, f"{where}.function_response.parts: {kind} is not supported")
        _check_media(part[kind], kind, where)


def _check_media(value: Mapping[str, Any], kind: str, where: str) -> None:
    keys(value, {"mimeType", "data" if kind == "inlineData" else "fileUri", "displayName"}, f"{where}.{kind}")
    mime_type = value.get("mimeType", "")
    # https://ai.google.dev/gemini-api/docs/document-processing and https://ai.google.dev/gemini-api/docs/file-input-methods
    readable = mime_type in {"", "application/pdf", "application/json"} or mime_type.startswith(("image/", "audio/", "video/", "text/"))
    need(readable, f"Unsupported MIME type: {mime_type}")
    if kind == "inlineData":
        need("/" in value.get("mimeType", ""), f"{where}.inline_data.mime_type must be set.")
        need(
            bool(_BASE64.fullmatch(value.get("data", ""))),
            f"Invalid value at '{where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed",
        )
    else:
        need(bool(re.match(r"https?://|gs://", value.get("fileUri", ""))), f"{where}.file_data.file_uri: Unsupported file uri.")
