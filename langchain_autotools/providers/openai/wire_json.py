"""The JSON text of this vendor's bodies, which is that of every vendor: see `providers._json`."""

from .._json import dumps, dumps_params, read_object, to_bytes

__all__ = ["dumps", "dumps_params", "read_object", "to_bytes"]
