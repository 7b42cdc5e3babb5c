"""Whose connections end with a change of the rules, and how."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from nova.compute.flows import forget, narrowed
from nova.compute.host_filter import PacketFilters
from nova.compute.packet_rules import RuleOptions
from nova.model.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.privileged.runner import CommandFailed, Completed

SSH = AllowedTraffic(protocol="tcp", from_port=22, to_port=22, cidr="0.0.0.0/0")
WEB = AllowedTraffic(protocol="tcp", from_port=80, to_port=80, cidr="0.0.0.0/0")


def guest(number: int, *allowed: AllowedTraffic) -> GuestFirewall:
    card = GuardedInterface(mac="fa:16:3e:00:00:01", device=f"tap{number}",
                            addresses=(f"10.0.0.{number}", f"fd00::{number}"))
    return GuestFirewall(server_uuid=f"u{number}", id=number, instance_name="i", interfaces=(card,), allowed=allowed)


def host(*guests: GuestFirewall, dropped: tuple[AllowedTraffic, ...] = ()) -> HostFirewall:
    return HostFirewall(host="a", guests=guests, dropped=dropped)


class Runner:
    def __init__(self) -> None:
        self.forgot: list[tuple[str, str]] = []
        self.fails = False

    def run(self, argv: Any, **more: Any) -> Completed:
        if argv[0] == "conntrack":
            if self.fails:
                raise CommandFailed(command="conntrack", where="here", reason="conntrack is not installed")
            assert more["ok"] == (0, 1)
            self.forgot.append((argv[3], argv[5]))
        return Completed(0)


@pytest.mark.parametrize("after, expected", [
    (host(guest(1, SSH, WEB), guest(2, SSH)), ()), (host(guest(1, SSH, WEB), guest(2, SSH, WEB)), ()),
    (host(guest(1, WEB), guest(2, SSH)), ("10.0.0.1", "fd00::1")), (host(guest(2, SSH)), ()),
    (host(guest(1, SSH, WEB), guest(2), guest(3)), ("10.0.0.2", "fd00::2")),
    (host(guest(1, SSH, WEB), guest(2, SSH), dropped=(WEB,)), ("10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"))])
def test_narrowed_when_the_rules_change_then_only_guests_that_get_less(after, expected):
    assert narrowed(host(guest(1, SSH, WEB), guest(2, SSH)), after) == expected


def test_filters_when_a_rule_is_closed_then_flows_are_forgotten_after_it_and_only_once(tmp_path):
    runner = Runner()
    filters = PacketFilters(runner, tmp_path, RuleOptions(), switches=tmp_path)
    for state in (host(guest(1, SSH)), host(guest(1, SSH, WEB))):
        filters.apply(state)
    assert runner.forgot == []
    for _ in range(2):
        filters.apply(host(guest(1, SSH)))
    assert runner.forgot == [("ipv4", "10.0.0.1"), ("ipv6", "fd00::1")]


def test_forget_when_the_program_fails_or_there_is_no_time_then_it_says_so_and_ends(caplog):
    runner = Runner()
    runner.fails = True
    with caplog.at_level(logging.WARNING):
        forget(runner, ["10.0.0.1", "10.0.0.2"])
        forget(runner, ["10.0.0.1"], 0.0)
    assert ["not installed" in one.message for one in caplog.records] == [True, False]
    assert "too many" in caplog.text
