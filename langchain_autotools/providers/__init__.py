"""The vendors: one folder for each wire, and what all of them share.

`_mapper` says what a wire must be able to do, `_chat_model` joins a mapper with a client,
retries and typed errors. Importing this package loads no vendor's SDK.
"""
