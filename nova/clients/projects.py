"""The identity service: whether there is a project. Source: its public API reference (v3)."""

from __future__ import annotations

import logging
from urllib.parse import quote

from keystoneauth1 import exceptions

from nova import errors
from nova.clients.keystone import reach
from nova.clients.session import Caller, Credentials
from nova.conf.base import Options

LOG = logging.getLogger(__name__)

READ_TIMEOUT_S = 10.0


class Projects:
    """Asks Keystone with our own credentials. Where it does not tell, nothing is refused: an operator must be able to
    raise a quota while Keystone is down."""

    def __init__(self, credentials: Credentials, region_name: str | None = None,
                 read_timeout_s: float = READ_TIMEOUT_S) -> None:
        self._credentials, self._region_name, self._timeout_s = credentials, region_name, read_timeout_s
        self._caller: Caller | None = None

    def check(self, project_id: str) -> None:
        """service.NotAProject: Keystone says that none has this id. One WARNING where it cannot be asked."""
        try:
            known = self._knows(project_id)
        except errors.NovaError as error:
            LOG.warning("project %s is taken as it is, for Keystone does not tell whether it is there: %s", project_id,
                        error.message)
            return
        if not known:
            raise errors.service.NotAProject(project_id=project_id)

    def _knows(self, project_id: str) -> bool:
        """By the very id: some databases of Keystone's find another spelling of it, and an address may lead elsewhere.
        service.Unavailable, service.Forbidden and others: it does not tell."""
        caller = self._caller = self._caller or reach(self._credentials, self._timeout_s, self._region_name)
        try:
            answer = caller.call("GET", f"/projects/{quote(project_id, safe='')}", what=f"project {project_id}")
        except errors.service.ResourceNotFound as error:
            if not _is_keystones(error.__cause__):
                self._caller = None  # it may have moved
                raise
            return False
        found = answer.json().get("project") or {}
        return bool(found.get("id") == project_id)


def _is_keystones(cause: BaseException | None) -> bool:
    """Whether a 404 is an answer of Keystone's own, and not of a proxy that knows no such address."""
    if not isinstance(cause, exceptions.HttpError) or cause.response is None:
        return False
    try:
        return isinstance(cause.response.json()["error"], dict)
    except (ValueError, KeyError, TypeError):
        return False


class AnyProject:
    """Without Keystone (noauth2) a project is whatever a token says."""

    def check(self, project_id: str) -> None:
        """Nothing is refused."""


def of_group(keystone: Options, credentials: Credentials) -> Projects | AnyProject:
    """As ``[keystone]`` says; without credentials nobody is asked."""
    if credentials.auth is None:
        LOG.info("No credentials for Keystone: projects of quotas and flavors are taken as they are")
        return AnyProject()
    return Projects(credentials, keystone.region_name)


__all__ = ["AnyProject", "Projects", "of_group"]
