"""The image tool's runs: what is tried again, and what is not."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nova import errors
from nova.privileged.disk_exports import ExportSource, ReadExport
from nova.privileged.qemu_img import ImageFile, Overlay, QemuImg, ToolLimits
from nova.privileged.runner import Completed, SystemRunner

#: What each sort of call must say, beside what each of its files is.
STATED = {"convert": ("-f", "-O"), "rebase": ("-f", "-F"), "create": ("-f",), "resize": ("-f",)}
CALLS: dict[str, Callable[[QemuImg], None]] = {
    "convert": lambda tool: tool.convert(ImageFile("a", "qcow2"), ImageFile("b", "raw")),
    "fetch": lambda tool: tool.fetch(ReadExport(ExportSource("10.0.0.1", 49216, "5e"), "k"), "b"),
    "rebase": lambda tool: tool.rebase("a", "b", "raw"),
    "fill": lambda tool: tool.fill(ImageFile("a", "qcow2"), ImageFile("b", "raw")),
    "create": lambda tool: tool.create("a", "raw", 1),
    "create_overlay": lambda tool: tool.create_overlay(Overlay("a", "b", "raw", 1)),
    "resize": lambda tool: tool.resize(ImageFile("a", "raw"), 1),
    "pull": lambda tool: tool.pull("a", ("b", "raw"), ("b",))}
#: Eats a processor, or memory, as a crafted image would have the tool do.
SPIN = "while :; do :; done"
SWELL = 'a=x; while :; do a="$a$a"; done'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the files of these calls are."""
    monkeypatch.chdir(tmp_path)


class Scripted:
    """Gives one exit code a run."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.ran: list[list[str]] = []

    def run(self, argv: Sequence[str], **_options: Any) -> Completed:
        self.ran.append(list(argv))
        return Completed(self.codes.pop(0), "", "")


def tool(runner: Scripted) -> QemuImg:
    return QemuImg(runner_of=lambda _timeout: runner)


def test_convert_when_the_tool_aborts_once_then_it_is_run_again() -> None:
    runner = Scripted(128 + signal.SIGABRT, 0)
    tool(runner).convert(ImageFile("a", "raw"), ImageFile("b", "qcow2"))
    assert runner.codes == []


@pytest.mark.parametrize("codes", [(128 + signal.SIGABRT,) * 3, (128 + signal.SIGXCPU,)])
def test_convert_when_the_tool_keeps_dying_then_the_host_refuses(codes: tuple[int, ...]) -> None:
    runner = Scripted(*codes)
    with pytest.raises(errors.host.ImageTool, match="exceeded its limits"):
        tool(runner).convert(ImageFile("a", "raw"), ImageFile("b", "qcow2"))
    assert runner.codes == []


def test_calls_then_the_table_has_all_of_them() -> None:
    assert set(CALLS) == {name for name, call in inspect.getmembers(QemuImg, inspect.isfunction)
                          if hasattr(call, "forwarded_as")}


@pytest.mark.parametrize("name", CALLS)
def test_call_when_it_names_a_file_then_its_format_is_stated(name: str) -> None:
    runner = Scripted(0)
    CALLS[name](tool(runner))
    [argv] = runner.ran
    words = argv[argv.index("qemu-img"):]
    wanted = set(STATED[words[1]]) - ({"-f"} if "--image-opts" in words else set())  # which name the driver themselves
    assert wanted <= set(words) and ("-b" not in words or "-F" in words)
    assert "--image-opts" not in words or any(word.startswith("driver=") for word in words)


@pytest.mark.parametrize("name", CALLS)
def test_call_when_it_is_any_then_it_has_limits(name: str) -> None:
    runner = Scripted(0)
    CALLS[name](tool(runner))
    limits = runner.ran[0][:runner.ran[0].index("qemu-img")]
    assert {"--cpu=600", f"--as={4096 << 20}", "--core=0"} <= set(limits)


@pytest.mark.parametrize("work", [SPIN, SWELL], ids=["processor", "memory"])
def test_limits_when_a_tool_would_eat_more_then_it_is_ended_soon(work: str) -> None:
    argv = ToolLimits(cpu_s=1, memory_mb=64).argv()
    done = SystemRunner(timeout_s=30).run([*argv, "sh", "-c", work], ok=range(-64, 256))
    assert done.code != 0
