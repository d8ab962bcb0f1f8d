"""The building blocks of every vendor's encoder of LangChain messages and tools."""
