"""What a local stack consists of: replicas, gateway, history. Read from the `[stack]` table of a configuration file."""

import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from stack.catalogue import PROFILES
from stack.errors import InputError
from stack.problem import first_problem
from stack.redaction import SECRET_NAME, keep_secret, keep_url_secret

DEFAULT_PROFILE = "default"
SOCKET_PATH_MAX = 100
"""Unix socket paths longer than about this are refused by the kernel (108 bytes)."""


def _address(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or parts.port is None or parts.path not in ("", "/"):
        raise ValueError(f"expected http://HOST:PORT, found {text!r}")
    return f"http://{parts.netloc}"


Address = Annotated[str, AfterValidator(_address)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Engine(_Part):
    """How a replica's engine is started.

    Attributes:
        command: the program and its first arguments, before everything else.
        arguments: of every replica; host and port are added from its address.
        environment: variables beside those of the caller.
        model: the name under which the model is served.
        profiles: execution profiles and the arguments each adds.
        ready_s: longest time from start to the first answered request.
        drain_s: longest time a replica gets to finish its requests before it is stopped.
        stuck_s: an engine that has work and finishes no step for so long is not alive.
    """

    command: tuple[str, ...] = Field(min_length=1)
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = Field(default_factory=dict)
    model: str = Field(min_length=1)
    profiles: Mapping[str, tuple[str, ...]] = Field(default_factory=lambda: {DEFAULT_PROFILE: ()})
    ready_s: Seconds = 600.0
    drain_s: Seconds = 120.0
    stuck_s: Seconds = 30.0

    @model_validator(mode="after")
    def _known_profiles(self) -> "Engine":
        unknown = sorted(set(self.profiles) - set(PROFILES))
        if unknown or DEFAULT_PROFILE not in self.profiles:
            raise ValueError(f"profiles: expected {DEFAULT_PROFILE} and some of {', '.join(PROFILES)}, found {unknown}")
        return self


class Replica(_Part):
    """One engine.

    Attributes:
        url: where it listens.
        arguments, environment: beside the engine's own.
        managed: whether we start and stop it; otherwise somebody else does.
    """

    name: Name
    url: Address
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = Field(default_factory=dict)
    managed: bool = True

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 0

    @property
    def host(self) -> str:
        """Its host."""
        return urlsplit(self.url).hostname or ""


class Gateway(_Part):
    """HAProxy.

    Attributes:
        url: where users send requests.
        metrics_url: where its exporter and its statistics page listen.
        command: the HAProxy program.
        managed: whether we start and stop it.
        queue_s: longest wait for a free replica, then 503.
        silence_s: longest silent gap of an answer: queue in the engine and prefill.
    """

    url: Address
    metrics_url: Address
    command: str = "haproxy"
    managed: bool = True
    queue_s: Seconds = 120.0
    silence_s: Seconds = 600.0


class History(_Part):
    """Prometheus.

    Attributes:
        url: where it listens.
        command: the Prometheus program.
        scrape_interval_s: how often it reads engines and gateway.
        retention: how long it keeps samples, as Prometheus writes durations.
    """

    url: Address
    command: str = "prometheus"
    managed: bool = True
    scrape_interval_s: Seconds = 2.0
    retention: Annotated[str, Field(pattern=r"^[0-9]+[smhdwy]$")] = "1d"


class LocalStack(_Part):
    """A whole stack.

    Attributes:
        run_folder: sockets, generated configuration, logs and what is held; relative to the working directory.
        history: None: no Prometheus; windows then come from scrapes of our own.
        engine_token: for engines on other machines; on this one none is needed.
        engine_read_token: opens what reads in them and nothing else; what only looks shows this one where there is one.
    """

    name: Name = "local"
    run_folder: Path
    engine: Engine
    replicas: tuple[Replica, ...] = Field(min_length=1, max_length=64)
    gateway: Gateway
    history: History | None = None
    engine_token: SecretStr = SecretStr("")
    engine_read_token: SecretStr = SecretStr("")

    @model_validator(mode="after")
    def _unique(self) -> "LocalStack":
        if self.engine_token.get_secret_value() and self.engine_token == self.engine_read_token:
            raise ValueError("engine_read_token: expected another token than engine_token, which opens everything")
        names = [replica.name for replica in self.replicas]
        reserved = {"fleet", "gateway"} & set(names)
        urls = [replica.url for replica in self.replicas] + [self.gateway.url, self.gateway.metrics_url]
        urls += [self.history.url] if self.history else []
        for what, found in (("names", names), ("addresses", urls)):
            twice = sorted({one for one in found if found.count(one) > 1})
            if twice:
                raise ValueError(f"{what} must differ, found {twice[0]} twice")
        if reserved:
            raise ValueError(f"replicas cannot be called {sorted(reserved)[0]}")
        if len(str(self.run_folder.absolute())) > SOCKET_PATH_MAX - len("/gateway/admin.sock"):
            raise ValueError(f"run_folder: {self.run_folder.absolute()} is too long a path for a socket in it")
        return self

    @model_validator(mode="after")
    def _kept_secret(self) -> "LocalStack":
        for token in (self.engine_token, self.engine_read_token):
            keep_secret(token.get_secret_value())
        parts: tuple[Engine | Replica, ...] = (self.engine, *self.replicas)
        for part in parts:
            _keep_secrets(part.environment, part.arguments)
        for profile in self.engine.profiles.values():
            _keep_secrets({}, profile)
        urls = [replica.url for replica in self.replicas] + [self.gateway.url, self.gateway.metrics_url]
        for url in urls + ([self.history.url] if self.history else []):
            keep_url_secret(url)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The replicas' names, in the order of the file."""
        return tuple(replica.name for replica in self.replicas)

    def for_reading(self) -> "LocalStack":
        """The same stack without the token that opens everything, where there is one for reading."""
        if not self.engine_read_token.get_secret_value():
            return self
        return self.model_copy(update={"engine_token": SecretStr("")})

    def engine_access(self, *, writes: bool) -> Mapping[str, str]:
        """The headers that open an engine's plugin for us; none without a token."""
        token, read_token = self.engine_token.get_secret_value(), self.engine_read_token.get_secret_value()
        shown = token if writes else read_token or token
        return {"Authorization": f"Bearer {shown}"} if shown else {}

    def replica(self, name: str) -> Replica:
        """The replica called `name`.

        Raises:
            InputError: there is none; the text lists those there are.
        """
        for replica in self.replicas:
            if replica.name == name:
                return replica
        raise InputError(f"no replica {name!r}; there are {', '.join(self.names)}")


def _keep_secrets(environment: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Values of variables and arguments whose name says that they are secret: `HF_TOKEN`, `--api-key VALUE`."""
    told = [*environment.items(), *pairwise(arguments), *(one.split("=", 1) for one in arguments if "=" in one)]
    for name, value in told:
        if SECRET_NAME.search(name):
            keep_secret(value)


def read_stack(path: Path) -> LocalStack:
    """The `[stack]` table of the file at `path`.

    Raises:
        InputError: the file cannot be read, has no such table, or a value is not acceptable.
    """
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
    if not isinstance(tables.get("stack"), dict):
        raise InputError(f"{path}: expected a table [stack] that describes the local stack, found none")
    try:
        return LocalStack.model_validate(tables["stack"])
    except ValidationError as error:
        raise InputError(f"{path}: stack.{first_problem(error)}") from error
