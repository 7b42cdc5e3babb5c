"""DNS drivers: the same cases for the file and for LDAP, and patience with those that hang."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ldap3
import pytest

from nova import errors
from nova.clients import dns
from nova.clients.dns.ldapdns import LdapDNS
from nova.clients.dns.minidns import FILE, MiniDNS

DOMAIN = "example.org"
BASE = "ou=hosts,dc=example,dc=org"


def mocked() -> Any:
    """A directory in memory, as every connection of one test sees it."""
    server = ldap3.Server("fake")
    first = ldap3.Connection(server, "uid=admin", "secret", client_strategy=ldap3.MOCK_SYNC)
    first.strategy.add_entry("uid=admin", {"userPassword": "secret", "sn": "admin"})
    first.strategy.add_entry(BASE, {"objectClass": ["organizationalUnit"], "ou": "hosts"})

    def connect(_options: dns.DnsOptions) -> Any:
        made = ldap3.Connection(server, "uid=admin", "secret", client_strategy=ldap3.MOCK_SYNC)
        made.strategy.connection.server.dit = first.server.dit
        return made
    return connect


@pytest.fixture(params=["file", "ldap"])
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> dns.DnsDriver:
    if request.param == "file":
        return MiniDNS(dns.DnsOptions(state_path=tmp_path))
    return LdapDNS(dns.DnsOptions(ldap_dns_base_dn=BASE), mocked())


def test_domain_when_it_is_made_and_deleted_then_its_entries_go_with_it(driver: dns.DnsDriver) -> None:
    driver.create_domain(DOMAIN)
    assert driver.get_domains() == [DOMAIN]
    with pytest.raises(errors.dns.DomainExists):
        driver.create_domain(DOMAIN)
    driver.create_entry("web", "192.0.2.1", "A", DOMAIN)
    driver.delete_domain(DOMAIN)
    assert driver.get_domains() == [] and driver.get_entries_by_name("web", DOMAIN) == []
    with pytest.raises(errors.dns.NoSuchDomain):
        driver.delete_domain(DOMAIN)


def test_entry_when_it_is_made_changed_and_deleted_then_it_is_found_by_both(driver: dns.DnsDriver) -> None:
    driver.create_domain(DOMAIN)
    driver.create_entry("web", "192.0.2.1", "A", DOMAIN)
    driver.create_entry("mail", "192.0.2.1", "A", DOMAIN)
    assert sorted(driver.get_entries_by_address("192.0.2.1", DOMAIN)) == ["mail", "web"]
    with pytest.raises(errors.dns.EntryExists):
        driver.create_entry("web", "192.0.2.2", "A", DOMAIN)
    driver.modify_address("web", "192.0.2.2", DOMAIN)
    assert driver.get_entries_by_name("web", DOMAIN) == ["192.0.2.2"]
    driver.delete_entry("web", DOMAIN)
    assert driver.get_entries_by_name("web", DOMAIN) == []
    for call in (lambda: driver.delete_entry("web", DOMAIN), lambda: driver.modify_address("web", "192.0.2.3", DOMAIN)):
        with pytest.raises(errors.dns.NoSuchEntry):
            call()
    with pytest.raises(errors.dns.BadType):
        driver.create_entry("x", "text", "TXT", DOMAIN)


def test_file_when_one_domain_is_in_another_then_each_has_its_own(tmp_path: Path) -> None:
    mini = MiniDNS(dns.DnsOptions(state_path=tmp_path))
    for name in (DOMAIN, f"sub.{DOMAIN}"):
        mini.create_domain(name)
        mini.create_entry("web", "192.0.2.1", "A", name)
    assert mini.get_entries_by_address("192.0.2.1", DOMAIN) == ["web"]
    mini.delete_domain(DOMAIN)
    assert mini.get_entries_by_name("web", f"sub.{DOMAIN}") == ["192.0.2.1"]


def test_file_when_many_write_at_once_then_nothing_is_lost(tmp_path: Path) -> None:
    mini = MiniDNS(dns.DnsOptions(state_path=tmp_path))
    mini.create_domain(DOMAIN)
    threads = [threading.Thread(target=mini.create_entry, args=(f"vm{at}", f"192.0.2.{at}", "A", DOMAIN))
               for at in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len((tmp_path / FILE).read_text().splitlines()) == 13


def test_ldap_when_our_credentials_are_wrong_then_it_says_so_without_the_password() -> None:
    connect = mocked()

    def wrong(options: dns.DnsOptions) -> Any:
        made = connect(options)
        made.password = "hunter2"
        return made
    with pytest.raises(errors.Unavailable) as caught:
        LdapDNS(dns.DnsOptions(), wrong).get_domains()
    assert "hunter2" not in caught.value.message
    assert "hunter2" not in repr(dns.DnsOptions(ldap_dns_password="hunter2"))


# by name

class OfTheirOwn(dns.NoopDNSDriver):
    pass


@pytest.mark.parametrize(("name", "kind"), [
    (dns.NOOP, "NoopDNSDriver"), ("nova.network.minidns.MiniDNS", "MiniDNS"),
    ("nova.network.ldapdns.LdapDNS", "LdapDNS"), (f"{__name__}.OfTheirOwn", "OfTheirOwn")])
def test_load_when_the_class_is_there_then_it_is_made(name: str, kind: str) -> None:
    assert type(dns.load("floating_ip_dns_manager", name, dns.DnsOptions())).__name__ == kind


@pytest.mark.parametrize("name", ["", "nothing", "nova.network.none.None", "os.path.nothing", "builtins.open"])
def test_load_when_there_is_no_such_class_then_the_option_is_named(name: str) -> None:
    with pytest.raises(errors.dns.NoDriver, match="floating_ip_dns_manager"):
        dns.load("floating_ip_dns_manager", name, dns.DnsOptions())


# patience

class Hanging(dns.NoopDNSDriver):
    def __init__(self) -> None:
        self.go, self.asked = threading.Event(), 0

    def get_domains(self) -> list[str]:
        self.asked += 1
        self.go.wait(10)
        return ["late"]

    def create_domain(self, fqdomain: str) -> None:
        raise OSError("the network is unreachable")

    def delete_domain(self, fqdomain: str) -> None:
        raise errors.dns.NoSuchDomain(domain=fqdomain)


def test_patient_when_a_driver_hangs_then_it_ends_and_the_next_are_refused_at_once() -> None:
    driver, now = Hanging(), [0.0]
    patient = dns.DeadlineDriver(driver, timeout_s=0.05, pause_s=30.0, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(errors.dns.Away):
            patient.get_domains()
    assert driver.asked == 1
    driver.go.set()
    now[0] = 31.0
    assert patient.get_domains() == ["late"]


def test_patient_when_a_driver_fails_then_it_is_away_and_what_has_a_meaning_keeps_it() -> None:
    patient = dns.DeadlineDriver(Hanging())
    with pytest.raises(errors.dns.NoSuchDomain):
        patient.delete_domain("x")
    with pytest.raises(errors.dns.Away, match="unreachable"):
        patient.create_domain("x")
