"""nova-consoleauth for the API's tests: it issues all requested consoles, and keeps them by hash."""

from __future__ import annotations

from typing import Any

from nova import context
from nova.console import urls
from nova.model.guest.consoles import Console, ConsoleAddress, ConsoleConnection, ConsoleType, token_hash
from nova.rpc.contracts.console_auth import ConsoleAuthRPC
from tests.fakes.contract import ContractFake
from tests.fakes.shelves import held

TOKEN = "5b2c8a0e-8d5c-4f0e-9a55-0b7f6f4a6c10"
BASES = {ConsoleType.NOVNC: "http://127.0.0.1:6080/vnc_auto.html", ConsoleType.SERIAL: "ws://127.0.0.1:6083/"}


class FakeConsoles(ContractFake, contract=ConsoleAuthRPC):
    """nova-consoleauth; ``address`` is the address of all consoles."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, ConsoleConnection] = {}
        self.address = ConsoleAddress(access_url_base="http://127.0.0.1:6080/", host="127.0.0.1", port=5900)

    def open_console(self, wish: Any) -> Any:
        self.keep(wish.type, wish.server_uuid)
        return Console(type=wish.type, url=urls.access_url(wish.type, BASES.get(wish.type, "http://127.0.0.1:6090/"),
                                                           TOKEN))

    def keep(self, type: ConsoleType, server_uuid: str) -> None:
        who = context.current()
        self.kept[token_hash(TOKEN)] = ConsoleConnection(
            type=type, server_uuid=server_uuid, user_id=who.user_id or "", project_id=who.project_id or "",
            address=self.address, expires_at=2**40)

    def check_token(self, check: Any) -> Any:
        return held(self.kept, check.token_hash, "A console with this token")

    def show_token(self, token_hash: Any) -> Any:
        return held(self.kept, token_hash, "A console with this token")
