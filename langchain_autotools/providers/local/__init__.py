"""The embedded local model: a real model on a real server, without a key, started at first use.

`ChatLocal` is the chat model; `find_weights` says which file it runs, `store_weights`
puts the default one into the cache, `close_server` stops its server.
"""

from .chat_model import CHAT_TEMPLATE, ChatLocal
from .server import LocalServer, LocalServerError, close_server
from .weights import find_weights, store_weights

__all__ = ["CHAT_TEMPLATE", "ChatLocal", "LocalServer", "LocalServerError", "close_server", "find_weights", "store_weights"]
