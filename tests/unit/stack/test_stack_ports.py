"""Ports of other programs are found before anything is started."""

from __future__ import annotations

import socket

import pytest

from stacklib import ports


@pytest.mark.parametrize(("address", "family"), [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)])
def test_port_when_another_program_listens_then_in_use_and_free_when_it_ended(address, family):
    try:
        listener = socket.create_server((address, 0), family=family)
    except OSError:
        pytest.skip(f"this machine has no {address}")
    with listener:
        port = listener.getsockname()[1]
        assert ports.in_use(address, port)
    assert not ports.in_use(address, port)


def test_port_when_the_machine_has_no_such_address_then_nobody_uses_it():
    assert not ports.in_use("192.0.2.77", 4370)


def test_wanted_ports_then_those_of_the_chosen_database_alone(make_layout):
    found = ports.wanted(make_layout(driver="fake", database="mariadb"))
    assert {"mariadb", "amqp", "epmd", "compute"} <= found
    assert not {"postgresql", "neutron", "serialproxy"} & found
