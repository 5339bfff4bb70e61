"""A discrete-event vLLM cluster in virtual time."""
