"""Which lines ebtables-restore is given."""

from __future__ import annotations

import pytest

from nova import errors
from nova.privileged.ebtables import ETHERNET, frame_filter
from nova.privileged.iptables import Foreign, Table, changes, parse
from tests.fakes.host_machinery import FakeRunner

RULE = "-p IPv4 -i eth0 --ip-proto udp --ip-dport 67:68 -j DROP"
SAVED = f"""*filter
:INPUT ACCEPT
:FORWARD ACCEPT
:OUTPUT ACCEPT
:nova-network-FORWARD RETURN
:nova-compute-FORWARD RETURN
-A FORWARD -j nova-compute-FORWARD
-A FORWARD -j nova-network-FORWARD
-A nova-compute-FORWARD -p ARP -j DROP
-A nova-network-FORWARD {RULE}
# Completed
"""


def table(*rules: str) -> Table:
    return Table("filter", chains={"nova-network-FORWARD": rules}, first={"FORWARD": ("nova-network-FORWARD",)},
                 sparse=True)


def lines(saved: str, *rules: str) -> list[str]:
    return changes(table(*rules), parse(saved).get("filter", {}), Foreign(), ETHERNET)


def test_changes_when_all_is_there_are_none_and_another_programs_jump_is_left_first():
    assert lines(SAVED, RULE) == []


def test_changes_when_nothing_is_there_make_a_chain_that_is_left_at_its_end():
    assert lines("", RULE) == ["*filter", ":nova-network-FORWARD RETURN", f"-A nova-network-FORWARD {RULE}",
                               "-I FORWARD 1 -j nova-network-FORWARD", "COMMIT"]


def test_changes_when_nothing_is_wanted_and_nothing_is_there_make_no_chain():
    assert lines("") == []


def test_changes_when_nothing_is_wanted_any_more_empty_the_chain():
    assert lines(SAVED) == ["*filter", ":nova-network-FORWARD RETURN", "COMMIT"]


def test_apply_without_the_program_fails_only_when_there_is_something_to_say(tmp_path):
    missing = errors.host.CommandFailed(command="ebtables-save", where="here", reason="not installed")
    frames = frame_filter(FakeRunner({"ebtables-save": missing}), tmp_path)
    assert frames.apply([table()]) is False
    with pytest.raises(errors.host.CommandFailed):
        frames.apply([table(RULE)])


def test_apply_writes_in_one_go_without_touching_others(tmp_path):
    runner = FakeRunner({"ebtables-save": SAVED})
    assert frame_filter(runner, tmp_path).apply([table(RULE, "-p ARP -j DROP")]) is True
    restored, = runner.named("ebtables-restore")
    assert restored.argv == ("ebtables-restore", "--noflush")
    assert restored.stdin == (f"*filter\n:nova-network-FORWARD RETURN\n-A nova-network-FORWARD {RULE}\n"
                              "-A nova-network-FORWARD -p ARP -j DROP\nCOMMIT\n")
