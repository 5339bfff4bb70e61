"""An app with the doors. Behind them the real scheduler; only vLLM's message queue between processes is left out."""

from types import SimpleNamespace

import msgspec
from fake_engine import Engine, Setup
from fastapi import FastAPI
from flashvector_vllm import plugin
from flashvector_vllm.endpoint import FlashVectorEndpoint, FlashVectorMiddleware
from flashvector_vllm.worker import MemoryExtension
from starlette.testclient import TestClient

WAYS = ("endpoint", "middleware")
METHODS = {plugin.SET_LIMITS: plugin._set_limits, plugin.GET_STATE: plugin._get_state}


class Client:
    """What vLLM's AsyncLLM offers; arguments and answers go through msgpack as between its processes."""

    def __init__(self, engine, extension="flashvector_vllm.worker.MemoryExtension"):
        self.scheduler, self.engine_core, self.called = engine.scheduler, self, []
        self.vllm_config = SimpleNamespace(
            scheduler_config=SimpleNamespace(max_num_queued_reqs=None),
            parallel_config=SimpleNamespace(worker_extension_cls=extension),
        )

    async def call_utility_async(self, method, *arguments):
        given = msgspec.msgpack.decode(msgspec.msgpack.encode(arguments))
        return msgspec.msgpack.decode(msgspec.msgpack.encode(METHODS[method](self, *given)))

    async def collective_rpc(self, method):
        self.called.append(method)
        return [getattr(MemoryExtension(), method)()]


def app_with_doors(way, model):
    app = FastAPI()
    app.state.engine_client = Client(Engine(Setup(), model))
    if way == "endpoint":
        FlashVectorEndpoint().attach_router(app)
    else:
        app.add_middleware(FlashVectorMiddleware)
    return app


def local(app, host="127.0.0.1", url="http://127.0.0.1:8000"):
    return TestClient(app, base_url=url, client=(host, 5000))
