"""gophercloud's acceptance tests of compute, from Debian's package: a typed client, built into one program of tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.clients.cloud import ADMIN, Cloud
from tests.clients.place import Place
from tests.clients.sample_data import NETWORK, POOL, Furnished
from tests.clients.verdict import Known, Ran

LIBRARIES = Path("/usr/share/gocode")
SOURCE = LIBRARIES / "src" / "github.com" / "gophercloud" / "gophercloud"
TESTS, TAGS = "./acceptance/openstack/compute/v2", "acceptance compute fixtures"
PROGRAM = "compute.test"
BUILD_S, RUN_S = 600, 900
#: line of `-test.v` at a test's beginning, and at its end
BEGINS = re.compile(r"^=== RUN +(Test\w+)$")
ENDS = re.compile(r"^--- (PASS|FAIL|SKIP): (Test\w+) ")
STATUS = {"PASS": "success", "FAIL": "fail", "SKIP": "skip"}
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
#: What the cloud has, so that its tests need not skip.
ABILITIES = {"OS_NOVANET": "1", "OS_LIVE_MIGRATE": "1", "OS_GUEST_AGENT": "1"}
REASON_CHARS = 400


def unable() -> str | None:
    """Why it cannot be built here."""
    if not shutil.which("go") or not SOURCE.is_dir():
        return "needs golang-go and golang-github-gophercloud-gophercloud-dev; as root, bin/test installs them"
    return None


def build(folder: Path) -> Path:
    """The program, made once for a version of Debian's package. AssertionError with the compiler's words."""
    program, stamp = folder / PROGRAM, folder / "stamp"
    version = subprocess.run(["dpkg-query", "-W", "golang-github-gophercloud-gophercloud-dev", "golang-go"],
                             capture_output=True, text=True, check=False).stdout
    if program.exists() and stamp.exists() and stamp.read_text() == version:
        return program
    folder.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "GOPATH": str(LIBRARIES), "GO111MODULE": "off", "GOCACHE": str(folder / "cache")}
    done = subprocess.run(["go", "test", "-c", "-tags", TAGS, "-o", str(program), TESTS], cwd=SOURCE, env=env,
                          capture_output=True, text=True, timeout=BUILD_S, check=False)
    assert done.returncode == 0, f"go test -c: {done.stderr[-2000:]}"
    shutil.rmtree(folder / "cache")
    stamp.write_text(version)
    return program


def run(place: Place, program: Path, cloud: Cloud, found: Furnished, left_out: Sequence[Known]) -> list[Ran]:
    """Every worker runs every so-many-th test in a process of its own: most of their time is waiting."""
    listed = subprocess.run([str(program), "-test.list", "."], capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.split() if name.startswith("Test")]
    names = [name for name in names if not any(one.covers(name) for one in left_out)]
    env = environment(cloud, found)
    shares = [names[number::place.workers] for number in range(place.workers)]
    with ThreadPoolExecutor(place.workers) as pool:
        return [ran for share in pool.map(lambda names: share_of(names, place, program, env), shares) for ran in share]


def share_of(names: list[str], place: Place, program: Path, env: Mapping[str, str]) -> list[Ran]:
    """These tests' results; one that the process did not get to has failed."""
    log = place.folder / f"{names[0]}.log"
    with log.open("wb") as output:
        subprocess.run([str(program), "-test.v", f"-test.timeout={RUN_S}s", "-test.run", f"^({'|'.join(names)})$"],
                       cwd=place.folder, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False)
    done = parsed(log.read_text(errors="replace"))
    there = {ran.name for ran in done}
    return [*done, *(Ran(name, "fail", "did not end: see the log") for name in names if name not in there)]


def parsed(text: str) -> list[Ran]:
    """Of `-test.v`: what a test said last is why it did not pass."""
    found: list[Ran] = []
    said: list[str] = []
    for line in COLOURS.sub("", text).splitlines():
        if BEGINS.match(line):
            said = []
        elif match := ENDS.match(line):
            words = " ".join(" ".join(said[-3:]).split())
            found.append(Ran(match[2], STATUS[match[1]], "" if match[1] == "PASS" else words[-REASON_CHARS:]))
        elif line.strip():
            said.append(line)
    return found


def environment(cloud: Cloud, found: Furnished) -> dict[str, str]:
    login = cloud.login(ADMIN)
    return {
        "PATH": "/usr/bin:/bin", "OS_AUTH_URL": login["auth_url"], "OS_USERNAME": login["username"],
        "OS_PASSWORD": login["password"], "OS_TENANT_NAME": login["project_name"], "OS_DOMAIN_NAME": "Default",
        "OS_REGION_NAME": cloud.region, "OS_IMAGE_ID": found.image, "OS_FLAVOR_ID": found.flavors["ephemeral.small"],
        "OS_FLAVOR_ID_RESIZE": found.flavors["ephemeral.large"], "OS_NETWORK_ID": found.network,
        "OS_NETWORK_NAME": NETWORK, "OS_POOL_NAME": POOL, "OS_EXTGW_ID": found.network, **ABILITIES}
