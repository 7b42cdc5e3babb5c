"""nova-manage floating: what it asks for, and what it says."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from nova import context, errors
from nova.manage import floating_commands, main
from tests.fakes.conductor import FakeConductor


class Shell:
    def __init__(self) -> None:
        self.conductor: Any = FakeConductor()
        self.lines: list[str] = []
        self.rows: list[Any] = []

    def run(self, action: str, **given: Any) -> int:
        self.lines.clear()
        asked = argparse.Namespace(**{"pool": None, "interface": None, "host": None, **given})
        with context.entered(context.internal()):
            act = {"create": floating_commands.create, "delete": floating_commands.delete,
                   "list": floating_commands.listed}[action]
            return act(self.conductor, asked, self.lines.append, lambda headings, rows: self.rows.extend(rows))


@pytest.fixture
def shell() -> Shell:
    return Shell()


def test_create_when_a_range_is_given_then_its_hosts_are_made(shell: Shell) -> None:
    assert shell.run("create", ip_range="192.0.2.0/29", pool="p", interface="eth1") == 0
    assert shell.lines == ["6 floating addresses (192.0.2.1 to 192.0.2.6) are created."]
    assert shell.run("create", ip_range="192.0.2.9") == 0
    assert shell.lines == ["Floating address 192.0.2.9 is created."]
    assert shell.run("list") == 0
    assert shell.rows[0] == (None, "192.0.2.1", None, "p", "eth1") and len(shell.rows) == 7


def test_create_when_the_range_is_wrong_then_it_is_said(shell: Shell) -> None:
    with pytest.raises(errors.Invalid, match="fewer than 1000000"):
        shell.run("create", ip_range="10.0.0.0/8")


def test_delete_when_projects_have_some_then_the_others_go(shell: Shell) -> None:
    shell.conductor.add_floating("192.0.2.1", project_id="demo")
    shell.conductor.add_floating("192.0.2.2")
    assert shell.run("delete", ip_range="192.0.2.0/29") == 0
    assert shell.lines == ["Floating address 192.0.2.2 is deleted."]
    assert shell.run("delete", ip_range="192.0.2.0/29") == 3
    assert set(shell.conductor.floating) == {"192.0.2.1"}


def test_list_when_there_are_none_then_it_says_so(shell: Shell) -> None:
    assert shell.run("list") == 0 and shell.lines == ["No floating addresses have been defined."]


def test_table_of_commands_has_them_all() -> None:
    assert set(main.COMMANDS["floating"]()) == {"create", "delete", "list"}
    asked = main.parser().parse_args(["floating", "create", "--ip_range", "192.0.2.0/29", "--pool", "p"])
    assert (asked.ip_range, asked.pool, asked.interface) == ("192.0.2.0/29", "p", None)
