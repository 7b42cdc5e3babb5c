"""The parts of the tests as tables: the folder, the dependencies, the processes and the budget of each."""

from __future__ import annotations

from typing import NamedTuple


class Part(NamedTuple):
    """The folders of a part's tests, their dependencies, and the number of parallel processes.

    ``plain``: run ``workers`` separate processes instead of xdist, each with every n-th file. This halves the time of
    thousands of quick tests: each result that xdist transfers costs more than most of them.

    ``beside``: groups of files, each of which runs in a separate process in parallel with all others: no two share a
    sandbox.

    ``green``: files and folders whose tests run in one more process in eventlet's mode, which the daemons with these
    modules use; one more plain process also runs some of their files.

    ``test_s``: a test that takes longer, with its fixtures, ends its process with the stacks of all threads: a loop
    without an end would cost the whole run.
    """

    folders: tuple[str, ...]
    needs: tuple[str, ...]
    workers: int = 1
    venvs: tuple[str, ...] = ()
    whole_files: bool = False  # a file's tests stay together: they share a cloud
    plain: bool = False
    beside: tuple[tuple[str, ...], ...] = ()
    green: tuple[str, ...] = ()
    test_s: int = 1200


def _machine(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/machine/test_{name}.py" for name in names)


#: Machine tests that run in parallel with the tests of the sandbox with two hosts, in this order: they need no sandbox,
#: or (last) other ones. All groups take about the same time.
BESIDE = (
    _machine("libvirt_driver", "actions_on_guests", "console_vencrypt", "devices", "floating_host", "guest_bridges",
             "guest_image", "host_firewall", "interfaces_live", "network_host", "network_kinds", "network_restart",
             "volumes", "neutron_live", "dashboard_live", "moves", "moves_by_api", "networks_live"),
    _machine("helper", "helped_moves", "network_helper", "host_consoles", "forbidden_ranges", "ovs_guests",
             "volumes_libvirt"))
#: Tests that run in patched processes: their modules wait for programs, sockets, clients or guests.
GREEN = (*(f"tests/unit/{name}" for name in ("clients", "compute", "console", "metadata", "network", "privileged",
                                             "rpc", "virt")),
         "tests/unit/test_http_server.py", "tests/unit/test_http_chunks.py", "tests/unit/test_service.py",
         "tests/unit/test_service_start.py", "tests/unit/cmd/test_console_proxy.py")
#: One of this many of their files also runs with native threads; the next run takes the next ones.
GREEN_NATIVE_IN = 8
GREEN_WORKERS = 3  # and one more: they wait for programs and sockets half of the time
PARTS = {
    "unit": Part(("tests/unit", "tests/contract"), ("tests",), 2, plain=True, green=GREEN, test_s=600),
    # three on two cores: they wait for daemons half of the time
    "functional": Part(("tests/functional",), ("broker", "databases", "monitoring"), 3, ("clients",),
                       whole_files=True),
    "machine": Part(("tests/machine",), ("broker", "databases", "nextdoor", "clients", "hypervisor", "nova",
                                             "tests", "browser", "switch"), venvs=("neutron", "cinder"),
                    beside=BESIDE, test_s=2400),
    "fresh": Part(("tests/fresh",), ("fresh", "tests"), test_s=3600),
    "installers": Part(("tests/installers",), ("fresh", "tests"), test_s=3600),
    "books": Part(("tests/books",), ("fresh", "tests"), test_s=7200),
    "tempest": Part((), ("broker", "databases", "nextdoor", "clients", "nova"), venvs=("clients", "tempest", "cinder")),
    "clients": Part((), ("gophercloud",), venvs=("judges", "ansible")),
    "mutations": Part((), ("tests", "broker", "databases")),
}
#: part -> budget of its processes, in seconds of a processor that does `budgets.work` in `budgets.WORK_S`. Parts whose
#: daemons have other parents (systemd, a sandbox) are not measured. A quarter more prints a warning: make the part
#: cheaper, or give the reason in the commit that raises the number. Twice as much fails the part.
BUDGETS_S = {"unit": 410.0, "functional": 470.0}
FUZZ_S = "600"
LONG_TESTS = 6  # factor of `test_s` for a long run, whose tests have more cases each
ORDER = ("check", "unit", "functional", "machine", "fresh", "installers", "tempest")
#: Part -> the part that CI starts in parallel: "fresh" waits for downloads and installers, and the keys for daemons and
#: guests.
BEGINS = {"functional": "fresh", "machine": "tempest"}
LONG = (*ORDER, "clients")
#: Parts that run all tests if they are named.
ALWAYS_LONG = ("fresh", "installers", "books")
#: part -> lengths of its cycles, if it does not sample by pytest: for tempest, of its classes (``TURNS`` of
#: tests/tempest), and of the choice whether the cloud is one process.
CYCLES = {"tempest": (5, 2)}
#: Part -> its only test; a case's name follows in brackets.
CASES = {
    "fresh": "tests/fresh/test_fresh.py::"
             "test_machine_when_unlike_ours_then_its_cloud_answers_or_a_line_says_what_to_do",
    "installers": "tests/installers/test_installers.py::"
                  "test_installer_when_its_whole_order_is_played_then_a_server_boots_and_again_nothing_changes",
}
#: part -> its module
BENCHES = {"bench": "tests.bench", "bench-scheduler": "tests.bench.scheduler",
           "bench-consoles": "tests.bench.consoles", "bench-metadata": "tests.bench.metadata",
           "bench-images": "tests.bench.images", "bench-nova-all": "tests.bench.whole",
           "bench-growth": "tests.bench.growth", "bench-ec2": "tests.bench.ec2",
           "bench-neighbours": "tests.bench.neighbours",
           "bench-cells": "tests.bench.cells",
           "bench-objects": "tests.bench.object_puts"}
#: name -> command, run with the test environment's programs
CHECKS = {
    "ruff": ("ruff", "check", "nova", "tests", "bin"),
    "mypy": ("mypy",),
    "layers": ("lint-imports", "--no-cache"),
    "sizes": ("python", "tests/sizes.py"),
    "stories": ("python", "-m", "tests.stories"),
    "untyped": ("python", "tests/untyped.py"),
    "turns": ("python", "bin/test", "turns", "--check"),
}


def needs(chosen: tuple[str, ...], quick: bool = False) -> tuple[str, ...]:
    """Return the Debian packages, by the stack's part names. ``quick``: none for clients, since only Python clients
    run; for mutations, the packages of the unit tests."""
    quickly = {"clients": (), "mutations": PARTS["unit"].needs}
    others = {"bench-consoles": ("hypervisor",), **(quickly if quick else {})}
    functional = PARTS["functional"].needs
    found = [others[name] if name in others else PARTS[name].needs if name in PARTS
             else functional if name in (*BENCHES, "fuzz") else () for name in chosen]
    return tuple(dict.fromkeys(need for part in found for need in part))


def environments(chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Return the Python environments of the parts, other than the tests' own."""
    return tuple(dict.fromkeys(name for part in chosen if part in PARTS for name in PARTS[part].venvs))
