"""Models of the chat model classes of LangChain's packages, each made as LangChain makes it, then put behind the mixin."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from ..errors import ConfigurationError
from ..mixin import ToolsAndMessagesMixin, with_tools
from ..turn.model import MISTAKEN, argument_names, unknown_argument
from .known import LangChainClass

_SETTINGS = frozenset(ToolsAndMessagesMixin.model_fields.keys() - BaseChatModel.model_fields.keys())
"""The arguments that are the mixin's; all others are the class's own."""

_NOT_THEIRS: Mapping[str, str] = {**MISTAKEN, "retry": "requests are repeated by this class itself: see its own arguments"}


def make_model(row: LangChainClass, model: str, arguments: Mapping[str, Any]) -> Any:
    """Return a model of the class of a row, as `LangChainClass.make` does.

    Raises:
        ConfigurationError: The package is not installed, or an argument cannot work.
    """
    cls = _load_class(row)
    own = {name: value for name, value in arguments.items() if name in _SETTINGS}
    theirs = {name: value for name, value in arguments.items() if name not in _SETTINGS}
    _check_names(cls, theirs)
    make = getattr(cls, row.constructor) if row.constructor else cls
    try:
        made = make(**{row.model_argument: model, **theirs})
    except ValidationError as error:  # whose text has the arguments that it was given, keys among them
        raise ConfigurationError(f"{row.class_name}: {_reasons(error)}") from None
    return with_tools(made, own.pop("tools", ()), **own)


def _load_class(row: LangChainClass) -> Any:
    """Return the class of a row.

    Raises:
        ConfigurationError: Its package is not installed, or has no such class.
    """
    try:
        return getattr(import_module(row.module), row.class_name)
    except (ImportError, AttributeError) as error:
        install = f"pip install '{row.package}', or the extra `{row.extra}` (from a checkout: pip install '.[{row.extra}]')"
        raise ConfigurationError(f"{row.class_name} needs the package {row.package}: {install}. {error}") from error


def _check_names(cls: type[BaseChatModel], names: Iterable[str]) -> None:
    """Raise if an argument of a class is meant for the mixin: many classes pass over names that they do not know.

    Raises:
        ConfigurationError: One is.
    """
    for name in set(names) - argument_names(cls):
        if name in _NOT_THEIRS:
            raise ConfigurationError(f"{cls.__name__} has no argument {name!r}: {_NOT_THEIRS[name]}")
        if get_close_matches(name, _SETTINGS, n=1, cutoff=0.85):
            raise ConfigurationError(unknown_argument(cls, name, _SETTINGS))


def _reasons(error: ValidationError) -> str:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(
        ": ".join([*filter(None, [".".join(map(str, one["loc"]))]), one["msg"].removeprefix("Value error, ")]) for one in details
    )
