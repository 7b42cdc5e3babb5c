"""Floating addresses on a network host: rules as data, and what stands on devices whatever happened before."""

from __future__ import annotations

import msgspec
import pytest

from nova import errors
from nova.model.network.floating import FloatingOnHost
from nova.model.network.networks import NetworkOnHost
from nova.network import firewall, isolation
from nova.network.floating import RECORD, FloatingOnDevices
from nova.network.local_network import here
from nova.network.translation import Translated, translated
from nova.privileged.iptables import Table
from nova.privileged.links import Address
from tests.fakes.host_machinery import FakeLinks, FakeRunner
from tests.fakes.network import network, options

WEB = FloatingOnHost(address="192.0.2.80", fixed_address="10.0.1.3")
MAIL = FloatingOnHost(address="198.51.100.25", fixed_address="10.0.1.4", interface="eth1")
UP = Translated("192.0.2.80", "10.0.1.3", "eth0")


def places(path, *floating: FloatingOnHost, **fields):
    given = options(path)
    order = NetworkOnHost(network=network(**fields), floating=floating)
    return [here(order, given, lambda net: net.bridge or "")], given


def nat(path, *floating: FloatingOnHost) -> Table:
    served, given = places(path, *floating)
    return next(table for table in firewall.tables(served, given) if table.name == "nat")


def test_rules_of_floating_addresses_are_these(tmp_path):
    chains = nat(tmp_path, WEB, MAIL).chains
    assert chains["nova-network-float-snat"] == (
        "-s 10.0.1.3/32 -d 10.0.1.3/32 -j SNAT --to-source 192.0.2.80",
        "-s 10.0.1.3/32 -o eth0 -j SNAT --to-source 192.0.2.80",
        "-s 10.0.1.4/32 -d 10.0.1.4/32 -j SNAT --to-source 198.51.100.25",
        "-s 10.0.1.4/32 -o eth1 -j SNAT --to-source 198.51.100.25")
    incoming = ("-d 192.0.2.80/32 -j DNAT --to-destination 10.0.1.3",
                "-d 198.51.100.25/32 -j DNAT --to-destination 10.0.1.4")
    assert chains["nova-network-PREROUTING"][1:] == chains["nova-network-OUTPUT"] == incoming
    assert chains["nova-network-POSTROUTING"][-2:] == (
        "-s 10.0.1.3/32 -m conntrack --ctstate DNAT -j SNAT --to-source 192.0.2.80",
        "-s 10.0.1.4/32 -m conntrack --ctstate DNAT -j SNAT --to-source 198.51.100.25")
    assert chains["nova-network-POSTROUTING"][0].endswith("-d 192.0.2.9/32 -j ACCEPT"), "metadata sees guests' own"


def test_rules_without_floating_addresses_are_as_before(tmp_path):
    assert nat(tmp_path).chains["nova-network-float-snat"] == ()


@pytest.mark.parametrize(("gateway", "rules"), [("10.0.1.1", 0), ("10.0.1.254", 2)])
def test_frames_are_taken_off_their_way_where_the_gateway_is_another_machine(tmp_path, gateway, rules):
    served, given = places(tmp_path, WEB, gateway=gateway)
    table = {one.name: one for one in isolation.tables(served, given)}["nat"]
    assert table.chains["nova-network-PREROUTING"] == (
        "-p IPv4 --ip-src 10.0.1.0/24 --ip-dst 10.0.1.0/24 -j RETURN",
        "-p IPv4 --ip-src 10.0.1.3 -j redirect")[:rules]


def test_translated_takes_the_hosts_interface_where_the_address_names_none(tmp_path):
    served, given = places(tmp_path, WEB, MAIL)
    assert [one.device for one in translated(served, given)] == ["eth0", "eth1"]


# devices

@pytest.fixture
def links() -> FakeLinks:
    return FakeLinks(["lo", "eth0", "eth1"])


def devices(path, links, runner=None, **fields) -> FloatingOnDevices:
    return FloatingOnDevices(options(path, **fields), links, runner or FakeRunner())


def standing(links, device="eth0") -> list[str]:
    return [f"{one.address}/{one.prefix}" for one in links.addresses(device)]


def test_converge_puts_addresses_up_once_and_says_so_to_neighbours(tmp_path, links):
    runner = FakeRunner()
    for _ in range(2):
        devices(tmp_path, links, runner, send_arp_for_ha=True).converge([UP])
    assert standing(links) == ["192.0.2.80/32"]
    assert [ran.argv for ran in runner.ran] == [
        ("arping", "-U", "192.0.2.80", "-A", "-I", "eth0", "-c", "3"), ("conntrack", "-D", "-d", "192.0.2.80")]


def test_converge_when_it_goes_then_its_connections_end(tmp_path, links):
    runner = FakeRunner()
    devices(tmp_path, links).converge([UP])
    devices(tmp_path, links, runner).converge([])  # another daemon: the record says what was ours
    assert standing(links) == []
    assert [ran.argv for ran in runner.ran] == [("conntrack", "-D", "-r", "10.0.1.3"),
                                                ("conntrack", "-D", "-q", "192.0.2.80")]
    devices(tmp_path, links, runner).converge([])
    assert len(runner.ran) == 2


def test_converge_when_it_moves_to_another_guest_then_it_stays_and_connections_end(tmp_path, links):
    runner = FakeRunner()
    devices(tmp_path, links).converge([UP])
    before = list(links.log)
    devices(tmp_path, links, runner).converge([Translated(UP.address, "10.0.1.9", "eth0")])
    assert links.log == before and runner.ran[0].argv == ("conntrack", "-D", "-r", "10.0.1.3")


def test_converge_when_the_device_changes_then_it_is_on_the_other(tmp_path, links):
    devices(tmp_path, links).converge([UP])
    devices(tmp_path, links).converge([Translated(UP.address, UP.fixed, "eth1")])
    assert (standing(links), standing(links, "eth1")) == ([], ["192.0.2.80/32"])


def test_converge_when_somebody_else_put_it_there_then_it_stays_when_ours_go(tmp_path, links):
    links.ensure_address("eth0", Address("192.0.2.80", 24))
    devices(tmp_path, links).converge([UP])
    devices(tmp_path, links).converge([])
    assert standing(links) == ["192.0.2.80/24"]


def test_converge_when_the_record_is_unreadable_then_what_is_a_guests_and_stands_alone_is_ours(tmp_path, links):
    devices(tmp_path, links).converge([UP])
    links.ensure_address("eth1", Address("198.51.100.25", 24))
    (options(tmp_path).networks_path / RECORD).write_text("{ torn")
    wanted = [UP, Translated("198.51.100.25", "10.0.1.4", "eth1")]
    devices(tmp_path, links).converge(wanted)
    assert (standing(links), standing(links, "eth1")) == (["192.0.2.80/32"], ["198.51.100.25/24"])
    devices(tmp_path, links).converge([])
    assert (standing(links), standing(links, "eth1")) == ([], ["198.51.100.25/24"])


def test_converge_when_killed_before_the_address_was_put_then_the_next_run_puts_and_removes_it(tmp_path, links):
    class Killed(Exception):
        pass

    class Dying(FakeLinks):
        def ensure_address(self, device, address):
            raise Killed

    dying = Dying(["lo", "eth0"])
    with pytest.raises(Killed):
        devices(tmp_path, dying).converge([UP])
    devices(tmp_path, links).converge([UP])
    assert standing(links) == ["192.0.2.80/32"]
    devices(tmp_path, links).converge([])
    assert standing(links) == []


def test_converge_when_killed_before_it_was_removed_then_the_next_run_removes_it(tmp_path, links):
    class Killed(Exception):
        pass

    class Dying(FakeRunner):
        def run(self, argv, **more):
            raise Killed

    devices(tmp_path, links).converge([UP])
    with pytest.raises(Killed):
        devices(tmp_path, links, Dying()).converge([])
    runner = FakeRunner()
    devices(tmp_path, links, runner).converge([])
    assert standing(links) == [] and len(runner.ran) == 2, "connections that were left end now"


def test_converge_when_a_device_is_missing_then_the_others_are_served(tmp_path, links):
    del links.devices["eth1"]
    wanted = [UP, Translated("198.51.100.25", "10.0.1.4", "eth1")]
    devices(tmp_path, links).converge(wanted)
    assert standing(links) == ["192.0.2.80/32"]
    links.devices["eth1"] = []
    devices(tmp_path, links).converge(wanted)
    assert standing(links, "eth1") == ["198.51.100.25/32"]


def test_converge_when_conntrack_fails_then_the_address_goes_all_the_same(tmp_path, links):
    runner = FakeRunner({"conntrack": errors.host.CommandFailed(command="conntrack", where="here",
                                                                reason="not installed")})
    devices(tmp_path, links, runner).converge([UP])
    devices(tmp_path, links, runner).converge([])
    assert standing(links) == []


def test_converge_when_the_record_is_torn_then_what_is_wanted_stands(tmp_path, links):
    devices(tmp_path, links).converge([UP])
    record = tmp_path / "networks" / RECORD
    assert record.stat().st_mode & 0o777 == 0o600 and "192.0.2.80" in msgspec.json.decode(record.read_bytes())
    record.write_text("{")
    devices(tmp_path, links).converge([UP])
    assert standing(links) == ["192.0.2.80/32"]


def test_check_names_the_device_that_is_not_there(tmp_path, links):
    devices(tmp_path, links).check("eth1")
    devices(tmp_path, links).check(None)
    with pytest.raises(errors.network.NoFloatingInterface, match="Interface eth7 not found"):
        devices(tmp_path, links).check("eth7")
