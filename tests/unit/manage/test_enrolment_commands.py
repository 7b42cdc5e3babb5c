"""``nova-manage host``: what is said of hosts that claim too much, or whose secret is closed; and keys."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nova.manage import enrolment_commands
from nova.model.base import utcnow
from nova.model.secret_wrap import SecretWrap
from nova.model.services import EnrolledHost


class Conductor:
    def __init__(self, *hosts: EnrolledHost) -> None:
        self.hosts = hosts
        self.accepted: list[tuple[str, Mapping[str, int]]] = []

    def list_services(self, query: object) -> tuple[Any, ...]:
        return ()

    def list_enrolled_hosts(self) -> tuple[EnrolledHost, ...]:
        return self.hosts

    def accept_host(self, host: str, room: Mapping[str, int]) -> None:
        self.accepted.append((host, room))


def given(**words: Any) -> argparse.Namespace:
    return argparse.Namespace(**{"zone": None, "host": "h1", "json": False, **words})


@pytest.mark.parametrize(("fields", "state"), [
    ({"claimed_room": {"VCPU": 9}}, "claims 9 VCPU (accepted: 4): nova-manage host accept h1"),
    ({"claimed_room": {"VCPU": 8}}, "has its secret since"),
    ({"readable": False}, "no key of [conductor]host_secret_key opens its secret")])
def test_list_when_a_host_waits_for_something_then_its_state_says_so(fields: dict[str, Any], state: str) -> None:
    host = EnrolledHost(host="h1", joined_at=utcnow(), accepted_room={"VCPU": 4}, **fields)
    rows: list[Sequence[Any]] = []
    enrolment_commands.listed(Conductor(host), given(), lambda heads, lines: rows.extend(lines))  # type: ignore[arg-type]
    assert rows[0][0] == "h1" and rows[0][-1].startswith(state)


def test_accept_then_what_is_printed_is_what_is_accepted() -> None:
    conductor, said = Conductor(EnrolledHost(host="h1", claimed_room={"VCPU": 9, "DISK_GB": 7})), []
    assert enrolment_commands.accept(conductor, given(), said.append) == 0  # type: ignore[arg-type]
    assert conductor.accepted == [("h1", {"VCPU": 9, "DISK_GB": 7})] and "7 DISK_GB, 9 VCPU" in said[0]


def test_accept_when_the_host_said_nothing_yet_then_that_is_said() -> None:
    said: list[str] = []
    assert enrolment_commands.accept(Conductor(), given(), said.append) == 0  # type: ignore[arg-type]
    assert "has not said yet" in said[0]


def test_new_key_then_it_can_be_used_and_no_two_are_alike() -> None:
    said: list[str] = []
    for _ in range(2):
        assert enrolment_commands.new_key(said.append) == 0
    assert len(set(said)) == 2 and SecretWrap(said).wrapped("a", "b")
