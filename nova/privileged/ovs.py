"""Open vSwitch's ports, by its own tool (ovs-vsctl): argument lists, each call states what shall be."""

from __future__ import annotations

from collections.abc import Mapping

from nova.privileged.runner import CommandRunner, SystemRunner

TIMEOUT_S = 30
TOOL = ("ovs-vsctl", f"--timeout={TIMEOUT_S}")
NO_SUCH = 2  # exit code of br-exists


class OpenVSwitch:
    """``runner`` runs the tool; its failures are host.CommandFailed."""

    def __init__(self, runner: CommandRunner | None = None) -> None:
        self._runner = runner or SystemRunner(TIMEOUT_S + 5.0)

    def has_bridge(self, name: str) -> bool:
        """Whether the switch has that bridge. host.CommandFailed: no switch answers."""
        return self._run("br-exists", name, ok=(0, NO_SUCH)) == 0

    def datapath_of(self, bridge: str) -> str:
        """What moves its packets: system (the kernel), netdev (the daemon); empty where nobody chose."""
        return self._answer("get", "Bridge", bridge, "datapath_type").strip('"')

    def has_port(self, bridge: str, port: str) -> bool:
        """host.CommandFailed, too, when there is no such bridge."""
        return port in self._answer("list-ports", bridge).split()

    def ensure_port(self, bridge: str, port: str, ids: Mapping[str, str], kind: str = "",
                    options: Mapping[str, str] | None = None) -> None:
        """The port is on that bridge (on no other), with these external ids. ``kind``: the interface's type."""
        settings = [f"external_ids:{name}={_quoted(value)}" for name, value in ids.items()]
        settings += [f"type={kind}"] if kind else []
        settings += [f"options:{name}={_quoted(value)}" for name, value in (options or {}).items()]
        self._run("--", "--if-exists", "del-port", port, "--", "add-port", bridge, port,
                  "--", "set", "Interface", port, *settings)

    def delete_port(self, bridge: str, port: str) -> None:
        """Nothing when there is none."""
        self._run("--", "--if-exists", "del-port", bridge, port)

    def _run(self, *words: str, ok: tuple[int, ...] = (0,)) -> int:
        return self._runner.run([*TOOL, *words], ok=ok).code

    def _answer(self, *words: str) -> str:
        return self._runner.run([*TOOL, *words]).stdout.strip()


def _quoted(value: str) -> str:
    """As a string of OVSDB's: with what is special to it escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
