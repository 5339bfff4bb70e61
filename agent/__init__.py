"""The loop and the chat: planners, the graph, and the one door for ui and evals."""

import os

# LangChain sends traces to a hosted service when a variable of the user's shell says so, and reads it at first use.
os.environ.update(dict.fromkeys(("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING_V2"), "false"))
# Checkpoints may only be loaded into plain types.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
