"""The conductor's certificate rows, for nova-cert's tests."""

from __future__ import annotations

from typing import Any

from nova.model.security.certificates import CertificateRecord
from nova.rpc.contracts.conductor import ConductorRPC
from tests.fakes.contract import ContractFake


class CertificateRows(ContractFake, contract=ConductorRPC):
    """Conductor with certificate rows. ``rows``: by file name. ``page``: maximum number of rows in an answer."""

    def __init__(self, page: int = 2) -> None:
        super().__init__()
        self.rows: dict[str, CertificateRecord] = {}
        self.page = page

    def keep_certificate(self, certificate: Any) -> None:
        self.rows[certificate.file_name] = certificate

    def list_certificates(self, query: Any) -> Any:
        return tuple(one for one in self.rows.values() if query.user_id in (None, one.user_id)
                     and query.project_id in (None, one.project_id))[:self.page]

    def forget_certificates(self, file_names: Any) -> None:
        for name in file_names:
            self.rows.pop(name, None)
