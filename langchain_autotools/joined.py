"""`with_tools`: adds tool execution to an instance of any LangChain chat model."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import SecretStr

from .errors import ConfigurationError
from .mixin import ToolsAndMessagesMixin
from .run.binding import BoundChatModel
from .run.joining import joined


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
    own = model if isinstance(model, ToolsAndMessagesMixin) else joined(ToolsAndMessagesMixin, model)
    return (own.model_copy(update=settings) if settings else own).with_tools(tools)


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
