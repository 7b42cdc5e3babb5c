"""The identity service: existence of projects. Source: its public API reference (v3)."""

from __future__ import annotations

import contextlib
import logging
from urllib.parse import quote

import msgspec
from keystoneauth1 import exceptions

from nova import errors, failures
from nova.clients.answers import UnreadableError, decoded
from nova.clients.keystone import reach
from nova.clients.session import Caller, Credentials
from nova.conf.keystone import KeystoneOptions

LOG = logging.getLogger(__name__)

READ_TIMEOUT_S = 10.0


class ProjectJson(msgspec.Struct, frozen=True):
    """A project."""

    id: str | None = None


class ProjectAnswer(msgspec.Struct, frozen=True):
    """The answer with one project."""

    project: ProjectJson | None = None


class Projects:
    """Checks projects with nova's own credentials. If Keystone gives no answer, every project is accepted: an operator
    must be able to raise a quota while Keystone is down."""

    def __init__(self, credentials: Credentials, region_name: str | None = None,
                 read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._credentials, self._region_name, self._timeout_s = credentials, region_name, read_timeout_s
        self._caller: Caller | None = None

    def check(self, project_id: str) -> None:
        """Check that the project exists. Raises service.NotAProject if Keystone does not know this id. Logs one WARNING
        if Keystone cannot be asked."""
        try:
            known = self._knows(project_id)
        except errors.NovaError as error:
            LOG.warning("accepting project %s unchecked, because Keystone does not say whether it exists: %s",
                        project_id, error.message)
            return
        if not known:
            raise errors.service.NotAProject(project_id=project_id)

    def _knows(self, project_id: str) -> bool:
        """Return whether the project exists. The id is compared exactly: some of Keystone's databases match other
        spellings, and the address may be that of another server. Raises service.Unavailable, service.Forbidden and
        others if Keystone does not say."""
        caller = self._caller = self._caller or reach(self._credentials, self._timeout_s, self._region_name)
        try:
            answer = caller.call("GET", f"/projects/{quote(project_id, safe='')}", what=f"project {project_id}")
        except errors.service.ResourceNotFound as error:
            if not _is_keystones(error.__cause__):
                self._caller = None  # it may have moved
                raise
            return False
        with failures.replaced(UnreadableError, lambda _: errors.service.Unavailable(
                service="identity", reason="the server that answers /projects is not Keystone")):
            found = decoded(answer, ProjectAnswer).project
        return found is not None and found.id == project_id


def _is_keystones(cause: BaseException | None) -> bool:
    """Return whether Keystone itself sent a 404, and not a proxy that does not know the address."""
    if not isinstance(cause, exceptions.HttpError) or cause.response is None:
        return False
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return isinstance(cause.response.json()["error"], dict)
    return False


class AnyProject:
    """Check without Keystone (noauth2): any project of a token is valid."""

    def check(self, project_id: str) -> None:
        """Accept every project."""


def of_group(keystone: KeystoneOptions, credentials: Credentials) -> Projects | AnyProject:
    """Return the check for ``[keystone]``; without credentials, projects are not checked."""
    if credentials.auth is None:
        LOG.info("no credentials for Keystone: projects of quotas and flavors are not checked")
        return AnyProject()
    return Projects(credentials, keystone.region_name)


__all__ = ["AnyProject", "Projects", "of_group"]
