"""The table: what each machine is like, how far it has got, and what happens on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tests.fresh import containers, debs, layers, nova_all, readme, stories, trees, upgrades
from tests.fresh.machine import Plan

#: For the table at the end of a run: name of a case, its seconds, how it ended.
ROWS: list[tuple[str, float, str]] = []


@dataclass(frozen=True, kw_only=True)
class Case:
    """``quick``: one of those that CI draws from, and tries on a borrowed tree: without systemd and power cuts.

    ``always``: CI has it in each run. ``in_turn``: CI has one of these in each run. ``bare``: its tree is made from
    nothing in CI, too.
    """

    story: stories.Story
    plan: Plan = Plan()
    tree: Callable[[], layers.Made] = trees.installed
    quick: bool = False
    always: bool = False
    in_turn: bool = False
    bare: bool = False


def on_13(story: stories.Story, in_turn: bool = False, **plan: Any) -> Case:
    """A case of Debian 13, with nothing in it."""
    return Case(story=story, tree=partial(trees.nothing, layers.TRIXIE), plan=Plan(**plan), in_turn=in_turn, bare=True)


def one_process(story: stories.Story, tree: Callable[[], layers.Made] = trees.bare, always: bool = False,
                in_turn: bool = False, **plan: Any) -> Case:
    """A case of bin/nova-all, as an ordinary user."""
    return Case(story=story, tree=tree, plan=replace(trees.ORDINARY, **plan), quick=tree is trees.with_nova_all,
                always=always, in_turn=in_turn, bare=True)


BARE_13 = partial(trees.bare, layers.TRIXIE)
LOST = "127.0.0.1 localhost\n"  # a machine's own name is not in it
NOBODY = "nameserver 192.0.2.9"  # never answers
PLAIN_C = {"LANG": "C", "LC_ALL": "C"}
#: The first three moments are within the installing.
INSTALLING_S, STARTING_S = 100, 25

CASES = {
    "systemd": Case(story=stories.by_units, plan=Plan(systemd=True)),
    "plain": Case(story=stories.without_units),
    "no-kvm": Case(story=stories.whole, plan=Plan(systemd=True)),
    "kvm-hangs": Case(story=stories.whole, plan=Plan(kvm="hangs")),
    "kvm-fails": Case(story=stories.whole, plan=Plan(kvm="fails")),
    "kvm-works": Case(story=stories.whole, plan=Plan(kvm="works")),
    "no-ipv6": Case(story=stories.small, plan=Plan(ipv6=False, hosts=f"{LOST}127.0.1.1 fresh\n"), quick=True),
    "no-name": Case(story=stories.small, plan=Plan(hosts=LOST, resolver=NOBODY)),
    "no-name-systemd": Case(story=stories.small, plan=Plan(systemd=True, hosts=LOST, resolver=NOBODY)),
    "umask-077": Case(story=stories.small, plan=Plan(umask="077", env=PLAIN_C), tree=trees.with_packages),
    "ports": Case(story=stories.ports),
    "port-on-ipv6": Case(story=stories.epmd_on_ipv6, quick=True),
    "port-after-power-cut": Case(story=stories.port_after_power_cut),
    "disk-3gb": Case(story=stories.up_or_refused(stories.WHOLE, 1800, "space"), tree=trees.nothing,
                     plan=Plan(disk=3000, caches=False)),
    "disk-full": Case(story=stories.up_or_refused(stories.SMALL, stories.UP_S, "space"), plan=Plan(disk=120)),
    "disk-fills": Case(story=stories.disk_fills, plan=Plan(disk=1200)),
    "memory-2gb": Case(story=stories.whole, plan=Plan(systemd=True, memory=2000)),
    "mirror-away": Case(story=stories.mirror_away, tree=trees.nothing, plan=Plan(caches=False)),
    "mirror-back-soon": Case(story=stories.mirror_back_soon, tree=trees.nothing, plan=Plan(caches=False)),
    "mirror-hangs": Case(story=stories.mirror_hangs, tree=trees.nothing, plan=Plan(caches=False)),
    "index-away": Case(story=stories.mirror_away, tree=trees.with_packages, plan=Plan(caches=False)),
    **{f"killed-{n}": Case(story=stories.killed(n, 0, INSTALLING_S), tree=trees.nothing) for n in range(3)},
    **{f"killed-{n}": Case(story=stories.killed(n, 0, STARTING_S), plan=Plan(systemd=n % 2 == 0),
                          quick=n % 2 == 1 and n % 3 < 2)
       for n in range(3, stories.MOMENTS)},
    "nothing-systemd": Case(story=stories.whole, tree=trees.nothing, plan=Plan(systemd=True)),
    "nothing": Case(story=stories.small, tree=trees.nothing),
    "upgrade": Case(story=upgrades.upgraded, plan=Plan(systemd=True), tree=trees.beside_the_release_before),
    "debs": Case(story=debs.packages, tree=trees.with_release_before, plan=Plan(systemd=True, pip_cache=True)),
    "containers": Case(story=containers.page, tree=trees.with_podman, plan=containers.PLAN),
    "nova-all": one_process(nova_all.first_start, always=True),
    "nova-all-without-network": one_process(nova_all.without_network),
    "nova-all-two-users": one_process(nova_all.two_users),
    "nova-all-at-once": one_process(nova_all.two_at_once),
    "nova-all-interrupted": one_process(nova_all.interrupted),
    "nova-all-home": one_process(nova_all.unwritable_home),
    "nova-all-no-venv": one_process(nova_all.without_venv),
    "nova-all-umask": one_process(nova_all.comes_up, umask="077", env=PLAIN_C),
    "nova-all-pip": one_process(nova_all.from_pip),
    "nova-all-wheel": one_process(nova_all.from_wheel),
    "nova-all-pip-upgrade": one_process(nova_all.upgraded_by_pip, trees.bare_with_release_before),
    "nova-all-npm": one_process(nova_all.with_npm),
    "nova-all-port": one_process(nova_all.port_in_use, trees.with_nova_all),
    "nova-all-no-ipv6": one_process(nova_all.comes_up, trees.with_nova_all, ipv6=False, hosts=LOST),
    "nova-all-locale": one_process(nova_all.comes_up, trees.with_nova_all, env=PLAIN_C),
    "nova-all-small-memory": one_process(nova_all.small_memory, trees.with_nova_all),
    "nova-all-no-memory": one_process(nova_all.no_memory, trees.with_nova_all),
    "nova-all-state": one_process(nova_all.killed, trees.with_nova_all),
    "nova-all-libvirt": one_process(nova_all.real_guests),
    "readme": Case(story=readme.whole),
    "readme-ten-hosts": Case(story=readme.ten_hosts),
    "readme-sandbox": Case(story=readme.with_options(readme.SANDBOX)),
    "readme-dashboard": Case(story=readme.with_options("bin/stack up --dashboard")),
    "readme-nfs": Case(story=readme.with_options("bin/stack up --sandbox --volumes nfs")),
    "readme-ceph": Case(story=readme.with_options("bin/stack up --sandbox --volumes ceph")),
    "offline": Case(story=stories.without_network, tree=trees.nothing),
    "debian13": on_13(stories.whole, in_turn=True, systemd=True),
    "debian13-offline": on_13(stories.without_network),
    "debian13-sandbox": on_13(readme.with_options(readme.SANDBOX)),
    "debian13-power-cut": on_13(stories.by_units, in_turn=True, systemd=True),
    "debian13-debs": Case(story=debs.packages, tree=partial(trees.with_release_before, layers.TRIXIE),
                          plan=Plan(systemd=True, pip_cache=True)),
    "debian13-check-unit": on_13(stories.tests("check unit")),
    "debian13-functional": on_13(stories.tests("functional")),
    "debian13-machine": on_13(stories.tests("machine")),
    "debian13-nova-all": one_process(nova_all.first_start, BARE_13, in_turn=True),
    "debian13-nova-all-libvirt": one_process(nova_all.real_guests, BARE_13),
    "check-unit": Case(story=stories.tests("check unit"), tree=trees.nothing),
}
