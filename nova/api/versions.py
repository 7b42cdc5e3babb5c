"""API versions: how one is asked for, which there are, and what changed its behaviour when.

A version is ``2.N``; inside, it is the number ``N``. Fields and routes carry their versions in their own tables; what
is left, a *behaviour* that changed, is a named function here, and nothing behind the door knows a version.
"""

from __future__ import annotations

import re

from nova import errors
from nova.web import ranges
from nova.web.microversions import HEADER, Microversions

MIN, MAX = 1, 104
LEGACY = MIN  # what requests under /v2 are served as

OLD_HEADER = "X-OpenStack-Nova-API-Version"
SERVICE = "compute"

SERIES = Microversions(SERVICE, 2, MIN, MAX, re.compile(r"([1-9][0-9]*)\.([1-9][0-9]*|0)"), errors.api.VersionMalformed,
                       errors.api.VersionOutOfRange, OLD_HEADER, bare_is_none=True, tells_refused=True)
text = SERIES.text


def number(text: str) -> int:
    """``"2.55"`` -> 55, for the tables."""
    if not text.startswith("2."):
        raise ValueError(f"{text}: versions of this API begin with 2")
    return ranges.minor(text)


within = ranges.within  # whether a row of a table holds at a version


def answer_headers(version: str) -> list[tuple[str, str]]:
    """The headers every versioned answer carries: both spellings, and ``Vary`` twice, a line each."""
    return [(HEADER, f"{SERVICE} {version}"), (OLD_HEADER, version), ("Vary", HEADER), ("Vary", OLD_HEADER)]


# What behaves differently, not only looks different. Each says since when.


def name_is_description(version: int) -> bool:
    """Below 2.19 a create stored the name as the description."""
    return version < 19


def unknown_status_is_refused(version: int) -> bool:
    """From 2.38 a list by a status that doesn't exist is 400; before, it is empty."""
    return version >= 38


def actions_have_pages(version: int) -> bool:
    """From 2.58 the list of a server's actions has pages and a next link."""
    return version >= 58


def shows_actions_of_deleted(version: int) -> bool:
    """From 2.21 the actions of a deleted server can be read."""
    return version >= 21


def events_are_for_all_readers(version: int) -> bool:
    """From 2.51 the events of an action are shown to all readers; before, to those policy names."""
    return version >= 51


def update_answers_in_full(version: int) -> bool:
    """From 2.75 PUT and rebuild answer with all that GET shows."""
    return version >= 75


def lock_has_reason(version: int) -> bool:
    """From 2.73 the value of ``lock`` is looked at; before, it may be anything."""
    return version >= 73


def locked_is_sort_key(version: int) -> bool:
    """From 2.73 servers sort by ``locked``; before, the key is accepted and ignored."""
    return version >= 73


def access_to_public_flavor_is_refused(version: int) -> bool:
    """From 2.7 giving a project access to a public flavor is 409."""
    return version >= 7


def extra_specs_are_checked(version: int) -> bool:
    """From 2.86 extra specs of known namespaces are checked by name and value."""
    return version >= 86


def usage_is_paged(version: int) -> bool:
    """From 2.40 usage comes in pages of servers; before, the sums are over all."""
    return version >= 40


def keypairs_are_paged(version: int) -> bool:
    """From 2.35 the list of keypairs comes in pages."""
    return version >= 35


def hypervisors_are_paged(version: int) -> bool:
    """From 2.33 lists of hypervisors come in pages."""
    return version >= 33


def known_by_uuid(version: int) -> bool:
    """From 2.53 services and hypervisors are named by uuid; before, by number."""
    return version >= 53


def silent_cells_are_shown(version: int) -> bool:
    """From 2.69 what lies in a cell that does not answer is listed in part; before, such a list fails."""
    return version >= 69


def services_can_be_forced_down(version: int) -> bool:
    """From 2.11 there is the word ``force-down``."""
    return version >= 11


def empty_servers_are_shown(version: int) -> bool:
    """From 2.75 a hypervisor without servers has an empty list of them; before, none."""
    return version >= 75


def details_have_uptime(version: int) -> bool:
    """From 2.88 the details of hypervisors have the uptime, which a call of its own told before."""
    return version >= 88


def migrations_have_pages(version: int) -> bool:
    """From 2.59 the list of migrations comes in pages."""
    return version >= 59


def queued_migrations_can_be_aborted(version: int) -> bool:
    """From 2.65 a live migration can be aborted before it runs."""
    return version >= 65


def diagnostics_have_a_standard_form(version: int) -> bool:
    """From 2.48 diagnostics look the same for every driver; before, they are the driver's own."""
    return version >= 48


def volumes_may_be_shared(version: int) -> bool:
    """From 2.60 a volume that several servers may have (multiattach) is taken; before, it is refused."""
    return version >= 60


def rescue_knows_volumes(version: int) -> bool:
    """From 2.87 a server that boots from a volume is rescued, with an image that is made for it; before, refused."""
    return version >= 87


def rebuild_writes_over_a_volume(version: int) -> bool:
    """From 2.93 a rebuild writes its image over the volume that the server boots from; before, the volume stays."""
    return version >= 93


def shelved_servers_have_volumes(version: int) -> bool:
    """From 2.20 volumes are attached to and detached from shelved servers."""
    return version >= 20


def attaching_is_waited_for(version: int) -> bool:
    """Up to 2.100 a volume's attachment is answered when the guest has it, with what it became; then, at once."""
    return version < 101


def attachments_can_be_updated(version: int) -> bool:
    """From 2.85 a PUT of an attachment that names the same volume changes it; before, it is a swap."""
    return version >= 85


def image_metadata_is_limited(version: int) -> bool:
    """Up to 2.38 a snapshot's metadata counts against the quota of metadata items."""
    return version < 39


def snapshot_is_named_in_the_body(version: int) -> bool:
    """From 2.45 createImage and createBackup answer with the image's id; before, with a Location header."""
    return version >= 45


def migrate_can_name_a_host(version: int) -> bool:
    """From 2.56 the value of ``migrate`` is looked at; before, it may be anything."""
    return version >= 56


def unshelve_can_name_a_place(version: int) -> bool:
    """From 2.77 the value of ``unshelve`` is looked at; before, it may be anything."""
    return version >= 77


def live_migration_is_forced(version: int, host: str | None, force: bool) -> bool:
    """Up to 2.29 a named host is not shown to the scheduler; from 2.30 to 2.67 ``force`` says so; then never."""
    return host is not None if version < 30 else force


def live_migration_waits_for_checks(version: int) -> bool:
    """Up to 2.33 what the hosts' checks refuse is a 400; from then on it is told by the server's actions."""
    return version < 34


def evacuation_is_forced(version: int, host: str | None, force: bool) -> bool:
    """Up to 2.28 a named host is not shown to the scheduler; from 2.29 to 2.67 ``force`` says so; then never."""
    return host is not None if version < 29 else force


def evacuation_answers_with_the_password(version: int) -> bool:
    """Below 2.14 an evacuation answers with ``adminPass``."""
    return version < 14


def evacuated_servers_stay_off(version: int) -> bool:
    """From 2.95 an evacuated server is not started; before, it is where it was running."""
    return version >= 95


def tokens_of_all_consoles_are_shown(version: int) -> bool:
    """From 2.31 what a console's token stands for is shown; before, of RDP consoles only, and we have none."""
    return version >= 31
