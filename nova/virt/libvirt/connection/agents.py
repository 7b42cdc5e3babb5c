"""What is asked of the agent inside a guest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libvirt

from nova import errors
from nova.virt.libvirt.connection.link import Link, reason_of

SILENT = frozenset({libvirt.VIR_ERR_AGENT_UNRESPONSIVE, libvirt.VIR_ERR_AGENT_UNSYNCED})
ANSWERED = "QEMU agent command"  # what libvirt says when the agent answers with an error (it has no code for that)


class Agents(Link):
    def set_password(self, server_uuid: str, user: str, password: str, timeout_s: int) -> None:
        self._ask("set the password", server_uuid, timeout_s, lambda domain: domain.setUserPassword(user, password))

    def freeze(self, server_uuid: str, timeout_s: int) -> None:
        self._ask("freeze the guest's file systems", server_uuid, timeout_s, lambda domain: domain.fsFreeze())

    def thaw(self, server_uuid: str, timeout_s: int) -> None:
        self._ask("thaw the guest's file systems", server_uuid, timeout_s, lambda domain: domain.fsThaw())

    def _ask(self, task: str, server_uuid: str, timeout_s: int, question: Callable[[Any], object]) -> None:
        def asked(domain: Any) -> None:
            try:
                domain.agentSetResponseTimeout(timeout_s)
                question(domain)
            except libvirt.libvirtError as error:
                if error.get_error_code() in SILENT:
                    raise errors.guest.AgentSilent(uuid=server_uuid, reason=reason_of(error)) from None
                if ANSWERED in reason_of(error):
                    raise errors.guest.AgentFailed(uuid=server_uuid, task=task, reason=reason_of(error)) from None
                raise
        self.on_domain(task, server_uuid, asked, lasts=True)  # a guest takes as long as it likes, up to the timeout
