"""API versions: how to request one, the supported range, and changes of behaviour.

A version is ``2.N``; internally it is the number ``N``. Fields and routes have their versions in their own tables; each
other change, of a *behaviour*, is a named function here, so code outside the API layer does not know versions.
"""

from __future__ import annotations

import re

from nova import errors
from nova.web import ranges
from nova.web.microversions import HEADER, Microversions

MIN, MAX = 1, 104
LEGACY = MIN  # version of requests under /v2

OLD_HEADER = "X-OpenStack-Nova-API-Version"
SERVICE = "compute"

SERIES = Microversions(SERVICE, 2, MIN, MAX, re.compile(r"([1-9][0-9]*)\.([1-9][0-9]*|0)"), errors.api.VersionMalformed,
                       errors.api.VersionOutOfRange, OLD_HEADER, bare_is_none=True, tells_refused=True)
text = SERIES.text


def number(text: str) -> int:
    """Return 55 for ``"2.55"``, for the tables."""
    if not text.startswith("2."):
        raise ValueError(f"{text}: versions of this API begin with 2")
    return ranges.minor(text)


within = ranges.within  # whether a row of a table applies at a version


def answer_headers(version: str) -> list[tuple[str, str]]:
    """Return the headers of every versioned response: both spellings, and ``Vary`` twice, in separate lines."""
    return [(HEADER, f"{SERVICE} {version}"), (OLD_HEADER, version), ("Vary", HEADER), ("Vary", OLD_HEADER)]


# Changes of behaviour, not only of form. Each function names its version.


def name_is_description(version: int) -> bool:
    """True before 2.19, in which a create stores the name as the description."""
    return version < 19


def unknown_status_is_refused(version: int) -> bool:
    """True from 2.38: a list by an unknown status is 400; before, it is empty."""
    return version >= 38


def actions_have_pages(version: int) -> bool:
    """True from 2.58: the list of a server's actions has pages and a next link."""
    return version >= 58


def shows_actions_of_deleted(version: int) -> bool:
    """True from 2.21: the actions of a deleted server can be read."""
    return version >= 21


def events_are_for_all_readers(version: int) -> bool:
    """True from 2.51: the events of an action are shown to all readers; before, policy decides."""
    return version >= 51


def update_answers_in_full(version: int) -> bool:
    """True from 2.75: PUT and rebuild respond with all fields of GET."""
    return version >= 75


def lock_has_reason(version: int) -> bool:
    """True from 2.73: the value of ``lock`` is used; before, any value is accepted and ignored."""
    return version >= 73


def locked_is_sort_key(version: int) -> bool:
    """True from 2.73: servers sort by ``locked``; before, the key is accepted and ignored."""
    return version >= 73


def access_to_public_flavor_is_refused(version: int) -> bool:
    """True from 2.7: giving a project access to a public flavor is 409."""
    return version >= 7


def extra_specs_are_checked(version: int) -> bool:
    """True from 2.86: extra specs of known namespaces are validated by name and value."""
    return version >= 86


def usage_is_paged(version: int) -> bool:
    """True from 2.40: usage comes in pages of servers; before, the sums cover all servers."""
    return version >= 40


def keypairs_are_paged(version: int) -> bool:
    """True from 2.35: the list of keypairs comes in pages."""
    return version >= 35


def hypervisors_are_paged(version: int) -> bool:
    """True from 2.33: lists of hypervisors come in pages."""
    return version >= 33


def known_by_uuid(version: int) -> bool:
    """True from 2.53: services and hypervisors are identified by UUID; before, by number."""
    return version >= 53


def silent_cells_are_shown(version: int) -> bool:
    """True from 2.69: resources in a cell that does not answer are listed partially; before, such a list fails."""
    return version >= 69


def services_can_be_forced_down(version: int) -> bool:
    """True from 2.11: the action ``force-down`` exists."""
    return version >= 11


def empty_servers_are_shown(version: int) -> bool:
    """True from 2.75: a hypervisor without servers has an empty list of them; before, no list."""
    return version >= 75


def details_have_uptime(version: int) -> bool:
    """True from 2.88: the details of hypervisors have the uptime, which had its own call before."""
    return version >= 88


def migrations_have_pages(version: int) -> bool:
    """True from 2.59: the list of migrations comes in pages."""
    return version >= 59


def queued_migrations_can_be_aborted(version: int) -> bool:
    """True from 2.65: a live migration can be aborted before it runs."""
    return version >= 65


def diagnostics_have_a_standard_form(version: int) -> bool:
    """True from 2.48: diagnostics have the same form for all drivers; before, the driver's own."""
    return version >= 48


def volumes_may_be_shared(version: int) -> bool:
    """True from 2.60: multiattach volumes are accepted; before, they are refused."""
    return version >= 60


def rescue_knows_volumes(version: int) -> bool:
    """True from 2.87: a server that boots from a volume can be rescued, with a suitable image; before, it is
    refused."""
    return version >= 87


def rebuild_writes_over_a_volume(version: int) -> bool:
    """True from 2.93: a rebuild overwrites the server's root volume with its image; before, the volume stays."""
    return version >= 93


def shelved_servers_have_volumes(version: int) -> bool:
    """True from 2.20: volumes can be attached to and detached from shelved servers."""
    return version >= 20


def attaching_is_waited_for(version: int) -> bool:
    """True up to 2.100: an attach responds with the attachment when the guest has the volume; later, immediately."""
    return version < 101


def attachments_can_be_updated(version: int) -> bool:
    """True from 2.85: a PUT of an attachment with the same volume updates it; before, it is a swap."""
    return version >= 85


def image_metadata_is_limited(version: int) -> bool:
    """True up to 2.38: a snapshot's metadata counts against the quota of metadata items."""
    return version < 39


def snapshot_is_named_in_the_body(version: int) -> bool:
    """True from 2.45: createImage and createBackup return the image's id; before, a Location header."""
    return version >= 45


def migrate_can_name_a_host(version: int) -> bool:
    """True from 2.56: the value of ``migrate`` is used; before, any value is accepted and ignored."""
    return version >= 56


def unshelve_can_name_a_place(version: int) -> bool:
    """True from 2.77: the value of ``unshelve`` is used; before, any value is accepted and ignored."""
    return version >= 77


def live_migration_is_forced(version: int, host: str | None, force: bool) -> bool:
    """True if the scheduler is bypassed for a named host: always up to 2.29, with ``force`` from 2.30 to 2.67, never
    later."""
    return host is not None if version < 30 else force


def live_migration_waits_for_checks(version: int) -> bool:
    """True up to 2.33: a refusal by the hosts' checks is a 400; later, the server's actions show it."""
    return version < 34


def evacuation_is_forced(version: int, host: str | None, force: bool) -> bool:
    """True if the scheduler is bypassed for a named host: always up to 2.28, with ``force`` from 2.29 to 2.67, never
    later."""
    return host is not None if version < 29 else force


def evacuation_answers_with_the_password(version: int) -> bool:
    """True before 2.14: the response of an evacuation has ``adminPass``."""
    return version < 14


def evacuated_servers_stay_off(version: int) -> bool:
    """True from 2.95: an evacuated server is not started; before, it is started if it was running."""
    return version >= 95


def tokens_of_all_consoles_are_shown(version: int) -> bool:
    """True from 2.31: the target of a console token is shown; before, only for RDP consoles, which do not exist
    here."""
    return version >= 31
