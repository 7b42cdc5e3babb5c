"""URLs of cells: what a template becomes, what is shown, and which URLs name one database or one broker."""

from __future__ import annotations

import pytest

from nova.model.host import cell_urls
from tests.unit.manage.cell_scene import BROKER, DATABASE


@pytest.mark.parametrize(("url", "expected"), [
    ("rabbit://nova:sec1@h1:5672,nova:sec2@h2:5672/v", "rabbit://nova:****@h1:5672,nova:****@h2:5672/v"),
    ("mysql://nova:se@cret@db/cell", "mysql://nova:****@db/cell"),
    ("mysql://nova:sec/ret@db/cell?charset=utf8", "mysql://nova:****@db/cell?charset=utf8"),
    ("mysql://nova:sec,ret@db/cell", "mysql://****@db/cell"), ("sqlite:////var/lib/nova/cell.db", ) * 2, ("", "")])
def test_url_when_it_has_passwords_then_none_is_shown(url: str, expected: str) -> None:
    assert cell_urls.without_passwords(url) == expected


@pytest.mark.parametrize(("recorded", "url", "expected"), [
    ("mysql://u:{password}@h/d}}", "rabbit://x:a}b@y", "mysql://u:a}b@h/d}"),
    (None, DATABASE, DATABASE), ("mysql://u@h/d", DATABASE, "mysql://u@h/d"),
    ("{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}", DATABASE, DATABASE),
    ("{scheme}://{username0}:{password0}@{hostname0}:{port0},{username1}:{password1}@{hostname1}:{port1}/{path}",
     BROKER, BROKER),
    ("{scheme}://own@{hostname}/x", "rabbit://h", "rabbit://own@h/x"), ("{cell0}", "", ""),
    ("{nobody}", DATABASE, "{nobody}"), ("{", DATABASE, "{"), ("{0}", DATABASE, "{0}"),
    ("{cell0}", "sqlite:////var/n.db", "sqlite:////var/n.db_cell0")])
def test_template_when_it_fits_the_configurations_url_then_it_is_filled(recorded: str | None, url: str,
                                                                        expected: str) -> None:
    assert cell_urls.filled(recorded, url) == expected


@pytest.mark.parametrize(("one", "other", "same"), [
    (DATABASE, "mysql://else@DB/nova", True), (DATABASE, DATABASE.replace("/nova?", "/nova_cell0?"), False),
    ("postgresql+psycopg://h/d", "postgres://h:5432/d?x=1", True), ("sqlite:////a", "sqlite:////b", False),
    ("sqlite:////a", "sqlite:////a", True), ("mysql://h1/d", "mysql://h2/d", False), ("", "", False)])
def test_databases_when_urls_differ_in_words_then_their_places_are_compared(one: str, other: str, same: bool) -> None:
    assert cell_urls.of_one_database(one, other) is same


@pytest.mark.parametrize(("one", "other", "same"), [
    (BROKER, "rabbit://else@H2/nova", True), (BROKER, BROKER.replace("/nova", "/other"), False),
    (BROKER, "rabbit://nova:broker-word@h3:5672/nova", False), (BROKER, "rabbit://h1:5673/nova", False),
    ("fake:/", "fake:/", True), ("none:/", "none:/", False), ("none:/", "none:///", False), ("", "", False),
    ("rabbit://[::1", "rabbit://h1", False), ("rabbit://u@[fd00::2]/v", "rabbit://[fd00::2]:5672/v", True)])
def test_brokers_when_urls_differ_in_words_then_nodes_and_vhost_are_compared(one: str, other: str, same: bool) -> None:
    assert cell_urls.of_one_broker(one, other) is same


@pytest.mark.parametrize(("text", "expected"), [
    ("{scheme}://{username}:{password}@{hostname}:{port}/{path}?{query}", True), ("{hostname1}:{port12}", True),
    ("{cell0}", True), ("mysql://u:{password}@h/d}}", True), ("mysql://u:{pass}@h/d", False), ("a}b", False),
    ("a{b", False), (DATABASE, False), ("{}", False), ("", False)])
def test_url_when_its_password_has_braces_then_it_is_no_template(text: str, expected: bool) -> None:
    assert cell_urls.is_template(text) is expected
