"""The building blocks of every vendor's chat model."""
