"""The local stack: real vLLM replicas behind HAProxy, with Prometheus for history."""
