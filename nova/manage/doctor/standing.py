"""Whether Keystone takes the credentials of each section that has any, and what they are good for."""

from __future__ import annotations

from keystoneauth1 import exceptions
from oslo_config import cfg

from nova import conf, errors
from nova.clients import session
from nova.conf.base import Options
from nova.conf.quota import UNIFIED
from nova.configuration.sources import paths
from nova.manage.doctor.finding import BAD, OK, WARN, Finding, is_host

WRITTEN = "set auth_type, auth_url, username, password, project_name and the domains there"


def refused(options: Options, section: str) -> Finding | None:
    """What is wrong with the credentials that calls to the service of ``[section]`` carry; None: they are good, or
    there are none."""
    options = _apart(options)
    try:
        credentials, used = session.load(options, section), session.source(options, section)
        if credentials.auth is None or used is None:
            return None
        credentials.auth.get_token(credentials.session)
    except errors.config.Credentials as error:
        return Finding(BAD, error.message, "correct that section")
    except exceptions.Unauthorized:
        return Finding(BAD, f"Keystone refuses the credentials in [{used}]",
                       f"correct [{used}]username, password, project_name and the domains")
    except exceptions.ClientException as error:
        return Finding(BAD, f"Keystone gives no token for [{used}]: {type(error).__name__}",
                       f"check [{used}]auth_url, [{section}]cafile and that Keystone runs")
    return None


def _apart(options: Options) -> Options:
    """The same files read anew: on oslo's global object keystonemiddleware declares, when it is imported, options that
    keystoneauth declares in its own way."""
    if options is not cfg.CONF:
        return options
    read = conf.register(cfg.ConfigOpts())
    read([], project="nova", default_config_files=list(paths(options.config_file)),
         default_config_dirs=list(paths(options.config_dir)))
    return read


def keystone(options: Options) -> Finding:
    """Whether Keystone gives a token for the credentials in ``[keystone_authtoken]``."""
    if is_host(options):
        return Finding(OK, "a compute host does not ask Keystone")
    if options.api.auth_strategy == "noauth2":
        return Finding(WARN, "[api]auth_strategy = noauth2: everybody is believed", "use keystone but for tests")
    if session.source(options, "keystone_authtoken") is None:
        return Finding(BAD, "[keystone_authtoken] has no credentials", WRITTEN)
    return refused(options, "keystone_authtoken") or Finding(OK, "Keystone gives us a token")


def service_user(options: Options) -> Finding:
    """Whether the token that goes along with users' tokens can be had."""
    if is_host(options) or not options.service_user.send_service_user_token:
        return Finding(OK, "no service token is sent here ([service_user]send_service_user_token)")
    if session.source(options, "service_user") is None:
        return Finding(BAD, "[service_user]send_service_user_token = true, and there are no credentials", WRITTEN)
    return refused(options, "service_user") or Finding(OK, "Keystone gives a token for [service_user]")


def limits(options: Options) -> Finding:
    """Whether Keystone lets us read limits, where they are kept there."""
    if is_host(options) or options.quota.driver != UNIFIED:
        return Finding(OK, "limits are not Keystone's ([quota]driver)")
    from nova.clients import keystone as client

    bad = refused(options, "oslo_limit")
    if bad:
        return bad
    if session.source(options, "oslo_limit") is None:
        return Finding(BAD, "[quota]driver wants Keystone's limits, and [oslo_limit] has no credentials", WRITTEN)
    try:
        found = client.of_groups(options.oslo_limit, session.load(options, "oslo_limit")).limits("")
    except errors.NovaError as error:
        return Finding(BAD, f"Keystone does not tell limits: {error.message}",
                       "give the user of [oslo_limit] the role reader on system all, and look at "
                       "[oslo_limit]endpoint_id")
    return Finding(OK, f"Keystone has {len(found.registered)} limits for us")
