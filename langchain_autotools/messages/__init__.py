"""Messages: their calls, what is kept of them beside their content, and the run message that carries others."""
