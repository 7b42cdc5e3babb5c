"""Doctor checks that Keystone accepts the credentials of each section, and that they have the needed roles."""

from __future__ import annotations

from keystoneauth1 import exceptions
from oslo_config import cfg

from nova import conf, errors
from nova.clients import session
from nova.conf._options import Options, oslo_conf
from nova.conf.quota import UNIFIED
from nova.configuration.sources import paths
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host

WRITTEN = "set auth_type, auth_url, username, password, project_name and the domains there"


def refused(options: Options, section: str) -> Finding | None:
    """Return the fault of the credentials for calls to the service of ``[section]``; None if they are valid, or not
    set."""
    options = _apart(options)
    try:
        credentials, used = session.load(options, section), session.source(options, section)
        if credentials.auth is None or used is None:
            return None
        credentials.auth.get_token(credentials.session)
    except errors.config.Credentials as error:
        return Finding(BAD, error.message, "correct that section")
    except exceptions.Unauthorized:
        return Finding(BAD, f"Keystone rejects the credentials in [{used}]",
                       f"correct [{used}]username, password, project_name and the domains")
    except exceptions.ClientException as error:
        return Finding(BAD, f"Keystone issues no token for [{used}]: {type(error).__name__}",
                       f"check [{used}]auth_url, [{section}]cafile and that Keystone runs")
    return None


def _apart(options: Options) -> Options:
    """Return the same files read again: keystonemiddleware, when imported, declares options on oslo's global object
    that keystoneauth declares differently."""
    source = oslo_conf(options)
    if source is not cfg.CONF:
        return options
    read = conf.register(cfg.ConfigOpts())
    read([], project="nova", default_config_files=list(paths(source.config_file)),
         default_config_dirs=list(paths(source.config_dir)))
    return Options.of(read)


def keystone(options: Options) -> Finding:
    """Check that Keystone issues a token for the credentials in ``[keystone_authtoken]``."""
    if is_host(options):
        return Finding(OK, "a compute host does not use Keystone")
    if options.api.auth_strategy == "noauth2":
        return Finding(WARN, "[api]auth_strategy = noauth2: requests are not authenticated", "use keystone, except in "
                       "tests")
    if session.source(options, "keystone_authtoken") is None:
        return Finding(BAD, "[keystone_authtoken] has no credentials", WRITTEN)
    return refused(options, "keystone_authtoken") or Finding(OK, "Keystone issues a token for [keystone_authtoken]")


def service_user(options: Options) -> Finding:
    """Check that Keystone issues the service token that is sent along with users' tokens."""
    if is_host(options) or not options.service_user.send_service_user_token:
        return Finding(OK, "no service token is sent here ([service_user]send_service_user_token)")
    if session.source(options, "service_user") is None:
        return Finding(BAD, "[service_user]send_service_user_token = true, but there are no credentials", WRITTEN)
    return refused(options, "service_user") or Finding(OK, "Keystone issues a token for [service_user]")


def limits(options: Options) -> Finding:
    """Check that nova may read limits from Keystone, if they are kept there."""
    if is_host(options) or options.quota.driver != UNIFIED:
        return Finding(OK, "limits are not Keystone's ([quota]driver)")
    from nova.clients import keystone as client

    bad = refused(options, "oslo_limit")
    if bad:
        return bad
    if session.source(options, "oslo_limit") is None:
        return Finding(BAD, "[quota]driver uses Keystone's limits, but [oslo_limit] has no credentials", WRITTEN)
    try:
        found = client.of_groups(options.oslo_limit, session.load(options, "oslo_limit")).limits("")
    except errors.NovaError as error:
        return Finding(BAD, f"limits cannot be read from Keystone: {error.message}",
                       "give the user of [oslo_limit] the role reader on system all, and check "
                       "[oslo_limit]endpoint_id")
    return Finding(OK, f"Keystone has {len(found.registered)} registered limits for nova")
