"""The vendors: a folder for each wire, `presets` for vendors that speak another's, and what all of them are made of.

`_base` has what a chat model is made of, `_encode` what writes its requests, `_transport` what carries bytes.
Importing this package loads no vendor's SDK.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__: list[str] = []


class _Preset(ModuleType):
    """A preset under `providers.<vendor>`: the module of `providers.presets`, loaded when a name of it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(import_module(f"{__name__}.presets.{self.__name__.rpartition('.')[2]}"), name)


for _vendor in ("cohere", "deepseek", "fireworks", "groq", "mistralai", "openrouter", "together", "xai"):
    sys.modules[f"{__name__}.{_vendor}"] = globals()[_vendor] = _Preset(f"{__name__}.{_vendor}")
