"""``nova-manage firewall``, and whose packet filter a nova-compute has."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

import pytest

from nova import errors
from nova.cmd import compute
from nova.compute.filter.host_filter import PacketFilters
from nova.manage import doctor, firewall_commands
from nova.manage.doctor.firewall import packet_filter
from tests.fakes.conductor import FakeConductor


def given(**values: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"protocol": "tcp", "from_port": None, "to_port": None, "cidr": "0.0.0.0/0", **values})


@pytest.mark.parametrize("values, said", [
    ({}, "tcp 1:65535 from 0.0.0.0/0"), ({"from_port": 25}, "tcp 25:25 from 0.0.0.0/0"),
    ({"protocol": "icmp"}, "icmp -1:-1 from 0.0.0.0/0"),
    ({"protocol": "udp", "from_port": 1, "to_port": 9, "cidr": "192.0.2.0/24"}, "udp 1:9 from 192.0.2.0/24")])
def test_add_when_ports_are_left_out_then_all_of_the_protocol_is_dropped(values, said):
    lines: list[str] = []
    assert firewall_commands.add(FakeConductor().client(), given(**values), lines.append) == 0
    assert said in lines[0]


def test_list_when_nothing_is_dropped_then_it_says_so():
    lines: list[str] = []
    conductor = FakeConductor()
    conductor.given(list_provider_rules=())
    assert firewall_commands.show(conductor.client(), lines.append, lambda *_table: None) == 0
    assert lines


def options(tmp_path: Any, **values: Any) -> Any:
    return SimpleNamespace(**{
        "compute_driver": "libvirt.LibvirtDriver", "firewall_driver": None, "fake_network": False, "use_neutron": False,
        "iptables_top_regex": "", "iptables_bottom_regex": "", "iptables_drop_action": "DROP",
        "allow_same_net_traffic": True, "state_path": str(tmp_path), "metadata_host": "192.0.2.9",
        "metadata_port": 8775, "dmz_cidr": [], "guest_forbidden_ranges": ["auto"], **values})


@pytest.mark.parametrize("words", [["none", "10.0.0.0/8"], [""], ["intern"], ["::/0"]])
def test_compute_when_forbidden_ranges_are_none_then_it_says_so_and_does_not_start(tmp_path, words):
    with pytest.raises(errors.config.Unusable, match="guest_forbidden_ranges"):
        compute.packet_filters(options(tmp_path, guest_forbidden_ranges=words))


@pytest.mark.parametrize("values, filters", [
    ({}, True), ({"compute_driver": "fake.FakeDriver"}, False), ({"use_neutron": True}, True),
    ({"fake_network": True}, False), ({"firewall_driver": "nova.virt.firewall.NoopFirewallDriver"}, False),
    ({"compute_driver": "fake.FakeDriver",
      "firewall_driver": "nova.virt.libvirt.firewall.IptablesFirewallDriver"}, True)])
def test_compute_when_it_starts_then_its_filter_is_the_configured_one(tmp_path, values, filters):
    found = compute.packet_filters(options(tmp_path, **values))
    assert isinstance(found, PacketFilters) if filters else found is None


def test_compute_when_the_driver_is_unknown_then_it_does_not_start(tmp_path):
    with pytest.raises(errors.config.Choice, match="firewall_driver"):
        compute.packet_filters(options(tmp_path, firewall_driver="nova.virt.firewall.Magic"))


@pytest.mark.parametrize("values, wanted", [
    ({}, True), ({"firewall_driver": "nova.virt.firewall.NoopFirewallDriver"}, True),
    ({"fake_network": True}, False), ({"compute_driver": "fake.FakeDriver"}, False)])
def test_hairpins_when_the_host_has_nova_networks_taps_then_they_are_turned_on(tmp_path, values, wanted):
    assert (compute.hairpins(options(tmp_path, **values)) is not None) == wanted


def found(options: Any, switches: Any, answer: bool | None = None) -> doctor.Finding:
    """``answer``: the conductor's; None: nobody answers."""
    def elsewhere(_options: Any) -> bool:
        if answer is None:
            raise errors.Unavailable("no conductor")
        return answer
    return packet_filter(options, switches, elsewhere)


def test_doctor_when_bridges_do_not_ask_iptables_then_it_says_how_to_cure_that(tmp_path):
    said = found(options(tmp_path), tmp_path / "none")
    assert said.state == doctor.BAD and "modprobe br_netfilter" in said.cure
    for values in ({"use_neutron": True}, {"compute_driver": "fake.FakeDriver"}):
        assert found(options(tmp_path, **values), tmp_path / "none").state == doctor.OK
    for name in ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables"):
        (tmp_path / name).write_text("0")
    assert found(options(tmp_path), tmp_path).state != doctor.BAD  # a warning, where the program conntrack is missing
    assert found(options(tmp_path, firewall_driver="Magic"), tmp_path).state == doctor.BAD


def test_doctor_when_the_host_s_file_says_something_else_than_the_conductor_then_the_conductor_is_believed(tmp_path):
    wrong = found(options(tmp_path, use_neutron=True), tmp_path / "none", answer=False)
    assert wrong.state == doctor.BAD and "not enforced" in wrong.what
    wrong = found(options(tmp_path), tmp_path / "none", answer=True)
    assert wrong.state == doctor.WARN and "Neutron" in wrong.what and "to true" in wrong.cure
    assert found(options(tmp_path, use_neutron=True), tmp_path / "none", answer=True).state == doctor.OK
