"""Which calls go on to a destination's libvirtd, and which answers come back from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nova.migrationproxy import Channel, socket_uri
from nova.migrationproxy.calls import AllowedMove, ListenerFilter, TunnelFilter
from nova.migrationproxy.references import Refused
from nova.migrationproxy.wire import MAX_MESSAGE, BadMessage, Messages, Procedure, Status, Type
from tests.unit.migrationproxy.libvirt_calls import (
    COOKIE,
    DEFINITION,
    NAME,
    answer,
    call,
    finishing,
    number,
    opening,
    parameters,
    preparing,
    text,
)

HERE = Path("/run/nova-migrations/5f1c2d0a")
MEMORY = socket_uri(HERE, Channel.MEMORY)
KEEPALIVE = call(1)._replace(program=0x6B656570)


@pytest.fixture
def refused() -> list[str]:
    return []


@pytest.fixture
def gate(refused: list[str]) -> ListenerFilter:
    return ListenerFilter(AllowedMove(DEFINITION, MEMORY, socket_uri(HERE, Channel.DISKS)), refused.append)


def test_gate_when_a_migration_goes_its_way_then_all_of_it_passes_unchanged(gate, refused):
    told = [call(66), call(60, number(15)), opening(), call(360), preparing(parameters(HERE)), KEEPALIVE,
            finishing(parameters(HERE)), call(361), call(2)]
    stream = b"".join(one.encode() for one in told)
    passed = [gate.pass_(stream[at:at + 7]) for at in range(0, len(stream), 7)]
    assert b"".join(one.onward for one in passed) == stream and not any(one.back for one in passed)
    assert gate.prepared and gate.finished and refused == []


@pytest.mark.parametrize("message", [
    *(call(number_) for number_ in (7, 8, 9, 10, 11, 12, 14, 35, 37, 38, 48, 89, 143, 159, 221, 297, 302, 304, 305)),
    call(66)._replace(program=0x20008087), call(66)._replace(version=2), call(66)._replace(type=Type.REPLY),
    call(66)._replace(type=3), KEEPALIVE._replace(payload=b"more"),
    opening("lxc:///"), opening("qemu:///session"), opening("test:///default"), opening(None), opening(flags=1),
    opening("qemu:///system?x")], ids=str)
def test_gate_when_a_call_belongs_to_no_migration_then_it_is_answered_and_not_passed_on(gate, refused, message):
    passed = gate.pass_(message.encode())
    (said,) = Messages().feed(passed.back)
    assert passed.onward == b"" and said.status == Status.ERROR and said.serial == message.serial
    assert b"the destination refused the call" in said.payload and len(refused) == 1
    assert gate.pass_(call(66).encode()).onward, "the connection goes on"


@pytest.mark.parametrize("changes", [
    {"destination_xml": DEFINITION.replace(NAME, "instance-00000002")}, {"destination_xml": None},
    {"destination_xml": DEFINITION.replace("<devices/>", "<devices><emulator>/tmp/x</emulator></devices>")},
    {"migrate_uri": "tcp://0.0.0.0:1"}, {"migrate_uri": None}, {"migrate_uri": "unix:///run/libvirt/libvirt-sock"},
    {"disks_uri": "unix:///etc/x"}, {"migrate_disks": "vda,/etc/x"}, {"migrate_disks": 1}, {"bandwidth": "x"},
    {"destination_name": "instance-00000002"}, {"listen_address": "0.0.0.0"}, {"disks_port": 1},
    {"persistent_xml": DEFINITION}, {"graphics_uri": "x"}, {"tls.destination": "x"}], ids=str)
@pytest.mark.parametrize("make", [preparing, finishing])
def test_gate_when_a_parameter_is_not_this_moves_then_it_is_refused(gate, refused, changes, make):
    assert gate.pass_(make(parameters(HERE, **changes)).encode()).onward == b""
    assert not gate.prepared and not gate.finished and len(refused) == 1


@pytest.mark.parametrize("flags", [0, 1, 2, 3 | 1 << 2, 3 | 1 << 6, 3 | 1 << 10, 3 | 1 << 16, 3 | 1 << 31])
def test_gate_when_flags_are_others_then_it_is_refused(gate, refused, flags):
    assert gate.pass_(preparing(parameters(HERE), flags=flags).encode()).onward == b"" and "flags" in refused[0]


@pytest.mark.parametrize("cookie", [
    COOKIE.replace("<cpu/>", DEFINITION.replace("<devices/>", "<devices><filesystem/></devices>")),
    COOKIE.replace("<cpu/>", "<lockstate driver='x'><leases/></lockstate>"), "<x", "<!DOCTYPE x []><x/>"])
@pytest.mark.parametrize("make", [preparing, finishing])
def test_gate_when_a_cookie_has_a_definition_of_its_own_then_it_is_refused(gate, refused, cookie, make):
    assert gate.pass_(make(parameters(HERE), cookie).encode()).onward == b"" and len(refused) == 1


def test_gate_when_the_cookie_has_the_guests_definition_then_it_passes(gate, refused):
    cookie = COOKIE.replace("<cpu/>", DEFINITION)
    assert gate.pass_(finishing(parameters(HERE), cookie).encode()).onward and refused == []


@pytest.mark.parametrize("payload", [b"", number(65), number(1), number(1) + text("x") + number(9),
                                     number(1) + number(1 << 31), number(1) + number(2) + b"\xff\xff\0\0"])
def test_gate_when_the_arguments_are_garbage_then_the_connection_ends(gate, payload):
    with pytest.raises(BadMessage):
        gate.pass_(call(Procedure.PREPARE, payload).encode())


@pytest.mark.parametrize("stream", [number(0), number(27), number(MAX_MESSAGE + 1), number(0xFFFFFFFF)])
def test_stream_when_a_length_cannot_be_then_the_connection_ends(stream):
    with pytest.raises(BadMessage):
        Messages().feed(stream)


def test_gate_when_more_follows_the_arguments_then_the_connection_ends(gate):
    message = preparing(parameters(HERE))
    with pytest.raises(BadMessage):
        gate.pass_(message._replace(payload=message.payload + number(0)).encode())


# --- the source

@pytest.mark.parametrize("uri", [None, MEMORY])
def test_tunnel_when_answers_are_this_moves_then_they_pass(refused, uri):
    told = number(4) + b"cook" + (number(1) + text(uri) if uri else number(0))
    stream = answer(call(66)).encode() + KEEPALIVE.encode() + answer(call(Procedure.PREPARE), told).encode()
    assert TunnelFilter(MEMORY, refused.append).pass_(stream).onward == stream and refused == []


def test_tunnel_when_the_call_failed_then_its_error_passes(refused):
    stream = answer(call(Procedure.PREPARE), b"not looked at", Status.ERROR).encode()
    assert TunnelFilter(MEMORY, refused.append).pass_(stream).onward == stream


@pytest.mark.parametrize("message", [
    call(66), answer(call(66))._replace(type=Type.EVENT), answer(call(66))._replace(type=3),
    answer(call(1))._replace(program=0x20008087),
    *(answer(call(Procedure.PREPARE), number(0) + number(1) + text(uri))
      for uri in ("tcp://10.0.0.9:1", "unix:///run/libvirt/libvirt-sock", ""))], ids=str)
def test_tunnel_when_a_destination_says_more_than_answers_then_the_connection_ends(refused, message):
    with pytest.raises(Refused):
        TunnelFilter(MEMORY, refused.append).pass_(message.encode())
    assert len(refused) == 1
