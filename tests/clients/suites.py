"""The functional tests that come with openstacksdk, python-openstackclient and python-novaclient."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.clients.place import Place
from tests.clients.verdict import Known, Ran
from tests.tempest import outcome

LIST_S, RUN_S = 60, 1500
TEST_S = 150  # openstacksdk's own limit of five seconds a test is for its unit tests
REASON_CHARS = 500
CONTENT = "A file that a test uploads.\n"
RESULTS = Path(outcome.__file__).with_name("results.py")


class Suite(NamedTuple):
    """``package``: has its tests; ``modules``: below it, as paths with ``*``, those that are about compute and the
    services that it needs; ``services``: stand-ins that it looks for before anything else; ``alone``: classes whose
    tests stand alone, so that they need not run in one process, one after another; ``files``: of its source tree, that
    tests read; ``last``: names of tests or modules that look at all there is, or disable all hosts, so that
    nothing may run beside them."""

    package: str
    modules: tuple[str, ...]
    services: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    last: tuple[str, ...] = ()


SDK = Suite("openstack.tests.functional", (
    "compute/v2/test_*", "placement/v1/test_*", "cloud/test_compute", "cloud/test_inventory", "cloud/test_image",
    "cloud/test_identity", "identity/v3/test_application_credential", "identity/v3/test_endpoint",
    "identity/v3/test_group", "identity/v3/test_project", "identity/v3/test_service", "identity/v3/test_user",
    "image/v2/test_image", "image/v2/test_member", "image/v2/test_schema"),
    ("block-storage",), ("TestCompute",), ("CONTRIBUTING.rst",))
OPENSTACKCLIENT = Suite("openstackclient.tests.functional", (
    "compute/v2/test_*", "common/test_availability_zone", "common/test_extension", "common/test_quota",
    "common/test_versions"), alone=("ServerTests",))
NOVACLIENT = Suite("novaclient.tests.functional", ("test_*", "api/test_*", "v2/test_*", "v2/legacy/test_*"),
                   ("network",), last=("test_public_flavor_list", "test_os_services"))


def run(suite: Suite, place: Place, left_out: Sequence[Known]) -> list[Ran]:
    """``left_out``: tests that are not tried. Every worker is a process of its own. AssertionError when there are no
    tests."""
    modules = modules_of(suite, place)
    names = [name for name in listed(modules, place) if not any(one.covers(name) for one in left_out)]
    assert names, f"{suite.package} has no tests in {place.venv}"
    at_last = [name for name in names if set(name.split(".")) & set(suite.last)]
    shares = shares_of([name for name in names if name not in at_last], suite.alone, place.workers)
    for number, name in itertools.product(range(place.workers), suite.files):
        (place.of_worker(number).folder / name).write_text(CONTENT)
    with ThreadPoolExecutor(place.workers) as pool:
        done = list(pool.map(lambda share: share_of(share[1], modules, place.of_worker(share[0])), enumerate(shares)))
    if at_last:
        done.append(share_of(at_last, modules, place.of_worker(0), "last"))
    return [ran for share in done for ran in share]


def shares_of(names: Sequence[str], alone: Sequence[str], workers: int) -> list[list[str]]:
    """The tests of a class stay together, in their order: those of openstackclient use the same names and ids."""
    groups: dict[str, list[str]] = {}
    for name in names:
        owner = name.rpartition(".")[0]
        groups.setdefault(name if owner.rpartition(".")[2] in alone else owner, []).append(name)
    shares: list[list[str]] = [[] for _ in range(workers)]
    for group in sorted(groups.values(), key=len, reverse=True):
        min(shares, key=len).extend(group)
    return [share for share in shares if share]


def modules_of(suite: Suite, place: Place) -> list[str]:
    """Names of its modules, in the environment's libraries."""
    libraries = next((place.venv / "lib").glob("python3*")) / "site-packages"
    top = libraries / suite.package.replace(".", "/")
    files = [file for pattern in suite.modules for file in sorted(top.glob(f"{pattern}.py"))]
    return [".".join(file.relative_to(libraries).with_suffix("").parts) for file in files]


def listed(modules: list[str], place: Place) -> list[str]:
    """Names of all tests of these modules. AssertionError with what was said instead."""
    done = subprocess.run([python(place), "-m", "testtools.run", "--list", *modules], cwd=place.folder,
                          env=environment(place), capture_output=True, text=True, timeout=LIST_S, check=False)
    assert done.returncode == 0, f"{modules}: {(done.stdout + done.stderr)[-2000:]}"
    return [line for line in done.stdout.splitlines() if line.startswith(modules[0].partition(".")[0])]


def share_of(names: list[str], modules: list[str], place: Place, file: str = "share") -> list[Ran]:
    """These tests' results; what was not reached within RUN_S has none, and is said to have failed."""
    share = place.folder / file
    share.write_text("".join(f"{name}\n" for name in names))
    stream, log = share.with_suffix(".subunit"), share.with_suffix(".log")
    with stream.open("wb") as output, log.open("wb") as said:
        process = subprocess.Popen([python(place), "-m", "subunit.run", "--load-list", str(share), *modules],
                                   cwd=place.folder, env=environment(place), stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=said)
        try:
            process.wait(RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    read = subprocess.run([python(place), str(RESULTS)], input=stream.read_bytes(), capture_output=True, check=True)
    found: list[outcome.Result] = json.loads(read.stdout)
    done = [Ran(one["id"], one["status"], shortened(outcome.reason(one, None))) for one in found
            if one["status"] != "exists"]
    there = {ran.name for ran in done}
    lost = f"did not run: the process ended with {process.returncode}; {log.read_text(errors='replace')[-300:]}"
    return [*done, *(Ran(name, "fail", lost) for name in names if name not in there)]


def shortened(reason: str) -> str:
    """Its beginning and its end, where a command that failed has what was said."""
    return reason if len(reason) <= REASON_CHARS else f"{reason[:REASON_CHARS // 3]} ... {reason[-REASON_CHARS // 2:]}"


def python(place: Place) -> str:
    return str(place.venv / "bin" / "python")


def environment(place: Place) -> dict[str, str]:
    """A clouds.yaml in the current folder has the credentials, for openstackclient's tests take away all of OS_*."""
    return {"PATH": f"{place.venv / 'bin'}:/usr/bin:/bin", "HOME": str(place.folder), "LANG": "C.UTF-8",
            "TOX_ENV_DIR": str(place.venv), "OS_TEST_TIMEOUT": str(TEST_S), "OS_LOG_CAPTURE": "1",
            "OS_STDOUT_CAPTURE": "1", "OS_STDERR_CAPTURE": "1", "OPENSTACKSDK_FUNC_TEST_TIMEOUT_COMPUTE": "60"}
