"""Security notes, and bugs without an advisory -> what must hold since, and the tests (see ``past_advisories``)."""

from __future__ import annotations

from tests.contract.proofs import (
    BARE_METAL,
    COMPUTE,
    CONDUCTOR,
    CONSOLE,
    CONTAINERS,
    CONTRACT,
    FUNCTIONAL,
    LIBVIRT,
    MACHINE,
    MODEL,
    PRIVILEGED,
    TRUST,
    UNIT,
    VMWARE,
    Proof,
)

NOTES: dict[str, Proof] = {
    "OSSN-0001": Proof("Root in a container is nobody on its host.", not_yet="There are no containers.",
                       absent=CONTAINERS),
    "OSSN-0007": Proof(
        "Live migrations are authenticated and encrypted, and there is no other way.",
        (f"{LIBVIRT}/test_libvirt_moves.py::test_settings_say_where_others_reach_this_host",
         f"{LIBVIRT}/test_migration_proxies.py"
         "::test_gate_when_the_secret_or_the_channel_is_wrong_then_nothing_reaches_libvirtd")),
    "OSSN-0008": Proof(
        "Consoles are limited in number, for each user and each server.",
        (f"{CONSOLE}/test_console_sessions.py"
         "::test_session_when_one_more_than_may_be_then_it_is_refused_until_one_leaves",
         f"{CONSOLE}/test_console_sessions.py"
         "::test_exclusive_when_those_told_to_end_take_their_time_then_the_limits_hold",
         f"{CONSOLE}/test_console_sessions.py::test_limits_of_pages_with_several_connections_count_pages")),
    "OSSN-0011": Proof(
        "A rule whose source group is not there is refused.",
        (f"{CONTRACT}/test_api_security_groups.py"
         "::test_rule_when_it_is_there_or_its_group_is_not_then_its_code_says_so",
         f"{CONDUCTOR}/nova_network/test_security_groups.py"
         "::test_rule_when_its_source_group_is_deleted_then_it_goes_and_lets_nobody_in",
         f"{MODEL}/test_security_rules.py"
         "::test_allowed_when_the_source_group_has_no_members_then_nothing_is")),
    "OSSN-0018": Proof(
        "Guests reach DHCP, names and metadata of their network's host, and nothing else of it.",
        (f"{UNIT}/network/test_network_firewall.py::test_tables_of_one_network_are_these",
         f"{UNIT}/network/test_network_isolation.py::test_ipv6_rules_let_discovery_in_and_drop_the_rest",
         f"{MACHINE}/test_forbidden_ranges.py"
         "::test_network_host_when_a_guest_calls_other_hosts_then_nobody_answers_and_all_else_works")),
    "OSSN-0020": Proof(
        "Connections end with their floating address.",
        (f"{UNIT}/network/test_network_floating.py::test_converge_when_it_goes_then_its_connections_end",
         f"{UNIT}/network/test_network_floating.py"
         "::test_converge_when_it_moves_to_another_guest_then_it_stays_and_connections_end",
         f"{UNIT}/network/test_network_floating.py"
         "::test_converge_when_killed_before_it_was_removed_then_the_next_run_removes_it",
         f"{MACHINE}/test_floating_host.py::test_established_connections_end_with_the_address",)),
    "OSSN-0022": Proof(
        "Filters are there before any start, also after a restart of the daemon.",
        (f"{COMPUTE}/test_reconcile.py"
         "::test_start_when_guests_are_to_be_resumed_then_they_are_filtered_before_or_not_started",
         f"{COMPUTE}/test_firewall.py::test_guard_when_the_conductor_never_answered_then_a_guest_is_closed_whatever_"
         "the_host_s_file_says")),
    "OSSN-0026": Proof(
        "Files that say what is run as root are root's to write, or an administrator is told.",
        (f"{UNIT}/manage/test_doctor.py::test_config_when_others_can_write_it_or_its_folder_then_it_is_bad",
         f"{UNIT}/manage/test_doctor.py::test_config_when_it_is_a_users_then_where_daemons_are_root_it_is_said"),
        limit="On a controller the files of the installation's guide are the service's own, which runs nothing as "
                "root."),
    "OSSN-0027": Proof(
        "A guest sends frames under its own addresses alone.",
        (f"{COMPUTE}/test_packet_rules.py::test_frames_when_a_guest_sends_then_only_as_itself",
         f"{MACHINE}/test_host_firewall.py"
         "::test_frames_when_they_are_the_guest_s_own_then_they_pass_and_spoofed_ones_do_not",)),
    "OSSN-0028": Proof(
        "The serial number that a guest reads is its server's uuid.",
        (f"{LIBVIRT}/test_guest_xml.py::test_serial_number_is_the_servers_uuid",)),
    "OSSN-0031": Proof("A machine is cleaned between its users.", not_yet="There is no bare metal driver.",
                       absent=BARE_METAL),
    "OSSN-0033": Proof(
        "Every TLS client checks certificates, unless it is told not to.",
        (f"{UNIT}/clients/test_certificates.py"
         "::test_service_when_its_certificate_is_nobodys_then_it_is_not_spoken_with",
         f"{UNIT}/clients/test_certificates.py"
         "::test_vendordata_service_when_its_certificate_is_nobodys_then_it_is_told_nothing",
         f"{UNIT}/test_source_safety.py::test_certificates_when_nobody_says_otherwise_then_they_are_checked",
         f"{UNIT}/manage/test_doctor.py"
         "::test_placement_when_it_speaks_tls_then_it_must_show_its_own_certificate")),
    "OSSN-0038": Proof("Caches are in private folders.", not_yet="There is no VMware driver, and no SOAP client.",
                       absent=VMWARE),
    "OSSN-0044": Proof(
        "Consoles set no cookie.",
        (f"{CONSOLE}/test_console_app.py::test_page_when_it_is_shown_then_it_sets_no_cookie",
         f"{FUNCTIONAL}/test_console_pages.py::test_spice_page_hands_its_token_on_and_leaves_no_cookie",)),
    "OSSN-0049": Proof(
        "Logs at DEBUG hold no secret.",
        (f"{FUNCTIONAL}/test_planted_secrets.py"
         "::test_logs_when_all_that_has_secrets_was_asked_for_then_none_is_in_them",
         f"{COMPUTE}/test_compute_service.py::test_logs_when_a_guest_is_built_then_no_secret_is_in_them",),
        not_yet="There is no bare metal driver.", absent=BARE_METAL),
    "OSSN-0059": Proof("A host's trust is asked for at each start.", not_yet="There is no filter of trusted hosts.",
                       absent=TRUST),
    "OSSN-0063": Proof(
        "No credential of a request is used in another.",
        (f"{UNIT}/clients/test_glance.py"
         "::test_show_as_user_when_many_users_ask_by_one_client_then_each_by_its_own_token_alone",
         f"{UNIT}/clients/test_glance.py"
         "::test_show_as_user_when_the_request_has_no_token_then_it_is_not_asked_with_ours")),
    "OSSN-0069": Proof(
        "The host has no IPv6 address on guests' bridges.",
        (f"{PRIVILEGED}/test_files.py"
         "::test_ipv6_when_the_host_does_not_speak_it_on_a_device_then_its_switch_says_so_alone",
         f"{MACHINE}/test_guest_bridges.py::test_bridge_when_it_is_made_then_the_host_has_no_ipv6_address_on_it",
         f"{MACHINE}/test_guest_bridges.py"
         "::test_port_when_a_guest_is_behind_it_then_the_host_speaks_no_ipv6_by_it")),
    "OSSN-0079": Proof(
        "A disk's secret is in no command line.",
        (f"{LIBVIRT}/test_libvirt_moves.py::test_secret_of_an_export_is_in_no_command_line",
         f"{LIBVIRT}/test_backends.py::test_address_of_an_image_keeps_its_characters_apart")),
    "OSSN-0089": Proof(
        "A migration is encrypted, with the certificate of its own gate, or fails.",
        (f"{LIBVIRT}/test_libvirt_moves.py::test_source_does_not_open_what_a_destination_makes_up",
         f"{LIBVIRT}/test_migration_proxies.py::test_tunnel_when_the_gate_is_another_one_then_it_tells_no_secret")),
    "OSSN-0094": Proof(
        "An attachment changes as part of a volume's migration alone.",
        (f"{CONDUCTOR}/actions/test_volume_swaps.py"
         "::test_swap_when_it_cannot_be_then_refused_and_nothing_is_changed",)),
    "OSSN-0101": Proof(
        "No request changes what the next one may.",
        (f"{CONSOLE}/test_console_origins.py::test_hosts_of_earlier_requests_allow_nothing",
         f"{CONSOLE}/test_console_sessions.py::test_memory_stays_flat_when_many_come_and_go")),
    # --- others
    "CVE-2011-3147": Proof(
        "An image with a backing file is refused, and what is kept is raw or was looked at.",
        (f"{COMPUTE}/test_image_format.py::test_look_at_a_lying_or_harmful_image_refuses",)),
    "CVE-2022-37394": Proof(
        "The daemon starts, whatever users did to their ports.",
        (f"{LIBVIRT}/test_vifs.py::test_records_when_a_port_makes_no_sense_then_the_others_are_known",
         f"{LIBVIRT}/test_vifs.py"
         "::test_port_when_its_data_do_not_hang_together_then_only_its_own_guest_is_refused")),
    "CVE-2015-2687": Proof(
        "Volumes are no part of a copy of local disks.",
        (f"{LIBVIRT}/test_volume_disks.py"
         "::test_arrival_when_the_destination_reaches_a_volume_otherwise_then_the_disk_is_the_same_and_not_copied",
         f"{LIBVIRT}/test_volume_disks.py::test_live_migration_when_a_volume_was_plugged_in_then_it_goes_by_its_name_"
         "and_is_reached_as_there")),
    "CVE-2013-6491": Proof(
        "Where TLS is set, the broker is spoken to with TLS.",
        (f"{UNIT}/clients/test_certificates.py"
         "::test_broker_when_tls_is_set_then_nothing_is_said_to_it_in_clear",)),
}
