"""Settings of one FlashVector: defaults, then flashvector.toml, then FLASHVECTOR_ variables, then arguments."""

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from harness.journal.store import Place
from harness.mode import Mode
from harness.objective import Slo
from harness.policy import Policy
from stack.catalogue import setting_named
from stack.errors import InputError, UnknownSettingError
from stack.local.configuration import LocalStack
from stack.problem import first_problem
from stack.redaction import keep_secret, keep_url_secret

DEFAULT_FILE = Path("flashvector.toml")


class Settings(BaseSettings):
    """What an operator may set; units are in the names.

    Attributes:
        mode: where it is not said, shadow on a stack that is described here, as nobody has seen yet what would be done
            there, and approve on a simulated one.
        enabled: settings that may be changed; None leaves it to the policy.
        policy_path: the gate's policy; None for the one that ships.
        slo_ttft_s, slo_itl_s ...: promises to users; None leaves them to the policy.
        store_path: journal and memory, a SQLite file.
        store_url: or a PostgreSQL database for them, `postgresql+psycopg://USER@HOST/DATABASE`, shared by machines;
            a password is better kept in PGPASSFILE. Without either they stay in the process.
        stack: the local stack under care; None where a command brings its own.
        llm_base_url: an OpenAI-compatible endpoint, its /v1 included; None means that no LLM is configured.
        llm_tool_choice: `required` for small models, which never call a tool by themselves; see agent.dialogue.
        llm_tokens, llm_answer_tokens: most of one plan or chat answer in all, and of one turn that the model speaks.
    """

    model_config = SettingsConfigDict(env_prefix="FLASHVECTOR_", extra="forbid", frozen=True)
    file: ClassVar[Path | None] = None

    mode: Mode = Mode.APPROVE
    planner: Literal["search", "llm"] = "search"
    enabled: tuple[str, ...] | None = None
    policy_path: Path | None = None
    store_path: Path | None = None
    store_url: SecretStr | None = None
    metrics_urls: tuple[str, ...] = ()
    stack: LocalStack | None = None
    window_s: float = Field(default=60.0, ge=5, le=3600)
    cycle_s: float = Field(default=15.0, ge=1, le=300)
    slo_ttft_s: float | None = Field(default=None, gt=0)
    slo_ttft_s_per_prompt_token: float | None = Field(default=None, ge=0)
    slo_itl_s: float | None = Field(default=None, gt=0)
    slo_e2e_p99_s: float | None = Field(default=None, gt=0)
    llm_base_url: str | None = None
    llm_model: str = ""
    llm_api_key: SecretStr = SecretStr("")
    llm_tool_choice: Literal["auto", "required"] = "auto"
    llm_timeout_s: float = Field(default=30.0, gt=0, le=300)
    llm_calls: int = Field(default=8, ge=1, le=32)
    llm_seconds: float = Field(default=60.0, gt=0, le=600)
    llm_tokens: int = Field(default=20_000, ge=1000)
    llm_answer_tokens: int = Field(default=4000, ge=16)

    @model_validator(mode="before")
    @classmethod
    def _careful(cls, given: dict[str, Any]) -> dict[str, Any]:
        return {"mode": Mode.SHADOW, **given} if given.get("stack") is not None else given

    @field_validator("enabled")
    @classmethod
    def _known(cls, names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in names or ():
            try:
                setting_named(name)
            except UnknownSettingError as error:
                raise ValueError(str(error)) from error
        return names

    @model_validator(mode="after")
    def _kept_secret(self) -> "Settings":
        keep_secret(self.llm_api_key.get_secret_value())
        for url in (*self.metrics_urls, *([self.llm_base_url] if self.llm_base_url else ())):
            keep_url_secret(url)
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments beat the environment, which beats the file."""
        toml = () if cls.file is None else (TomlConfigSettingsSource(settings_cls, cls.file),)
        return (init_settings, env_settings, *toml)

    @classmethod
    def load(cls, config: Path | None = None, **arguments: object) -> "Settings":
        """Settings from `config` (or ./flashvector.toml when it exists), the environment and given `arguments`.

        Raises:
            InputError: the file is absent or unreadable, or a value is not acceptable; one line naming file and place.
        """
        source = config if config is not None else DEFAULT_FILE if DEFAULT_FILE.exists() else None
        if source is not None:
            _check_readable(source)
        here = type("SettingsOfFile", (cls,), {"file": source})
        try:
            loaded: Settings = here(**{name: value for name, value in arguments.items() if value is not None})
        except ValidationError as error:
            file = f"{source}, " if source else ""
            raise InputError(f"{file}FLASHVECTOR_ variables or arguments: {first_problem(error)}") from error
        return loaded.looking() if loaded.mode is Mode.SHADOW else loaded

    def looking(self) -> "Settings":
        """The same in shadow mode, without the token that opens all of an engine, where there is one for reading."""
        stack = None if self.stack is None else self.stack.for_reading()
        return self.model_copy(update={"mode": Mode.SHADOW, "stack": stack})

    def policy(self) -> Policy:
        """The policy of `policy_path`, with the settings and promises that were given here instead of its own.

        Raises:
            InputError: the policy's file is unusable.
        """
        policy = Policy.load(self.policy_path, enabled=self.enabled)
        given = {name: getattr(self, f"slo_{name}") for name in Slo.__dataclass_fields__}
        promises = {name: value for name, value in given.items() if value is not None}
        return policy.model_copy(update={"slo": replace(policy.slo, **promises)})

    @property
    def store(self) -> Place:
        """Where journal and memory are kept.

        Raises:
            InputError: in two places.
        """
        if self.store_url is not None and self.store_path is not None:
            raise InputError(f"expected store_path or store_url, found both (store_path is {self.store_path})")
        return self.store_path if self.store_url is None else self.store_url.get_secret_value()

    @property
    def has_llm(self) -> bool:
        """Whether an LLM endpoint is configured."""
        return self.llm_base_url is not None


def _check_readable(path: Path) -> None:
    try:
        tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error
