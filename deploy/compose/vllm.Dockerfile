# vLLM's own image with our scheduler in it. The arguments are those of deploy/local-gpu.toml.
FROM vllm/vllm-openai:v0.32.0
COPY stack/vllm_plugin /opt/vllm_plugin
RUN python3 -m pip install --no-cache-dir --no-deps /opt/vllm_plugin
ENTRYPOINT ["vllm", "serve", "Qwen/Qwen3-8B", "--served-model-name", "qwen3-8b", \
    "--max-num-seqs", "256", "--max-num-batched-tokens", "8192", "--scheduling-policy", "priority", \
    "--scheduler-cls", "flashvector_vllm.scheduler.TunableAsyncScheduler", \
    "--worker-extension-cls", "flashvector_vllm.worker.MemoryExtension"]
