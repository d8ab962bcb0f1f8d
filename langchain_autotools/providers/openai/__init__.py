"""OpenAI, with every server that speaks its wires. Importing this package loads no SDK."""

from typing import TYPE_CHECKING

from .._base import lazy

if TYPE_CHECKING:
    from .._base.parameters import Environment
    from .azure import AzureChatOpenAI
    from .chat_model import ChatOpenAI
    from .dialect import Dialect, IdShape
    from .mapper import ChatCompletionsMapper
    from .preset import Preset, PresetChatModel

__all__ = ["AzureChatOpenAI", "ChatCompletionsMapper", "ChatOpenAI", "Dialect", "Environment", "IdShape", "Preset", "PresetChatModel"]

_HOMES = {
    "azure": ("AzureChatOpenAI",),
    "mapper": ("ChatCompletionsMapper",),
    "chat_model": ("ChatOpenAI",),
    "dialect": ("Dialect", "IdShape"),
    "preset": ("Preset", "PresetChatModel"),
}
_MODULES = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
__getattr__ = lazy(__name__, {**_MODULES, "Environment": f"{__name__.rpartition('.')[0]}._base.parameters"}.get)
