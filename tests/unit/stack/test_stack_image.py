"""The guest image is built where packages can be fetched: on the machine, not in a sandbox, which has no way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from stacklib import demo
from stacklib.errors import StackError
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack


class Elsewhere(Stack):
    """A sandbox whose rooms can not be entered."""

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


def test_image_when_missing_then_it_is_built_once_for_all_stacks(stack, tmp_path, monkeypatch):
    builder = tmp_path / "checkout" / "bin" / "build-guest"
    builder.parent.mkdir(parents=True)
    builder.write_text('#!/bin/sh\necho image > "$2"\ntouch "$(dirname "$2")/.$(basename "$2").built"\n')
    builder.chmod(0o755)
    monkeypatch.setattr(demo, "CHECKOUT", builder.parents[1])
    stack.layout.venvs.mkdir()
    assert demo.build_image(stack).startswith("built")
    assert demo.image_file(stack.layout).read_text() == "image\n"
    assert demo.build_image(stack) == "unchanged"
    demo.image_file(stack.layout).unlink()
    assert demo.build_image(stack).startswith("copied")
