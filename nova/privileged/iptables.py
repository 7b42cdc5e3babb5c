"""Our own chains in the kernel's packet filters, written in one go and only where they differ.

What we want is data (:class:`Table`); what is there is read from ``iptables-save``; :func:`changes` is the pure
difference, fed to ``iptables-restore --noflush``. So nothing of anybody else's is rewritten, not even by a race
with another program that changes its own rules meanwhile, and a chain that is right keeps its counters. Rules are
texts in the form in which iptables-save prints them. The same for IPv6, and for frames on bridges
(:mod:`nova.privileged.ebtables`), whose programs differ in little (:class:`Dialect`).
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

FAMILY = "nova-"  # chains of any of our programs: their order among themselves is left alone
NO_COUNT = "[0:0]"
XTABLES_WAIT_S = "10"  # how long iptables waits for its own lock


@dataclasses.dataclass(frozen=True)
class Table:
    """What one table shall hold of ours.

    ``chains`` are ours, whole. ``shared`` chains are made when absent and never emptied. ``first`` and ``last`` say
    which jumps stand at the top and at the end of a chain that is not ours. ``optional``: a kernel without some
    target of it is no reason to fail. ``sparse``: a chain that is to be empty is not made, only emptied where it is.
    ``own``: how names of chains begin that come and go; those that are not among ``chains`` are removed.
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
        """Whether it says nothing, should nothing of ours be there."""
        return self.sparse and not any(self.chains.values())


@dataclasses.dataclass(frozen=True)
class Dialect:
    """A program of the iptables family: how it is read and written, and what follows a new chain's name."""

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
LOCK = "iptables.lock"  # in state_path: one for all of our programs, whose jumps stand in the same chains


@dataclasses.dataclass(frozen=True)
class Foreign:
    """Other programs' rules that must stay above or below our jumps: regular expressions on the whole line."""

    top: str = ""
    bottom: str = ""

    def is_top(self, chain: str, rule: str) -> bool:
        """Whether a rule (without its ``-A`` and chain) must stay above our jumps."""
        return bool(self.top) and re.search(self.top, f"-A {chain} {rule}") is not None

    def is_bottom(self, chain: str, rule: str) -> bool:
        """Whether a rule (without its ``-A`` and chain) must stay below our jumps."""
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
        """Which filter it is; lock and others' rules the helper knows by itself."""
        return {"program": next(name for name, known in DIALECTS.items() if known == self._dialect)}

    @forwarded("iptables.apply")
    def apply(self, tables: Sequence[Table]) -> bool:
        """Make the kernel hold ``tables``; False when it does already. host.CommandFailed names the rule it refused."""
        with files.locked(self._lock):
            try:
                saved = parse(self._runner.run(self._dialect.save).stdout)
            except errors.host.CommandFailed:
                if all(table.silent() for table in tables):  # there is no such program, and none is needed
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
        """Take away the table's chains whose names begin so, and the jumps to them; False when there are none (or no
        such program, which nobody can have made them with). host.CommandFailed: they are all there still."""
        with files.locked(self._lock):
            try:
                saved = parse(self._runner.run(self._dialect.save).stdout)
            except errors.host.CommandFailed as error:
                LOG.debug("Nothing to be removed from the packet filter: %s", error)
                return False
            lines = removal(table, own, saved.get(table, {}), self._dialect)
            if lines:
                self._restore(lines)
        return bool(lines)

    def _one_by_one(self, wanted: Iterable[tuple[Table, list[str]]]) -> None:
        """So that one table the kernel can't have doesn't keep the others away; the first failure is raised last."""
        failure: errors.Unavailable | None = None
        for table, lines in wanted:
            try:
                self._restore(lines)
            except errors.host.CommandFailed as error:
                if table.optional:
                    LOG.warning("Going on without the %s table's rules: %s", table.name, error)
                else:
                    failure = failure or error
        if failure:
            raise failure

    def _restore(self, lines: Iterable[str]) -> None:
        self._runner.run(self._dialect.restore, stdin="\n".join(lines) + "\n")


def parse(text: str) -> dict[str, Saved]:
    """Tables, by name, as ``iptables-save -c`` prints them."""
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
    """Lines for iptables-restore that turn what is there into what is wanted; none when it is."""
    declared: list[str] = []
    rules: list[str] = []
    if table.sparse:
        table = _thinned(table, saved)
    for chain in table.shared:
        if chain not in saved:
            declared.append(f":{chain} {dialect.new_chain}")
    for chain, wanted in table.chains.items():
        if chain not in saved or tuple(rule.text for rule in saved[chain]) != wanted:
            declared.append(f":{chain} {dialect.new_chain}")  # declared again, a chain of ours is emptied
            before = saved.get(chain, []) if dialect.counted else None
            rules.extend(_with_counters(chain, wanted, before))
    for chain in dict.fromkeys([*table.first, *table.last]):
        rules.extend(_jumps(chain, table, [rule.text for rule in saved.get(chain, [])], foreign))
    for chain in _outlived(table, saved):  # nothing jumps there any more: what did is written above
        declared.append(f":{chain} {dialect.new_chain}")
        rules.append(f"-X {chain}")
    return [f"*{table.name}", *declared, *rules, "COMMIT"] if declared or rules else []


def removal(table: str, own: str, saved: Saved, dialect: Dialect = IPV4) -> list[str]:
    """Lines for iptables-restore that leave no chain whose name begins with ``own``; none when there is none."""
    gone = [chain for chain in saved if chain.startswith(own)]
    jumps = [f"-D {chain} {rule.text}" for chain, rules in saved.items() if chain not in gone
             for rule in rules if (found := _JUMP.search(rule.text)) and found[1] in gone]
    emptied = [f":{chain} {dialect.new_chain}" for chain in gone]
    return [f"*{table}", *emptied, *jumps, *(f"-X {chain}" for chain in gone), "COMMIT"] if gone else []


def _outlived(table: Table, saved: Saved) -> list[str]:
    return [chain for chain in saved if table.own and chain.startswith(table.own) and chain not in table.chains]


def _thinned(table: Table, saved: Saved) -> Table:
    """Without empty chains of ours that nobody has made, and the jumps to them."""
    gone = {chain for chain, rules in table.chains.items() if not rules and chain not in saved}

    def kept(jumps: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        left = {chain: tuple(target for target in targets if target not in gone) for chain, targets in jumps.items()}
        return {chain: targets for chain, targets in left.items() if targets}

    return dataclasses.replace(table, chains={chain: rules for chain, rules in table.chains.items()
                                              if chain not in gone},
                               first=kept(table.first), last=kept(table.last))


def _with_counters(chain: str, wanted: Sequence[str], before: Sequence[SavedRule] | None) -> list[str]:
    """``before`` None: a program that takes no counters."""
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
    """Whether each jump is there once, in order, before the first rule that must not be before it."""
    if [rule for rule in present if rule in jumps] != list(jumps):
        return False
    allowed = list(itertools.takewhile(lambda rule: not blocks(rule), present))
    return all(jump in allowed for jump in jumps)
