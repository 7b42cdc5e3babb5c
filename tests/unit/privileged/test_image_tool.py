"""The image tool's runs: what is tried again, and what is not."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

import pytest

from nova import errors
from nova.privileged.qemu_img import QemuImg
from nova.privileged.runner import Completed


class Scripted:
    """Gives one exit code a run."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        return Completed(self.codes.pop(0), "", "")


def tool(runner: Scripted) -> QemuImg:
    return QemuImg(runner_of=lambda _timeout: runner)


def test_convert_when_the_tool_aborts_once_then_it_is_run_again() -> None:
    runner = Scripted(-signal.SIGABRT, 0)
    tool(runner).convert("a", "raw", "b", "qcow2")
    assert runner.codes == []


@pytest.mark.parametrize("codes", [(-signal.SIGABRT,) * 3, (-signal.SIGXCPU,)])
def test_convert_when_the_tool_keeps_dying_then_the_host_refuses(codes: tuple[int, ...]) -> None:
    runner = Scripted(*codes)
    with pytest.raises(errors.host.ImageTool, match="exceeded its limits"):
        tool(runner).convert("a", "raw", "b", "qcow2")
    assert runner.codes == []
