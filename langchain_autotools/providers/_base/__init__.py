"""What the chat model of every vendor is made of."""
