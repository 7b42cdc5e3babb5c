"""Whose connections end with a change of the rules, and how."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest

from nova import errors
from nova.compute.filter.flows import everybody, narrowed, recheck
from nova.compute.filter.host_filter import PacketFilters
from nova.compute.filter.packet_rules import RuleOptions
from nova.model.network.security_groups import AllowedTraffic, GuardedInterface, GuestFirewall, HostFirewall
from nova.privileged.runner import Completed

SSH = AllowedTraffic(protocol="tcp", from_port=22, to_port=22, cidr="0.0.0.0/0")
WEB = AllowedTraffic(protocol="tcp", from_port=80, to_port=80, cidr="0.0.0.0/0")


def guest(number: int, *allowed: AllowedTraffic) -> GuestFirewall:
    card = GuardedInterface(mac="fa:16:3e:00:00:01", device=f"tap{number}",
                            addresses=(f"10.0.0.{number}", f"fd00::{number}"))
    return GuestFirewall(server_uuid=f"u{number}", id=number, instance_name="i", interfaces=(card,), allowed=allowed)


def host(*guests: GuestFirewall, dropped: tuple[AllowedTraffic, ...] = ()) -> HostFirewall:
    return HostFirewall(host="a", guests=guests, dropped=dropped)


class Runner:
    """A kernel that keeps what it is fed, and whose connections are looked for in vain."""

    def __init__(self) -> None:
        self.judged: list[list[str]] = []
        self.tables: dict[str, str] = {}
        self.fails = False

    def run(self, argv: Any, **more: Any) -> Completed:
        if argv[0] == "conntrack":
            if self.fails:
                raise errors.host.CommandFailed(command="conntrack", where="here", reason="conntrack is not installed")
            assert more["ok"] == (0, 1)
            self.judged.append(list(argv[1:]))
        elif "stdin" in more:
            fed = re.sub(r"-I (\S+) \d+", r"-A \1", more["stdin"])
            self.tables[argv[0].replace("-restore", "-save")] = fed
        return Completed(0, self.tables.get(argv[0], ""))


ONE_S = [
    ["-U", "-f", "ipv4", "-p", "tcp", "-r", "10.0.0.1", "-m", "0x20000000/0x20000000"],
    ["-D", "-f", "ipv4", "-r", "10.0.0.1", "-m", "0/0x20000000"],
    ["-U", "-f", "ipv6", "-p", "tcp", "-r", "fd00::1", "-m", "0x20000000/0x20000000"],
    ["-D", "-f", "ipv6", "-r", "fd00::1", "-m", "0/0x20000000"]]


@pytest.mark.parametrize("after, expected", [
    (host(guest(1, SSH, WEB), guest(2, SSH)), ()), (host(guest(1, SSH, WEB), guest(2, SSH, WEB)), ()),
    (host(guest(1, WEB), guest(2, SSH)), ("10.0.0.1", "fd00::1")), (host(guest(2, SSH)), ()),
    (host(guest(1, SSH, WEB), guest(2), guest(3)), ("10.0.0.2", "fd00::2")),
    (host(guest(1, SSH, WEB), guest(2, SSH), dropped=(WEB,)), ("10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2"))])
def test_narrowed_when_the_rules_change_then_only_guests_that_get_less(after, expected):
    assert narrowed(host(guest(1, SSH, WEB), guest(2, SSH)), after) == expected


def test_everybody_when_guests_share_an_address_then_it_is_there_once():
    assert everybody(host(guest(1), guest(1, SSH), guest(2))) == ("10.0.0.1", "fd00::1", "10.0.0.2", "fd00::2")


def test_filters_when_a_rule_is_closed_then_connections_are_judged_anew_after_it_and_only_once(tmp_path):
    runner = Runner()
    filters = PacketFilters(runner, tmp_path, RuleOptions(), switches=tmp_path)
    for state in (host(guest(1, SSH)), host(guest(1, SSH, WEB))):
        filters.apply(state)
    runner.judged.clear()
    for _ in range(2):
        filters.apply(host(guest(1, SSH)))
    assert runner.judged == ONE_S


def test_filters_when_they_are_new_then_connections_are_judged_anew_where_other_rules_stood_before(tmp_path):
    """A rule may have been closed while nobody was here to see it."""
    runner = Runner()
    open_, closed = host(guest(1, SSH, WEB)), host(guest(1, SSH))
    for state, expected in ((open_, ONE_S), (open_, []), (closed, ONE_S)):
        runner.judged.clear()
        PacketFilters(runner, tmp_path, RuleOptions(), switches=tmp_path).apply(state)
        assert runner.judged == expected


def test_judge_anew_when_the_program_fails_or_there_is_no_time_then_it_says_so_and_ends(caplog):
    runner = Runner()
    runner.fails = True
    with caplog.at_level(logging.WARNING):
        recheck(runner, ["10.0.0.1", "10.0.0.2"])
        recheck(runner, ["10.0.0.1"], 0.0)
    assert ["not installed" in one.message for one in caplog.records] == [True, False]
    assert "too many" in caplog.text
