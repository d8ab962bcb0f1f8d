"""Every part of a random schema is in the request, or in the error that refuses it before one is made."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from langchain_autotools import ConfigurationError
from tests.compositions.test_output_schemas import ROWS
from tests.contract.wires import Wire
from tests.support.random_schemas import Schemas, words
from tests.support.script import Turn

FEW = 10
MANY = int(os.environ.get("RANDOM_SCHEMAS", "10000"))


@dataclass(frozen=True)
class Form:
    """A way to send a schema.

    Attributes:
        wire: The name of the row.
        method: `json_schema`, `function_calling`, or `tool` for one with the schema of its arguments.
        strict: Whether the vendor must hold to it.
        other: Keywords for which the form has another word, or that what is sent says without them.
    """

    wire: str
    method: str
    strict: bool | None = None
    other: frozenset[str] = field(default_factory=frozenset)


_CLOSED = frozenset({"oneOf", "allOf", "$ref"})
_NAMED = ("keys of its own choosing", "refers to itself", "a value of any type", "look-around", "must be an object", "must be 'object'")
_INLINED = frozenset({"$ref", "$defs", "const"})
_TOLD = frozenset({*_INLINED, "oneOf", "allOf", "additionalProperties", "patternProperties"})
FORMS = (
    Form("openai-chat", "json_schema"),
    Form("openai-chat", "json_schema", True, _CLOSED),
    Form("openai-chat", "function_calling"),
    Form("openai-chat", "function_calling", True, _CLOSED),
    Form("openai-chat", "tool", None, _INLINED),
    Form("openai-responses", "json_schema", True, _CLOSED),
    Form("openai-responses", "function_calling"),
    Form("anthropic", "json_schema", None, _CLOSED),
    Form("anthropic", "function_calling"),
    Form("anthropic", "function_calling", True, _CLOSED),
    Form("anthropic", "tool", None, _INLINED),
    Form("google", "json_schema", None, _INLINED),
    Form("google", "function_calling", None, _INLINED),
    Form("ollama", "json_schema"),
    Form("ollama", "function_calling", None, _TOLD),
    Form("mistralai", "json_schema"),
)


def chain_of(wire: Wire, server: Any, form: Form, schema: dict[str, Any]) -> Any:
    """A model that is asked in this form."""
    model = wire.model(server)
    if form.method == "tool":
        return model.bind_tools([StructuredTool(name="Made", description="d", args_schema=schema, func=print)])
    return model.with_structured_output(schema, method=form.method, strict=form.strict, include_raw=True)


def faults(form: Form, seeds: Iterator[int]) -> Iterator[str]:
    """What of random schemas was neither sent nor named by an error, and what the server has refused."""
    wire = next(wire for wire in ROWS if wire.name == form.wire)
    with wire.serve(lambda exchange: Turn('{"value": 1}')) as server:
        for seed in seeds:
            schema = Schemas(seed).schema()
            said = {*words({**schema, "description": ""} if form.method == "tool" else schema)}
            said -= {"$ref"} if "$ref" in schema else set()  # the top itself is written out
            try:
                chain = chain_of(wire, server, form, schema)
            except ConfigurationError as error:
                if not any(part in str(error) for part in (*_NAMED, *map(repr, said))):
                    yield f"{seed}: the error names no part: {error}"
                continue
            try:
                chain.invoke([HumanMessage("JSON?")])
            except Exception as error:
                if "at the top level" not in str(error):  # as OpenAI says of a tool that was given with such a schema
                    raise
                server.rejections.clear()
            sent = server.exchanges.pop().body.decode()
            lost = sorted(word for word in said - form.other if word not in sent)
            if lost or server.rejections:
                yield f"{seed}: lost {lost}, refused {server.rejections} of {json.dumps(schema)} in {sent}"


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.wire}-{form.method}{'-strict' if form.strict else ''}")
def test_nothing_of_a_schema_is_left_out_without_a_word(form: Form) -> None:
    """Every keyword, name and value of it is in what is sent, in the vendor's own words or told in a description; or an error names what
    the vendor's form cannot express. The vendor takes what is sent."""
    assert list(faults(form, iter(range(FEW)))) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.wire}-{form.method}{'-strict' if form.strict else ''}")
def test_nothing_of_many_schemas_is_left_out(form: Form) -> None:
    """The same of 10,000, or as many as RANDOM_SCHEMAS says."""
    assert list(faults(form, iter(range(MANY)))) == []
