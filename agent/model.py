"""The chat model: any OpenAI-compatible endpoint, every limit explicit."""

from langchain_openai import ChatOpenAI

from agent.settings import Settings
from stack.errors import InputError

NO_KEY = "none"
"""What is sent when no key is set: local servers want a value, any value."""


def chat_model(settings: Settings) -> ChatOpenAI:
    """The model named in `settings`. Nothing is taken from OPENAI_ variables.

    Raises:
        InputError: the endpoint or the model's name is missing.
    """
    for name in ("llm_base_url", "llm_model"):
        if not getattr(settings, name):
            raise InputError(f"{name}: expected for an LLM (or FLASHVECTOR_{name.upper()}), found none")
    key = settings.llm_api_key.get_secret_value() or NO_KEY
    return ChatOpenAI(
        model=settings.llm_model,
        base_url=settings.llm_base_url,
        api_key=lambda: key,
        timeout=settings.llm_timeout_s,
        max_retries=0,
        temperature=0,
        max_completion_tokens=settings.llm_answer_tokens,
        use_responses_api=False,
        stream_usage=True,
    )
