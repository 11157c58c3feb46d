"""Options: every name is known, every value is checked, and no secret is shown."""

from __future__ import annotations

import pytest

from trio_amqp10.spark.options import BrowseOptions, OptionError, QueueOptions, SinkOptions
from trio_amqp10.spark.writers import StreamWriter

PEER = {"url": "amqp://h:1", "address": "q"}
QUEUE = PEER | {"spool": "/s"}


def test_options_have_defaults() -> None:
    options = QueueOptions.parse(QUEUE)
    assert (options.credit, options.spool_flush_interval, options.dedup, options.mode) == (
        4000,
        0.1,
        "none",
        None,
    )


def test_case_of_a_name_does_not_matter() -> None:
    assert QueueOptions.parse(QUEUE | {"MAXROWSPERTRIGGER": "7"}).max_rows == 7


@pytest.mark.parametrize("kind", [QueueOptions, BrowseOptions, SinkOptions])
def test_unknown_name_is_an_error_that_lists_those_there_are(kind: type[QueueOptions]) -> None:
    with pytest.raises(
        OptionError,
        match=r"no option 'credits' is known here; .*the options are .*connectTimeout",
    ):
        kind.parse(QUEUE | {"credits": "1"} if kind is QueueOptions else PEER | {"credits": "1"})


def test_misspelt_name_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(
        OptionError, match=r"no option 'adress' is known here; did you mean address\? the options"
    ):
        SinkOptions.parse({"url": "amqp://localhost", "adress": "q"})
    with pytest.raises(OptionError, match="no option 'xyz' is known here; the options"):
        SinkOptions.parse(PEER | {"xyz": "q"})


def test_checkpoint_location_is_sparks_own() -> None:
    assert SinkOptions.parse(PEER | {"checkpointlocation": "/c"}).address == "q"


@pytest.mark.parametrize(
    ("text", "seconds"), [("2", 2.0), ("250ms", 0.25), ("1.5s", 1.5), ("2m", 120.0), ("3 s", 3.0)]
)
def test_duration_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert QueueOptions.parse(QUEUE | {"spool.flushInterval": text}).spool_flush_interval == seconds


@pytest.mark.parametrize(("text", "octets"), [("100", 100), ("2k", 2048), ("1m", 2**20), ("1GiB", 2**30)])
def test_size_is_a_number_of_octets(text: str, octets: int) -> None:
    assert QueueOptions.parse(QUEUE | {"spool.maxBytes": text}).spool_max_bytes == octets


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("spool.flushInterval", "soon", "a number with ms, s or m"),
        ("spool.flushInterval", "-1", "a number with ms, s or m"),
        ("spool.maxBytes", "0", "at least 1"),
        ("credit", "0", "at least 1"),
        ("credit", "many", "at least 1"),
        ("includeRaw", "perhaps", "true or false"),
        ("dedup", "always", "one of none, message-id"),
        ("mode", "browse", "use spark.read"),
        ("columns", "body,,seq", "names with commas"),
        ("columns", "body,body", "each once"),
        ("dedup", "message-id", "dedup.window"),
        ("durable", "true", "linkName"),
        ("linkName", "l", "containerId"),
        ("secretEnv", "X", "need option 'username'"),
        ("connectTimeout", "0", "more than 0 seconds"),
        ("url", "http://h", "begin with one of"),
        ("address", "", "expected a text that is not empty"),
    ],
)
def test_value_that_may_not_be_is_refused(name: str, value: str, message: str) -> None:
    given = QUEUE | {"dedup.window": "10"} if value == "message-id" else QUEUE
    with pytest.raises(Exception, match=message):
        QueueOptions.parse(given | {name: value})


@pytest.mark.parametrize("missing", ["url", "address", "spool"])
def test_missing_option_is_named(missing: str) -> None:
    with pytest.raises(OptionError, match=f"option '{missing}' is missing"):
        QueueOptions.parse({name: value for name, value in QUEUE.items() if name != missing})


def test_batch_that_would_empty_a_queue_is_told_how() -> None:
    with pytest.raises(OptionError, match="availableNow"):
        BrowseOptions.parse(PEER | {"mode": "queue"})
    with pytest.raises(OptionError, match="only possible for a stream from a queue"):
        BrowseOptions.parse(PEER | {"onDecodeError": "reject"})


def test_ledger_needs_an_address_and_a_use() -> None:
    for given in ({"transactions": "ledger"}, {"ledger": "l"}):
        with pytest.raises(OptionError, match="option 'ledger'"):
            SinkOptions.parse(PEER | given)


def test_password_comes_from_the_environment_or_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("SECRET", "p@ss/word")
    given = PEER | {"username": "ada", "secretEnv": "SECRET"}
    assert SinkOptions.parse(given).dial_url() == "amqp://ada:p%40ss%2Fword@h:1"
    file = f"{tmp_path}/secret"
    with open(file, "w") as secret:
        secret.write("from a file\n")
    given = PEER | {"username": "ada", "secretFile": file}
    assert SinkOptions.parse(given).dial_url() == "amqp://ada:from%20a%20file@h:1"


@pytest.mark.parametrize("given", [{"secretEnv": "NOT_SET"}, {"secretFile": "/not/there"}])
def test_password_that_is_not_there_is_an_error(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="secret"):
        SinkOptions.parse(PEER | {"username": "ada"} | given).dial_url()


def test_password_has_one_place() -> None:
    with pytest.raises(OptionError, match="give one"):
        SinkOptions.parse(PEER | {"username": "a", "secretEnv": "A", "secretFile": "b"})
    with pytest.raises(OptionError, match="give one"):
        SinkOptions.parse(PEER | {"url": "amqp://u:p@h", "username": "a"})


def test_salted_keys_are_never_shown() -> None:
    options = SinkOptions.parse(PEER | {"url": "amqp://ada:enigma@h:1"})
    assert "enigma" not in repr(options)
    assert options.where == "amqp://h:1"
    with pytest.raises(Exception, match="URL") as wrong:
        SinkOptions.parse(PEER | {"url": "ampq://ada:enigma@h:1"})
    assert "enigma" not in str(wrong.value)


@pytest.mark.parametrize("given", [{"txn.app": "a"}, {"txn.version": "3"}])
def test_half_a_name_of_a_write_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="give both"):
        SinkOptions.parse(PEER | given)


def test_name_of_a_write_is_for_batches_only() -> None:
    named = SinkOptions.parse(PEER | {"txn.app": "a", "txn.version": "3"})
    with pytest.raises(OptionError, match="within foreachBatch"):
        StreamWriter(named)
    assert (named.txn_app, named.txn_version) == ("a", 3)


def test_spool_is_a_folder_or_a_store_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for given, spool, lanes in (
        ("/s", "/s", False),
        ("s", "s", False),
        ("~/s", "/home/ada/s", False),
        ("file:/s", "/s", False),
        ("file:///a%20b", "/a b", False),
        ("s3://bucket/s?region=r", "s3://bucket/s?region=r", True),
        ("hdfs:///s", "hdfs:///s", True),
    ):
        options = QueueOptions.parse(PEER | {"spool": given})
        assert (options.spool, options.has_lanes) == (spool, lanes)


@pytest.mark.parametrize(
    ("spool", "why"),
    [
        ("dbfs:/mnt/x", "scheme 'dbfs' is known: .*file, s3, gs, .*/dbfs"),
        ("dbfs:mnt/x", "scheme 'dbfs'"),
        ("s3a://ada:enigma@bucket/x", "scheme 's3a' .*write s3://"),
        ("nonsense:/x", "scheme 'nonsense'"),
        ("nonsense:///x", "scheme 'nonsense'"),
        ("s3:/bucket/x", "names a bucket"),
        ("s3:///x", "names a bucket"),
        ("file:x", "no absolute path"),
        ("~nobody-of-that-name/x", "the home directory of that user is unknown"),
    ],
)
def test_spool_that_is_none_is_refused_by_name(spool: str, why: str) -> None:
    with pytest.raises(OptionError, match=why) as refused:
        QueueOptions.parse(PEER | {"spool": spool})
    assert "enigma" not in str(refused.value)


@pytest.mark.parametrize("name", ["secretFile", "tls.ca", "tls.cert", "tls.key"])
def test_file_is_a_path_on_this_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    field = {"secretFile": "secret_file"}.get(name, name.replace(".", "_"))
    user = {"username": "ada"} if name == "secretFile" else {}
    for given, path in (("~/x", "/home/ada/x"), ("file:/x", "/x")):
        assert getattr(BrowseOptions.parse(PEER | user | {name: given}), field) == path
    with pytest.raises(OptionError, match=f"option '{name}' is 'dbfs:/x': .*scheme 'dbfs'"):
        BrowseOptions.parse(PEER | user | {name: "dbfs:/x"})


@pytest.mark.parametrize("given", [{}, {"option.url": "amqp://h", "provider": "amqp10"}])
def test_table_is_refused_with_what_works_instead(given: dict[str, str]) -> None:
    with pytest.raises(OptionError, match="CREATE TEMPORARY VIEW"):
        BrowseOptions.parse(given)
