"""Runs tempest's tests of a list against a sandbox on the fake driver: ``python -m tests.tempest [LIST]``.

Without a list: compute.txt beside this file, of which every test must pass; a skipped one has not. With ``--guests``:
guests.txt, against two hosts with libvirt, whose guests tempest logs in to. With ``--neutron``: neutron.txt, against
a sandbox whose networks are Neutron's. With ``--cells``: the same list, against three cells of two hosts each. With
``--volumes``: volumes.txt, against one with Cinder. With ``--guests`` and ``--volumes``: guest_volumes.txt, guests
whose volumes tempest writes and reads. With ``--nova-all``: compute.txt (or, with ``--neutron``, neutron.txt) against
a whole cloud in one process, for which nobody needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nova.devel.fake.knobs import FILE as KNOBS
from tests.machine.live import Live
from tests.machine.stack import NEWEST, TOP, Sandbox, demo
from tests.tempest import conf
from tests.tempest.one_process import OneProcess, one_process
from tests.tempest.outcome import TURNS, Outcome, Result, judge, of_turn, patterns, wanted

COMPUTES = 2
NETWORK, OUTSIDE, REGION = "private", "public", "RegionOne"  # as bin/stack names them
#: The state directory of a sandbox that is up already: it is used and left as it is. For those who write tests.
GIVEN = "NOVA_TEMPEST_STACK"
FAKE = ("--sandbox", "--driver", "fake", "--computes", str(COMPUTES), "--no-demo")
REAL = ("--sandbox", "--hosts", str(COMPUTES))
CELLS = ("--sandbox", "--driver", "fake", "--cells", "3", "--computes", str(3 * COMPUTES), "--no-demo")
VOLUMES = ("--volumes", "nfs")
LOGS = Path(tempfile.gettempdir()) / "nova-tempest-logs"  # of the last sandbox's daemons
UP_S, RUN_S = 900, 3600
WORKERS = 2
QUICK_WORKERS = 4  # tests wait more than they work, where no daemons of a sandbox take the machine
SMALL = {"name": "tempest.small", "ram": 128, "vcpus": 1, "disk": 1}
LARGE = {"name": "tempest.large", "ram": 256, "vcpus": 2, "disk": 2}
IMAGES = ("tempest-1", "tempest-2")


class Kind(NamedTuple):
    """A list of tests, and the sandbox that they run against: words for `bin/stack up`."""

    name: str
    sandbox: tuple[str, ...]

    @property
    def list(self) -> Path:
        return Path(__file__).resolve().with_name(f"{self.name}.txt")


#: The options that choose it -> the kind.
KINDS = {
    (): Kind("compute", FAKE),
    ("guests",): Kind("guests", REAL),
    ("neutron",): Kind("neutron", (*FAKE, "--neutron")),
    ("cells",): Kind("neutron", CELLS),
    ("volumes",): Kind("volumes", (*FAKE, *VOLUMES)),
    ("guests", "volumes"): Kind("guest_volumes", (*REAL, *VOLUMES)),
}
OPTIONS = {"guests": "against guests that run", "neutron": "on Neutron's networks", "volumes": "with Cinder's volumes",
           "cells": "over three cells"}
AGENT = "hw_qemu_guest_agent=yes"  # which changes passwords
#: A snapshot of a guest that is not there takes no time, but some tests must catch one while it is being saved.
SLOW = {"rules": [{"call": "take_snapshot", "do": "delay", "seconds": 1.5}]}


@contextmanager
def sandbox(shape: tuple[str, ...]) -> Iterator[Sandbox]:
    if given := os.environ.get(GIVEN):
        yield Sandbox(Path(given))
        return
    top = Path(tempfile.mkdtemp(prefix="nt", dir="/var/tmp"))  # short: sockets lie in it
    top.chmod(0o755)  # daemons of several users have to get in
    made = Sandbox(top / "s")
    try:
        made.tool("up", *shape, seconds=UP_S)
        yield made
    finally:
        if (made.state / "logs").is_dir():
            shutil.rmtree(LOGS, ignore_errors=True)
            shutil.copytree(made.state / "logs", LOGS)
        made.tool("clean", code=None)
        shutil.rmtree(top, ignore_errors=True)


def fakes(cloud: Sandbox) -> list[Path]:
    """Folders of the hosts that are none."""
    found = cloud.layout.computes if cloud.layout.choices.driver == "fake" else ()
    return [cloud.layout.nova_state(compute.name) for compute in found]


@contextmanager
def slow_snapshots(folders: Iterable[Path]) -> Iterator[None]:
    """Fake guests that take as long to save as small real ones do; other knobs of a given sandbox stay as they are."""
    files = [folder / KNOBS for folder in folders]
    made = [file for file in files if not file.exists()]
    try:
        for file in made:
            fresh = file.with_suffix(".new")
            fresh.write_text(json.dumps(SLOW))
            fresh.chmod(0o644)  # the daemons are another user's
            fresh.rename(file)
        yield
    finally:
        for file in made:
            file.unlink(missing_ok=True)


def create_sample_data(cloud: Sandbox, folder: Path) -> conf.Facts:
    """Two images and two flavors, made where they are missing; and guests that tempest can log in to."""
    admin = Live(cloud.layout.url("compute", "/v2.1"), cloud.token("admin"), cloud.dial, NEWEST)
    if cloud.layout.choices.driver != "fake":
        open_groups(admin)
    if cloud.layout.choices.volumes:
        make_multiattach(cloud)
    return conf.Facts(
        keystone=cloud.layout.url("keystone", "/v3"), region=REGION, password=cloud.secrets.password("admin"),
        images=_images(cloud, folder), flavors=(cloud.flavor(admin, **SMALL), cloud.flavor(admin, **LARGE)),
        network=NETWORK, computes=len(cloud.layout.computes), folder=str(folder), driver=cloud.layout.choices.driver,
        volumes=cloud.layout.choices.volumes, **neutron_facts(cloud))


def open_groups(admin: Live) -> None:
    """Ping and ssh come in to the servers of every new project: tempest asks Neutron alone for security groups."""
    path, version = "/os-security-group-default-rules", 35
    known = {rule["from_port"] for rule in admin.at(version, path).json()["security_group_default_rules"]}
    for protocol, first, last in demo.OPEN:
        rule = {"ip_protocol": protocol, "from_port": first, "to_port": last, "cidr": demo.ALL}
        if first not in known:
            answer = admin.ask("POST", path, version, {"security_group_default_rule": rule})
            assert answer.status_code == 200, answer.text


def make_multiattach(cloud: Sandbox) -> None:
    """A type of volumes that several servers may have at a time."""
    name = str(conf.VOLUMES["volume"]["volume_type_multiattach"])
    if not any(one["Name"] == name for one in cloud.openstack("volume", "type", "list", user="admin")):
        cloud.openstack("volume", "type", "create", name, "--property", "multiattach=<is> True", user="admin")


def neutron_facts(cloud: Sandbox) -> dict[str, Any]:
    """Nothing of a sandbox without Neutron."""
    if not cloud.layout.choices.neutron:
        return {}
    extensions = cloud.openstack("extension", "list", "--network", user="admin")
    return {"outside": cloud.openstack("network", "show", OUTSIDE, user="admin")["id"],
            "extensions": tuple(one["Alias"] for one in extensions)}


def pretend_network(cloud: Sandbox) -> None:
    """An entry for Neutron in Keystone's catalogue, where nothing is found; see ``conf.PRETENDED``."""
    if not any(one["Type"] == "network" for one in cloud.openstack("service", "list", user="admin")):
        cloud.openstack("service", "create", "--name", "none", "network", user="admin")
        cloud.openstack("endpoint", "create", "--region", REGION, "network", "public",
                        cloud.layout.url("compute", "/v2.1/no-network"), user="admin")


def _images(cloud: Sandbox, folder: Path) -> tuple[str, str]:
    """Where guests run: the small one that a sandbox has. Guests of the fake driver boot from a few bytes."""
    there = {one["Name"]: one["ID"] for one in cloud.openstack("image", "list", user="admin")}
    if cloud.layout.choices.driver == "fake":
        content, words = folder / "image", ["--disk-format", "raw"]
        content.write_bytes(b"a disk" * 100)
    else:
        content, words = demo.image_file(cloud.layout), ["--disk-format", "qcow2", "--property", AGENT]
    first, second = (there.get(name) or cloud.openstack(
        "image", "create", "--public", *words, "--container-format", "bare", "--file", str(content), name,
        user="admin")["id"] for name in IMAGES)
    return first, second


class InSandbox:
    """A sandbox as a run's target."""

    def __init__(self, cloud: Sandbox) -> None:
        self.cloud, self.programs = cloud, cloud.layout.venvs / "tempest" / "bin"

    def facts(self, folder: Path) -> conf.Facts:
        return create_sample_data(self.cloud, folder)

    def pretend_network(self) -> None:
        pretend_network(self.cloud)

    def run(self, command: list[str], folder: Path, seconds: float) -> subprocess.CompletedProcess[str]:
        tool = [str(TOP / "bin" / "stack"), "--state", str(self.cloud.state), "exec", "--", *command]
        return subprocess.run(tool, cwd=folder, text=True, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=seconds, check=False)


class Run:
    """One run of tempest in a folder of its own."""

    def __init__(self, target: InSandbox | OneProcess, folder: Path) -> None:
        self.target, self.folder, self.programs = target, folder, target.programs

    def tests(self, names: list[str], workers: int) -> Outcome:
        """Raises AssertionError when tempest cannot be started at all."""
        facts = self.target.facts(self.folder)
        if not facts.outside:
            self.target.pretend_network()
        results: list[Result] = []
        for by_name in (False, True):
            chosen = [name for name in names if (name.startswith(conf.BY_NAME) and not facts.outside) == by_name]
            if chosen:
                results += self._run(conf.settings(facts, by_name), chosen, workers)
        return judge(results, names)

    def _run(self, settings: conf.Settings, names: list[str], workers: int) -> list[Result]:
        (self.folder / "tempest.conf").write_text(conf.text(settings))
        (self.folder / "tests").write_text(patterns(names))
        done = self._tempest("run", "--config-file", "tempest.conf", "--include-list", "tests",
                             "--concurrency", str(workers))
        results = self._results()
        assert results, f"tempest run: {done.returncode}\n{(done.stdout + done.stderr)[-4000:]}"
        return results

    def _tempest(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Tempest finds its tests with the `python` of the path and keeps its results in the current folder."""
        command = ["env", "-u", "PYTHONPATH", f"PATH={self.programs}:/usr/bin:/bin", f"HOME={self.folder}",
                   str(self.programs / "tempest"), *words]
        return self.target.run(command, self.folder, RUN_S)

    def _results(self) -> list[Result]:
        """Of the last run; empty when there was none."""
        env = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.folder)}
        stream = subprocess.run([self.programs / "stestr", "last", "--subunit"], cwd=self.folder, env=env,
                                capture_output=True, check=False).stdout
        read = [str(self.programs / "python"), str(Path(__file__).with_name("results.py"))]
        return json.loads(subprocess.run(read, env=env, input=stream, capture_output=True, check=True).stdout)


@contextmanager
def target(kind: Kind, folder: Path, nova_all: bool) -> Iterator[InSandbox | OneProcess]:
    """The cloud that is up for the block."""
    if nova_all:
        with one_process(folder, kind.name == "neutron") as whole, slow_snapshots(whole.hosts):
            yield whole
        return
    with sandbox(kind.sandbox) as cloud, slow_snapshots(fakes(cloud)):
        yield InSandbox(cloud)


def tell(outcome: Outcome, seconds: float) -> None:
    for word, rows in (("FAILED", outcome.failed), ("SKIPPED", outcome.skipped)):
        for name, reason in sorted(rows.items()):
            print(f"{word} {name}\n       {reason}")
    passed, failed, skipped = outcome.counts
    if failed and LOGS.is_dir():
        print(f"the daemons' logs are in {LOGS}")
    print(f"tempest: {passed} passed, {failed} failed, {skipped} skipped in {seconds:.0f} s", flush=True)


def tell_counts(file: Path | None, counts: tuple[int, int, int]) -> None:
    if file:
        file.write_text(" ".join(map(str, counts)))


def unable() -> str | None:
    """As for the machine tests: the sandbox is namespaces and Debian's packages."""
    if os.geteuid() != 0:
        return "needs root"
    return None if shutil.which("apt-get") else "bin/stack installs Debian's packages, and there is no apt-get"


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="bin/test tempest", description=__doc__.splitlines()[0])
    parser.add_argument("list", nargs="?", type=Path, metavar="LIST", help="names of tests, one a line")
    for name, text in OPTIONS.items():
        parser.add_argument(f"--{name}", action="store_true", help=f"{text}; without a list: its own")
    parser.add_argument("--nova-all", action="store_true", help="against a whole cloud in one process")
    parser.add_argument("--as-upstream", action="store_true", help="against a cloud in upstream security mode")
    parser.add_argument("--workers", type=int, help=f"tests side by side ({WORKERS}; {QUICK_WORKERS} with --nova-all)")
    parser.add_argument("--turn", type=int, metavar="N",
                        help=f"some of the list's classes alone; {TURNS} numbers in a row have all")
    parser.add_argument("--passed", type=Path, metavar="FILE", help="write the names of those that passed, for a list")
    parser.add_argument("--counts", type=Path, help=argparse.SUPPRESS)  # a file for "PASSED FAILED SKIPPED"
    args = parser.parse_args(argv)
    if reason := None if args.nova_all else unable():
        print(f"tempest: skipped: {reason}")
        tell_counts(args.counts, (0, 0, 1))
        return 0
    kind = KINDS.get(tuple(name for name in OPTIONS if getattr(args, name)))
    if kind is None:
        parser.error("Neutron's networks go with none of the other options")
    chosen = args.list or kind.list
    names = wanted(chosen)
    if args.turn is not None:
        everything, names = names, of_turn(names, args.turn)
        if not args.list and kind.name == "compute" and args.turn % TURNS == 0:
            kind = KINDS["volumes",]  # this turn has all of them, too
            names += wanted(kind.list)
        else:
            args.nova_all = args.nova_all or (kind.name == "compute" and args.turn % 2 == 1)
        args.as_upstream = args.as_upstream or args.turn // 2 % 2 == 1  # every second turn with a sandbox
        print(f"-- not run: {len(everything) - len(names)} of {len(everything)} tests of tempest, all of which have "
              f"their turn in {TURNS} runs with successive seeds", flush=True)
    if args.as_upstream and not args.nova_all:
        kind = kind._replace(sandbox=(*kind.sandbox, "--as-upstream"))
        print("-- the cloud is in upstream security mode", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="nova-tempest-"))
    folder.chmod(0o700)  # tempest.conf has the administrator's password
    try:
        with target(kind, folder, args.nova_all) as cloud:
            started = time.monotonic()
            usual = QUICK_WORKERS if args.nova_all else WORKERS
            outcome = Run(cloud, folder).tests(names, args.workers or usual)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    tell(outcome, time.monotonic() - started)
    tell_counts(args.counts, outcome.counts)
    if args.passed:
        args.passed.write_text("".join(f"{name}\n" for name in sorted(outcome.passed)))
    must_pass = outcome.skipped if chosen.resolve() in [one.list for one in KINDS.values()] else {}
    return 1 if outcome.failed or must_pass or not outcome.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
