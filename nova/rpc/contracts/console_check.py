"""The part of nova-consoleauth for console proxies. A proxy's broker user cannot reach any other part."""

from __future__ import annotations

from nova.model.guest.consoles import ConsoleConnection, TokenCheck
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from nova.rpc.interface import Contract, call


class ConsoleCheckRPC(Contract):
    """Checks of tokens, without the right to create them."""

    topic, version, part_of = "consoleauth-check", "1.0", ConsoleAuthRPC

    @call()
    def check_token(self, check: TokenCheck) -> ConsoleConnection:
        """Check a token, as ``ConsoleAuthRPC.check_token`` does."""
