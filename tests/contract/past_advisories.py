"""Security advisories of Nova and what surrounds it -> what must hold since, and the tests that fail when it does not.

The properties are our own words. ``test_past_security_bugs.py`` holds the table against the shared list of bugs, and
each name of a test against the file that it names.
"""

from __future__ import annotations

from tests.contract.proofs import (
    API,
    COMPUTE,
    CONDUCTOR,
    CONSOLE,
    CONTRACT,
    EC2,
    FUNCTIONAL,
    LIBVIRT,
    MACHINE,
    MODEL,
    OBJECTSTORE,
    PRIVILEGED,
    RPC,
    SCHEDULER,
    SIGNATURES,
    TESTING,
    UNIT,
    VMWARE,
    Proof,
)

ADVISORIES: dict[str, Proof] = {
    # --- 2011, 2012
    "OSSA-2011-001": Proof(
        "No path out of an archive or a request names a file outside of the job's folder.",
        (f"{OBJECTSTORE}/test_bundle_tarballs.py"
         "::test_unpack_when_the_tarball_is_hostile_then_it_is_refused_in_little_memory",
         f"{OBJECTSTORE}/test_bundle_manifest.py"
         "::test_parse_when_it_is_hostile_then_it_is_refused_soon_and_in_little_memory",
         f"{LIBVIRT}/test_disks.py::test_config_drive_with_a_path_that_leaves_it_is_refused")),
    "OSSA-2012-001": Proof(
        "A project in the URL that is not the token's is refused on every route.",
        (f"{API}/test_foreign_projects.py"
         "::test_path_when_its_project_is_not_the_tokens_then_it_is_refused_on_every_route",)),
    "OSSA-2012-003": Proof(
        "Names that are too long are 400, and a request adds no more than some KB to the log.",
        (f"{API}/test_log_bytes.py::test_request_when_a_part_of_it_is_huge_then_the_log_grows_by_little",
         f"{API}/test_log_bytes.py::test_request_when_it_ends_in_an_accident_then_the_log_grows_by_little",
         f"{UNIT}/test_logs.py::test_line_when_a_client_chose_its_words_then_it_stays_one_line")),
    "OSSA-2012-005": Proof(
        "Quotas of security groups and rules hold when requests race.",
        (f"{CONDUCTOR}/nova_network/test_security_groups.py::test_groups_when_many_race_then_the_quota_holds",
         f"{CONDUCTOR}/nova_network/test_security_groups.py"
         "::test_rules_when_many_race_then_the_quota_of_each_group_holds",
         f"{CONDUCTOR}/nova_network/test_security_groups.py"
         "::test_rule_when_it_is_there_then_it_is_refused_however_many_race",
         f"{FUNCTIONAL}/test_security_group_races.py"
         "::test_groups_when_many_want_them_at_once_then_names_and_quotas_hold",
         f"{FUNCTIONAL}/test_security_group_races.py"
         "::test_rules_when_many_want_them_at_once_then_each_is_there_once_and_the_quota_holds")),
    "OSSA-2012-007": Proof(
        "A protocol is one word, whatever its capitals, from the request to the filter.",
        (f"{MODEL}/test_security_rules.py::test_rule_when_it_is_good_then_all_of_it_is_said",)),
    "OSSA-2012-008": Proof(
        "No file is written into a guest's file system; those of the config drive stay within it.",
        (f"{LIBVIRT}/test_disks.py::test_config_drive_with_a_path_that_leaves_it_is_refused",)),
    "OSSA-2012-009": Proof(
        "Servers named in hints are looked up in a constant number of statements.",
        (f"{CONDUCTOR}/steps/test_told_to_schedulers.py::test_hints_of_nonsense_ask_the_database_nothing",
         f"{SCHEDULER}/test_hint_filters.py"
         "::test_hosts_of_named_servers_when_many_hosts_are_asked_then_they_are_looked_up_once_for_a_request")),
    "OSSA-2012-011": Proof(
        "Where files may be written does not hang on what the writer can read.",
        (f"{LIBVIRT}/test_disks.py::test_config_drive_with_a_path_that_leaves_it_is_refused",)),
    "OSSA-2012-020": Proof(
        "A device shows nobody what its former guest wrote.",
        (f"{MACHINE}/test_volumes.py"
         "::test_what_a_removed_volume_held_is_read_by_nobody_but_where_the_operator_says_so",
         f"{LIBVIRT}/test_backends.py::test_volume_that_cannot_be_cleared_is_not_given_away")),
    # --- 2013
    "OSSA-2013-001": Proof(
        "A volume is attached with its user's own rights alone.",
        (f"{API}/test_server_disks.py::test_devices_of_either_list_need_a_right_of_their_own",
         f"{UNIT}/clients/test_cinder.py"
         "::test_call_when_the_users_token_is_missing_then_ours_is_not_used_for_it")),
    "OSSA-2013-004": Proof(
        "A document type or an entity in a request is 400 at once; nothing beside the request is read.",
        (f"{UNIT}/legacy/xml/test_xml_reader.py::test_body_when_hostile_or_no_xml_then_is_invalid_and_soon",
         f"{UNIT}/legacy/xml/test_xml_over_http.py::test_body_when_no_good_xml_then_is_a_fault_in_xml",
         f"{CONTRACT}/test_api_hostile.py::test_body_of_another_media_type_is_415")),
    "OSSA-2013-006": Proof(
        "A console's token is dead once its server is gone or its port is another's.",
        (f"{FUNCTIONAL}/test_console_kinds.py::test_server_deleted_then_its_token_is_nobody_s_and_goes_with_it",
         f"{CONDUCTOR}/queries/test_consoles.py::test_token_when_its_port_has_changed_hands_then_it_is_dead",
         f"{CONDUCTOR}/queries/test_living_consoles.py"
         "::test_token_whose_port_is_another_guest_s_by_now_then_it_is_dead",
         f"{CONDUCTOR}/queries/test_consoles.py"
         "::test_token_whose_port_is_another_guest_s_by_now_then_no_administrator_s_proxy_is_sent_there")),
    "OSSA-2013-008": Proof(
        "The quota of fixed addresses holds however one is got.",
        (f"{FUNCTIONAL}/test_address_races.py"
         "::test_quota_of_addresses_when_many_take_at_once_then_it_is_never_exceeded",)),
    "OSSA-2013-010": Proof(
        "Secrets are in folders of their daemon, and one that others can reach is not used.",
        (f"{RPC}/test_host_secret.py::test_secret_when_others_can_reach_it_then_it_is_not_used",
         f"{RPC}/test_host_secret.py::test_secret_is_made_once_and_for_its_daemons_alone",
         f"{COMPUTE}/test_compute_service.py::test_start_when_first_then_an_id_is_made_that_only_we_can_read")),
    "OSSA-2013-012": Proof(
        "What an image would be as a disk is held against the flavor before it is used.",
        (f"{COMPUTE}/test_images.py::test_fetch_of_a_giant_small_qcow2_refuses_before_converting",
         f"{COMPUTE}/test_life.py::test_rescue_then_its_image_may_be_as_large_as_the_guests_own_disk_and_no_larger")),
    "OSSA-2013-019": Proof(
        "A private flavor of others is not there: to show, to list, to boot, to resize to.",
        (f"{API}/test_flavors.py::test_private_flavor_of_others_looks_absent",
         f"{CONDUCTOR}/actions/test_foreign_flavors.py"
         "::test_boot_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there",
         f"{CONDUCTOR}/actions/test_foreign_flavors.py"
         "::test_resize_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there")),
    "OSSA-2013-020": Proof(
        "What a boot costs in refreshed rules is bounded: many requests are one refresh.",
        (f"{COMPUTE}/test_firewall.py::test_refresh_when_many_come_at_once_then_they_wait_for_one_asking",)),
    "OSSA-2013-023": Proof(
        "One module reads XML of requests, by a library that refuses what is dangerous; extensions have none.",
        (f"{UNIT}/test_source_safety.py::test_xml_when_it_is_read_then_it_is_libvirts_or_is_bounded",
         f"{CONTRACT}/test_api_hostile.py::test_body_of_another_media_type_is_415")),
    "OSSA-2013-024": Proof(
        "Whether a flavor may be used is asked where it is read, for boots and resizes alike.",
        (f"{CONDUCTOR}/actions/test_foreign_flavors.py"
         "::test_resize_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there",
         f"{CONDUCTOR}/actions/test_foreign_flavors.py"
         "::test_boot_when_the_flavor_is_private_to_others_then_it_is_as_one_that_is_not_there")),
    "OSSA-2013-026": Proof(
        "A console's text is cut; a message that is too large is an error, and the daemon goes on.",
        (f"{COMPUTE}/test_compute_service.py::test_console_when_the_log_is_huge_then_its_end_comes",
         f"{LIBVIRT}/test_console_text.py::test_tail_of_a_giant_log_is_its_end",
         f"{RPC}/test_large_payloads.py"
         "::test_server_when_a_payload_is_huge_then_an_error_in_few_words_and_it_goes_on",
         f"{RPC}/test_codec.py::test_from_text_when_it_would_unpack_to_too_much_then_malformed")),
    "OSSA-2013-029": Proof(
        "A conversion is bounded in the bytes it writes, in memory and in time.",
        (f"{COMPUTE}/test_images.py::test_convert_beyond_its_limits_fails_and_says_so",
         f"{LIBVIRT}/test_disks.py::test_commands_of_the_image_tool_are_limited")),
    "OSSA-2013-030": Proof(
        "Filters are there before a guest runs, wherever it comes from.",
        (f"{COMPUTE}/test_firewall.py::test_guard_when_nobody_knows_the_guest_then_nothing_reaches_it",
         f"{COMPUTE}/test_firewall.py::test_guard_when_the_kernel_refuses_then_the_guest_does_not_start",
         f"{COMPUTE}/test_reconcile.py"
         "::test_start_when_guests_are_to_be_resumed_then_they_are_filtered_before_or_not_started")),
    "OSSA-2013-033": Proof(
        "Metadata are told where server and project fit together and are signed.",
        (f"{UNIT}/metadata/test_metadata_app.py"
         "::test_signed_guest_is_not_told_from_the_cache_under_another_project",
         f"{CONDUCTOR}/hosts/test_guest_answers.py::test_project_when_it_is_not_the_servers_then_404",
         f"{CONDUCTOR}/hosts/test_guest_answers.py"
         "::test_provider_when_another_projects_port_says_it_is_the_servers_then_404")),
    "OSSA-2013-037": Proof(
        "Users choose no name of a file in the cache, and formatted disks have no shared bases.",
        (f"{LIBVIRT}/test_disks.py::test_filesystem_outside_the_closed_set_is_refused",
         f"{LIBVIRT}/test_disks.py::test_filesystem_is_the_requests_the_operators_or_the_systems",
         f"{COMPUTE}/test_images.py"
         "::test_fetch_when_the_disk_is_full_of_images_that_nobody_uses_then_the_oldest_go_for_it")),
    # --- 2014
    "OSSA-2014-001": Proof(
        "What a guest's disks hold is read by nobody else on the host, also while it is written.",
        (f"{LIBVIRT}/test_private_files.py"
         "::test_disks_when_a_guest_lives_then_no_file_was_ever_readable_by_others",
         f"{PRIVILEGED}/test_runner.py"
         "::test_file_when_a_program_makes_it_then_the_private_runners_is_for_nobody_else",
         f"{UNIT}/clients/test_image_data.py::test_download_writes_a_private_file_with_the_data")),
    "OSSA-2014-003": Proof(
        "A disk that arrives lies over an image of this host or one that was checked, never over a guest's.",
        (f"{LIBVIRT}/test_libvirt_moves.py::test_image_of_somebody_else_is_not_taken_for_the_base",
         f"{LIBVIRT}/test_libvirt_moves.py::test_cached_image_of_another_size_is_not_taken_for_the_base")),
    "OSSA-2014-009": Proof(
        "A disk's format is what our record says, whatever a guest wrote to it.",
        (f"{LIBVIRT}/test_guest_written_headers.py::test_rescue_when_a_guest_wrote_an_images_header_then_its_disk_is_"
         "raw_to_the_rescue_system",
         f"{LIBVIRT}/test_guest_xml.py"
         "::test_overlay_names_its_backing_file_and_format_so_that_nothing_is_guessed")),
    "OSSA-2014-011": Proof(
        "One rule decides, whichever API is asked.",
        (f"{EC2}/test_ec2_policy_file.py::test_deed_when_the_policy_file_forbids_it_then_no_api_does_it",
         f"{EC2}/test_ec2_isolation.py::test_reader_when_it_would_change_something_then_policy_forbids_it")),
    "OSSA-2014-017": Proof(
        "A rescued server that is deleted leaves nothing.",
        (f"{LIBVIRT}/test_rescue.py::test_rescued_guest_that_is_removed_leaves_nothing",
         f"{FUNCTIONAL}/test_random_walk.py"
         "::test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say"),
        not_yet="There is no VMware driver.", absent=VMWARE),
    "OSSA-2014-024": Proof(
        "Secrets are compared in constant time.",
        (f"{UNIT}/test_source_safety.py::test_secrets_when_they_are_compared_then_in_constant_time",)),
    "OSSA-2014-032": Proof(
        "A server in ERROR is deleted as cleanly as any.",
        (f"{FUNCTIONAL}/test_random_walk.py"
         "::test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say",
         f"{LIBVIRT}/test_rescue.py"
         "::test_rescue_that_dies_while_its_disk_is_made_is_written_down_and_leaves_nothing",
         f"{LIBVIRT}/test_rescue.py::test_rescue_that_dies_on_its_way_is_cleaned_by_unrescue_and_goes_on_when_repeated"),
        not_yet="There is no VMware driver.", absent=VMWARE),
    "OSSA-2014-035": Proof(
        "No two guests are given one port, and a console is checked to be its server's.",
        (f"{LIBVIRT}/test_serial_lines.py::test_choose_when_many_are_defined_at_once_then_no_two_have_the_same",
         f"{CONDUCTOR}/queries/test_consoles.py"
         "::test_token_whose_port_is_another_guest_s_by_now_then_no_administrator_s_proxy_is_sent_there")),
    "OSSA-2014-036": Proof(
        "A secret of a request is in no log, at any level.",
        (f"{FUNCTIONAL}/test_planted_secrets.py"
         "::test_logs_when_all_that_has_secrets_was_asked_for_then_none_is_in_them",
         f"{COMPUTE}/test_compute_service.py::test_logs_when_a_guest_is_built_then_no_secret_is_in_them",
         f"{RPC}/test_host_secret.py::test_registration_shows_no_secret_in_a_log")),
    "OSSA-2014-037": Proof(
        "A server that is deleted in the middle of a move leaves nothing on either host.",
        (f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_it_overtakes_a_move_then_no_host_has_anything",
         f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_the_state_was_reset_in_a_move_then_no_host_has_anything",
         f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_the_server_is_resized_then_both_hosts_have_nothing",
         f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_one_of_two_hosts_fails_then_the_other_was_asked_and_the_next_delete_ends_it",
         f"{COMPUTE}/test_guest_moves.py"
         "::test_resize_on_the_same_host_when_deleted_before_confirmation_then_nothing_is_left"),
        not_yet="There is no VMware driver.", absent=VMWARE),
    "OSSA-2014-038": Proof(
        "A filter's expression ends in a bounded time, and a list's cost does not grow with its servers.",
        (f"{CONDUCTOR}/queries/test_patterns_share.py"
         "::test_list_when_a_pattern_would_take_for_ever_then_it_is_soon_done",
         f"{CONDUCTOR}/queries/test_patterns_share.py"
         "::test_list_when_the_projects_patterns_are_under_way_then_too_many_and_others_go_on",
         f"{FUNCTIONAL}/test_database_kinds.py"
         "::test_pattern_when_it_would_take_for_ever_then_it_is_broken_off",
         f"{UNIT}/test_patterns.py::test_pattern_when_the_text_is_hostile_then_it_is_soon_done")),
    # --- 2015, 2016
    "OSSA-2015-005": Proof(
        "A page of another site or scheme opens no console.",
        (f"{CONSOLE}/test_console_origins.py::test_page_of_another_site_or_scheme_may_not",
         f"{CONSOLE}/test_console_app.py"
         "::test_websocket_that_may_not_is_refused_in_words_before_the_guest_is_reached")),
    "OSSA-2015-015": Proof(
        "A delete ends copies under way, and what they wrote goes.",
        (f"{COMPUTE}/test_guest_moves.py::test_leave_when_a_delete_comes_then_nothing_is_left",
         f"{COMPUTE}/test_snapshots.py::test_snapshot_when_a_delete_comes_then_nothing_is_left",
         f"{COMPUTE}/test_snapshots.py::test_upload_when_a_delete_comes_then_it_breaks_off_and_nothing_is_left",
         f"{COMPUTE}/test_guest_moves.py::test_fetch_when_a_delete_comes_then_the_copy_breaks_off"),
        limit="An image's download goes on to its end: others may wait for it, and the cache keeps it."),
    "OSSA-2015-017": Proof(
        "After a delete no host has a file of the server, and the quota says the same.",
        (f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_it_overtakes_a_move_then_no_host_has_anything",
         f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_it_has_begun_then_what_it_overtook_claims_nothing_more",
         f"{FUNCTIONAL}/test_random_walk.py"
         "::test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say")),
    "OSSA-2015-021": Proof(
        "Each change of a rule reaches the filters of guests that run.",
        (f"{CONDUCTOR}/nova_network/test_security_groups.py"
         "::test_rule_when_it_is_made_or_deleted_then_only_hosts_of_members_are_told",
         f"{MACHINE}/test_host_firewall.py::test_connections_when_a_rule_is_opened_and_closed_then_they_follow_and_no_"
         "change_lets_one_through",)),
    "OSSA-2016-001": Proof(
        "A snapshot reads a disk in the format on record, whatever a guest wrote to it.",
        (f"{LIBVIRT}/test_guest_written_headers.py::test_snapshot_when_a_guest_wrote_an_images_header_then_it_has_"
         "that_and_nothing_of_the_host",
         f"{LIBVIRT}/test_guest_written_headers.py"
         "::test_snapshot_in_another_format_when_a_guest_wrote_an_images_header_then_the_same")),
    "OSSA-2016-002": Proof(
        "Data of a volume's connection are in no log.",
        (f"{CONDUCTOR}/actions/test_volumes.py"
         "::test_connection_when_it_holds_a_secret_then_no_record_and_no_log_has_it",
         f"{COMPUTE}/test_guest_volumes.py"
         "::test_secret_of_a_connection_when_orders_are_carried_out_then_no_file_log_line_or_outcome_has_it")),
    "OSSA-2016-007": Proof(
        "No format is guessed in a move, either.",
        (f"{LIBVIRT}/test_libvirt_moves.py::test_source_that_lies_is_refused",
         f"{LIBVIRT}/test_guest_written_headers.py"
         "::test_resize_when_a_guest_wrote_an_images_header_then_the_disk_grows_as_bytes",
         f"{LIBVIRT}/test_libvirt_moves.py"
         "::test_config_drive_that_would_show_files_of_the_destination_is_refused")),
    "OSSA-2016-011": Proof(
        "A server that is deleted in the middle of a resize leaves no file.",
        (f"{CONDUCTOR}/actions/test_overtaken_moves.py"
         "::test_delete_when_it_overtakes_a_move_then_no_host_has_anything",
         f"{COMPUTE}/test_guest_moves.py"
         "::test_resize_on_the_same_host_when_deleted_before_confirmation_then_nothing_is_left",
         f"{COMPUTE}/test_guest_moves.py::test_leave_when_a_delete_comes_then_nothing_is_left",
         f"{COMPUTE}/test_guest_moves.py::test_restart_when_a_guest_put_aside_was_deleted_then_it_is_removed")),
    "OSSA-2016-012": Proof(
        "What looks at images has limits of memory and time, and ends beyond them.",
        (f"{PRIVILEGED}/test_image_tool.py::test_call_when_it_is_any_then_it_has_limits",
         f"{PRIVILEGED}/test_image_tool.py::test_limits_when_a_tool_would_eat_more_then_it_is_ended_soon",
         f"{COMPUTE}/test_image_format_limits.py"
         "::test_look_when_any_number_of_the_head_is_huge_then_it_ends_soon_with_little_memory")),
    # --- 2017 to 2021
    "OSSA-2017-002": Proof(
        "Notifications and what they log hold no token and no password.",
        (f"{UNIT}/notifications/test_payloads.py::test_payloads_when_a_row_holds_secrets_then_they_are_in_none",
         f"{UNIT}/notifications/test_payloads.py"
         "::test_failure_when_it_was_raised_then_its_place_is_told_and_no_value",
         f"{UNIT}/notifications/test_oslo.py::test_message_when_it_goes_out_then_envelope_and_context_are_whole")),
    "OSSA-2017-005": Proof(
        "A rebuild asks the scheduler's rules again for its new image.",
        (f"{CONDUCTOR}/actions/test_one_host_admission.py"
         "::test_rebuild_when_its_host_does_not_suit_the_image_then_the_row_shows_the_old_one",
         f"{UNIT}/scheduler/test_prefilters.py"
         "::test_rebuild_when_the_image_cannot_run_here_then_it_is_refused_and_other_rules_are_not_asked")),
    "OSSA-2017-006": Proof(
        "A rebuilt server is allocated what it was before.",
        (f"{CONDUCTOR}/actions/test_one_host_admission.py"
         "::test_rebuild_then_the_row_the_answer_the_order_and_the_ledger_say_what_it_is_now",)),
    "OSSA-2018-001": Proof(
        "A volume's encryption is told in each order, and an encrypted volume takes no other's place.",
        (f"{CONDUCTOR}/actions/test_volume_swaps.py"
         "::test_swap_when_it_cannot_be_then_refused_and_nothing_is_changed",
         f"{LIBVIRT}/test_luks_volumes.py"
         "::test_encryption_when_the_order_does_not_say_how_then_the_volume_is_refused")),
    "OSSA-2019-003": Proof(
        "A fault shows its details to administrators alone, whatever went wrong.",
        (f"{API}/test_servers.py::test_fault_of_any_code_then_its_details_are_for_admins_alone",
         f"{API}/test_servers.py::test_fault_is_shown_in_error_with_details_for_admins",
         f"{CONDUCTOR}/engine/test_blame.py"
         "::test_fault_when_its_cause_names_hosts_then_the_owner_reads_none_and_admins_all",
         f"{CONDUCTOR}/engine/test_blame.py"
         "::test_fault_when_its_cause_names_addresses_of_the_cloud_then_the_owner_reads_none")),
    "OSSA-2020-001": Proof(
        "A console's token is in no log.",
        (f"{CONSOLE}/test_console_app.py::test_no_log_line_has_a_token",
         f"{FUNCTIONAL}/test_console_proxies.py"
         "::test_proxy_when_told_to_stop_then_users_are_told_and_no_log_has_a_token",
         f"{CONDUCTOR}/queries/test_living_consoles.py"
         "::test_console_opened_and_used_then_no_log_has_its_token")),
    "OSSA-2020-003": Proof(
        "A signed EC2 or S3 request is fresh, or refused before the identity service is asked.",
        (f"{EC2}/test_ec2_app.py::test_signature_when_it_is_of_another_time_then_it_has_expired",
         f"{SIGNATURES}/test_signers.py::test_ec2_when_it_is_old_then_it_is_refused_before_keystone_is_asked",
         f"{SIGNATURES}/test_signatures_ec2.py::test_timestamp_when_it_is_far_from_ours_then_it_is_refused",
         f"{SIGNATURES}/test_signatures_ec2.py::test_timestamp_when_a_narrower_bound_is_given_then_it_holds",
         f"{SIGNATURES}/test_signatures_v4.py::test_v4_when_its_time_is_far_from_ours_then_it_is_refused")),
    "OSSA-2020-004": Proof(
        "An EC2 caller's roles are those it has now.",
        (f"{SIGNATURES}/test_signers.py"
         "::test_signer_when_a_role_is_given_or_taken_then_the_next_request_has_what_there_is_now",
         f"{TESTING}/test_fake_keystone_ec2.py"
         "::test_signature_when_the_secret_the_key_or_the_role_is_wrong_then_it_is_refused")),
    "OSSA-2020-006": Proof(
        "A guest that arrived is defined by the paths and devices of its destination.",
        (f"{LIBVIRT}/test_libvirt_moves.py"
         "::test_landed_guest_when_it_is_started_anew_then_it_has_what_it_runs_with",
         f"{LIBVIRT}/test_libvirt_moves.py::test_guest_on_shared_storage_moves_and_stays_where_it_is",
         f"{LIBVIRT}/test_arrival.py::test_arrival_when_all_differs_then_paths_and_devices_are_the_destinations")),
    "OSSA-2021-002": Proof(
        "The proxy answers //elsewhere with 400, and leads nobody to another site.",
        (f"{CONSOLE}/test_console_app.py::test_tricks_with_paths_give_neither_files_nor_redirects",)),
    # --- 2023 on
    "OSSA-2023-002": Proof(
        "An image that refers to another file is refused before a tool opens it.",
        (f"{COMPUTE}/test_image_format.py::test_look_at_a_lying_or_harmful_image_refuses",)),
    "OSSA-2023-003": Proof(
        "A device is gone from the host before its volume's back end lets go, and no guest gets another volume's.",
        (f"{CONDUCTOR}/actions/test_volumes.py"
         "::test_detach_when_the_guest_does_not_let_go_then_it_has_it_as_before",
         f"{CONDUCTOR}/steps/test_attachments.py"
         "::test_reboot_when_an_attachment_is_gone_then_the_guest_does_not_get_the_volume",
         f"{LIBVIRT}/test_brick_volumes.py::test_device_when_it_is_not_what_it_was_then_no_guest_gets_it",
         f"{LIBVIRT}/test_brick_volumes.py"
         "::test_device_when_another_volume_has_it_here_then_it_is_refused_and_left_to_that",
         f"{LIBVIRT}/test_brick_volumes.py"
         "::test_device_when_it_is_refused_then_those_connected_before_it_are_let_go")),
    "OSSA-2024-001": Proof(
        "A qcow2 with a data file or a backing file is refused.",
        (f"{COMPUTE}/test_image_format.py::test_look_at_a_lying_or_harmful_image_refuses",
         f"{LIBVIRT}/test_libvirt_moves.py::test_source_that_lies_is_refused")),
    "OSSA-2024-002": Proof(
        "An image is what it is declared to be, or refused.",
        (f"{COMPUTE}/test_image_format.py::test_look_at_a_lying_or_harmful_image_refuses",)),
    "OSSA-2025-002": Proof(
        "A signature is checked with the service's own credential, and only services may ask for the check.",
        (f"{SIGNATURES}/test_signers.py"
         "::test_signature_when_it_is_checked_then_by_the_services_credential_and_for_its_own_request_alone",
         f"{SIGNATURES}/test_signers.py"
         "::test_signers_when_keystone_is_away_or_refuses_us_then_the_caller_is_not_blamed",
         f"{TESTING}/test_fake_keystone_ec2.py"
         "::test_signature_when_a_service_asks_then_it_gets_a_token_of_the_keys_project")),
    "OSSA-2026-002": Proof(
        "Each call of the image tool states the formats.",
        (f"{UNIT}/test_source_safety.py"
         "::test_image_tool_when_it_is_called_then_by_the_one_module_that_states_formats",
         f"{PRIVILEGED}/test_image_tool.py::test_call_when_it_names_a_file_then_its_format_is_stated",
         f"{LIBVIRT}/test_guest_written_headers.py"
         "::test_resize_when_a_guest_wrote_an_images_header_then_the_disk_grows_as_bytes")),
    "OSSA-2026-005": Proof(
        "EC2 credentials give no more than what they were made with.",
        (f"{TESTING}/test_fake_keystone_ec2.py"
         "::test_ec2_credentials_when_the_token_is_of_a_restricted_credential_then_it_makes_and_reads_none",
         f"{TESTING}/test_fake_keystone_ec2.py::test_token_of_an_ec2_credential_then_it_is_not_exchanged_for_another")),
    "OSSA-2026-022": Proof(
        "No hint of a user is one of our own words.",
        (f"{CONDUCTOR}/steps/test_told_to_schedulers.py"
         "::test_hints_when_they_are_our_own_words_then_all_is_asked_and_claimed_as_without_them",
         f"{CONDUCTOR}/steps/test_told_to_schedulers.py"
         "::test_hints_when_they_are_our_own_words_then_no_filter_reads_them")),
}
