"""A replica's engine: the plugin's routes in vLLM, and the settings they change."""
