"""Stages of ``up`` that start few processes: hosts' enrolment, the first network, and Keystone's keys."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest

from stacklib import cli, databases, keystone, nova
from stacklib.errors import StackError
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


class NetworkStack(Stack):
    """Has no network, or (``there``) the one that a killed ``up`` has made; ``control`` keeps what was run."""

    there = ""

    def command(self, name: str, argv: list[str], **_more: object) -> str:
        self.control.append(argv[argv.index("network") + 1])
        if self.control[-1] == "create" and self.there:
            raise StackError("nova-manage network create failed")
        return self.there


def test_network_when_it_is_the_first_then_one_process_makes_it(short_path: Path, secrets) -> None:
    stack = NetworkStack(Layout(short_path, Choices(driver="fake")), secrets, ran := [])
    assert nova.prepare_network(stack) == f"private {nova.GUEST_CIDR}" and ran == ["create"]
    assert nova.prepare_network(stack) == "unchanged" and ran == ["create"]


@pytest.mark.parametrize("there", [nova.GUEST_CIDR, "192.0.2.0/24"])
def test_network_when_it_cannot_be_made_then_it_must_be_there(short_path: Path, secrets, there: str) -> None:
    stack = NetworkStack(Layout(short_path, Choices(driver="fake")), secrets, ran := [])
    stack.there = there
    if there == nova.GUEST_CIDR:
        assert nova.prepare_network(stack) == f"private {nova.GUEST_CIDR}"
    else:
        with pytest.raises(StackError, match="create failed"):
            nova.prepare_network(stack)
    assert ran == ["create", "list"]


def test_keystone_when_an_up_was_killed_then_its_keys_stay_and_the_others_are_made(
        short_path: Path, secrets, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "chown", lambda *_: None)
    monkeypatch.setattr(databases, "begin_tables", lambda *_: None)

    class KeystoneStack(RecordedStack):
        def command(self, name: str, argv: list[str], **_more: object) -> str:
            self.control.append(argv)
            return ""
    stack = KeystoneStack(Layout(short_path, Choices(driver="fake")), secrets, [])
    kept = stack.layout.path("data", "keystone", "fernet-keys", "1")
    kept.parent.mkdir(parents=True)
    kept.write_text("a key")
    keystone.prepare(stack)
    keys = {path: path.read_text() for path in stack.layout.path("data", "keystone").glob("*-keys/*")}
    assert keys.pop(kept) == "a key" and len(set(keys.values())) == 5
    for path, key in keys.items():
        assert len(base64.urlsafe_b64decode(key)) == 32 and path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_up_when_a_sandbox_has_a_wrong_name_then_it_is_refused_with_state_too(tmp_path: Path) -> None:
    words = ["up", "--sandbox", "--name", "Not_A_Name", "--state", str(tmp_path)]
    with pytest.raises(StackError, match="not a name for a sandbox"):
        cli.wanted(cli.parser().parse_args(words), words)
