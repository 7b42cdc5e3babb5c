"""Management of nova's own chains in the kernel's packet filters, written in one transaction and only if they differ.

The wanted state is data (:class:`Table`); the current state is read from ``iptables-save``; :func:`changes` is the pure
difference, fed to ``iptables-restore --noflush``. So rules of other programs are never rewritten, not even in a race
with a program that changes its own rules, and an unchanged chain keeps its counters. Rules are texts in the format of
iptables-save. The same applies to IPv6, and to frames on bridges (:mod:`nova.privileged.ebtables`), whose programs
differ slightly (:class:`Dialect`).
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from nova import errors
from nova.privileged import files
from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner

LOG = logging.getLogger(__name__)

FAMILY = "nova-"  # chains of any nova program: their relative order is not changed
NO_COUNT = "[0:0]"
XTABLES_WAIT_S = "10"  # how long iptables waits for its own lock


@dataclasses.dataclass(frozen=True)
class Table:
    """The wanted content of one table, as far as it belongs to nova.

    ``chains`` are nova's, with all their rules. ``shared`` chains are created if absent, and never emptied. ``first``
    and ``last`` are the jumps at the top and at the end of a chain that is not nova's. ``optional``: a kernel that
    lacks some target of the table is not an error. ``sparse``: an empty chain is not created, only emptied if it
    exists. ``own``: name prefix of chains that come and go; such chains that are not in ``chains`` are removed.
    """

    name: str
    chains: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    shared: tuple[str, ...] = ()
    first: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    last: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    optional: bool = False
    sparse: bool = False
    own: str = ""

    def silent(self) -> bool:
        """Return whether the table has no content and needs none of nova's chains."""
        return self.sparse and not any(self.chains.values())


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A program of the iptables family: its commands to read and write, and the suffix of a new chain's declaration."""

    save: tuple[str, ...]
    restore: tuple[str, ...]
    new_chain: str = f"- {NO_COUNT}"
    counted: bool = True


def _dialect(program: str) -> Dialect:
    return Dialect((f"{program}-save", "-c"),
                   (f"{program}-restore", "--noflush", "--counters", "--wait", XTABLES_WAIT_S))


IPV4, IPV6 = _dialect("iptables"), _dialect("ip6tables")
#: Debian's ebtables is that of the package iptables (nf_tables), whose restore is one transaction.
ETHERNET = Dialect(save=("ebtables-save",), restore=("ebtables-restore", "--noflush"), new_chain="RETURN",
                   counted=False)
DIALECTS = {"iptables": IPV4, "ip6tables": IPV6, "ebtables": ETHERNET}
LOCK = "iptables.lock"  # in state_path: shared by all nova programs, whose jumps are in the same chains


@dataclasses.dataclass(frozen=True)
class Foreign:
    """Rules of other programs that must stay above or below nova's jumps: regular expressions for the whole line."""

    top: str = ""
    bottom: str = ""

    def is_top(self, chain: str, rule: str) -> bool:
        """Return whether a rule (without its ``-A`` and chain) must stay above nova's jumps."""
        return bool(self.top) and re.search(self.top, f"-A {chain} {rule}") is not None

    def is_bottom(self, chain: str, rule: str) -> bool:
        """Return whether a rule (without its ``-A`` and chain) must stay below nova's jumps."""
        return bool(self.bottom) and re.search(self.bottom, f"-A {chain} {rule}") is not None


class SavedRule(NamedTuple):
    counters: str
    text: str


Saved = dict[str, list[SavedRule]]  # chain -> its rules in order

_JUMP = re.compile(r"-[jg] (\S+)")
_RULE = re.compile(r"(?:(\[\d+:\d+\]) )?-A (\S+)(?: (.*))?")


class PacketFilter:
    """Applies tables to the kernel of this network namespace, one process at a time."""

    def __init__(self, runner: CommandRunner, lock: Path, foreign: Foreign | None = None,
                 dialect: Dialect = IPV4) -> None:
        self._runner, self._lock, self._foreign, self._dialect = runner, lock, foreign or Foreign(), dialect

    def sent_along(self) -> Mapping[str, str]:
        """Return the filter's program; the helper uses its own lock and foreign rules."""
        return {"program": next(name for name, known in DIALECTS.items() if known == self._dialect)}

    @forwarded("iptables.apply")
    def apply(self, tables: Sequence[Table]) -> bool:
        """Apply ``tables`` to the kernel; return False if nothing changed. Raises host.CommandFailed, which names a
        rejected rule."""
        with files.locked(self._lock):
            try:
                saved = parse(self._runner.run(self._dialect.save).stdout)
            except errors.host.CommandFailed:
                if all(table.silent() for table in tables):  # the program is not installed, and not needed
                    return False
                raise
            wanted = [(table, changes(table, saved.get(table.name, {}), self._foreign, self._dialect))
                      for table in tables]
            wanted = [(table, lines) for table, lines in wanted if lines]
            if not wanted:
                return False
            try:
                self._restore(itertools.chain.from_iterable(lines for _table, lines in wanted))
            except errors.host.CommandFailed:
                if len(wanted) == 1 and not wanted[0][0].optional:
                    raise
                self._one_by_one(wanted)
        return True

    @forwarded("iptables.remove")
    def remove(self, table: str, own: str) -> bool:
        """Remove the table's chains with that name prefix, and the jumps to them; return False if there are none.
        Without the program, none can exist. Raises host.CommandFailed; all of them then still exist."""
        with files.locked(self._lock):
            try:
                saved = parse(self._runner.run(self._dialect.save).stdout)
            except errors.host.CommandFailed as error:
                LOG.debug("nothing to remove from the packet filter: %s", error)
                return False
            lines = removal(table, own, saved.get(table, {}), self._dialect)
            if lines:
                self._restore(lines)
        return bool(lines)

    def _one_by_one(self, wanted: Iterable[tuple[Table, list[str]]]) -> None:
        """Apply the tables separately, so that one table that the kernel rejects does not block the others; the first
        failure is raised at the end."""
        failure: errors.Unavailable | None = None
        for table, lines in wanted:
            try:
                self._restore(lines)
            except errors.host.CommandFailed as error:
                if table.optional:
                    LOG.warning("continuing without the rules of the %s table: %s", table.name, error)
                else:
                    failure = failure or error
        if failure:
            raise failure

    def _restore(self, lines: Iterable[str]) -> None:
        self._runner.run(self._dialect.restore, stdin="\n".join(lines) + "\n")


def parse(text: str) -> dict[str, Saved]:
    """Return tables by name from the output of ``iptables-save -c``."""
    tables: dict[str, Saved] = {}
    current: Saved = {}
    for line in text.splitlines():
        if line.startswith("*"):
            current = tables.setdefault(line[1:].strip(), {})
        elif line.startswith(":"):
            current.setdefault(line[1:].split()[0], [])
        elif found := _RULE.fullmatch(line.strip()):
            current.setdefault(found[2], []).append(SavedRule(found[1] or NO_COUNT, found[3] or ""))
    return tables


def changes(table: Table, saved: Saved, foreign: Foreign, dialect: Dialect = IPV4) -> list[str]:
    """Return lines for iptables-restore that change the current state to the wanted one; empty if they are equal."""
    declared: list[str] = []
    rules: list[str] = []
    if table.sparse:
        table = _thinned(table, saved)
    for chain in table.shared:
        if chain not in saved:
            declared.append(f":{chain} {dialect.new_chain}")
    for chain, wanted in table.chains.items():
        if chain not in saved or tuple(rule.text for rule in saved[chain]) != wanted:
            declared.append(f":{chain} {dialect.new_chain}")  # a repeated declaration empties a chain
            before = saved.get(chain, []) if dialect.counted else None
            rules.extend(_with_counters(chain, wanted, before))
    for chain in dict.fromkeys([*table.first, *table.last]):
        rules.extend(_jumps(chain, table, [rule.text for rule in saved.get(chain, [])], foreign))
    for chain in _outlived(table, saved):  # unused now: the lines above remove the jumps to it
        declared.append(f":{chain} {dialect.new_chain}")
        rules.append(f"-X {chain}")
    return [f"*{table.name}", *declared, *rules, "COMMIT"] if declared or rules else []


def removal(table: str, own: str, saved: Saved, dialect: Dialect = IPV4) -> list[str]:
    """Return lines for iptables-restore that remove all chains whose name begins with ``own``; empty if there are
    none."""
    gone = [chain for chain in saved if chain.startswith(own)]
    jumps = [f"-D {chain} {rule.text}" for chain, rules in saved.items() if chain not in gone
             for rule in rules if (found := _JUMP.search(rule.text)) and found[1] in gone]
    emptied = [f":{chain} {dialect.new_chain}" for chain in gone]
    return [f"*{table}", *emptied, *jumps, *(f"-X {chain}" for chain in gone), "COMMIT"] if gone else []


def _outlived(table: Table, saved: Saved) -> list[str]:
    return [chain for chain in saved if table.own and chain.startswith(table.own) and chain not in table.chains]


def _thinned(table: Table, saved: Saved) -> Table:
    """Return the table without empty chains that do not exist, and without the jumps to them."""
    gone = {chain for chain, rules in table.chains.items() if not rules and chain not in saved}

    def kept(jumps: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        left = {chain: tuple(target for target in targets if target not in gone) for chain, targets in jumps.items()}
        return {chain: targets for chain, targets in left.items() if targets}

    return dataclasses.replace(table, chains={chain: rules for chain, rules in table.chains.items()
                                              if chain not in gone},
                               first=kept(table.first), last=kept(table.last))


def _with_counters(chain: str, wanted: Sequence[str], before: Sequence[SavedRule] | None) -> list[str]:
    """Return lines that append the rules with their counters; ``before`` None: the program takes no counters."""
    if before is None:
        return [f"-A {chain} {text}" for text in wanted]
    counted = {rule.text: rule.counters for rule in reversed(before)}
    return [f"{counted.get(text, NO_COUNT)} -A {chain} {text}" for text in wanted]


def _jumps(chain: str, table: Table, present: list[str], foreign: Foreign) -> list[str]:
    first = [f"-j {target}" for target in table.first.get(chain, ())]
    last = [f"-j {target}" for target in table.last.get(chain, ())]
    first_stands = _stands(first, present, lambda rule: _others(rule) and not foreign.is_top(chain, rule))
    last_stands = _stands(last[::-1], present[::-1], lambda rule: _others(rule) and not foreign.is_bottom(chain, rule))
    lines: list[str] = []
    present = list(present)
    for stands, rules in ((first_stands, first), (last_stands, last)):
        for rule in [] if stands else [found for found in present if found in rules]:
            lines.append(f"-D {chain} {rule}")
            present.remove(rule)
    if not first_stands:
        above = len(list(itertools.takewhile(lambda rule: foreign.is_top(chain, rule), present)))
        lines.extend(f"-I {chain} {above + number} {rule}" for number, rule in enumerate(first, 1))
        present[above:above] = first
    if not last_stands:
        below = len(list(itertools.takewhile(lambda rule: foreign.is_bottom(chain, rule), reversed(present))))
        end = len(present) - below
        lines.extend(f"-I {chain} {end + number} {rule}" for number, rule in enumerate(last, 1))
    return lines


def _others(rule: str) -> bool:
    return not rule.startswith(f"-j {FAMILY}")


def _stands(jumps: Sequence[str], present: Sequence[str], blocks: Callable[[str], bool]) -> bool:
    """Return whether each jump exists once, in order, before the first rule that must not precede it."""
    if [rule for rule in present if rule in jumps] != list(jumps):
        return False
    allowed = list(itertools.takewhile(lambda rule: not blocks(rule), present))
    return all(jump in allowed for jump in jumps)
