"""The stage that enrols a stack's hosts: as many processes as there are kinds of hosts, however many hosts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from stacklib import nova
from stacklib.layout import Choices, Layout
from stacklib.stack import Stack


class RecordedStack(Stack):
    """Runs no program: what nova-manage would write is written, and ``control`` keeps what was to be run."""

    def directory(self, *parts: str, owner: str | None = None, mode: int = 0o750, group: str | None = None) -> Path:
        """Nobody's: a test may not change owners."""
        return super().directory(*parts, mode=mode)

    def command(self, name: str, argv: list[str], **_more: object) -> str:
        words = list(map(str, argv))
        self.control.append(words)
        pattern = words[words.index("--write") + 1]
        for host in words[words.index("enroll") + 1:words.index("--runs")]:
            Path(pattern.replace("{host}", host)).write_text(f"token-of-{host}\n")
        return ""


@pytest.mark.parametrize("computes", [1, 2, 10])
def test_hosts_when_there_are_many_then_two_processes_enroll_them(
        short_path: Path, secrets, monkeypatch: pytest.MonkeyPatch, computes: int) -> None:
    monkeypatch.setattr(shutil, "chown", lambda *_: None)
    stack = RecordedStack(Layout(short_path, Choices(driver="fake", computes=computes)), secrets, ran := [])
    layout = stack.layout
    names = {layout.controller_host, *(host.name for host in layout.computes)}
    for name in names:
        layout.nova_state(name).mkdir(parents=True, exist_ok=True)
    assert set(nova.enroll(stack).split(", ")) == names and len(ran) <= 2
    assert {name: (layout.nova_state(name) / "host_token").read_text() for name in names} == {
        name: f"token-of-{name}\n" for name in names}
    assert not list(layout.path("data", "nova-conductor").iterdir()), "a token is left where it was written"
    assert nova.enroll(stack) == "unchanged" and len(ran) <= 2
