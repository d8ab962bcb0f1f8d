"""A run: all turns of one `invoke` or `stream`, from its limits and settings to the message that it gives."""
