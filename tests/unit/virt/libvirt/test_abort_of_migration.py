"""An abort that comes before libvirt has begun the migration, or when it is over."""

from __future__ import annotations

import pytest

from nova import errors

libvirt = pytest.importorskip("libvirt")


class Domain:
    """Its ``abortJob`` fails with this code of libvirt's."""

    def __init__(self, code: int) -> None:
        self.code = code

    def UUIDString(self) -> str:
        return "9d0c1f2e-0000-4000-8000-000000000001"

    def abortJob(self) -> None:
        error = libvirt.libvirtError("no job is active on the domain")
        error.err = (self.code, 0, "no job is active on the domain", 2, None, None, None, -1, -1)
        raise error


def abort(code: int) -> None:
    from nova.virt.libvirt.connection.migration import _abort

    _abort(Domain(code))


def test_abort_when_libvirt_has_no_job_then_there_is_no_migration() -> None:
    with pytest.raises(errors.Conflict) as none:
        abort(libvirt.VIR_ERR_OPERATION_INVALID)
    assert none.value.code == "migration.none" and "9d0c1f2e" in none.value.message


def test_abort_when_libvirt_fails_otherwise_then_its_own_word_stands() -> None:
    with pytest.raises(libvirt.libvirtError):
        abort(libvirt.VIR_ERR_INTERNAL_ERROR)
