"""Rows of users' certificates."""

from __future__ import annotations

import datetime

import pytest

from nova import errors
from nova.conductor.queries import certificates as queries
from nova.db import certificates
from nova.db.sql.engine import Database
from nova.model.base import utcnow
from nova.model.security.certificates import CertificateQuery, CertificateRecord

END = datetime.datetime(2027, 1, 1)
JOE = CertificateQuery(user_id="joe")


def record(number: int, user: str = "joe", project: str = "demo", end: datetime.datetime = END) -> CertificateRecord:
    return CertificateRecord(user_id=user, project_id=project, file_name=f"/CA/newcerts/{number:02X}.pem", ends_at=end)


class Deps:
    def __init__(self, api: Database) -> None:
        self.api = api


@pytest.fixture
def service(api: Database) -> queries.Certificates:
    return queries.Certificates(Deps(api))  # type: ignore[arg-type]


def test_rows_when_asked_by_user_project_or_both_then_only_theirs_come(service) -> None:
    rows = [record(16), record(17, project="other"), record(18, user="ann"), record(19, user="Joe")]
    for one in rows:
        service.keep_certificate(one)
    assert service.list_certificates(JOE) == tuple(rows[:2])
    assert service.list_certificates(CertificateQuery(project_id="demo")) == (rows[0], *rows[2:])
    assert service.list_certificates(CertificateQuery(user_id="ann", project_id="demo")) == (rows[2],)
    with pytest.raises(errors.Invalid, match="Specify the user or the project"):
        service.list_certificates(CertificateQuery())


def test_keep_when_repeated_then_there_is_one_row_and_it_is_the_newer_ones(service) -> None:
    for user in ("joe", "joe", "ann"):
        service.keep_certificate(record(16, user))
    assert service.list_certificates(CertificateQuery(project_id="demo")) == (record(16, "ann"),)


def test_forget_when_repeated_then_the_others_stay(service) -> None:
    for number in (16, 17):
        service.keep_certificate(record(number))
    for _again in range(2):
        service.forget_certificates((record(16).file_name, "/CA/newcerts/FF.pem"))
    assert service.list_certificates(JOE) == (record(17),)
    service.forget_certificates(())
    assert service.list_certificates(JOE) == (record(17),)


def test_list_when_there_are_more_than_a_page_then_the_oldest_come(service, monkeypatch) -> None:
    monkeypatch.setattr(queries, "PAGE", 2)
    for number in (18, 17, 16):
        service.keep_certificate(record(number))
    assert [one.file_name for one in service.list_certificates(JOE)] == [record(18).file_name, record(17).file_name]


@pytest.mark.parametrize("long", [record(16, "u" * 256), record(16, project="p" * 256), record(16).__class__(
    user_id="joe", project_id="demo", file_name="/" + "f" * 255, ends_at=END)])
def test_keep_when_a_name_is_longer_than_its_column_then_it_is_refused(service, long) -> None:
    with pytest.raises(errors.Invalid, match="255 characters"):
        service.keep_certificate(long)


def test_purge_when_certificates_ended_long_ago_then_their_rows_go_in_batches(api: Database, service) -> None:
    now, day = utcnow(), datetime.timedelta(days=1)
    for number, end in enumerate((now - 3 * day, now - 4 * day, now - day / 2, now + day), 16):
        service.keep_certificate(record(number, end=end))
    gone = [api.transact(lambda tx: certificates.purge(tx, 86400, 1)) for _ in range(3)]
    assert gone == [1, 1, 0] and len(service.list_certificates(JOE)) == 2
