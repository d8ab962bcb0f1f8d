"""The name and version of this distribution."""

__all__ = ["DISTRIBUTION", "__version__"]

DISTRIBUTION = "langchain-autotools-chat"
__version__ = "0.1.0"
