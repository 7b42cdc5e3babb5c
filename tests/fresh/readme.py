"""The README's commands, each with the cases that run it on a machine made from nothing.

A new command in the README needs a row here and a case whose story runs it. A unit test and the end of each case check.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.fresh.machine import Machine
from tests.fresh.stories import UP_S, WHOLE_S, Story, answers, up

README = Path(__file__).resolve().parents[2] / "README.rst"
#: Lines of literal blocks and inline literals that are commands for a shell.
BLOCK_LINE = re.compile(r"^ {4,}((?:sudo )?bin/\S.*?|(?:~/venv/bin/)?(?:pip|nova-all|python3) .*?)(?: {2,}#.*)?$", re.M)
INLINE = re.compile(r"``((?:sudo )?bin/[^`]+|--[a-z][^`]*|(?:openstack|nova-manage|pip) [^`]+)``")

EXECUTE = "bin/stack exec openstack server list --all-projects"
AS_DEMO = "bin/stack exec --as demo openstack server list"
SANDBOX = "bin/stack up --sandbox --hosts 2"
TEN_HOSTS = "bin/stack up --driver fake --computes 10"
CLEAN = "bin/stack clean"
CONSOLE = "bin/stack exec --as demo openstack console url show demo"
SCHEMA = "nova-manage api schema --version 2.96"
#: The command, as the README writes it -> (what a story runs, by its beginning; the cases that run it).
COMMANDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "bin/nova-all": ("bin/nova-all", ("nova-all",)),
    "--driver libvirt": ("bin/nova-all --driver libvirt", ("nova-all-libvirt",)),
    "sudo bin/stack up": ("bin/stack up", ("readme",)),
    "bin/stack up": ("bin/stack up", ("readme",)),
    "sudo bin/test": ("bin/test check unit", ("check-unit",)),
    "bin/test": ("bin/test check unit", ("check-unit",)),
    EXECUTE: (EXECUTE, ("readme",)),
    AS_DEMO: (AS_DEMO, ("readme",)),
    "bin/stack status | logs [DAEMON] [-f] | restart [DAEMON] | down | clean": ("bin/stack status", ("readme",)),
    SANDBOX: (SANDBOX, ("readme-sandbox",)),
    "--sandbox": (SANDBOX, ("readme-sandbox",)),
    "--driver fake --computes 10": (TEN_HOSTS, ("readme-ten-hosts",)),
    "bin/stack up --dashboard": ("bin/stack up --dashboard", ("readme-dashboard",)),
    "--dashboard": ("bin/stack up --dashboard", ("readme-dashboard",)),
    "--volumes nfs": ("bin/stack up --sandbox --volumes nfs", ("readme-nfs",)),
    "--volumes ceph": ("bin/stack up --sandbox --volumes ceph", ("readme-ceph",)),
    CLEAN: (CLEAN, ("readme", "readme-ten-hosts")),
    "openstack console url show demo": (CONSOLE, ("readme",)),
    SCHEMA: (f"bin/stack exec {SCHEMA}", ("readme",)),
}


def shown() -> list[str]:
    """The commands that the README shows, each once, in its order."""
    text = README.read_text()
    found = [*BLOCK_LINE.findall(text), *(" ".join(one.split()) for one in INLINE.findall(text))]
    return list(dict.fromkeys(one.strip() for one in found))


def left_out(case: str, begun: list[str]) -> list[str]:
    """The README's commands that this case should have run and has not."""
    return [command for command, (start, cases) in COMMANDS.items()
            if case in cases and not any(start in one for one in begun)]


# --- stories ---------------------------------------------------------------------------------------------------------


def whole(machine: Machine) -> str:
    """All that `bin/stack up` prints as next commands, and nothing of it is left at the end."""
    said = up_with_guest(machine, "bin/stack up")
    assert machine.ok(EXECUTE, 90).count("demo") and machine.ok(AS_DEMO, 90).count("ACTIVE")
    assert "/vnc_auto.html?" in machine.ok(CONSOLE, 90)
    assert machine.ok(f"bin/stack exec {SCHEMA} | head -c 100", 90).startswith("{")
    for words in ("status", "logs nova-api", "restart nova-api", "down"):
        machine.ok(f"bin/stack {words}", 120)
    return f"{said}; {cleaned(machine)}"


def with_options(command: str) -> Story:
    def story(machine: Machine) -> str:
        return f"{up(machine, command, WHOLE_S)}; {cleaned(machine)}"
    return story


def ten_hosts(machine: Machine) -> str:
    up(machine, TEN_HOSTS, UP_S)
    told = machine.ok("bin/stack exec openstack compute service list -f value -c Binary -c State", 90)
    assert told.count("nova-compute up") == 10, told
    return f"ten hosts; {cleaned(machine)}"


def up_with_guest(machine: Machine, command: str) -> str:
    said = machine.run(command, WHOLE_S)
    assert said.status == 0 and "The cloud is up, after" in said.text, said.last_words
    assert re.search(r"state +ACTIVE", said.text), said.last_words
    return answers(machine)


def cleaned(machine: Machine) -> str:
    machine.ok(CLEAN, 300)
    machine.ok("! ls -d /var/lib/nova-stack")
    return "nothing is left"
