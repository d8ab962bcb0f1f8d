"""From LangChain's messages and tools to a wire: what every vendor's encoder is made of."""
