"""Faults: the owner learns what went wrong, and not where."""

from __future__ import annotations

from typing import Any

import pytest

from nova import errors
from nova.conductor.engine.faults import fault_of
from nova.conductor.engine.operation import Op
from nova.db.server.states import Entry
from tests.fakes.rows import server_value


def operation(**data: Any) -> Op:
    entry = Entry(id=1, server_uuid="s", action="resize", epoch=1, arguments={"source": "cn1"},
                  data={"tried": ["cn2"], **data})
    return Op(entry, server_value(host="cn1.example"))


@pytest.mark.parametrize(("message", "told"), [
    ("Host cn2, the source host of x, failed: no disk", "the host, the source host of x, failed: no disk"),
    ("nova-compute on 'cn1.example' did not answer", "nova-compute on the host did not answer"),
    ("cn1 and cn2 are down", "the host and the host are down"),
    ("image cn10-cn2 is gone", "image cn10-cn2 is gone"),
    ("no host named", "no host named"),
    ("Path '/var/lib/nova/cn1/instances/_base/ab12.part' is lost", "Path 'a file of the host' is lost"),
    ("no room in /srv/cn2/x: it is full", "no room in a file of the host: it is full"),
    *[(kept, kept) for kept in ("10.0.0.0/24 is full", "no /dev/vdb", "text/plain", "see http://x.org/a/b", "a / b")]])
def test_fault_when_its_cause_names_hosts_then_the_owner_reads_none_and_admins_all(message, told):
    fault = fault_of(errors.HostRefused(message), operation())
    assert (fault.message, fault.details) == (told, message)


@pytest.mark.parametrize(("error", "told"), [
    (errors.HostRefused("libvirt at qemu+tcp://10.20.30.40/system is away"),
     "libvirt at a service of the host is away"),
    (errors.Unavailable("http://glance.internal:9292/v2 gave up"), "a service of the cloud gave up"),
    (errors.Unavailable("10.20.30.40:5672 is not reached"), "a host of the cloud is not reached"),
    (errors.Conflict("10.0.0.5 is taken"), "10.0.0.5 is taken")])
def test_fault_when_its_cause_names_addresses_of_the_cloud_then_the_owner_reads_none(error, told):
    fault = fault_of(error, operation())
    assert (fault.message, fault.details) == (told, error.message)


@pytest.mark.parametrize("error", [
    errors.daemon.DamagedRow(row="servers.id = 7", column="servers.memo", reason="Expected `object`"),
    errors.daemon.RowTooLong(table="servers")])
def test_fault_when_its_cause_is_a_row_of_the_database_then_the_owner_does_not_read_which(error):
    fault = fault_of(error, operation())
    assert (fault.message, fault.details) == (errors.Bug.message, error.message)


def test_fault_when_there_are_better_details_then_admins_read_those():
    fault = fault_of(errors.HostRefused("x" * 300), operation(fault_details="a table"))
    assert (len(fault.message), fault.details) == (255, "a table")
