"""Names in DNS: domains and entries as users ask for them, and servers' names as they come and go."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from nova import context, errors
from nova.clients import dns
from nova.conductor.networking.network_options import FloatingOptions
from nova.model.base import Scope
from nova.model.network.floating import DnsDomain, DnsEntry, FloatingRange
from tests.fakes.compute_hosts import refused
from tests.fakes.small_cloud import DEMO, SmallCloud, changed

VMS, WEB = "vms.example.org", "web.example.org"
MINI = "nova.network.minidns.MiniDNS"


def with_drivers(cloud: SmallCloud, drivers: dns.Managers, **options: Any) -> SmallCloud:
    for deps in cloud.conductors:
        deps.settings = dataclasses.replace(deps.settings, floating=FloatingOptions(
            instance_dns_domain=VMS, dns=drivers, **options))
    return cloud


@pytest.fixture
def named(cloud: SmallCloud, tmp_path: Path) -> SmallCloud:
    return with_drivers(cloud, dns.Managers.of(MINI, MINI, dns.DnsOptions(state_path=tmp_path)))


def names(cloud: SmallCloud, address: str) -> list[str]:
    return sorted(cloud.deps.settings.floating.dns.instances.get_entries_by_address(address, VMS))


def test_domain_when_it_is_made_then_its_entries_can_be(named: SmallCloud) -> None:
    control = named.control
    control.put_dns_domain(DnsDomain(domain=WEB, scope="public", project_id="demo"))
    control.put_dns_domain(DnsDomain(domain=WEB, scope="public", project_id="demo"))  # again: no matter
    assert [one.domain for one in control.list_dns_domains(Scope(project_id="demo"))] == [WEB]
    assert control.list_dns_domains(Scope(project_id="other")) == ()
    control.put_dns_entry(DnsEntry(domain=WEB, name="www", address="192.0.2.1"))
    control.put_dns_entry(DnsEntry(domain=WEB, name="www", address="192.0.2.2"))
    assert [one.address for one in control.list_dns_entries(WEB, "www", None)] == ["192.0.2.2"]
    assert [one.name for one in control.list_dns_entries(WEB, None, "192.0.2.2")] == ["www"]
    control.delete_dns_entry(WEB, "www")
    with pytest.raises(errors.NotFound):
        control.delete_dns_entry(WEB, "www")
    control.delete_dns_domain(WEB)
    for ask in (lambda: control.delete_dns_domain(WEB), lambda: control.list_dns_entries(WEB, "www", None)):
        with pytest.raises(errors.NotFound):
            ask()


@pytest.mark.parametrize(("name", "address", "type"), [
    ("a b", "192.0.2.1", "A"), ("-x", "192.0.2.1", "A"), ("x" * 64, "192.0.2.1", "A"), ("www", "fe80::1", "A"),
    ("www", "192.0.2.1", "AAAA"), ("www", "no address", "A")])
def test_entry_when_it_cannot_stand_in_dns_then_it_is_refused(named: SmallCloud, name: str, address: str, type: str
                                                               ) -> None:
    named.control.put_dns_domain(DnsDomain(domain=WEB, scope="public"))
    with pytest.raises(errors.Invalid):
        named.control.put_dns_entry(DnsEntry(domain=WEB, name=name, address=address, type=type))


def test_release_when_an_address_has_names_then_they_go_with_it(named: SmallCloud) -> None:
    named.control.create_floating_addresses(FloatingRange(ip_range="192.0.2.1"))
    one = named.control.allocate_floating_address("demo", None)
    named.control.put_dns_domain(DnsDomain(domain=WEB, scope="public"))
    with context.entered(DEMO):
        named.control.put_dns_entry(DnsEntry(domain=WEB, name="www", address=one.address))
    named.control.release_floating_address(one.id, Scope(project_id="demo"))
    assert named.control.list_dns_entries(WEB, "www", None) == ()


def test_entry_in_a_domain_of_no_project_when_the_address_is_anothers_then_only_an_administrator_may(named: SmallCloud,
                                                                                                    ) -> None:
    control = named.control
    control.create_floating_addresses(FloatingRange(ip_range="192.0.2.0/29"))
    mine, second, theirs = (control.allocate_floating_address(project, None).address
                            for project in ("demo", "demo", "other"))
    control.put_dns_domain(DnsDomain(domain=WEB, scope="public"))
    with context.entered(DEMO):
        for address in (mine, second):
            control.put_dns_entry(DnsEntry(domain=WEB, name="www", address=address))
        for address in (theirs, "198.51.100.9"):
            with pytest.raises(errors.Forbidden):
                control.put_dns_entry(DnsEntry(domain=WEB, name="new", address=address))
    orphan = changed(DEMO, project_id="other")
    with context.entered(orphan):
        for address in (theirs, second):
            with pytest.raises(errors.Forbidden):
                control.put_dns_entry(DnsEntry(domain=WEB, name="www", address=address))
        with pytest.raises(errors.Forbidden):
            control.delete_dns_entry(WEB, "www")
    assert [one.address for one in control.list_dns_entries(WEB, "www", None)] == [second]
    with context.entered(changed(orphan, is_admin=True)):
        control.put_dns_entry(DnsEntry(domain=WEB, name="www", address="198.51.100.9"))
        control.delete_dns_entry(WEB, "www")
        control.put_dns_entry(DnsEntry(domain=WEB, name="www", address=mine))
    with context.entered(DEMO):
        control.delete_dns_entry(WEB, "www")


def test_boot_and_delete_when_there_is_a_domain_then_a_server_has_two_names_while_it_lives(named: SmallCloud) -> None:
    named.control.put_dns_domain(DnsDomain(domain=VMS, scope="private", availability_zone="nova"))
    [uuid] = named.active(name="My Web_1")
    address = named.addresses()[uuid]
    assert names(named, address) == sorted([uuid, "my-web-1"])
    named.delete(uuid)
    assert names(named, address) == []


def test_boot_when_the_domain_is_another_zones_then_it_has_no_name(named: SmallCloud) -> None:
    named.control.put_dns_domain(DnsDomain(domain=VMS, scope="private", availability_zone="elsewhere"))
    [uuid] = named.active()
    assert names(named, named.addresses()[uuid]) == []


def test_boot_when_two_have_one_name_then_the_second_has_its_uuid_alone(named: SmallCloud) -> None:
    named.control.put_dns_domain(DnsDomain(domain=VMS, scope="private"))
    first, second = (named.active(name="web")[0] for _ in range(2))
    assert names(named, named.addresses()[first]) == sorted(["web", first])
    assert names(named, named.addresses()[second]) == [second]


def test_boot_when_it_fails_after_it_had_its_address_then_its_names_are_gone(named: SmallCloud) -> None:
    named.control.put_dns_domain(DnsDomain(domain=VMS, scope="private"))
    for host in named.computes.values():
        host.answers["build"] = refused(errors.Bug("the disk is full"))
    [uuid] = named.boot(name="web")
    assert named.ended(uuid).vm_state == "error"
    assert [names(named, f"10.0.0.{last}") for last in range(2, 10)] == [[]] * 8


class Broken(dns.NoopDNSDriver):
    def create_entry(self, name: str, address: str, type: str, domain: str) -> None:
        raise OSError("no route to host")

    def get_entries_by_address(self, address: str, domain: str) -> list[str]:
        raise OSError("no route to host")


def test_boot_and_delete_when_the_driver_fails_then_servers_live_and_go_all_the_same(cloud: SmallCloud) -> None:
    broken = dns.DeadlineDriver(Broken())
    with_drivers(cloud, dns.Managers(broken, broken))
    [uuid] = cloud.active()
    cloud.delete(uuid)
    assert cloud.addresses() == {}


def test_periodic_job_when_names_were_lost_then_they_are_written_again(named: SmallCloud, tmp_path: Path) -> None:
    assert named.deps.networking.jobs(first=True) == ()
    named.control.put_dns_domain(DnsDomain(domain=VMS, scope="private"))
    [uuid] = named.active(name="web")
    (tmp_path / "dnstest.txt").unlink()
    managers = named.deps.settings.floating.dns
    managers.instances.create_domain(VMS)
    with_drivers(named, managers, dns_update_periodic_interval=60)
    [(every, job, _name)] = named.deps.networking.jobs(first=True)
    job()
    assert every == 60.0 and names(named, named.addresses()[uuid]) == sorted([uuid, "web"])
