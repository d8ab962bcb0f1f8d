"""The vendors: one folder per wire, `presets` for vendors of another's wire, the parts that all share.

`_base` has what a chat model is made of, `_encode` what writes its requests, `_transport` what carries bytes.
Importing this package loads no vendor's SDK.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

__all__: list[str] = []


class _Preset(ModuleType):
    """A preset as `providers.<vendor>`, whose module in `providers.presets` loads on first access to a name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(import_module(f"{__name__}.presets.{self.__name__.rpartition('.')[2]}"), name)


for _vendor in ("cohere", "deepseek", "fireworks", "groq", "mistralai", "openrouter", "together", "xai"):
    sys.modules[f"{__name__}.{_vendor}"] = globals()[_vendor] = _Preset(f"{__name__}.{_vendor}")
