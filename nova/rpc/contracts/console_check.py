"""The part of nova-consoleauth that console proxies ask: a proxy's broker user reaches nothing else there."""

from __future__ import annotations

from nova.model.guest.consoles import ConsoleConnection, TokenCheck
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.interface import Contract, call


class ConsoleCheckRPC(Contract):
    """Checks tokens, and makes none."""

    topic, version, part_of = "consoleauth-check", "1.0", ConsoleAuthRPC

    @call()
    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """As ``ConsoleAuthRPC.check_token``."""
