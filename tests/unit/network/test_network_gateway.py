from __future__ import annotations

import pytest

from nova import errors
from nova.network.gateway import Gateway
from nova.privileged.links import Address, LinkRoute
from tests.fakes.host_machinery import FakeLinks, FakeRunner
from tests.fakes.network import network, options

UPLINK = Address("192.0.2.7", 24, "192.0.2.255")
DEFAULT_ROUTE = LinkRoute("", 0, "192.0.2.254")


@pytest.fixture
def links() -> FakeLinks:
    return FakeLinks(["lo", "eth0"])


def gateway(tmp_path, links, runner=None, **fields) -> Gateway:
    return Gateway(options(tmp_path, **fields), links, runner or FakeRunner())


def test_ensure_puts_the_dhcp_server_on_the_bridge_once(tmp_path, links):
    links.ensure_bridge("br1")
    gateway(tmp_path, links).ensure(network())
    assert links.addresses("br1") == (Address("10.0.1.1", 24, "10.0.1.255"),)
    before = list(links.log)
    gateway(tmp_path, links).ensure(network())
    assert links.log == before


def test_ensure_when_others_stand_first_puts_them_behind_with_their_routes(tmp_path, links):
    links.devices["br1"] = [UPLINK]
    links.routing["br1"] = [DEFAULT_ROUTE]
    gateway(tmp_path, links).ensure(network())
    assert [address.address for address in links.addresses("br1")] == ["10.0.1.1", "192.0.2.7"]
    assert links.routes("br1") == (DEFAULT_ROUTE,)
    assert not list((tmp_path / "networks").glob("*.moving"))


@pytest.mark.parametrize("step", range(1, 4))
def test_ensure_when_killed_in_the_middle_of_a_move_ends_it_next_time(tmp_path, links, step):
    links.devices["br1"] = [UPLINK]
    links.routing["br1"] = [DEFAULT_ROUTE]

    class Killed(Exception):
        pass

    class Dying(FakeLinks):
        left = step

        def _count(self):
            self.left -= 1
            if self.left < 0:
                raise Killed

        def delete_address(self, device, address):
            self._count()
            super().delete_address(device, address)

        def ensure_address(self, device, address):
            self._count()
            super().ensure_address(device, address)

        def ensure_route(self, device, route):
            self._count()
            super().ensure_route(device, route)

    dying = Dying()
    dying.devices, dying.routing = links.devices, links.routing
    with pytest.raises(Killed):
        gateway(tmp_path, dying).ensure(network())
    gateway(tmp_path, links).ensure(network())
    assert {address.address for address in links.addresses("br1")} == {"10.0.1.1", "192.0.2.7"}
    assert links.addresses("br1")[0].address == "10.0.1.1"
    assert links.routes("br1") == (DEFAULT_ROUTE,)


def test_ensure_with_arp_announces_only_what_is_new(tmp_path, links):
    runner = FakeRunner()
    links.ensure_bridge("br1")
    announcing = gateway(tmp_path, links, runner, send_arp_for_ha=True, send_arp_for_ha_count=2)
    announcing.ensure(network())
    announcing.ensure(network())
    assert [ran.argv for ran in runner.ran] == [("arping", "-U", "10.0.1.1", "-A", "-I", "br1", "-c", "2")]


def test_ensure_when_arping_is_missing_goes_on(tmp_path, links):
    links.ensure_bridge("br1")
    runner = FakeRunner({"arping": errors.host.CommandFailed(command="arping", where="h", reason="not installed")})
    gateway(tmp_path, links, runner, send_arp_for_ha=True).ensure(network())
    assert links.addresses("br1")
