"""The loop and the chat; the only room that knows LangGraph and LangChain."""
