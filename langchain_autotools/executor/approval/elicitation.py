"""Answers to the questions that MCP servers ask during calls, checked against the JSON schemas of the questions."""

from collections.abc import Mapping
from typing import Any, Final

from ...errors import ConfigurationError

ELICITATION: Final = "elicitation"
"""The kind of pending call that is a question, and the name of its tool."""


def check_answer(question: Mapping[str, Any], answer: Any) -> None:
    """Raise if an answer does not fit its question.

    Args:
        question: The question, as the `args` of its pending call have it.
        answer: The answer.

    Raises:
        ConfigurationError: It does not fit.
    """
    wrong = misfit(answer, question.get("schema", {}))
    if wrong is not None:
        raise ConfigurationError(f"the answer to {question.get('message')!r} does not fit its schema: {wrong}")


def misfit(answer: Any, schema: Mapping[str, Any]) -> str | None:
    """Return why an answer does not fit a schema; None if it does. Nothing that a schema refers to is fetched."""
    from jsonschema import Draft202012Validator, SchemaError, ValidationError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    if not isinstance(answer, dict):
        return "it is no object"
    kind = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema)
        kind(schema, registry=Registry()).validate(answer)
    except (ValidationError, SchemaError, Unresolvable) as error:
        return error.message if isinstance(error, ValidationError) else f"that is no schema: {type(error).__name__}"
    return None
