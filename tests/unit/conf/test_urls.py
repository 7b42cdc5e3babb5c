"""URLs as options: what a type accepts, the library that reads it accepts, and no error shows a part of the value."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_messaging.transport import TransportURL
from sqlalchemy.engine import make_url

from nova.conf._urls import BrokerUrl, DatabaseUrl, WebUrl

PIECES = ["u", "p", "h", "5672", "x", ":", "@", "/", "//", "?", "#", "[", "]", "[::1]", ",", "%40", "", "é"]
TAILS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
CONF = cfg.ConfigOpts()
CONF([], default_config_files=[], default_config_dirs=[])


def accepts(kind: object, text: str) -> bool:
    """False: it is refused, in words that have no part of it but its scheme and what everybody writes."""
    try:
        kind(text)  # type: ignore[operator]
    except ValueError as error:
        assert "s3cret" not in str(error)
        return False
    return True


@given(TAILS)
@example("u:p/w@h:1/x")
@example("u:p@h:/")
@example("u:p@h1,u:p@[::1]:5/v")
def test_broker_url_when_it_is_accepted_then_oslo_messaging_reads_it(tail: str) -> None:
    if accepts(BrokerUrl(), f"rabbit://{tail}"):
        assert TransportURL.parse(CONF, f"rabbit://{tail}").transport == "rabbit"


@given(st.sampled_from(["mysql", "mysql+pymysql", "mariadb", "postgresql", "postgresql+psycopg", "sqlite"]), TAILS)
@example("mysql", "u:p@h:ab/x")
@example("mysql", "u@h:/x")
@example("mysql", "@?@:")
@example("mysql", "u@h?x=@y")
def test_database_url_when_it_is_accepted_then_sqlalchemy_reads_it(scheme: str, tail: str) -> None:
    if accepts(DatabaseUrl(), f"{scheme}://{tail}"):
        assert make_url(f"{scheme}://{tail}").drivername == scheme


@pytest.mark.parametrize("kind, text", [
    (BrokerUrl(), "rabbit://u:p@h1:5672,u:p@h2:5672/vhost?ssl=0"), (BrokerUrl(), "rabbit://"), (BrokerUrl(), ""),
    (BrokerUrl(), "rabbit://u:p%40%2F@[2001:db8::1]:5672//"), (BrokerUrl(more=("local",)), "local:///run/x"),
    (DatabaseUrl(), "mysql+pymysql://u:p/w#d@h/db?charset=utf8"), (DatabaseUrl(), "sqlite:////var/lib/x.db"),
    (DatabaseUrl(), "sqlite://"), (DatabaseUrl(), "postgresql://u:p@[::1]:5432/x"), (DatabaseUrl(), "mysql:///x"),
    (WebUrl(), "http://controller:9292"), (WebUrl(), "https://h/v3/%(project_id)s"), (WebUrl(), "http://[::1]:80/")])
def test_url_when_operators_write_it_so_then_it_is_accepted_as_it_is(kind: object, text: str) -> None:
    assert kind(text) == text  # type: ignore[operator]


@pytest.mark.parametrize("kind, text, said", [
    (BrokerUrl(), "rabit://u:s3cret@h/", "its scheme must be one of"), (BrokerUrl(), "s3cret", "must begin with a"),
    (BrokerUrl(), "rabbit://u:s3cret/x@h/", "its port must be"), (BrokerUrl(), "local:///x", "its scheme must"),
    (BrokerUrl(), "rabbit://u:s3c[ret@h/", "its brackets"), (DatabaseUrl(), "mysql://u:s3@cret@h/x", "a second @"),
    (DatabaseUrl(), "mysql+s3cret://h/x", "its driver must be one"), (DatabaseUrl(), "sqlite://s3cret", "a path must"),
    (DatabaseUrl(), "postgresql+pg8000://h/x", "is not installed"), (WebUrl(), "ftp://h/s3cret", "its scheme must be"),
    (WebUrl(), "http:///s3cret", "has no host"), (WebUrl(), "http://h:s3cret/", "its port must be a number")])
def test_url_when_it_cannot_be_used_then_the_reason_is_said_without_it(kind: object, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        kind(text)  # type: ignore[operator]
    assert "s3c" not in str(caught.value) and "cret" not in str(caught.value)
