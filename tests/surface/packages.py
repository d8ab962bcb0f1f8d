"""The partner packages, by import name: no module of this folder that needs one is read where one is missing."""

PACKAGES = (
    "langchain_anthropic",
    "langchain_cohere",
    "langchain_deepseek",
    "langchain_fireworks",
    "langchain_google_genai",
    "langchain_groq",
    "langchain_mistralai",
    "langchain_ollama",
    "langchain_openai",
    "langchain_openrouter",
    "langchain_together",
    "langchain_xai",
)
