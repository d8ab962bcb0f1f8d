"""Any LangChain chat model as one of this package: an instance of its class with the mixin before it."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel

from ..compat import CACHE_KEY, unvalidated
from ..errors import ConfigurationError
from .whole_class import JoiningMeta, WholeClassModel

_HOOKS: Mapping[str, Any] = {"before_turn": None, "stop_when": None, "middleware": ()}


@lru_cache(maxsize=256)
def joined_class(mixin: type[BaseChatModel], cls: type[BaseChatModel]) -> type[Any]:
    """Return a chat model class with the mixin before it, under the same name."""
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return JoiningMeta(cls.__name__, (mixin, cls), {**names, "__reduce__": _reduce})


def joined(mixin: type[BaseChatModel], model: BaseChatModel) -> Any:
    """Return the same model as an instance of the joined class, with the same objects in its fields."""
    cls = joined_class(mixin, type(model))
    held = {name: value for name, value in model.__dict__.items() if name != CACHE_KEY}
    new = {name: field for name, field in cls.model_fields.items() if name not in held}
    defaults = {name: field.get_default(call_default_factory=True, validated_data={}) for name, field in new.items()}
    made = unvalidated(cls, {**defaults, **held}, set(model.model_fields_set), model.__pydantic_extra__)
    private = {name: attribute.get_default() for name, attribute in cls.__private_attributes__.items()}
    object.__setattr__(made, "__pydantic_private__", {**private, **(model.__pydantic_private__ or {})})
    return made


def _reduce(model: Any) -> tuple[Any, ...]:
    """Return the pickle form of a model of a joined class: the mixin, the original class and the state."""
    mixin, *_, cls = type(model).__bases__
    return _empty, (mixin, cls), model.__getstate__()


def _empty(mixin: type[BaseChatModel], cls: type[BaseChatModel]) -> Any:
    return object.__new__(joined_class(mixin, cls))


def one_turn_model(mixin: type[BaseChatModel], model: Any, tools: Sequence[Any] = ()) -> Any:
    """Return a chat model for single turns: any LangChain chat model, without tools and hooks of its own.

    Args:
        mixin: The mixin of models of this package.
        model: The model.
        tools: The tools of the request that it is to make. A model of another package declares them by its own `bind_tools`.

    Raises:
        ConfigurationError: It is no chat model.
    """
    if not isinstance(model, BaseChatModel):
        raise ConfigurationError(f"the model of a turn must be a LangChain chat model, not {type(model).__name__}")
    own: Any = model if isinstance(model, mixin) else joined(mixin, model)
    declared = [tool for tool in tools if not isinstance(tool, Mapping)] if isinstance(own, WholeClassModel) else []
    return own.model_copy(update={"tools": declared, **_HOOKS})
