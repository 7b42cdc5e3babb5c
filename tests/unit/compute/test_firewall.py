"""A host's packet filter: asked for whole, applied in order, there before a guest runs."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from nova import errors
from nova.compute import order_table as kinds
from nova.compute.filter.firewall import Firewall
from nova.compute.filter.host_filter import PacketFilters
from nova.compute.filter.packet_rules import RuleOptions
from nova.compute.order_execution import OrderExecution
from nova.compute.orders.resource_claims import ResourceClaims
from nova.compute.reports.build_stats import BuildHealth
from nova.model.guest.orders import GuestOrder
from nova.model.network.networks import FixedAddress, Interface
from nova.model.network.security_groups import AllowedTraffic, GuestFirewall, HostFirewall
from nova.model.network.security_rules import guarded
from nova.privileged.runner import Completed
from nova.rpc.contracts.conductor_host import ConductorHostRPC
from tests.fakes.compute import build_order
from tests.fakes.contract import ContractFake

UUID = "11111111-2222-3333-4444-555555555555"
OTHER = "21111111-2222-3333-4444-555555555555"
SSH = AllowedTraffic(protocol="tcp", from_port=22, to_port=22, cidr="0.0.0.0/0")


def interface(device: str = "tap1") -> Interface:
    return Interface(id=device, mac="fa:16:3e:00:00:01", network_id="n", label="l", device=device,
                     addresses=(FixedAddress(address="10.0.0.5"),))


def part(uuid: str = UUID, *allowed: AllowedTraffic, devices: tuple[str, ...] = ("tap1",)) -> GuestFirewall:
    return GuestFirewall(server_uuid=uuid, id=1, instance_name="i", allowed=allowed,
                         interfaces=guarded([interface(device) for device in devices]))


def order(firewall: GuestFirewall | None = None, uuid: str = UUID, devices: tuple[str, ...] = ("tap1",)) -> Any:
    return msgspec.structs.replace(build_order(uuid), firewall=firewall,
                                   interfaces=tuple(interface(device) for device in devices))


class Conductor(ContractFake, contract=ConductorHostRPC):
    """``guests``: what it says of the host now; ``on_ask`` runs while it reads."""

    def __init__(self, *guests: GuestFirewall) -> None:
        super().__init__()
        self.guests, self.elsewhere = guests, False
        self.on_ask = lambda: None

    def host_firewall(self, host: str) -> HostFirewall:
        answer = HostFirewall(host=host, guests=() if self.elsewhere else self.guests,
                              kept_elsewhere=self.elsewhere)
        self.on_ask()
        return answer


class Kept:
    def __init__(self) -> None:
        self.states: list[HostFirewall] = []
        self.broken, self.hole, self.withdrawn = False, "", 0

    def withdraw(self) -> bool:
        if self.broken:
            raise errors.Unavailable("no iptables")
        self.withdrawn += 1
        self.states.clear()
        return True

    def lacks(self) -> str:
        return self.hole

    def apply(self, state: HostFirewall) -> bool:
        if self.broken:
            raise errors.Unavailable("no iptables")
        self.states.append(state)
        return True

    @property
    def guests(self) -> dict[str, GuestFirewall]:
        return {guest.server_uuid: guest for guest in self.states[-1].guests} if self.states else {}


class Host:
    def __init__(self, *guests: GuestFirewall) -> None:
        self.conductor, self.kept, self.here = Conductor(*guests), Kept(), set()
        self.wall = Firewall(self.conductor.client("a"), "a", self.kept, lambda: self.here)


def test_guard_when_the_guest_is_new_then_its_order_s_part_is_applied_and_nobody_asked():
    host = Host()
    host.wall.guard(order(part(UUID, SSH)))
    assert host.kept.guests == {UUID: part(UUID, SSH)} and len(host.conductor.calls) == 0


def test_guard_when_the_order_says_something_else_than_is_known_then_the_conductor_decides():
    host = Host(part(UUID, SSH))
    host.wall.refresh()
    host.wall.guard(order(part(UUID)))  # an order that was written before the rule was made
    assert host.kept.guests == {UUID: part(UUID, SSH)} and len(host.conductor.calls) == 2


def test_guard_when_an_order_brings_nothing_then_what_is_known_holds_or_is_asked_for():
    host = Host(part(UUID, SSH))
    host.wall.guard(order())
    host.wall.guard(order())
    assert host.kept.guests == {UUID: part(UUID, SSH)} and len(host.conductor.calls) == 1


def test_guard_when_nobody_knows_the_guest_then_nothing_reaches_it():
    host = Host()
    host.wall.guard(order())
    assert host.kept.guests[UUID].allowed == () and host.kept.guests[UUID].interfaces == part().interfaces


def test_guard_when_the_conductor_says_that_others_filter_then_nothing_is_added_and_nobody_asked_again():
    host = Host()
    host.conductor.elsewhere = True
    host.wall.refresh()
    host.wall.guard(order())
    host.wall.guard(order(uuid=OTHER))
    host.wall.repair()
    host.wall.refresh()
    assert host.kept.states == [] and len(host.conductor.calls) == 2


def test_refresh_when_others_filter_then_what_an_earlier_life_left_goes_once_and_is_tried_until_it_does(caplog):
    host = Host()
    host.conductor.elsewhere = host.kept.broken = True
    host.wall.refresh()
    assert host.kept.withdrawn == 0 and "could not be removed" in caplog.text
    host.kept.broken = False
    for _ in range(3):
        host.wall.refresh()
        host.wall.guard(order())
    assert host.kept.withdrawn == 1
    host.conductor.elsewhere, host.conductor.guests = False, (part(UUID, SSH),)
    host.wall.refresh()
    host.conductor.elsewhere = True
    host.wall.refresh()
    assert host.kept.withdrawn == 2 and host.kept.states == []


def test_guard_when_the_conductor_never_answered_then_a_guest_is_closed_whatever_the_host_s_file_says():
    host = Host()
    host.wall.guard(order(part()))
    assert host.kept.guests == {UUID: part()}

    def away() -> None:
        raise errors.Unavailable("no conductor")
    host.conductor.on_ask = away
    with pytest.raises(errors.Unavailable):
        host.wall.guard(order(uuid=OTHER))
    assert set(host.kept.guests) == {UUID} and host.kept.withdrawn == 0


def test_guard_when_others_filter_and_an_order_brings_rules_then_the_conductor_is_asked_who_does():
    host = Host(part(UUID, SSH))
    host.conductor.elsewhere = True
    host.wall.refresh()
    host.conductor.elsewhere = False
    host.wall.guard(order(part(UUID, SSH)))
    assert host.kept.guests == {UUID: part(UUID, SSH)}
    host.conductor.elsewhere = True
    host.wall.refresh()
    assert host.kept.guests == {}


def test_guard_when_an_interface_is_new_then_it_is_asked_for_and_guarded_whatever_is_said():
    host = Host(part(UUID, SSH))
    host.wall.refresh()
    host.wall.guard(order(devices=("tap1", "tap2")))
    assert len(host.conductor.calls) == 2
    assert host.kept.guests[UUID] == part(UUID, SSH, devices=("tap1", "tap2"))


def test_guard_when_the_kernel_refuses_then_the_guest_does_not_start():
    host, started = Host(), []
    host.kept.broken = True
    do = SimpleNamespace(guests=SimpleNamespace(start=lambda order, work, gate: started.append(order),
                                                stop=lambda order, work, gate: started.append(order)))
    claims = ResourceClaims(SimpleNamespace(packed=None), "a", lambda node: node)
    execution = OrderExecution(do, claims, BuildHealth(), host.wall, None)
    whole = GuestOrder(server_uuid=UUID, instance_name="i", fence=order().fence, build=order(part()))

    class Work:
        def check(self) -> None: ...
    with pytest.raises(errors.Unavailable):
        execution.run(kinds.START, whole, Work(), None)
    assert started == []
    execution.run(kinds.STOP, whole, Work(), None)
    assert started == [whole]


def test_guard_when_bridged_packets_pass_by_then_the_host_refuses_guests_with_interfaces():
    host = Host(part(UUID, SSH))
    host.kept.hole = "no br_netfilter"
    host.wall.refresh()
    with pytest.raises(errors.HostRefused, match="modprobe br_netfilter"):
        host.wall.guard(order(part(UUID, SSH)))
    host.wall.guard(order(part(OTHER, devices=()), OTHER, devices=()))
    host.kept.hole = ""
    host.wall.guard(order(part(UUID, SSH)))
    host.conductor.elsewhere = True
    host.kept.hole = "no br_netfilter"
    host.wall.refresh()
    host.wall.guard(order())


def test_refresh_when_an_order_comes_while_it_reads_then_the_newer_word_stays():
    host = Host(part(UUID))
    wrong = part(UUID, SSH)
    host.wall.refresh()

    def late() -> None:
        host.conductor.on_ask = lambda: None
        host.conductor.guests = (wrong,)
        host.wall.drop(UUID)
        host.wall.guard(order(wrong))
    host.conductor.on_ask = late
    host.wall.refresh()  # its first answer is from before the order
    assert host.kept.guests == {UUID: wrong} and len(host.conductor.calls) == 3


def test_refresh_when_the_answer_has_a_guest_no_more_then_its_rules_stay_while_it_is_here():
    host = Host(part())
    host.wall.refresh()
    host.conductor.guests, host.here = (), {UUID}
    host.wall.refresh()
    assert set(host.kept.guests) == {UUID}
    host.here = set()
    host.wall.refresh()
    assert host.kept.guests == {}


def test_drop_when_the_row_is_still_there_then_the_rules_do_not_come_back_until_the_guest_does():
    host = Host(part())
    host.wall.refresh()
    host.wall.drop(UUID)
    host.wall.refresh()
    assert host.kept.guests == {}
    host.wall.guard(order(part()))
    host.wall.refresh()
    assert set(host.kept.guests) == {UUID}


def test_drop_when_the_kernel_refuses_then_the_removal_goes_on():
    host = Host(part())
    host.wall.refresh()
    host.kept.broken = True
    host.wall.drop(UUID)


def test_mend_when_nothing_was_heard_yet_then_nothing_is_touched():
    host = Host(part())
    host.wall.repair()
    assert host.kept.states == []
    host.wall.refresh()
    host.wall.repair()
    assert len(host.kept.states) == 2 and len(host.conductor.calls) == 1


def test_refresh_when_many_come_at_once_then_they_wait_for_one_asking():
    host, first, go = Host(part()), threading.Event(), threading.Event()

    def hold() -> None:
        first.set()
        assert go.wait(10)
    host.conductor.on_ask = hold
    threads = [threading.Thread(target=host.wall.refresh) for _ in range(1)]
    threads[0].start()
    assert first.wait(10)
    host.conductor.on_ask = lambda: None
    threads += [threading.Thread(target=host.wall.refresh) for _ in range(7)]
    for thread in threads[1:]:
        thread.start()
    while host.wall._asking._came < 8:
        pass
    go.set()
    for thread in threads:
        thread.join(10)
    assert len(host.conductor.calls) == 2


class Program:
    """Runs nothing: keeps what was fed, and refuses what it is told to."""

    def __init__(self) -> None:
        self.fed: list[tuple[str, str]] = []
        self.refuses = ""
        self.saved: dict[str, str] = {}

    def run(self, argv: Any, *, stdin: str | None = None, **_more: Any) -> Completed:
        if stdin is not None:
            if argv[0] == self.refuses:
                raise errors.host.CommandFailed(command=argv[0], where="here", reason="no")
            self.fed.append((argv[0], stdin))
        return Completed(0, self.saved.get(argv[0], ""))


def test_filters_when_guests_come_then_each_of_the_three_is_written_in_one_go(tmp_path):
    (tmp_path / "net").mkdir()
    switch = tmp_path / "net" / "bridge-nf-call-iptables"
    switch.write_text("0\n")
    (tmp_path / "net" / "bridge-nf-call-ip6tables").write_text("1\n")
    program = Program()
    filters = PacketFilters(program, tmp_path, RuleOptions(), switches=tmp_path / "net")
    assert filters.apply(HostFirewall(host="a", guests=(part(UUID, SSH),)))
    assert [name for name, _text in program.fed] == ["ebtables-restore", "iptables-restore", "ip6tables-restore"]
    assert all(text.count("COMMIT") == 1 for _name, text in program.fed)
    assert switch.read_text() == "1\n" and filters.lacks() == ""


def test_filters_when_bridges_cannot_be_made_to_ask_then_one_clear_line_says_so(tmp_path, caplog):
    filters = PacketFilters(Program(), tmp_path, RuleOptions(), switches=tmp_path / "none")
    for _ in range(2):
        filters.apply(HostFirewall(host="a"))
    [said] = [one for one in caplog.records if "SECURITY GROUPS ARE NOT ENFORCED" in one.message]
    assert said.levelname == "ERROR" and "modprobe br_netfilter" in said.message
    assert "bridge-nf-call-iptables: No such file" in filters.lacks()
    (tmp_path / "none").mkdir()
    for name in ("bridge-nf-call-iptables", "bridge-nf-call-ip6tables"):
        (tmp_path / "none" / name).write_text("0")
    filters.apply(HostFirewall(host="a"))
    assert filters.lacks() == ""


SAVED = """*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [7:7]
:nova-compute-INPUT - [0:0]
:nova-compute-inst-1 - [0:0]
:nova-compute-local - [0:0]
:nova-filter-top - [0:0]
:nova-computers - [0:0]
[1:1] -A INPUT -j nova-compute-INPUT
[1:1] -A INPUT -j nova-computers
[0:0] -A FORWARD -j nova-filter-top
[0:0] -A nova-filter-top -j nova-compute-local
[0:0] -A nova-compute-local -d 10.0.0.5/32 -j nova-compute-inst-1
[0:0] -A nova-compute-inst-1 -m conntrack --ctstate INVALID -j DROP
COMMIT
"""


def test_filters_when_they_withdraw_then_ours_go_whoever_made_them_and_no_other_s_do(tmp_path):
    program = Program()
    program.saved = {"iptables-save": SAVED, "ebtables-save": "*nat\n:PREROUTING ACCEPT\n:nova-compute-taps RETURN\n"
                                                              "-A PREROUTING -j nova-compute-taps\n"}
    filters = PacketFilters(program, tmp_path, RuleOptions(), switches=tmp_path / "none")
    assert filters.withdraw()
    assert program.fed == [
        ("ebtables-restore", "*nat\n:nova-compute-taps RETURN\n-D PREROUTING -j nova-compute-taps\n"
                             "-X nova-compute-taps\nCOMMIT\n"),
        ("iptables-restore", "*filter\n:nova-compute-INPUT - [0:0]\n:nova-compute-inst-1 - [0:0]\n"
                             ":nova-compute-local - [0:0]\n-D INPUT -j nova-compute-INPUT\n"
                             "-D nova-filter-top -j nova-compute-local\n-X nova-compute-INPUT\n"
                             "-X nova-compute-inst-1\n-X nova-compute-local\nCOMMIT\n")]
    program.saved = {}
    assert not filters.withdraw() and len(program.fed) == 2 and filters.lacks() == ""


def test_filters_when_there_are_no_such_programs_then_there_is_nothing_to_withdraw(tmp_path):
    class Missing:
        def run(self, argv: Any, **_more: Any) -> Completed:
            raise errors.host.CommandFailed(command=argv[0], where="here", reason="is not installed")
    assert not PacketFilters(Missing(), tmp_path, RuleOptions(), switches=tmp_path / "none").withdraw()
