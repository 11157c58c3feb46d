"""The options of ``.option(...)``: name, values and default, one row each.

Names follow Spark's convention (camelCase, case does not matter). An unknown name is an
error, because Spark itself would silently ignore a typing mistake. Passwords come from the
environment or from a file, so that no query plan shows them; a URL is never shown with its credentials.

Knows neither Spark nor Arrow; ``option_values`` parses the values.

"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, cast
from urllib.parse import quote

from trio_amqp10.core.errors import LocalProtocolError
from trio_amqp10.core.paths import scheme_of
from trio_amqp10.net.urls import Url, parse_url, schemes_of

from . import option_values as values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SPARKS_OWN: Final = frozenset({"checkpointlocation"})
"""Options that Spark adds."""
_OF_TABLE: Final = "option."
"""The beginning of names of options in ``CREATE TABLE``, as Spark passes them."""
_TABLES_OWN: Final = frozenset({"owner", "provider"})
"""Properties of a table that Spark passes in place of its options."""


class OptionError(LocalProtocolError):
    """An option does not exist, is missing, or has a value that is not allowed."""


def _option(name: str, parse: Callable[[str], Any], default: Any = None, *, secret: bool = False) -> Any:
    return field(default=default, repr=not secret, metadata={"name": name, "parse": parse})


# The options ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PeerOptions:
    """How to reach the peer; common to readers and sinks."""

    url: str = _option("url", values.text, secret=True)
    address: str | None = _option("address", values.text)
    sasl_mechanism: str | None = _option("sasl.mechanism", values.text)
    username: str | None = _option("username", values.text)
    secret_env: str | None = _option("secretEnv", values.text)
    secret_file: str | None = _option("secretFile", values.local_file)
    allow_plaintext_password: bool = _option("allowPlaintextPassword", values.boolean, False)
    token: str | None = _option("token", values.one_of("sas", "entra"))
    token_command: str | None = _option("tokenCommand", values.command, secret=True)
    token_scope: str | None = _option("tokenScope", values.text)
    tls_ca: str | None = _option("tls.ca", values.local_file)
    tls_cert: str | None = _option("tls.cert", values.local_file)
    tls_key: str | None = _option("tls.key", values.local_file)
    container_id: str | None = _option("containerId", values.text)
    idle_timeout: float = _option("idleTimeout", values.seconds, 60.0)
    max_frame_size: int | None = _option("maxFrameSize", values.octets(512))
    connect_timeout: float = _option("connectTimeout", values.seconds, 15.0)
    reconnect_timeout: float = _option("reconnect.timeout", values.seconds, 60.0)

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> Self:
        """Parse the options that Spark passes.

        Raises:
            OptionError: an option is unknown, missing, or has a value that is not allowed. The text shows no secret value.
        """
        known = {each.metadata["name"].lower(): each for each in fields(cls)}
        if not given or any(
            name.lower().startswith(_OF_TABLE) or name.lower() in _TABLES_OWN for name in given
        ):
            raise OptionError(
                "there are no options: Spark does not pass those of CREATE TABLE to the readers and writers of a Python data "
                "source, so use CREATE TEMPORARY VIEW ... USING amqp10 OPTIONS (url '...', ...), or format(\"amqp10\")"
            )
        chosen: dict[str, Any] = {}
        for name, value in given.items():
            found = known.get(name.lower())
            if found is None:
                if name.lower() in _SPARKS_OWN:
                    continue
                raise OptionError(
                    f"no option {name!r} is known here; {_nearest(name, known)}the options are {_shown(known)}"
                )
            try:
                chosen[found.name] = found.metadata["parse"](value)
            except ValueError as wrong:
                shown = ":" if not found.repr else f" is {value!r}:"
                raise OptionError(f"option {found.metadata['name']!r}{shown} {wrong}") from None
        options = cls(**chosen)
        options._check()
        return options

    def _check(self) -> None:
        self._require("url")
        where = self.parsed
        if self.is_091 and self.has_tokens:
            raise self._no_091("token" if self.token is not None else "tokenCommand")
        if self.secret_env and self.secret_file:
            raise OptionError(
                "options 'secretEnv' and 'secretFile' both name the place of the password: give one"
            )
        if (self.secret_env or self.secret_file) and not self.username:
            raise OptionError("options 'secretEnv' and 'secretFile' need option 'username' too")
        self._check_tokens(where)
        if self.username and where.username is not None:
            raise OptionError("the URL names a user, and so does option 'username': give one")
        if not self.connect_timeout or not self.idle_timeout:
            raise OptionError(
                f"options 'connectTimeout' = {self.connect_timeout:g} and 'idleTimeout' = {self.idle_timeout:g}: expected more than 0 seconds"
            )

    def _check_tokens(self, where: Url) -> None:
        if self.token is not None and self.token_command is not None:
            raise OptionError("options 'token' and 'tokenCommand' both name the source of tokens: give one")
        if self.token_scope is not None and self.token != "entra":
            raise OptionError("option 'tokenScope' needs 'token' = 'entra'")
        if (self.token == "entra" or self.token_command is not None) and (
            self.secret_env or self.secret_file or where.username is not None
        ):
            raise OptionError(
                "the identity is that of a token, and the options have a password too: leave out 'secretEnv' and 'secretFile', and the "
                "user of the URL"
            )
        if self.token == "sas" and not (self.username and (self.secret_env or self.secret_file)):
            raise OptionError(
                "option 'token' needs a key for its signature: give the name of the key in option 'username', and its place in "
                "option 'secretEnv' or 'secretFile'"
            )

    def _require(self, name: str) -> None:
        if getattr(self, name) is None:
            shown = next(each.metadata["name"] for each in fields(self) if each.name == name)
            raise OptionError(f"option {shown!r} is missing: set it")

    @property
    def where(self) -> str:
        """The URL of the peer without credentials."""
        shown = str(self.parsed)
        return shown.replace("amqp", "amqp091", 1) if self.is_091 else shown

    @property
    def is_091(self) -> bool:
        """Whether the protocol is AMQP 0-9-1."""
        return self.url.lower().startswith("amqp091")

    @property
    def has_tokens(self) -> bool:
        """Whether the identity of this client is that of tokens."""
        return self.token is not None or self.token_command is not None

    @property
    def parsed(self) -> Url:
        """The parsed URL; for AMQP 0-9-1 the virtual host is its address."""
        return parse_url(self.url, schemes_of("amqp091"))

    def _no_091(self, option: str) -> OptionError:
        return OptionError(f"option {option!r} is for AMQP 1.0, and the URL is one of AMQP 0-9-1")

    def dial_url(self) -> str:
        """Return the URL with the credentials, but for those of a token.

        The password is read now from its variable or file.

        Raises:
            OptionError: the password cannot be read.
        """
        if self.username is None or self.has_tokens:
            return self.url
        scheme, _, rest = self.url.partition("://")
        password = self.password()
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"{scheme}://{quote(self.username, safe='')}{secret}@{rest}"

    def password(self) -> str | None:
        """Return the password, read now from its variable, its file or the URL.

        Raises:
            OptionError: the password cannot be read.
        """
        if self.secret_env is not None:
            try:
                return os.environ[self.secret_env]
            except KeyError:
                raise OptionError(
                    f"option 'secretEnv': there is no variable {self.secret_env!r} in this process"
                ) from None
        if self.secret_file is not None:
            try:
                return Path(self.secret_file).read_text(encoding="utf-8").rstrip("\r\n")
            except OSError as wrong:
                raise OptionError(f"option 'secretFile': {wrong}") from None
        return self.parsed.password


@dataclass(frozen=True, kw_only=True)
class ReadOptions(PeerOptions):
    """The options that all readers have in common."""

    mode: str | None = _option("mode", values.one_of("queue", "log", "browse"))
    credit: int = _option("credit", values.count(1), 4000)
    selector: str | None = _option("selector", values.text)
    include_raw: bool = _option("includeRaw", values.boolean, False)
    property_types: bool = _option("propertyTypes", values.boolean, False)
    body_json: bool = _option("bodyJson", values.boolean, False)
    source_columns: bool = _option("sourceColumns", values.boolean, False)
    maps: bool = _option("maps", values.boolean, True)
    columns: tuple[str, ...] | None = _option("columns", values.names)
    property_columns: tuple[tuple[str, str], ...] = _option("propertyColumns", values.typed_columns, ())
    on_decode_error: str = _option(
        "onDecodeError", values.one_of("fail", "reject", "deadletter-column"), "fail"
    )

    def _check(self) -> None:
        super()._check()
        self._check_address()
        if self.is_091 and self.selector is not None:
            raise self._no_091("selector")

    def _check_address(self) -> None:
        self._require("address")


@dataclass(frozen=True, kw_only=True)
class QueueOptions(ReadOptions):
    """The options of ``readStream`` from a queue, through a spool."""

    spool: str = _option("spool", values.location, secret=True)
    lanes: int | Literal["external"] = _option("lanes", values.lanes, 1)
    spool_max_bytes: int = _option("spool.maxBytes", values.octets(1), 2**30)
    credit_max_bytes: int = _option("credit.maxBytes", values.octets(1), 16 * 2**20)
    spool_flush_rows: int = _option("spool.flushRows", values.count(1), 2000)
    spool_flush_interval: float = _option("spool.flushInterval", values.seconds, 0.1)
    spool_transport: str = _option("spool.transport", values.one_of("file", "inline"), "file")
    links: int = _option("links", values.count(1), 1)
    link_name: str | None = _option("linkName", values.text)
    durable: bool = _option("durable", values.boolean, False)
    dedup: str = _option("dedup", values.one_of("none", "message-id", "link"), "none")
    dedup_window: int = _option("dedup.window", values.count(1), 20_000)
    max_rows: int | None = _option("maxRowsPerTrigger", values.count(1))
    max_bytes: int | None = _option("maxBytesPerTrigger", values.octets(1))
    min_rows: int | None = _option("minRowsPerTrigger", values.count(1))
    max_trigger_delay: float = _option("maxTriggerDelay", values.seconds, 900.0)
    backlog_delay: float = _option("backlogDelay", values.seconds, 2.0)
    min_partitions: int | None = _option("minPartitions", values.count(1))
    available_now_idle: float = _option("availableNowIdle", values.seconds, 5.0)
    available_now_timeout: float = _option("availableNowTimeout", values.seconds, 600.0)

    def _check(self) -> None:
        super()._check()
        self._require("spool")
        if self.mode == "browse":
            raise OptionError("option 'mode' is 'browse', which a stream cannot do: use spark.read")
        if self.mode == "log":
            raise OptionError("option 'mode' is 'log', which needs no spool: leave out the options of queues")
        if self.is_091 and (self.durable or self.link_name is not None):
            raise self._no_091("linkName")
        if self.is_091 and self.dedup == "link":
            raise OptionError("option 'dedup' is 'link', and AMQP 0-9-1 has no links: use 'message-id'")
        if self.dedup == "message-id" and self.dedup_window < self.credit * self.links:
            raise OptionError(
                f"option 'dedup.window' is {self.dedup_window}, but as many as {self.credit * self.links} messages "
                "(credit x links) may come again: it must be at least that"
            )
        if self.durable and self.link_name is None:
            raise OptionError("option 'durable' needs 'linkName': the peer finds a subscription by it")
        if self.durable and self.lanes not in (1, "external"):
            raise OptionError(
                f"option 'durable' is for one subscription, and 'lanes' = {self.lanes} would make as many, each with all messages"
            )
        if self.link_name is not None and self.container_id is None:
            raise OptionError(
                "option 'linkName' needs 'containerId': the name of a link is unique only within a container-id"
            )

    @property
    def has_lanes(self) -> bool:
        """Whether messages are received into lanes, not into the spool of one process."""
        return self.lanes != 1 or scheme_of(self.spool) is not None

    @property
    def kept_rows(self) -> int:
        """How many consumed rows stay in the spool, to recognise redelivered messages."""
        return {"none": 0, "message-id": self.dedup_window, "link": 1}[self.dedup]


@dataclass(frozen=True, kw_only=True)
class BrowseOptions(ReadOptions):
    """The options of ``spark.read`` from a queue, which only browses."""

    browse_limit: int | None = _option("browseLimit", values.count(1))
    browse_timeout: float = _option("browseTimeout", values.seconds, 10.0)

    def _check(self) -> None:
        super()._check()
        if self.mode not in (None, "browse"):
            raise OptionError(
                f"option 'mode' is {self.mode!r}, and a batch only browses: use readStream with "
                "trigger(availableNow=True)"
            )
        _check_only_looks(self)
        if self.is_091:
            raise OptionError("AMQP 0-9-1 cannot browse a queue: use readStream, or a URL of AMQP 1.0")


@dataclass(frozen=True, kw_only=True)
class LogOptions(ReadOptions):
    """The options of ``mode=log``: the peer keeps numbered messages."""

    addresses: tuple[str, ...] | None = _option("addresses", values.names)
    address_pattern: str | None = _option("addressPattern", values.text)
    super_streams: tuple[str, ...] | None = _option("superStreams", values.names)
    partition_keys: tuple[str, ...] | None = _option("partitionKeys", values.names)
    dialect: str = _option("dialect", values.one_of("rabbitmq", "event-hubs"), "rabbitmq")
    consumer_group: str | None = _option("consumerGroup", values.text)
    starting_offsets: str | int | Mapping[str, int] | None = _option("startingOffsets", values.offsets)
    starting_timestamp: int | None = _option("startingTimestamp", values.milliseconds)
    ending_offsets: str | int | Mapping[str, int] | None = _option("endingOffsets", values.offsets)
    ending_timestamp: int | None = _option("endingTimestamp", values.milliseconds)
    fail_on_data_loss: bool = _option("failOnDataLoss", values.boolean, True)
    max_rows: int | None = _option("maxRowsPerTrigger", values.count(1))
    min_rows: int | None = _option("minRowsPerTrigger", values.count(1))
    max_trigger_delay: float = _option("maxTriggerDelay", values.seconds, 900.0)
    min_partitions: int = _option("minPartitions", values.count(1), 1)
    read_timeout: float = _option("readTimeout", values.seconds, 30.0)

    def _check(self) -> None:
        super()._check()
        if self.mode != "log":
            raise OptionError(f"option 'mode' is {self.mode!r}, and these options are for 'log'")
        if self.selector is not None:
            raise OptionError("option 'selector' leaves gaps that look like lost messages: filter in Spark")
        if self.is_091:
            raise OptionError("option 'mode' is 'log', which needs a URL of AMQP 1.0")
        if self.consumer_group is not None and self.dialect != "event-hubs":
            raise OptionError(
                f"option 'consumerGroup' is for 'event-hubs', and 'dialect' is {self.dialect!r}"
            )
        if (self.address_pattern or self.super_streams) and self.dialect != "rabbitmq":
            raise OptionError(
                f"options 'addressPattern' and 'superStreams' are for 'rabbitmq', and 'dialect' is {self.dialect!r}"
            )
        pattern = self.address_pattern
        if pattern is not None and not (pattern.startswith("/queues/") and pattern.count("*") == 1):
            raise OptionError(
                f"option 'addressPattern' is {pattern!r}: expected an address of RabbitMQ with one * for the numbers 0, 1, 2 and so on, "
                "e.g. /queues/clicks-*"
            )
        if self.partition_keys is not None and self.super_streams is None:
            raise OptionError("option 'partitionKeys' needs option 'superStreams'")
        for end in ("starting", "ending"):
            if getattr(self, f"{end}_offsets") is not None and getattr(self, f"{end}_timestamp") is not None:
                raise OptionError(f"options '{end}Offsets' and '{end}Timestamp' exclude each other: give one")
        _check_only_looks(self)

    def _check_address(self) -> None:
        given = (self.address, self.addresses, self.address_pattern, self.super_streams)
        if sum(each is not None for each in given) != 1:
            raise OptionError(
                "the logs to read are missing, or given twice: give one of the options 'address', 'addresses', "
                "'addressPattern' and 'superStreams'"
            )

    def check_stream(self) -> None:
        """Check that the options are allowed for ``readStream``.

        Raises:
            OptionError: there is an option for the end, which a stream does not have.
        """
        if self.ending_offsets is not None or self.ending_timestamp is not None:
            raise OptionError(
                "a stream has no end: options 'endingOffsets' and 'endingTimestamp' are for spark.read"
            )

    def check_batch(self) -> None:
        """Check that the options are allowed for ``spark.read``.

        Raises:
            OptionError: there is an option for triggers, or the batch begins at the end or ends at the beginning.
        """
        if self.max_rows is not None or self.min_rows is not None:
            raise OptionError(
                "a batch has no triggers: options 'maxRowsPerTrigger' and 'minRowsPerTrigger' are for readStream"
            )
        if self.starting_offsets == "latest" or self.ending_offsets == "earliest":
            raise OptionError(
                "a batch that begins with 'latest' or ends with 'earliest' has no rows: change option 'startingOffsets' or 'endingOffsets'"
            )

    @property
    def addressed(self) -> tuple[str, ...]:
        """The given addresses, in order: logs, or hubs whose partitions are logs.

        Empty if the logs must be found by a pattern or as super streams.
        """
        return self.addresses or (() if self.address is None else (self.address,))

    def start_of(self, log: str) -> str | int | Moment:
        """Return where to begin a log: ``earliest``, ``latest``, a number or a moment."""
        return _place(self.starting_offsets, self.starting_timestamp, log, "earliest")

    def end_of(self, log: str) -> str | int | Moment:
        """Return where a batch of a log ends: ``latest``, a number or a moment."""
        return _place(self.ending_offsets, self.ending_timestamp, log, "latest")


class Moment(NamedTuple):
    """A time in place of a number: the first message that came then or later.

    Attributes:
        milliseconds: since 1970.
    """

    milliseconds: int


def _place(
    offsets: str | int | Mapping[str, int] | None, moment: int | None, log: str, usual: str
) -> str | int | Moment:
    if moment is not None:
        return Moment(moment)
    if offsets is None:
        return usual
    return offsets if isinstance(offsets, str | int) else offsets.get(log, usual)


def _check_only_looks(options: ReadOptions) -> None:
    if options.on_decode_error == "reject":
        raise OptionError(
            "option 'onDecodeError' is 'reject', which is only possible for a stream from a queue"
        )


@dataclass(frozen=True, kw_only=True)
class SinkOptions(PeerOptions):
    """The options of ``writeStream`` and ``write``: each row is a message."""

    max_in_flight: int = _option("maxInFlight", values.count(1), 1000)
    dedup_id: str = _option("dedup.id", values.one_of("deterministic", "artemis", "none"), "deterministic")
    transactions: str = _option("transactions", values.one_of("none", "task", "ledger"), "none")
    ledger: str | None = _option("ledger", values.text)
    on_reject: str = _option("onReject", values.one_of("fail", "drop", "deadletter-path"), "fail")
    deadletter_path: str | None = _option("deadletterPath", values.location, secret=True)
    body_type: str = _option("bodyType", values.one_of("auto", "data", "value"), "auto")
    durable: bool | None = _option("durable", values.boolean)
    ttl: float | None = _option("ttl", values.seconds)
    property_columns: tuple[tuple[str, str], ...] = _option("propertyColumns", values.typed_columns, ())
    ignore_unknown_columns: bool = _option("ignoreUnknownColumns", values.boolean, False)
    txn_app: str | None = _option("txn.app", values.text)
    txn_version: int | None = _option("txn.version", values.count(0))
    send_timeout: float = _option("sendTimeout", values.seconds, 60.0)

    def _check(self) -> None:
        super()._check()
        if (self.txn_app is None) != (self.txn_version is None):
            raise OptionError("options 'txn.app' and 'txn.version' together name a write: give both")
        if self.is_091 and self.transactions != "none":
            raise self._no_091("transactions")
        if (self.on_reject == "deadletter-path") != (self.deadletter_path is not None):
            raise OptionError(
                "option 'deadletterPath', the folder or URI for rejected rows, and 'onReject' = 'deadletter-path' need each other"
            )
        if (self.transactions == "ledger") != (self.ledger is not None):
            raise OptionError(
                "option 'ledger', the address of the ledger, and 'transactions' = 'ledger' need each other"
            )


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    """Return the nearest known name as a question, or an empty text."""
    close = get_close_matches(name.lower(), known, 1)
    return f"did you mean {known[close[0]].metadata['name']}? " if close else ""


def _shown(known: Mapping[str, Any]) -> str:
    return ", ".join(sorted(cast("str", each.metadata["name"]) for each in known.values()))
