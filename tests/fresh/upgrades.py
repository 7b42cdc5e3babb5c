"""A cloud of the release before this one, upgraded by `bin/stack upgrade` under a client that reads, and back."""

from __future__ import annotations

import json

from nova.version import RELEASE
from stacklib import novaconf
from stacklib.layout import PLAIN_STATE, Choices, Layout
from tests.fresh import layers
from tests.fresh.machine import Machine
from tests.fresh.stories import SMALL, UP_S, up
from tests.functional.releases import previous

UPGRADE_S = 400
OUTAGE_S = 30.0  # there is one nova-api, and it is restarted
NOBODY_LISTENS = ("Errno 111", "Errno 104", "Remote end closed")  # meanwhile
LAYOUT = Layout(PLAIN_STATE, Choices(driver="fake", demo=False))
FILES = f"--config-file {novaconf.control_file(LAYOUT)} --config-file {novaconf.conductor_file(LAYOUT)}"
ADMIN = "bin/stack exec openstack"
SERVER = f"""{ADMIN} flavor create --ram 64 --disk 1 --vcpus 1 small
head -c 1000000 /dev/zero > /var/tmp/image
{ADMIN} image create --file /var/tmp/image --disk-format raw --container-format bare nothing
{ADMIN} --os-compute-api-version 2.37 server create --flavor small --image nothing --nic auto --wait before
"""
READS, HALT = "/var/log/reads", "/run/halt-reads"
#: Reads the servers five times a second; a line a read: when it began, how long it took, and how it ended.
READER = f"""rm -f {READS} {HALT}; bin/stack exec python3 -uc '
import json, os, time, urllib.request
os_ = os.environ
user = dict(name=os_["OS_USERNAME"], password=os_["OS_PASSWORD"], domain=dict(id="default"))
body = dict(auth=dict(identity=dict(methods=["password"], password=dict(user=user)),
                      scope=dict(project=dict(name=os_["OS_PROJECT_NAME"], domain=dict(id="default")))))
asked = urllib.request.Request(os_["OS_AUTH_URL"] + "/auth/tokens", json.dumps(body).encode(),
                               {{"Content-Type": "application/json"}})
token = urllib.request.urlopen(asked).headers["X-Subject-Token"]
with open("{READS}", "w", buffering=1) as lines:
    while not os.path.exists("{HALT}"):
        began = time.monotonic()
        try:
            urllib.request.urlopen(urllib.request.Request("http://127.0.0.1:8774/v2.1/servers/detail?all_tenants=1",
                                   headers={{"X-Auth-Token": token}}), timeout=90).read()
            ended = "read"
        except Exception as error:
            ended = str(error)
        lines.write(json.dumps([began, time.monotonic() - began, ended]) + "\\n")
        time.sleep(0.2)
' > /var/log/reader.log 2>&1"""


def upgraded(machine: Machine) -> str:
    """To this release, back, and forward again: a client waits for nova-api's restart, and nothing else fails."""
    release, _commit = previous()
    machine.ok(f"rm -rf {LAYOUT.venvs}/nova*")  # of this checkout; the release before makes its own
    up(machine, f"cd /{layers.BEFORE} && {SMALL}", UP_S)
    machine.ok(SERVER, UP_S)
    machine.begin(READER)
    told = [_step(machine, "upgrade", RELEASE), _step(machine, "upgrade --back", release),
            _step(machine, "upgrade", RELEASE)]
    machine.ok(f"touch {HALT}")
    assert "Nothing to do" in machine.ok("bin/stack upgrade", UPGRADE_S)
    return "; ".join(told)


def _step(machine: Machine, command: str, release: str) -> str:
    """One upgrade under the reader: every daemon says the release, and the server is as it was."""
    begin = (_reads(machine) or [(0.0, 0.0, "")])[-1][0]
    said = machine.run(f"bin/stack {command}", UPGRADE_S)
    print(said.text)
    assert said.status == 0, said.last_words
    assert f"elease {release} (" in said.last_words.splitlines()[-1], said.last_words
    _all_say(machine, release)
    shown = machine.ok(f"{ADMIN} server show before -f value -c status")
    assert shown.strip() == "ACTIVE"
    return f"{command} {said.seconds:.0f} s, {_failures(machine, begin)}"


def _all_say(machine: Machine, release: str) -> None:
    """Programs are started from the environment of the release, and what its nova-manage lists is up."""
    listed = machine.ok(f"{LAYOUT.program('nova', 'nova-manage')} {FILES} service list")
    print(listed)
    assert "XXX" not in listed
    if release == RELEASE:
        rows = [line for line in listed.splitlines() if line.startswith("nova-")]
        assert rows and all(f" {release} " in f"{row} " for row in rows), listed
        found = machine.run(f"{LAYOUT.program('nova', 'nova-status')} {FILES} upgrade check")
        assert found.status in (0, 1), found.text


def _reads(machine: Machine) -> list[tuple[float, float, str]]:
    """(When, how long, how it ended) of each read until now."""
    return [json.loads(line) for line in machine.run(f"cat {READS}").text.splitlines() if line.startswith("[")]


def _failures(machine: Machine, since: float) -> str:
    """Nobody listens while nova-api is restarted; nothing else fails."""
    found = [row for row in _reads(machine) if row[0] > since]
    refused = [row for row in found if any(word in row[2] for word in NOBODY_LISTENS)]
    lost = [row for row in found if row[2] != "read" and row not in refused]
    outage = refused[-1][0] + refused[-1][1] - refused[0][0] if refused else 0
    longest = max((took for _, took, _ in found), default=0)
    words = (f"{len(found)} reads, {len(refused)} refused within {outage:.1f} s, {len(lost)} lost, the longest took "
             f"{longest:.1f} s")
    print(words)
    assert found and outage < OUTAGE_S and not lost, (words, lost)
    return words
