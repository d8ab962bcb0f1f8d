"""Field descriptions of a model, read from the docstrings under its fields.

pydantic does the same with `use_attribute_docstrings`, by parsing the module once for each class: that is most of what an import costs.
"""

import inspect
import re
import sys
from functools import cache

from pydantic import BaseModel

_PACKAGE = __name__.partition(".")[0]
_CLASS_OR_FIELD = re.compile(
    r'^class (?P<class>\w+)|^    (?P<field>\w+): .*\n(?:(?: {8}| {4}[)\]}]).*\n)*    """(?P<text>(?s:.*?))"""',
    re.MULTILINE,
)


def describe_fields(model: type[BaseModel]) -> None:
    """Set the `description` of the fields that a class of this package declares."""
    if model.__module__.partition(".")[0] != _PACKAGE:
        return
    fields = model.model_fields
    for name, text in _docstrings(model.__module__).get(model.__name__, {}).items():
        if name in fields and fields[name].description is None:
            fields[name].description = text


@cache
def _docstrings(module: str) -> dict[str, dict[str, str]]:
    """Return the docstrings under annotated names, by class and name; empty without the source."""
    try:
        source = sys.modules[module].__loader__.get_source(module)  # type: ignore[union-attr]
    except (AttributeError, ImportError, OSError):
        source = None
    found: dict[str, dict[str, str]] = {}
    inside = ""
    for match in _CLASS_OR_FIELD.finditer(source or ""):
        inside = match["class"] or inside
        if match["field"]:
            found.setdefault(inside, {})[match["field"]] = inspect.cleandoc(match["text"])
    return found
