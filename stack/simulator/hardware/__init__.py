"""What the simulated hardware is and how long it takes: models, GPUs, precisions, step times, engine versions."""
