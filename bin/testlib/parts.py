"""The parts of the tests as tables: where each is, what it needs, how it is run, and what it may cost."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """Where a part's tests are, what must be installed for them, and how many run side by side.

    ``plain``: in so many processes of their own, each with every so-many-th file. Thousands of quick tests take half
    the time so: each result that xdist sends about costs more than most of them.

    ``beside``: files that run in a process of their own beside all others: the two have no sandbox in common.

    ``green``: files and folders whose tests run in one more process, in the mode of the daemons that have their modules
    (eventlet's); one more plain process has some of their files, too.
    """

    folders: tuple[str, ...]
    needs: tuple[str, ...]
    workers: int = 1
    venvs: tuple[str, ...] = ()
    whole_files: bool = False  # a file's tests stay together: they share a cloud
    plain: bool = False
    beside: tuple[str, ...] = ()
    green: tuple[str, ...] = ()


#: Machine tests that run beside those of the sandbox with two hosts, in this order: they want none, or (last) others.
#: Both sides take about the same time.
BESIDE = ("libvirt_driver", "actions_on_guests", "console_vencrypt", "devices", "floating_host", "guest_bridges",
          "guest_image", "host_firewall", "interfaces_live", "network_host", "network_kinds", "network_restart",
          "volumes", "neutron_live", "dashboard_live", "moves", "moves_by_api", "networks_live")
#: What runs in patched processes: modules that wait, for programs, sockets, clients or guests.
GREEN = (*(f"tests/unit/{name}" for name in ("clients", "compute", "console", "metadata", "network", "privileged",
                                             "rpc", "virt")),
         "tests/unit/test_http_server.py", "tests/unit/test_http_chunks.py", "tests/unit/test_service.py",
         "tests/unit/test_service_start.py", "tests/unit/cmd/test_console_proxy.py")
#: Of the files of these, so many have one that a run tries with native threads as well: the next run has the next ones.
GREEN_NATIVE_IN = 8
GREEN_WORKERS = 3  # and one more: they wait for programs and sockets half of the time
PARTS = {
    "unit": Part(("tests/unit", "tests/contract"), ("tests",), 2, plain=True, green=GREEN),
    # three on two cores: they wait for daemons half of the time
    "functional": Part(("tests/functional",), ("broker", "databases", "monitoring"), 3, ("clients",),
                       whole_files=True),
    "machine": Part(("tests/machine",), ("broker", "databases", "nextdoor", "clients", "hypervisor", "nova",
                                             "tests", "browser", "switch"), venvs=("neutron", "cinder"),
                    beside=tuple(f"tests/machine/test_{name}.py" for name in BESIDE)),
    "fresh": Part(("tests/fresh",), ("fresh", "tests")),
    "installers": Part(("tests/installers",), ("fresh", "tests")),
    "books": Part(("tests/books",), ("fresh", "tests")),
    "tempest": Part((), ("broker", "databases", "nextdoor", "clients", "nova"), venvs=("clients", "tempest", "cinder")),
    "clients": Part((), ("gophercloud",), venvs=("judges", "ansible")),
    "mutations": Part((), ("tests", "broker", "databases")),
}
#: part -> what its processes may use, in seconds of a processor that does `budgets.work` in `budgets.WORK_S`. Those
#: whose daemons belong to somebody else (systemd, a sandbox) are not measured. A quarter more is said: make it cheaper,
#: or say in the commit that raises the number what the seconds are for. Twice as much fails the part.
BUDGETS_S = {"unit": 410.0, "functional": 470.0}
FUZZ_S = "600"
ORDER = ("check", "unit", "functional", "machine", "fresh", "installers", "tempest")
#: Part -> the part that CI begins with it: that waits for downloads and installers, and this one for daemons.
BEGINS = {"functional": "fresh"}
LONG = (*ORDER, "clients")
#: Parts that have everything whenever they are named.
ALWAYS_LONG = ("fresh", "installers", "books")
#: part -> lengths of its cycles, where it draws by other means than pytest's: of tempest, its classes (``TURNS`` of
#: tests/tempest), and whether the cloud is one process.
CYCLES = {"tempest": (5, 2)}
#: Part -> its one test; a case's name follows in brackets.
CASES = {
    "fresh": "tests/fresh/test_fresh.py::"
             "test_machine_when_unlike_ours_then_its_cloud_answers_or_a_line_says_what_to_do",
    "installers": "tests/installers/test_installers.py::"
                  "test_installer_when_its_whole_order_is_played_then_a_server_boots_and_again_nothing_changes",
}
#: part -> the module that it is
BENCHES = {"bench": "tests.bench", "bench-scheduler": "tests.bench.scheduler",
           "bench-consoles": "tests.bench.consoles", "bench-metadata": "tests.bench.metadata",
           "bench-images": "tests.bench.images", "bench-nova-all": "tests.bench.whole",
           "bench-growth": "tests.bench.growth", "bench-ec2": "tests.bench.ec2",
           "bench-neighbours": "tests.bench.neighbours",
           "bench-objects": "tests.bench.object_puts"}
#: name -> command, run with the test environment's programs
CHECKS = {
    "ruff": ("ruff", "check", "nova", "tests", "bin"),
    "mypy": ("mypy",),
    "layers": ("lint-imports", "--no-cache"),
    "sizes": ("python", "tests/sizes.py"),
    "turns": ("python", "bin/test", "turns", "--check"),
}


def needs(chosen: tuple[str, ...], quick: bool = False) -> tuple[str, ...]:
    """Debian's packages, by the stack's names for them. ``quick``: of clients none, only Python's are judged; for
    mutations those of unit tests."""
    quickly = {"clients": (), "mutations": PARTS["unit"].needs}
    others = {"bench-consoles": ("hypervisor",), **(quickly if quick else {})}
    functional = PARTS["functional"].needs
    found = [others[name] if name in others else PARTS[name].needs if name in PARTS
             else functional if name in (*BENCHES, "fuzz") else () for name in chosen]
    return tuple(dict.fromkeys(need for part in found for need in part))


def environments(chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Python environments beside the tests' own."""
    return tuple(dict.fromkeys(name for part in chosen if part in PARTS for name in PARTS[part].venvs))
