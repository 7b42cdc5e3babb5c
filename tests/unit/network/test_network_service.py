"""States, not deltas: what the service does with orders, whoever fails, and in whatever order they come."""

from __future__ import annotations

import threading

import pytest

from nova import concurrency, errors
from nova.errors import Conflict, Unavailable
from nova.model.network.networks import NetworkOnHost
from nova.network import service as network_service
from nova.network.host import Filters, Machine, NetworkHost, NoHostSide
from nova.network.leases import LeaseBook, LeaseEvent
from nova.network.service import NetworkService
from nova.privileged.ebtables import frame_filter
from nova.privileged.iptables import IPV6, PacketFilter
from nova.rpc import local
from nova.rpc.contracts.network import NetworkRPC
from tests.fakes.conductor_host import FakeConductorHost
from tests.fakes.host_machinery import FakeLinks, FakeRunner
from tests.fakes.network import guest, network, options, order


class Host:
    """A service on fake machinery, with everything that was done laid open."""

    def __init__(self, path, *orders: NetworkOnHost, **fields) -> None:
        self.path, self.conductor = path, FakeConductorHost(*orders)
        self.options = options(path, **fields)
        self.options.networks_path.mkdir(exist_ok=True)
        self.links, self.runner, self.forwarding = FakeLinks(["lo", "eth0"]), FakeRunner(), 0
        self.restart()

    def restart(self) -> None:
        self.book = LeaseBook(self.options.networks_path / "leases.json")
        filters = Filters(PacketFilter(self.runner, self.path / "lock"),
                          PacketFilter(self.runner, self.path / "lock", dialect=IPV6),
                          frame_filter(self.runner, self.path))
        self.side = NetworkHost(self.options, Machine(
            self.links, self.runner, filters, self._forward, lambda: None), self.book)
        self.service = NetworkService(self.conductor.client("host1"), "host1", self.options, self.side, self.book)

    def _forward(self) -> None:
        self.forwarding += 1

    def serve(self, *orders: NetworkOnHost) -> None:
        local.connect(NetworkRPC, self.service).serve_networks("host1", orders)

    def hosts_file(self, bridge: str = "br1") -> str:
        return (self.options.networks_path / f"nova-{bridge}.conf").read_text()


@pytest.fixture
def host(tmp_path) -> Host:
    return Host(tmp_path)


def test_serve_networks_makes_all_of_it(host):
    host.serve(order(1, guest(3)))
    assert [address.address for address in host.links.addresses("br1")] == ["10.0.1.1"]
    assert [address.address for address in host.links.addresses("lo")] == ["169.254.169.254"]
    assert host.hosts_file() == "fa:16:3e:00:01:03,vm3.novalocal,10.0.1.3\n"
    started, = host.runner.named("dnsmasq")
    assert started.environment["NETWORK_ID"] == "net-1"
    restored, = host.runner.named("iptables-restore")
    assert "-A nova-network-snat -s 10.0.1.0/24 -o eth0 -j SNAT" in restored.stdin
    assert host.forwarding == 1


def test_serve_networks_of_an_older_version_changes_nothing(host):
    host.serve(order(1, guest(3), guest(4), version=7))
    host.serve(order(1, guest(3), version=6))
    assert "10.0.1.4" in host.hosts_file()
    host.serve(order(1, guest(4), version=8))
    assert "10.0.1.3" not in host.hosts_file()


def test_serve_networks_when_only_addresses_change_leaves_the_firewall_alone(host):
    host.serve(order(1, guest(3), version=1))
    with host.runner.recording() as ran:
        host.serve(order(1, guest(3), guest(4), version=2))
    assert not [item for item in ran if item.argv[0].startswith("iptables")]


def test_serve_networks_of_one_keeps_the_rules_of_those_the_conductor_knows(tmp_path):
    host = Host(tmp_path, order(2, guest(9, 2)))
    host.serve(order(1, guest(3)))
    rules = host.runner.named("iptables-restore")[0].stdin
    assert "-s 10.0.1.0/24" in rules and "-s 10.0.2.0/24" in rules


def test_serve_networks_for_another_host_is_refused(host):
    with pytest.raises(Conflict, match="host2"):
        host.service.serve_networks("host2", (order(1),))


def test_serve_networks_when_the_conductor_is_away_at_the_start_is_refused_and_retried(host):
    host.conductor.away = True
    with pytest.raises(Unavailable):
        host.serve(order(1))
    host.conductor.away = False
    host.serve(order(1))
    assert host.links.exists("br1")


def test_serve_networks_when_one_fails_serves_the_others_and_says_so(host):
    with pytest.raises(Unavailable, match="eth9"):
        host.serve(order(1, bridge_interface="eth9"), order(2, guest(3, 2)))
    assert "10.0.2.3" in host.hosts_file("br2")
    host.links.devices["eth9"] = []
    host.serve(order(1, guest(3), bridge_interface="eth9"))
    assert "10.0.1.3" in host.hosts_file()


def test_serve_networks_when_another_known_network_is_broken_serves_the_ordered_one(tmp_path):
    host = Host(tmp_path, order(2, bridge_interface="eth9"))
    host.serve(order(1, guest(3)))
    assert "10.0.1.3" in host.hosts_file()


def test_serve_networks_of_two_on_one_bridge_serves_the_older(host):
    host.conductor.networks = order(1, guest(3)), order(2, bridge="br1")
    with pytest.raises(Conflict, match="already serves network net1") as caught:
        host.serve(order(1, guest(3)), order(2, bridge="br1"))
    assert caught.value.code == errors.network.BridgeTaken.code
    assert host.runner.named("dnsmasq")[0].environment["NETWORK_ID"] == "net-1"
    assert len(host.runner.named("dnsmasq")) == 1


def test_serve_networks_on_a_bridge_whose_network_is_gone_serves_the_new_one_and_leaves_nothing_of_the_old(host):
    host.serve(order(1, guest(3)))
    new = order(2, guest(3, 2), bridge="br1")
    host.conductor.networks = (new,)  # and net-1 no more
    host.serve(new)
    assert [address.address for address in host.links.addresses("br1")] == ["10.0.2.1"]
    assert host.hosts_file() == "fa:16:3e:00:02:03,vm3.novalocal,10.0.2.3\n"
    assert "10.0.1.0/24" not in host.runner.named("iptables-restore")[-1].stdin
    assert [ran.environment["NETWORK_ID"] for ran in host.runner.named("dnsmasq")] == ["net-1", "net-2"]


def test_serve_networks_on_a_bridge_that_is_taken_of_a_network_the_conductor_forgot_is_refused_all_the_same(host):
    host.conductor.networks = (order(1, guest(3)),)
    host.serve(order(1, guest(3)))
    with pytest.raises(Conflict, match="already serves network net1"):
        host.serve(order(2, guest(3, 2), bridge="br1"))


def test_refresh_networks_ends_what_is_this_hosts_no_more(host):
    host.conductor.networks = order(1, guest(3)), order(2, guest(3, 2))
    network_host = local.connect(NetworkRPC, host.service)
    network_host.refresh_networks("host1")
    assert host.links.exists("br1") and host.links.exists("br2")
    host.conductor.networks = (order(2, guest(3, 2)),)
    network_host.refresh_networks("host1")
    assert not host.links.exists("br1") and host.links.exists("br2")
    with pytest.raises(Conflict, match="host2"):
        network_host.refresh_networks("host2")


def test_serve_networks_without_dhcp_has_no_server(host):
    host.serve(order(1, guest(3), enable_dhcp=False))
    assert host.links.exists("br1") and not host.links.addresses("br1")
    assert not host.runner.named("dnsmasq")


def test_released_address_has_its_lease_taken_back(host):
    host.serve(order(1, guest(3), guest(4), version=1))
    host.serve(order(1, guest(4), version=2))
    assert [ran.argv for ran in host.runner.named("dhcp_release")] == [
        ("dhcp_release", "br1", "10.0.1.3", "fa:16:3e:00:01:03")]
    host.serve(order(1, guest(4), version=3))
    assert len(host.runner.named("dhcp_release")) == 1


def test_released_address_with_a_new_owner_is_taken_from_the_old_one(host):
    host.serve(order(1, guest(3), version=1))
    host.serve(order(1, guest(3, mac="fa:16:3e:00:01:99"), version=2))
    assert host.runner.named("dhcp_release")[0].argv[-1] == "fa:16:3e:00:01:03"


def test_released_address_when_killed_before_the_release_is_released_after_the_restart(host):
    """The hosts file was written already: the book of leases knows."""
    host.serve(order(1, guest(3), guest(4), version=1))
    host.book.learn([LeaseEvent(network="net-1", action="add", mac="fa:16:3e:00:01:03", address="10.0.1.3")])
    (host.options.networks_path / "nova-br1.conf").write_text("fa:16:3e:00:01:04,vm4.novalocal,10.0.1.4\n")
    host.restart()
    host.serve(order(1, guest(4), version=2))
    assert [ran.argv[2] for ran in host.runner.named("dhcp_release")] == ["10.0.1.3"]


def test_released_address_without_force_dhcp_release_keeps_its_lease(tmp_path):
    host = Host(tmp_path, force_dhcp_release=False)
    host.serve(order(1, guest(3), version=1))
    host.serve(order(1, version=2))
    assert not host.runner.named("dhcp_release")


def test_released_address_when_the_program_is_missing_is_no_failure(host):
    host.runner.answers["dhcp_release"] = errors.host.CommandFailed(command="dhcp_release", where="h",
                                                                    reason="not installed")
    host.serve(order(1, guest(3), version=1))
    host.serve(order(1, version=2))
    assert host.hosts_file() == ""


def test_sync_serves_what_the_conductor_says_and_ends_the_rest(tmp_path):
    host = Host(tmp_path, order(1, guest(3)), order(2))
    host.service.sync()
    assert host.side.dnsmasq.bridges() == {"br1", "br2"}
    host.conductor.networks = (order(2),)
    host.service.sync()
    assert host.side.dnsmasq.bridges() == {"br2"}
    assert not host.links.exists("br1") and host.links.exists("br2")
    assert "10.0.1.0/24" not in host.runner.named("iptables-restore")[-1].stdin


def test_sync_after_a_restart_ends_what_was_deleted_meanwhile(tmp_path):
    host = Host(tmp_path, order(1, guest(3)), order(2))
    host.service.sync()
    host.conductor.networks = (order(2),)
    host.restart()
    host.service.sync()
    assert host.side.dnsmasq.bridges() == {"br2"} and not host.links.exists("br1")


def test_sync_when_an_order_comes_meanwhile_keeps_it(tmp_path):
    host = Host(tmp_path)
    host.service.sync()

    def answer(**_asked):
        host.serve(order(1, guest(3)))  # while the (older) answer is on its way
        return ()

    host.conductor.given(networks_on_host=answer)
    host.service.sync()
    assert host.side.dnsmasq.bridges() == {"br1"}


def test_mend_brings_back_what_somebody_removed_and_asks_nobody(tmp_path):
    host = Host(tmp_path, order(1, guest(3)))
    host.service.sync()
    del host.links.devices["br1"]
    host.conductor.away = True
    host.service.repair()
    assert [address.address for address in host.links.addresses("br1")] == ["10.0.1.1"]


def test_many_orders_at_once_cost_few_turns(tmp_path):
    host = Host(tmp_path)
    host.service.sync()
    gate, turns = threading.Event(), []
    serve = host.side.serve

    def slow(wanted, networks):
        turns.append(wanted.version)
        gate.wait(5)
        serve(wanted, networks)

    host.side.serve = slow
    threads = [threading.Thread(target=host.serve, args=(order(1, guest(3), version=number),))
               for number in range(1, 21)]
    for thread in threads:
        thread.start()
    while not turns:
        pass
    for thread in threads[1:]:
        concurrency.join(thread, 0.01)
    gate.set()
    for thread in threads:
        concurrency.join(thread, 5)
    assert len(turns) <= 3 and turns[-1] == 20


def test_ping_answers_with_the_hosts_name(host):
    assert local.connect(NetworkRPC, host.service).ping("host1") == "host1"


def test_assemble_with_fake_network_touches_nothing(tmp_path):
    conductor = FakeConductorHost(order(1, guest(3))).client("host1")
    made = network_service.assemble(conductor, "host1", options(tmp_path, fake_network=True))
    made.serve_networks("host1", (order(1, guest(3)),))
    assert isinstance(made._side, NoHostSide)
    assert sorted(path.name for path in (tmp_path / "networks").iterdir()) == []


@pytest.mark.parametrize(("fields", "word"), [
    ({"metadata_host": "controller"}, "metadata_host"),
    ({"dmz_cidr": ("10.0.0.0/40",)}, "dmz_cidr"),
    ({"public_interface": "eth0 -j ACCEPT"}, "public_interface"),
    ({"iptables_top_regex": "("}, "iptables_top_regex"),
])
def test_options_that_make_no_rule_are_refused_by_name(tmp_path, fields, word):
    with pytest.raises(errors.network.Option, match=word):
        options(tmp_path, **fields)


def test_options_from_conf_have_the_documented_defaults(tmp_path):
    from oslo_config import cfg

    from nova.conf import api
    from nova.conf import network as network_conf
    from nova.network.options import from_conf

    conf = cfg.ConfigOpts()
    conf.register_opts([cfg.StrOpt("state_path", default=str(tmp_path)), cfg.StrOpt("my_ip", default="192.0.2.5"),
                        cfg.StrOpt("host", default="host1")])
    conf.register_opts(network_conf.OPTS)
    conf.register_opts(api.OPTS, group="api")
    conf([])
    found = from_conf(conf)
    assert (found.networks_path, found.dhcp_lease_time) == (tmp_path / "networks", 86400)
    assert (found.metadata_host, found.routing_source_ip, found.dhcp_domain) == ("192.0.2.5", "192.0.2.5", "novalocal")
    assert found.forward_bridge_interface == ("all",) and found.force_dhcp_release is True


def test_unserved_network_without_bridge_is_passed_over(host):
    host.serve(NetworkOnHost(network=network(1, bridge=None)))
    assert not host.runner.named("dnsmasq")
