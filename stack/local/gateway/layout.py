"""Names that the generated configuration, its Lua and our code agree on."""

from pathlib import Path

from stack.catalogue import POLICIES, SETTINGS
from stack.layer import Layer
from stack.local.configuration import LocalStack

GATEWAY_SETTINGS = tuple(setting for setting in SETTINGS if setting.layer is Layer.ROUTING)

CONFIG, LUA, SERVER_STATE = "haproxy.cfg", "flashvector.lua", "servers.state"
CHOICES, NUMBERS, RANKS = "choices.map", "numbers.map", "ranks.map"
ADMIN_SOCKET, READ_SOCKET, MASTER_SOCKET = "admin.sock", "read.sock", "master.sock"
HELD_PATH = "/held"
"""Where the metrics address tells what is held. A socket of level `user` would let its holder change maps."""

USERS, METRICS, CLOSED = "users", "metrics", "closed"
BATCH = "batch"
REPLICAS = "replicas"
"""The backend that checks health and holds the administrative state; all other backends follow its servers."""

SLOTS = "slots."
"""Prefix of the numbers that say how many requests each replica's engine runs at once."""
TTFT_LIMIT_S, TTFT_LIMIT_S_PER_TOKEN = "ttft_limit_s", "ttft_limit_s_per_prompt_token"
BATCH_TTFT_LIMIT_S = "batch_ttft_limit_s"

CHOICE_SETTINGS = ("routing_policy", "priority_policy")
NUMBER_SETTINGS = ("queue_limit_requests", "deadline_shedding_ratio", "batch_in_flight_cap")


def policy_backend(policy: str) -> str:
    """The backend that carries out a routing policy."""
    return f"policy_{policy}"


POLICY_BACKENDS = tuple(policy_backend(policy) for policy in POLICIES)


def folder_of(configuration: LocalStack) -> Path:
    """Where the gateway's files and sockets are, absolute."""
    return configuration.run_folder.absolute() / "gateway"
