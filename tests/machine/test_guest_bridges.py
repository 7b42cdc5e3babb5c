"""On a real kernel: guests' bridges give no way to the host by IPv6 that nobody meant."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.machine.network_cases import CHECKOUT, obstacle

_WHY = obstacle()
pytestmark = [pytest.mark.in_turn(7, 10),
              pytest.mark.skipif(_WHY is not None, reason=str(_WHY))]

#: Ends with what a namespace of its own has of IPv6 on br1.
STEPS = """
import json, subprocess, time
from nova.privileged import links
def ip(*words):
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
ip("link", "add", "eth0", "type", "veth", "peer", "name", "far")
ip("link", "set", "far", "up")
ip("link", "set", "eth0", "up")
{steps}
time.sleep(0.05)
found = json.loads(ip("-j", "-6", "addr", "show", "dev", "br1"))
print(json.dumps([one["local"] for device in found for one in device.get("addr_info", ())]))
"""


def on_bridge(*steps: str) -> list[Any]:
    done = subprocess.run(["unshare", "-n", sys.executable, "-c", STEPS.replace("{steps}", "\n".join(steps))],
                          capture_output=True, text=True, timeout=30, cwd=CHECKOUT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_bridge_when_it_is_made_then_the_host_has_no_ipv6_address_on_it():
    assert on_bridge("links.ensure_bridge('br1', 'eth0')", "links.ensure_bridge('br1', 'eth0')") == []


def test_bridge_when_its_maker_died_before_it_was_up_then_the_next_one_sees_to_it():
    assert on_bridge("ip('link', 'add', 'br1', 'type', 'bridge', 'forward_delay', '0')",
                     "links.ensure_bridge('br1', 'eth0')") == []


def test_bridge_when_it_speaks_ipv6_for_a_network_then_a_guest_that_comes_changes_nothing():
    found = on_bridge("links.ensure_bridge('br1')", "links.set_ipv6('br1', True)",
                      "links.ensure_address('br1', links.Address('fd00::1', 64))", "links.ensure_bridge('br1', 'eth0')")
    assert "fd00::1" in found


def test_bridge_when_its_interface_brings_ipv6_then_the_host_goes_on_to_speak_it():
    found = on_bridge("ip('addr', 'add', 'fd01::7/64', 'dev', 'eth0', 'nodad')", "links.ensure_bridge('br1', 'eth0')")
    assert [one for one in found if one.startswith("fe80:")]


@pytest.mark.parametrize("steps, heard", [
    (("links.ensure_bridge('br1', 'eth0')", "links.set_ipv6('br1', True)"), "0"),
    (("ip('link', 'add', 'br1', 'type', 'veth', 'peer', 'name', 'br2')", "ip('link', 'set', 'br1', 'up')",
      "links.set_ipv6('br1', True)"), "0"),
    (("ip('addr', 'add', 'fd01::7/64', 'dev', 'eth0', 'nodad')", "links.ensure_bridge('br1', 'eth0')",
      "links.set_ipv6('br1', True)"), "1")])
def test_bridge_when_the_host_is_its_router_then_it_hears_no_other_but_where_it_lives_itself(steps, heard):
    reported = "open('/proc/sys/net/ipv6/conf/br1/accept_ra').read().strip()"
    assert f"fd07::1{heard}" in on_bridge(*steps, f"ip('addr', 'add', 'fd07::1%s/64' % {reported}, 'dev', 'br1')")


def test_port_when_a_guest_is_behind_it_then_the_host_speaks_no_ipv6_by_it():
    found = on_bridge("links.ensure_bridge('br0')", "ip('link', 'add', 'br1', 'type', 'veth', 'peer', 'name', 'br2')",
                      "ip('link', 'set', 'br2', 'up')", "ip('link', 'set', 'br1', 'master', 'br0', 'up')",
                      "time.sleep(0.05)", "links.ensure_guest_ports(['br1', 'eth0'])")
    assert found == []
