"""All strict fake providers, by the name tests know them by."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.providers.anthropic import Anthropic
from tests.support.providers.bedrock import Bedrock
from tests.support.providers.gemini import Gemini
from tests.support.providers.ollama import Ollama
from tests.support.providers.openai_chat import OpenAIChat
from tests.support.providers.openai_responses import OpenAIResponses
from tests.support.providers.server import Family

FAMILIES: dict[str, Callable[[], Family]] = {
    "openai": OpenAIChat,
    "openai_reasoning": lambda: OpenAIChat(name="openai/prod-rca", young=True),
    "openai_responses": OpenAIResponses,
    "anthropic": Anthropic,
    "gemini": Gemini,
    "bedrock": Bedrock,
    "ollama": Ollama,
    "vllm": lambda: OpenAIChat(name="hosted_vllm/qwen3"),
}
