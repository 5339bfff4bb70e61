"""The serving stack under care: what can be read and what can be set."""
