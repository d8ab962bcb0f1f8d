"""The building blocks of every vendor's encoder of LangChain's messages or tools."""
