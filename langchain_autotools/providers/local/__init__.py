"""The embedded local model: a real model on a real server, without a key, started at first use.

`ChatLocal` is the chat model; `find_weights` says which file it runs, `store_weights`
puts the default one into the cache, `close_server` stops its server. Importing this package loads no SDK: who stores weights needs none.
"""

from typing import TYPE_CHECKING

from .._base import lazy

if TYPE_CHECKING:
    from .chat_model import CHAT_TEMPLATE, ChatLocal
    from .server import LocalServer, LocalServerError, close_server
    from .weights import find_weights, store_weights

__all__ = ["CHAT_TEMPLATE", "ChatLocal", "LocalServer", "LocalServerError", "close_server", "find_weights", "store_weights"]

_HOMES = {"CHAT_TEMPLATE": "chat_model", "ChatLocal": "chat_model", "find_weights": "weights", "store_weights": "weights"}

__getattr__ = lazy(__name__, {name: f"{__name__}.{_HOMES.get(name, 'server')}" for name in __all__}.get)
