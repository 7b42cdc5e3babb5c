"""nova-manage network, fixed and project: what they ask for, and what they say."""

from __future__ import annotations

import argparse
import types
from typing import Any

import pytest

from nova import context, errors
from nova.manage import main, network_commands
from nova.model.network.networks import FixedAddressRow, Network
from tests.fakes.conductor import FakeConductor

OPTIONS = types.SimpleNamespace(num_networks=2, use_ipv6=False, fixed_range_v6="fd00::/48")


class Shell:
    """The commands over a fake conductor, their words parsed as nova-manage parses them."""

    def __init__(self) -> None:
        self.conductor: Any = FakeConductor()
        self.lines: list[str] = []
        self.rows: list[Any] = []
        self.parser = argparse.ArgumentParser()
        categories = self.parser.add_subparsers()
        for category, actions in (("network", network_commands.network_actions),
                                  ("fixed", network_commands.fixed_actions),
                                  ("project", network_commands.project_actions)):
            group = categories.add_parser(category).add_subparsers()
            for name, command in actions(lambda options: self.conductor,
                                         self.lines.append, self._table).items():
                one = group.add_parser(name)
                for flags, options in command.arguments:
                    one.add_argument(*flags, **options)
                one.set_defaults(run=command.run)

    def _table(self, headings: Any, rows: Any) -> None:
        self.rows += [tuple(headings), *map(tuple, rows)]

    def run(self, words: str, options: Any = OPTIONS) -> int:
        self.lines.clear()
        self.rows.clear()
        given = self.parser.parse_args(words.split())
        with context.entered(context.internal()):
            code: int = given.run(options, given)
        return code


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_commands_are_nova_manages() -> None:
    assert set(main.COMMANDS["network"]()) == {"create", "list", "delete", "modify"}
    assert set(main.COMMANDS["fixed"]()) == {"list", "reserve", "unreserve"}
    assert set(main.COMMANDS["project"]()) == {"quota", "quota_usage_refresh", "scrub"}


def test_create_asks_for_all_that_was_said(shell: Shell) -> None:
    shell.run("network create --label n --fixed_range_v4 10.0.0.0/16 --num_networks 1 --network_size 64 --vlan 7 "
              "--vpn 1100 --gateway 10.0.0.9 --bridge br7 --bridge_interface eth1 --multi_host T --dns1 9.9.9.9 "
              "--project_id p --priority 3 --fixed_range_v6 fd00:1::/64 --gateway_v6 fd00:1::9 "
              "--fixed_cidr 10.0.0.0/26")
    [asked] = shell.conductor.asked("create_network")
    assert (asked.cidr, asked.cidr_v6, asked.vlan, asked.vpn_start) == ("10.0.0.0/16", "fd00:1::/64", 7, 1100)
    assert (asked.multi_host, asked.priority, asked.project_id, asked.num_networks) == (True, 3, "p", 1)
    assert (asked.gateway, asked.gateway_v6, asked.fixed_cidr, asked.dns1) == ("10.0.0.9", "fd00:1::9",
                                                                              "10.0.0.0/26", "9.9.9.9")
    assert "10.0.0.0/16" in shell.lines[0]


def test_create_with_little_said_leaves_the_rest_to_the_configuration(shell: Shell) -> None:
    shell.run("network create --label n --cidr 10.0.0.0/16",
              types.SimpleNamespace(num_networks=2, use_ipv6=True, fixed_range_v6="fd00::/48"))
    [asked] = shell.conductor.asked("create_network")
    assert (asked.num_networks, asked.cidr_v6, asked.multi_host, asked.single_host) == (
        2, "fd00::/48", False, False)
    assert len(shell.lines) == 2


def test_network_is_listed_and_deleted_by_its_range_or_its_uuid(shell: Shell) -> None:
    first = shell.conductor.add_network(cidr="10.1.0.0/24", vlan=5, project_id="p")
    second = shell.conductor.add_network(cidr=None, cidr_v6="fd00::/64")
    third = shell.conductor.add_network()
    shell.run("network list")
    assert shell.rows[0] == ("id", "IPv4", "IPv6", "start address", "DNS1", "DNS2", "VlanID", "project", "uuid")
    assert shell.rows[1] == (first.id, "10.1.0.0/24", None, None, None, None, 5, "p", first.uuid)
    shell.run("network delete --fixed_range fd00::/64")
    shell.run(f"network delete --uuid {first.uuid}")
    shell.run(f"network delete {third.uuid}")
    assert not shell.conductor.networks
    assert second.uuid
    with pytest.raises(errors.NotFound):
        shell.run("network delete --fixed_range 10.1.0.0/24")
    for words in ("network delete", "network delete --uuid a --fixed_range b"):
        with pytest.raises(errors.Invalid, match="either"):
            shell.run(words)


@pytest.mark.parametrize(("words", "fields", "project", "host"), [
    ("--project p", ("project_id",), "p", None), ("--host h --disassociate-project", ("project_id", "host"), None, "h"),
    ("--disassociate-host", ("host",), None, None)])
def test_modify_changes_what_is_said_whatever_the_manager(shell: Shell, words: str, fields: Any, project: Any,
                                                          host: Any) -> None:
    network = shell.conductor.add_network(cidr="10.1.0.0/24", project_id="old", host="old")
    shell.run(f"network modify --fixed_range 10.1.0.0/24 {words}")
    [change] = shell.conductor.asked("change_network")
    assert (change.uuid, change.fields, change.project_id, change.host) == (network.uuid, fields, project, host)
    assert change.forced


@pytest.mark.parametrize("words", ["", "--project p --disassociate-project", "--host h --disassociate-host"])
def test_modify_when_it_is_not_clear_what_is_meant_says_so(shell: Shell, words: str) -> None:
    shell.conductor.add_network(cidr="10.1.0.0/24")
    with pytest.raises(errors.Invalid):
        shell.run(f"network modify --fixed_range 10.1.0.0/24 {words}")
    assert not shell.conductor.asked("change_network")


def test_fixed_addresses_are_listed_and_set_aside(shell: Shell) -> None:
    shell.run("fixed list")
    assert shell.lines == ["No fixed addresses have been defined."]
    shell.conductor.fixed_rows["10.0.0.2"] = FixedAddressRow(address="10.0.0.2", network_uuid="n", cidr="10.0.0.0/24",
                                                             hostname="vm", host="a")
    shell.run("fixed list --host a")
    assert shell.rows == [("network", "IP address", "hostname", "host"), ("10.0.0.0/24", "10.0.0.2", "vm", "a")]
    shell.run("fixed list --host b")
    assert shell.lines == ["b serves none."]
    for word, reserved in (("reserve", True), ("unreserve", False)):
        shell.run(f"fixed {word} --address 10.0.0.2")
        assert shell.conductor.fixed_rows["10.0.0.2"].reserved is reserved


def test_scrub_takes_a_projects_networks_from_it_alone(shell: Shell) -> None:
    for project in ("p", "p", "other", None):
        shell.conductor.add_network(project_id=project)
    shell.run("project scrub --project p")
    assert [one.project_id for one in shell.conductor.networks.values()] == [None, None, "other", None]
    shell.run("project scrub --project p")
    assert shell.lines == ["Project p has no network."]


def test_quota_is_shown_and_one_limit_set(shell: Shell) -> None:
    shell.run("project quota --project p --key cores --value 7")
    assert ("cores", 7, 0) in shell.rows
    shell.run("project quota --project p --key cores --value unlimited")
    assert ("cores", "unlimited", 0) in shell.rows
    for words in ("--key cores --value many", "--key cores --value -2", "--key nothing --value 1"):
        with pytest.raises(errors.Invalid):
            shell.run(f"project quota --project p {words}")


@pytest.mark.parametrize(("cidr", "words", "said"), [("10.0.0.0/8", "", True), ("10.0.0.0/24", "", False),
                                                     ("10.0.0.0/8", "--network_size 256", False)])
def test_create_when_the_range_was_cut_then_it_says_so(shell: Shell, cidr: str, words: str, said: bool) -> None:
    options = types.SimpleNamespace(num_networks=1, use_ipv6=False)
    shell.conductor.create_network = lambda new: (Network(uuid="u", label="n", cidr="10.0.0.0/24", bridge="br1"),)
    shell.run(f"network create --label n --fixed_range_v4 {cidr} --bridge br1 {words}", options)
    assert any("Only 1 x 256 addresses of 10.0.0.0/8" in line for line in shell.lines) == said
