"""Open vSwitch ports, managed by its own tool (ovs-vsctl): argument lists; each call states the wanted result."""

from __future__ import annotations

from collections.abc import Mapping

from nova.privileged.client import forwarded
from nova.privileged.runner import CommandRunner, SystemRunner

TIMEOUT_S = 30
TOOL = ("ovs-vsctl", f"--timeout={TIMEOUT_S}")
NO_SUCH = 2  # exit code of br-exists


class OpenVSwitch:
    """The local switch. ``runner`` runs the tool; its failures raise host.CommandFailed."""

    def __init__(self, runner: CommandRunner | None = None) -> None:
        self._runner = runner or SystemRunner(TIMEOUT_S + 5.0)

    @forwarded("ovs.has_bridge")
    def has_bridge(self, name: str) -> bool:
        """Return whether the switch has that bridge. Raises host.CommandFailed if no switch answers."""
        return self._run("br-exists", name, ok=(0, NO_SUCH)) == 0

    @forwarded("ovs.datapath_of")
    def datapath_of(self, bridge: str) -> str:
        """Return the bridge's datapath type: system (the kernel) or netdev (the daemon); empty if none was chosen."""
        return self._answer("get", "Bridge", bridge, "datapath_type").strip('"')

    @forwarded("ovs.has_port")
    def has_port(self, bridge: str, port: str) -> bool:
        """Return whether the bridge has that port. Raises host.CommandFailed, also if there is no such bridge."""
        return port in self._answer("list-ports", bridge).split()

    @forwarded("ovs.ensure_port")
    def ensure_port(self, bridge: str, port: str, ids: Mapping[str, str], kind: str = "",
                    options: Mapping[str, str] | None = None) -> None:
        """Put the port on that bridge, and on no other, with these external ids. ``kind``: the interface's type."""
        settings = [f"external_ids:{name}={_quoted(value)}" for name, value in ids.items()]
        settings += [f"type={kind}"] if kind else []
        settings += [f"options:{name}={_quoted(value)}" for name, value in (options or {}).items()]
        self._run("--", "--if-exists", "del-port", port, "--", "add-port", bridge, port,
                  "--", "set", "Interface", port, *settings)

    @forwarded("ovs.delete_port")
    def delete_port(self, bridge: str, port: str) -> None:
        """Delete the port, if it exists."""
        self._run("--", "--if-exists", "del-port", bridge, port)

    def _run(self, *words: str, ok: tuple[int, ...] = (0,)) -> int:
        return self._runner.run([*TOOL, *words], ok=ok).code

    def _answer(self, *words: str) -> str:
        return self._runner.run([*TOOL, *words]).stdout.strip()


@forwarded("ovs.ensure_internal_port", local=("runner",))
def ensure_internal_port(runner: CommandRunner, timeout_s: int, bridge: str, device: str, mac: str) -> None:
    """Create the host's own port ``device`` on the bridge in the form that agents expect. Raises host.CommandFailed."""
    settings = ("type=internal", f"external-ids:iface-id={device}", "external-ids:iface-status=active",
                f"external-ids:attached-mac={mac}")
    runner.run(["ovs-vsctl", f"--timeout={timeout_s}", "--", "--may-exist", "add-port", bridge, device,
                "--", "set", "Interface", device, *settings])


@forwarded("ovs.delete_internal_port", local=("runner",))
def delete_internal_port(runner: CommandRunner, timeout_s: int, bridge: str, device: str) -> None:
    """Delete the port, if it exists. Raises host.CommandFailed."""
    runner.run(["ovs-vsctl", f"--timeout={timeout_s}", "--", "--if-exists", "del-port", bridge, device])


def _quoted(value: str) -> str:
    """Return the value as an OVSDB string, with special characters escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
