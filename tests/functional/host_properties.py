"""What a thief of a compute host is refused, by security mode: the table of doc/security.rst."""

from __future__ import annotations

from typing import NamedTuple

BOUNDED, UPSTREAM = "bounded", "upstream"
BOTH = frozenset({BOUNDED, UPSTREAM})
ALONE = frozenset({BOUNDED})


class Property(NamedTuple):
    """``said``: as the page says it. ``modes``: in which it holds. ``tests``: which show it."""

    said: str
    modes: frozenset[str]
    tests: tuple[str, ...]


PROPERTIES = (
    Property("A host is not believed in another host's name.", BOTH,
             ("test_call_when_it_bears_another_name", "test_call_when_it_is_proven_for_another_host")),
    Property("A host is believed about its own guests, nodes and networks alone.", BOTH,
             ("test_host_when_it_says_or_asks_what_is_not_its_own", "test_host_when_it_speaks_for_guests_of_others")),
    Property("No host takes an order that no conductor gave.", BOTH,
             ("test_orders_when_the_thief_makes_them_up",)),
    Property("A second machine cannot take the name of a host.", BOTH,
             ("test_second_machine_when_it_claims_a_name", "test_token_when_used_then_good_for_that_host")),
    Property("Only conductors open the databases.", BOTH,
             ("test_databases_when_every_file_has_their_urls",)),
    Property("A machine that no operator enrolled is not let in.", ALONE,
             ("test_cloud_when_the_last_host_is_isolated",)),
    Property("A host runs only the daemons that it was enrolled for.", ALONE,
             ("test_host_when_it_says_or_asks_what_is_not_its_own",)),
    Property("A host reaches no queue but its own: no control daemon, no other host.", ALONE,
             ("test_broker_when_the_thief_tries_then_refused",)),
    Property("A host's files hold no password of a service or a database.", ALONE,
             ("test_files_of_the_host_hold_no_way_to",)),
    Property("Floods of one host do not stop others.", ALONE,
             ("test_conductors_when_a_host_sends_20000_messages",)),
    Property("A host gets images by ticket alone.", ALONE, ("test_image_proxy_live",)),
    Property("No observer learns a host's secret when it joins.", ALONE,
             ("test_conductor_when_it_has_options_of_bounded_mode",)),
)
