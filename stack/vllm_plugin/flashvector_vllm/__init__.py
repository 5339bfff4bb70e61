"""vLLM's scheduler with limits that change between two engine steps, and the doors to read and set them.

Installed into vLLM's environment; needs nothing of FlashVector itself.
"""
