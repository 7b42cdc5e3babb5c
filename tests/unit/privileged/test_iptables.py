"""Which lines iptables-restore is given, for what is wanted and what is there."""

from __future__ import annotations

import pytest

from nova import errors
from nova.privileged import iptables
from nova.privileged.iptables import Foreign, PacketFilter, Table, changes, parse
from tests.fakes.host_machinery import FakeRunner

WANTED = Table("filter",
               chains={"nova-network-FORWARD": ("-i br100 -j ACCEPT", "-o br100 -j ACCEPT"), "nova-network-local": ()},
               shared=("nova-filter-top",),
               first={"FORWARD": ("nova-filter-top", "nova-network-FORWARD"),
                      "nova-filter-top": ("nova-network-local",)},
               last={"OUTPUT": ("nova-bottom",)})

AS_WANTED = """*filter
:INPUT ACCEPT [1:2]
:FORWARD ACCEPT [0:0]
:OUTPUT ACCEPT [9:9]
:nova-filter-top - [0:0]
:nova-network-FORWARD - [0:0]
:nova-network-local - [0:0]
[0:0] -A FORWARD -j nova-filter-top
[0:0] -A FORWARD -j nova-network-FORWARD
[3:4] -A FORWARD -s 9.9.9.9/32 -j DROP
[0:0] -A OUTPUT -d 8.8.8.8/32 -j DROP
[0:0] -A OUTPUT -j nova-bottom
[0:0] -A nova-filter-top -j nova-network-local
[5:6] -A nova-network-FORWARD -i br100 -j ACCEPT
[7:8] -A nova-network-FORWARD -o br100 -j ACCEPT
COMMIT
"""


def lines(text: str, foreign: Foreign | None = None, table: Table = WANTED) -> list[str]:
    return changes(table, parse(text).get(table.name, {}), foreign or Foreign())


def test_changes_when_all_is_there_are_none():
    assert lines(AS_WANTED) == []


def test_changes_when_nothing_is_there_make_everything():
    assert lines("*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT") == [
        "*filter",
        ":nova-filter-top - [0:0]", ":nova-network-FORWARD - [0:0]", ":nova-network-local - [0:0]",
        "[0:0] -A nova-network-FORWARD -i br100 -j ACCEPT", "[0:0] -A nova-network-FORWARD -o br100 -j ACCEPT",
        "-I FORWARD 1 -j nova-filter-top", "-I FORWARD 2 -j nova-network-FORWARD",
        "-I nova-filter-top 1 -j nova-network-local", "-I OUTPUT 1 -j nova-bottom",
        "COMMIT"]


def test_changes_when_one_chain_differs_rewrite_it_alone_and_keep_counters_of_equal_rules():
    text = AS_WANTED.replace("[7:8] -A nova-network-FORWARD -o br100 -j ACCEPT",
                             "[1:1] -A nova-network-FORWARD -o gone -j ACCEPT")
    assert lines(text) == ["*filter", ":nova-network-FORWARD - [0:0]",
                           "[5:6] -A nova-network-FORWARD -i br100 -j ACCEPT",
                           "[0:0] -A nova-network-FORWARD -o br100 -j ACCEPT", "COMMIT"]


def test_changes_when_a_foreign_rule_stands_above_move_our_jumps_up():
    text = AS_WANTED.replace("[0:0] -A FORWARD -j nova-filter-top\n", "[1:1] -A FORWARD -j theirs\n"
                             "[0:0] -A FORWARD -j nova-filter-top\n")
    assert lines(text) == ["*filter", "-D FORWARD -j nova-filter-top", "-D FORWARD -j nova-network-FORWARD",
                           "-I FORWARD 1 -j nova-filter-top", "-I FORWARD 2 -j nova-network-FORWARD", "COMMIT"]


def test_changes_when_top_regex_matches_leave_that_rule_above():
    text = AS_WANTED.replace("[0:0] -A FORWARD -j nova-filter-top\n", "[1:1] -A FORWARD -j theirs\n"
                             "[0:0] -A FORWARD -j nova-filter-top\n")
    assert lines(text, Foreign(top="-j theirs")) == []
    moved = "*filter\n[1:1] -A FORWARD -j theirs\n[0:0] -A FORWARD -s 9.9.9.9/32 -j DROP\nCOMMIT"
    assert "-I FORWARD 2 -j nova-filter-top" in lines(moved, Foreign(top="-j theirs"))


def test_changes_when_a_foreign_rule_stands_below_move_the_last_jump_down():
    text = AS_WANTED.replace("[0:0] -A OUTPUT -j nova-bottom\n",
                             "[0:0] -A OUTPUT -j nova-bottom\n[0:0] -A OUTPUT -j theirs\n")
    assert lines(text) == ["*filter", "-D OUTPUT -j nova-bottom", "-I OUTPUT 3 -j nova-bottom", "COMMIT"]
    assert lines(text, Foreign(bottom="-j theirs")) == []


def test_changes_when_a_jump_is_doubled_leave_one():
    text = AS_WANTED.replace("[0:0] -A nova-filter-top -j nova-network-local\n",
                             "[0:0] -A nova-filter-top -j nova-network-local\n" * 2)
    assert lines(text) == ["*filter", "-D nova-filter-top -j nova-network-local",
                           "-D nova-filter-top -j nova-network-local",
                           "-I nova-filter-top 1 -j nova-network-local", "COMMIT"]


def test_changes_when_another_program_of_ours_jumps_first_leave_it():
    text = AS_WANTED.replace("[0:0] -A nova-filter-top -j nova-network-local\n",
                             "[0:0] -A nova-filter-top -j nova-compute-local\n"
                             "[0:0] -A nova-filter-top -j nova-network-local\n")
    assert lines(text) == []


def test_apply_when_nothing_differs_restores_nothing(tmp_path):
    runner = FakeRunner({"iptables-save": AS_WANTED})
    assert PacketFilter(runner, tmp_path / "lock").apply([WANTED]) is False
    assert not runner.named("iptables-restore")


def test_apply_when_tables_differ_restores_them_in_one_go(tmp_path):
    runner = FakeRunner()
    nat = Table("nat", chains={"nova-network-snat": ("-s 10.0.0.0/24 -j SNAT --to-source 1.2.3.4",)})
    assert PacketFilter(runner, tmp_path / "lock").apply([WANTED, nat]) is True
    restored, = runner.named("iptables-restore")
    assert "--noflush" in restored.argv and "--counters" in restored.argv
    assert restored.stdin is not None and restored.stdin.count("COMMIT\n") == 2


class Refuses(FakeRunner):
    """A kernel that has no CHECKSUM target."""

    def run(self, argv, *, stdin=None, ok=(0,), environment=None):
        super().run(argv, stdin=stdin, ok=ok, environment=environment)
        if "CHECKSUM" in (stdin or ""):
            raise errors.host.CommandFailed(command="iptables-restore", where="here", reason="CHECKSUM")
        return super().run(["true"])


@pytest.mark.parametrize("optional", [True, False])
def test_apply_when_the_kernel_refuses_one_table_writes_the_others(tmp_path, optional):
    runner = Refuses()
    mangle = Table("mangle", chains={"nova-network-POSTROUTING": ("-j CHECKSUM --checksum-fill",)}, optional=optional)
    packet_filter = PacketFilter(runner, tmp_path / "lock")
    if optional:
        packet_filter.apply([mangle, WANTED])
    else:
        with pytest.raises(errors.host.CommandFailed):
            packet_filter.apply([mangle, WANTED])
    assert runner.named("iptables-restore")[-1].stdin.startswith("*filter")


def test_parse_reads_tables_chains_and_counters():
    saved = parse(AS_WANTED)["filter"]
    assert saved["nova-network-FORWARD"][0] == iptables.SavedRule("[5:6]", "-i br100 -j ACCEPT")
    assert saved["nova-network-local"] == []
