"""The guest image is built where packages can be fetched: on the machine, not in a sandbox, which has no way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacklib import demo
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack


class Elsewhere(Stack):
    """A sandbox whose rooms cannot be entered."""

    def at_controller(self, work):
        raise AssertionError("this runs in the controller's network")


@pytest.fixture
def stack(short_path: Path, tmp_path: Path, secrets, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("NOVA_STACK_VENVS", str(tmp_path / "venvs"))
    return Elsewhere(Layout(short_path / "state", Choices(sandbox=True)), secrets, control=None)


def test_machine_command_when_run_then_it_has_the_machines_network_and_our_environment(stack, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    assert stack.machine_command("said", ["sh", "-c", "echo $http_proxy"]) == "http://proxy.example:3128\n"
    with pytest.raises(StackError, match="failed with 3"):
        stack.machine_command("said", ["sh", "-c", "exit 3"])


@pytest.fixture
def builder(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout's bin/build-guest, which says what it was asked for in a file."""
    program = tmp_path / "checkout" / "bin" / "build-guest"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/asked\ntest "$1" = --output || exit 0\n'
                       'echo image > "$2"\ntouch "$(dirname "$2")/.$(basename "$2").built"\n')
    program.chmod(0o755)
    monkeypatch.setattr(demo, "CHECKOUT", program.parents[1])
    stack.layout.venvs.mkdir()
    return program


def test_guest_packages_when_the_image_is_not_built_then_fetched_before_up(stack, builder, tmp_path):
    log = tmp_path / "install.log"
    assert demo.fetch_guest(stack.layout, log) == "fetched"
    demo.build_image(stack)
    assert demo.fetch_guest(stack.layout, log) == "unchanged"
    assert (tmp_path / "asked").read_text().split() == ["--fetch", "--output"]


def test_guest_packages_when_the_mirror_is_away_then_one_line_says_so(stack, builder, tmp_path):
    builder.write_text("#!/bin/sh\necho 'E: Failed to fetch http://mirror.example/busybox.deb  Timeout'\nexit 1\n")
    with pytest.raises(StackError, match="the package mirror does not answer"):
        demo.fetch_guest(stack.layout, tmp_path / "install.log")


def test_guest_packages_when_the_archive_has_none_of_them_then_the_error_says_so(stack, builder, tmp_path):
    builder.write_text("#!/bin/sh\necho 'build-guest: apt knows no linux-image-cloud-amd64: what is this?'\nexit 1\n")
    with pytest.raises(StackError, match="apt knows no linux-image-cloud-amd64") as caught:
        demo.fetch_guest(stack.layout, tmp_path / "install.log")
    assert "--no-demo" in caught.value.hint


def test_image_when_missing_then_it_is_built_once_for_all_stacks(stack, builder):
    assert demo.build_image(stack).startswith("built")
    assert demo.image_file(stack.layout).read_text() == "image\n"
    assert demo.build_image(stack) == "unchanged"
    demo.image_file(stack.layout).unlink()
    assert demo.build_image(stack).startswith("copied")
