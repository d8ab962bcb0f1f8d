"""`with_tools`: adds tool execution to an instance of any LangChain chat model."""

from functools import lru_cache
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import SecretStr

from .compat import CACHE_KEY, unvalidated
from .errors import ConfigurationError
from .mixin import ToolsAndMessagesMixin
from .run.binding import BoundChatModel
from .run.whole_class import JoiningMeta


def with_tools(model: Any, tools: Any, **settings: Any) -> Any:
    """Return a copy of a chat model that runs these tools itself, like the models of this package.

    The copy keeps the model's class, settings, secrets and clients: it is an instance of that class, its requests are that class's own,
    and `isinstance` and traces see what they saw before. The given model does not change.

    Args:
        model: A chat model of any LangChain package, or of this one (also with something bound to it).
        tools: The tools, as the constructor of a model of this package takes them: a list, a `{name: callable}` mapping, a `ToolExecutor`.
        **settings: Other fields of `ToolsAndMessagesMixin`: `max_turns=3`, `requires_approval=True`, ...

    Returns:
        The model: a subclass of the given model's class and of `ToolsAndMessagesMixin`.

    Raises:
        ConfigurationError: `model` is no chat model, or something is bound to it; a setting does not exist or cannot work; something in
            `tools` can be neither executed nor declared.
    """
    if isinstance(model, BoundChatModel):
        return model.model_copy(update={"bound": with_tools(model.bound, tools, **settings)})
    if not isinstance(model, BaseChatModel):
        raise ConfigurationError(_refusal(model))
    unknown = settings.keys() - (ToolsAndMessagesMixin.model_fields.keys() - BaseChatModel.model_fields.keys())
    if unknown:
        raise ConfigurationError(ToolsAndMessagesMixin._unknown(min(unknown)))
    if isinstance(settings.get("approval_key"), str):
        settings["approval_key"] = SecretStr(settings["approval_key"])
    joined = model if isinstance(model, ToolsAndMessagesMixin) else _joined(model)
    return (joined.model_copy(update=settings) if settings else joined).with_tools(tools)


def _refusal(model: object) -> str:
    name = type(model).__name__
    if isinstance(model, type):
        wanted = f"class {model.__name__}WithTools(ToolsAndMessagesMixin, {model.__name__})"
        return f"with_tools takes a chat model, not the class {model.__name__}: make one of it, or write {wanted}"
    if isinstance(model, RunnableBinding):
        return f"with_tools takes a chat model, not {name}: bind to what it returns, with_tools(model, tools).bind(...)"
    if isinstance(model, Runnable):
        return f"with_tools takes a chat model, not {name}: give it the model inside, and make the {name} of what it returns"
    return f"with_tools takes a LangChain chat model, not {name}"


@lru_cache(maxsize=256)
def joined_class(cls: type[BaseChatModel]) -> type[Any]:
    """Return a chat model class with the mixin before it, under the same name."""
    names = {name: getattr(cls, name) for name in ("__module__", "__qualname__", "__doc__")}
    return JoiningMeta(cls.__name__, (ToolsAndMessagesMixin, cls), {**names, "__reduce__": _reduce})


def _joined(model: BaseChatModel) -> Any:
    """Return the same model as an instance of the joined class, with the same objects in its fields."""
    cls = joined_class(type(model))
    held = {name: value for name, value in model.__dict__.items() if name != CACHE_KEY}
    new = {name: field for name, field in cls.model_fields.items() if name not in held}
    defaults = {name: field.get_default(call_default_factory=True, validated_data={}) for name, field in new.items()}
    made = unvalidated(cls, {**defaults, **held}, set(model.model_fields_set), model.__pydantic_extra__)
    private = {name: attribute.get_default() for name, attribute in cls.__private_attributes__.items()}
    object.__setattr__(made, "__pydantic_private__", {**private, **(model.__pydantic_private__ or {})})
    return made


def _reduce(model: Any) -> tuple[Any, ...]:
    """Return the pickle form of a model of a joined class: the original class and the state."""
    return _empty, (type(model).__bases__[-1],), model.__getstate__()


def _empty(cls: type[BaseChatModel]) -> Any:
    return object.__new__(joined_class(cls))
