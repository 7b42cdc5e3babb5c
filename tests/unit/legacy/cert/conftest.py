"""A clock that stands still, and nova-cert's service over it."""

from __future__ import annotations

import datetime
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from nova.legacy.cert.service import CertService
from tests.fakes.certificate_rows import CertificateRows


class Clock:
    def __init__(self) -> None:
        self.now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

    def __call__(self) -> datetime.datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rows() -> CertificateRows:
    return CertificateRows()


@pytest.fixture
def service(tmp_path: Path, clock: Clock, rows: CertificateRows) -> Callable[..., CertService]:
    def make(folder: Path = tmp_path, **options: object) -> CertService:
        values = {"ca_path": str(folder / "CA"), "ca_file": "cacert.pem", "key_file": "private/cakey.pem",
                  "crl_file": "crl.pem", "keys_path": str(folder / "keys"), "vpn_key_suffix": "-vpn",
                  "use_project_ca": False,
                  "user_cert_subject": "/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=%.16s-%.16s-%s",
                  "project_cert_subject": "/C=US/ST=California/O=OpenStack/OU=NovaDev/CN=project-ca-%.16s-%s",
                  **options}
        return CertService(types.SimpleNamespace(**values), rows.client(), clock)
    return make
