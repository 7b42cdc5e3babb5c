"""What hurts operators and users of Nova -> the property that answers it here, and the tests that fail without it.

Keys are those of the list of complaints, A1 to F6. ``test_operators_properties.py`` holds the table against that list,
and each name of a test against the file that it names.
"""

from __future__ import annotations

from tests.contract.proofs import (
    BARE_METAL,
    COMPUTE,
    CONDUCTOR,
    CONTRACT,
    FUNCTIONAL,
    LIBVIRT,
    MACHINE,
    MODEL,
    RPC,
    SCHEDULER,
    UNIT,
    Proof,
)

ACTIONS, MANAGE, NEUTRON = f"{CONDUCTOR}/actions", f"{UNIT}/manage", f"{CONDUCTOR}/neutron"
EVERY_STEP = f"{FUNCTIONAL}/test_every_step.py"

PROPERTIES: dict[str, Proof] = {
    # --- stuck and lost things
    "A1": Proof(
        "Every operation is a row with an owner; after a kill at any step the server ends in ACTIVE or ERROR.",
        (f"{EVERY_STEP}::test_step_when_the_conductor_dies_then_another_ends_it",
         f"{EVERY_STEP}::test_step_when_a_host_dies_then_it_ends_and_nothing_is_left",
         f"{FUNCTIONAL}/test_kills.py"
         "::test_server_when_a_process_dies_at_a_step_then_it_ends_well_and_leaves_nothing")),
    "A2": Proof(
        "A host that starts resumes or undoes what it had begun, and a repeated start changes nothing.",
        (f"{COMPUTE}/test_reconcile.py::test_start_when_a_half_built_guest_is_gone_then_nothing_is_left",
         f"{FUNCTIONAL}/test_life_kills.py"
         "::test_action_when_a_process_dies_at_a_step_then_it_ends_well_and_leaves_nothing")),
    "A3": Proof(
        "What hosts have and no record knows is found, reported, adopted or removed as an operator says.",
        (f"{CONDUCTOR}/upkeep/test_host_orphans.py"
         "::test_report_when_no_record_knows_a_guest_then_it_is_listed_and_logged_once",
         f"{CONDUCTOR}/upkeep/test_guest_takeover.py"
         "::test_adopt_when_no_record_knows_the_guest_then_it_is_a_server_with_all_that_it_had",
         f"{EVERY_STEP}::test_step_when_it_fails_after_its_work_then_it_is_undone_or_done")),
    "A4": Proof(
        "Attachments of volumes are resumable, and what the volume service was not told is told until it is done.",
        (f"{ACTIONS}/test_volumes.py"
         "::test_attach_when_the_conductor_dies_after_the_reservation_then_it_is_given_back",
         f"{ACTIONS}/test_volumes.py::test_each_step_when_it_is_done_twice_then_the_end_is_the_same",
         f"{ACTIONS}/test_volumes.py::test_detach_when_the_attachment_cannot_be_deleted_then_it_is_later",
         f"{ACTIONS}/test_volumes.py"
         "::test_delete_when_the_volume_service_is_away_then_the_server_is_gone_and_the_rest_follows")),
    "A5": Proof(
        "An order has a time to begin by, and a host refuses what is older or comes too late.",
        (f"{COMPUTE}/test_orders.py"
         "::test_admit_when_past_its_start_time_then_refused_but_older_ones_are_fenced",
         f"{COMPUTE}/test_orders.py::test_admit_when_the_same_epoch_was_ordered_away_then_a_late_build_is_refused")),
    "A6": Proof(
        "A server has one owner at any time, and a migration ends within a bound.",
        (f"{LIBVIRT}/test_arrival.py::test_watch_when_the_time_is_over_then_once_what_the_operator_said",
         f"{ACTIONS}/test_overtaken_moves.py"
         "::test_live_migration_when_the_source_dies_having_sent_it_then_the_guest_is_found_where_it_is",
         f"{FUNCTIONAL}/test_life_kills.py"
         "::test_live_migration_when_the_broker_restarts_in_its_midst_then_the_guest_runs_on_one_host")),
    "A7": Proof(
        "Nothing is destroyed by inference, and a host with another name does not start.",
        (f"{COMPUTE}/test_reconcile.py::test_start_when_a_guest_is_in_no_record_then_it_is_named_in_the_log_and_left",
         f"{FUNCTIONAL}/test_operations.py"
         "::test_compute_when_its_name_is_anothers_then_it_refuses_with_the_cure",
         f"{FUNCTIONAL}/test_restored_cloud.py::test_cloud_when_it_goes_on_from_an_older_database_then_its_servers_"
         "obey_and_new_numbers_meet_no_old_ones")),
    # --- placement and capacity
    "B1": Proof(
        "What is held of hosts is what servers and moves need, and an audit looks all the time.",
        (f"{CONDUCTOR}/upkeep/test_continuous_audit.py"
         "::test_audit_when_a_deleted_server_still_holds_then_it_is_given_back_and_written_down",
         f"{FUNCTIONAL}/test_random_walk.py"
         "::test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say")),
    "B2": Proof(
        "Repair is built in, repairs only what a record proves, and writes each repair down.",
        (f"{CONDUCTOR}/upkeep/test_continuous_audit.py"
         "::test_audit_when_the_cloud_is_healthy_then_it_finds_and_changes_nothing",
         f"{CONDUCTOR}/upkeep/test_continuous_audit.py"
         "::test_audit_when_a_deleted_server_still_holds_then_it_is_given_back_and_written_down")),
    "B3": Proof(
        "Inventories, allocations, and a whole api database are derived again from hosts and servers.",
        (f"{CONDUCTOR}/upkeep/test_allocation_audit.py"
         "::test_rebuild_when_inventories_and_allocations_are_ruined_then_both_are_derived_again",
         f"{FUNCTIONAL}/test_restored_cloud.py"
         "::test_cloud_when_its_api_database_is_lost_then_its_servers_live_on_count_and_can_be_deleted")),
    "B4": Proof(
        "A host has an id that is made once, and conflicts of names are explained with the cure.",
        (f"{CONDUCTOR}/hosts/test_renamed_hosts.py"
         "::test_register_when_a_host_was_renamed_then_it_is_refused_and_told_its_old_name",
         f"{CONDUCTOR}/hosts/test_renamed_hosts.py"
         "::test_register_when_another_machine_has_its_name_then_it_is_refused_with_both_cures")),
    "B5": Proof(
        "Any sequence of operations leaves usage equal to the sum over servers.",
        (f"{UNIT}/db/test_claims_of_trees.py"
         "::test_claims_when_servers_hosts_and_moves_change_in_any_order_then_nothing_is_given_twice",
         f"{FUNCTIONAL}/test_random_walk.py"
         "::test_walk_when_faults_come_at_random_then_after_each_action_all_is_as_the_records_say")),
    "B6": Proof(
        "Membership of a group is claimed with the resources.",
        (f"{FUNCTIONAL}/test_server_group_races.py"
         "::test_anti_affinity_when_claims_race_then_every_place_is_taken_once",
         f"{FUNCTIONAL}/test_server_group_races.py::test_affinity_when_claims_race_then_all_are_on_one_host")),
    "B7": Proof(
        "Where no host is valid, operators see each filter's count and the nearest miss; users see what was unmet.",
        (f"{CONDUCTOR}/queries/test_request_traces.py"
         "::test_show_when_no_host_was_valid_then_it_prints_filters_counts_and_the_nearest_miss",
         f"{SCHEDULER}/test_reasons.py"
         "::test_explain_names_requirements_to_users_and_filters_with_counts_to_admins")),
    # --- scale and speed
    "C1": Proof(
        "A page of servers with details costs three statements, whatever its length, by indexes, and a server of a "
        "long page costs no more than one of a short page.",
        (f"{CONDUCTOR}/queries/test_statement_counts.py"
         "::test_page_with_details_costs_three_statements_with_a_marker",
         f"{CONDUCTOR}/queries/test_statement_counts.py"
         "::test_page_of_1000_with_details_costs_as_many_statements_and_no_more_time_a_server_than_one_of_100",
         f"{FUNCTIONAL}/test_list_indexes.py::test_page_of_the_default_order_is_found_in_the_index_alone")),
    "C2": Proof(
        "Boots of many servers go on side by side, on a host and in the cloud: of 100 at once, 95 are active within a "
        "few times what one takes.",
        (f"{FUNCTIONAL}/test_parallel_boots.py"
         "::test_boots_when_100_are_asked_for_at_once_then_p95_is_within_a_factor_of_the_single_one",
         f"{COMPUTE}/test_batches.py"
         "::test_build_when_200_are_ordered_then_one_question_is_asked_and_nothing_is_told_before_the_end",
         f"{FUNCTIONAL}/test_boot.py::test_boot_when_asked_for_many_then_each_is_active_and_all_go_at_once",
         f"{CONDUCTOR}/queries/test_statement_counts.py"
         "::test_many_servers_of_one_host_cost_no_statement_each")),
    "C3": Proof(
        "No lock is a host's: a report of hundreds of nodes that takes long holds up no order.",
        (f"{COMPUTE}/test_many_nodes.py::test_build_when_a_report_of_many_nodes_takes_long_then_it_does_not_wait",)),
    "C4": Proof(
        "An idle fleet writes little: beats are written in batches, and hosts send what changed.",
        (f"{CONDUCTOR}/hosts/test_idle_fleet.py::test_fleet_when_it_is_idle_then_a_host_costs_under_two_statements_a_minute",
         f"{COMPUTE}/test_inventory.py::test_send_when_nothing_changed_then_nothing_is_sent",
         f"{COMPUTE}/test_periodic.py::test_jobs_when_many_hosts_start_together_then_they_are_spread")),
    "C5": Proof(  # by design: two concurrency modes
        "Daemons run in two modes, green and native threads; each module is tested in the modes that its daemons have, "
        "what native threads share is made once, and a worker whose loop stands still is replaced.",
        (f"{UNIT}/test_decoding.py"
         "::test_types_when_native_threads_decode_them_first_at_once_then_all_get_values",
         f"{UNIT}/test_concurrency.py"
         "::test_call_when_many_that_last_are_under_way_then_it_does_not_wait_for_them",
         f"{UNIT}/test_green_names.py::test_nova_then_no_clause_names_a_class_that_green_threads_replace",
         f"{FUNCTIONAL}/test_monitoring_live.py"
         "::test_worker_when_it_is_killed_then_its_counts_stay_and_the_daemon_is_ready_again")),
    # --- message bus and database
    "D1": Proof(
        "Readiness is a round trip over the bus, a deaf daemon ends itself, and connections that break need no hand.",
        (f"{FUNCTIONAL}/test_broken_connections.py::test_connections_when_they_break_at_random_then_what_is_accepted_ends_"
         "and_all_daemons_are_back",
         f"{RPC}/test_rpc_watchdog.py"
         "::test_watchdog_when_an_expected_message_does_not_come_then_silence_grows_from_the_first",
         f"{FUNCTIONAL}/test_monitoring_live.py"
         "::test_ready_when_no_conductor_answers_then_those_that_need_one_are_not_and_say_why")),
    "D2": Proof(
        "Reconnects are spread over time, without an option to be set.",
        (f"{FUNCTIONAL}/test_broker_returns.py"
         "::test_daemons_when_the_broker_returns_then_they_come_back_spread_over_time",
         f"{RPC}/test_reconnects.py"
         "::test_transport_when_nothing_is_set_then_each_process_waits_for_a_time_of_its_own")),
    "D3": Proof(
        "A call without an answer names service, host, method and seconds, and when the host was last heard of.",
        (f"{CONDUCTOR}/hosts/test_host_calls.py"
         "::test_call_when_there_is_no_answer_then_the_error_says_when_the_host_was_last_heard_of",)),
    "D4": Proof(
        "Deleted rows go by themselves in small batches, and the databases of a steady cloud level off.",
        (f"{FUNCTIONAL}/test_million.py"
         "::test_rows_when_a_million_servers_came_and_went_then_there_are_as_many_as_early_on",
         f"{FUNCTIONAL}/test_million.py"
         "::test_statements_when_a_million_servers_came_and_went_then_they_read_as_much_as_early_on")),
    "D5": Proof(
        "Migrations can be interrupted; data migrations run by themselves; too old a peer is refused in words.",
        (f"{FUNCTIONAL}/test_schema_resumed.py::test_sync_when_it_died_at_each_step_then_the_next_goes_on",
         f"{CONDUCTOR}/upkeep/test_data_migrations.py"
         "::test_turns_when_pages_are_small_then_each_goes_on_where_the_last_one_stopped",
         f"{CONDUCTOR}/hosts/test_control_daemons.py"
         "::test_register_when_its_release_is_too_old_to_work_beside_ours_then_refused_in_words")),
    "D6": Proof(
        "Usage is summed in the transaction that changes it, races exceed no quota, and without its shard a create is "
        "refused.",
        (f"{FUNCTIONAL}/test_quota_races.py::test_quota_when_fifty_creates_race_then_exactly_the_limit_gets_through",
         f"{FUNCTIONAL}/test_cut_cell.py"
         "::test_reads_when_the_cell_is_cut_then_they_are_partial_by_version_and_whole_again_after")),
    # --- installing, upgrading, understanding
    "E1": Proof("A host registers by starting: nothing is mapped.",
                (f"{FUNCTIONAL}/test_boot.py"
                 "::test_boot_when_asked_for_one_then_it_is_active_with_host_and_address",)),
    "E2": Proof(
        "One command makes a cloud; the install page works word by word; the doctor says what is wrong.",
        ("fresh/test_fresh.py::test_machine_when_unlike_ours_then_its_cloud_answers_or_a_line_says_what_to_do",
         "books/test_install.py"
         "::test_page_when_its_blocks_are_done_in_order_then_a_guest_answers_and_moves",
         f"{FUNCTIONAL}/test_operations.py"
         "::test_doctor_when_things_are_well_and_when_not_then_it_tells_them_apart")),
    "E3": Proof(
        "Each credential is tried, and the message names its section.",
        (f"{MANAGE}/test_keystone_credentials.py"
         "::test_credentials_when_keystone_takes_or_refuses_them_then_their_section_is_named",)),
    "E4": Proof("One thing has one name in documents, commands and messages.",
                (f"{UNIT}/test_names.py::test_identifiers_then_they_are_in_the_fields_own_words",
                 f"{UNIT}/test_words.py::test_page_has_short_sentences_and_no_idioms")),
    "E5": Proof(
        "The release before is upgraded daemon by daemon under load, and back again, and nothing has to be pinned.",
        (f"{FUNCTIONAL}/test_upgrade.py::test_upgrade_when_daemons_change_one_by_one_under_load_then_no_request_fails_"
         "and_nothing_is_lost",)),
    "E6": Proof(
        "What another service has is shown as it has it, left out while nobody knows, or refused with 503, and never "
        "stale, empty or made up; what a version of the API does is said by tables and by no other code.",
        (f"{NEUTRON}/test_neutron_boots.py"
         "::test_groups_shown_when_port_security_is_off_then_there_are_none_and_those_of_other_ports_stand",
         f"{NEUTRON}/test_neutron_boots.py"
         "::test_create_when_port_security_is_off_then_its_answer_and_the_server_have_no_groups",
         f"{NEUTRON}/test_neutron_boots.py"
         "::test_groups_shown_when_neutron_is_away_then_they_are_not_known_until_it_is_back",
         f"{NEUTRON}/test_neutron_boots.py"
         "::test_servers_when_their_groups_changed_in_neutron_then_they_are_shown_by_one_call_for_the_page",
         f"{NEUTRON}/test_neutron_health.py"
         "::test_metadata_when_groups_changed_in_neutron_then_they_are_told_after_the_next_look_or_event",
         f"{CONDUCTOR}/queries/test_neighbours_away.py"
         "::test_call_when_the_neighbour_does_not_answer_then_it_is_503_and_names_it",
         f"{CONDUCTOR}/queries/test_neighbours_away.py"
         "::test_list_when_nobody_there_has_such_a_list_then_it_is_503_and_not_a_thing_that_is_missing",
         f"{CONTRACT}/test_api_neighbours.py"
         "::test_read_when_the_service_behind_it_does_not_answer_then_it_is_503_and_says_which",
         f"{FUNCTIONAL}/test_cut_cell.py"
         "::test_reads_when_the_cell_is_cut_then_they_are_partial_by_version_and_whole_again_after",
         f"{CONTRACT}/test_microversions.py"
         "::test_versions_that_change_something_in_the_tables_are_those_that_the_contract_says",
         f"{CONTRACT}/test_microversions.py"
         "::test_version_when_something_depends_on_it_then_a_table_says_so_and_no_other_code_compares_it",
         f"{CONTRACT}/test_api_routes.py::test_route_at_every_version_exists_when_the_contract_says")),
    "E7": Proof(
        "A boot is twenty lines at most at INFO over all daemons, each with its request; one command prints the story.",
        (f"{FUNCTIONAL}/test_traces_live.py::test_boot_when_it_is_done_then_all_daemons_wrote_twenty_lines_at_most",
         f"{FUNCTIONAL}/test_traces_live.py"
         "::test_logs_when_they_are_json_then_a_boots_lines_say_service_step_and_trace",
         f"{CONDUCTOR}/queries/test_request_traces.py"
         "::test_show_when_a_host_refused_its_claim_then_each_attempt_and_the_hosts_are_told")),
    "E8": Proof("Metadata and config drive each tell what they should after a change.",
                (f"{MACHINE}/test_config_drives.py"
                 "::test_drive_and_service_when_the_server_lives_then_each_tells_what_it_should",)),
    "E9": Proof(
        "One call drains a host, with limits, progress, and a reason for each server that stays.",
        (f"{MANAGE}/test_host_drain.py"
         "::test_drain_when_some_cannot_leave_then_the_others_do_and_each_has_its_reason",)),
    # --- guests and devices
    "F1": Proof("The hypervisor itself compares processors before a move, and missing flags are named.",
                (f"{MACHINE}/test_moves.py"
                 "::test_live_migration_when_the_processor_is_missing_flags_then_they_are_named",)),
    "F2": Proof(
        "A guest runs only once its network is there, by events, with a time-out that an operator chooses.",
        (f"{COMPUTE}/test_plug_events.py"
         "::test_build_when_the_network_is_not_there_yet_then_the_guest_is_held_until_all_of_it_is",)),
    "F3": Proof(
        "Volume operations of one host do not race between services.",
        (*(f"{ACTIONS}/test_volume_races.py::{name}" for name in (
            "test_attaches_when_two_servers_ask_for_one_volume_at_once_then_one_has_it",
            "test_attaches_when_one_server_gets_two_volumes_at_once_then_each_has_a_name_of_its_own",
            "test_detaches_when_they_come_twice_at_once_then_one_does_it_and_the_volume_is_free",
            "test_attach_when_the_server_is_deleted_at_once_then_the_volume_is_free_in_the_end",
            "test_deletes_when_servers_of_one_volume_go_at_once_then_it_is_free")),
         f"{LIBVIRT}/test_volume_kinds.py"
         "::test_export_when_one_guest_comes_while_the_last_goes_then_it_is_mounted_in_the_end",
         f"{LIBVIRT}/test_volume_kinds.py"
         "::test_export_when_several_guests_use_it_then_it_is_mounted_once_and_unmounted_with_the_last",
         f"{CONDUCTOR}/steps/test_attachments.py"
         "::test_reboot_when_an_attachment_is_just_being_made_then_it_stays")),
    "F4": Proof(
        "Options that were changed under existing guests are said when the host starts.",
        (f"{COMPUTE}/test_reconcile.py"
         "::test_start_when_an_option_was_changed_under_a_guest_then_a_line_says_which",)),
    "F5": Proof(
        "What a server has and cannot take along is refused at once, in words of one table, with nothing begun; a "
        "drain's plan and nova-manage server show say the same words beforehand, and what is not in the table begins.",
        (f"{ACTIONS}/test_refused_actions.py::test_begin_of_every_action_when_a_server_has_something_then_"
         "what_the_table_names_is_refused_and_no_more",
         f"{ACTIONS}/test_refused_actions.py::test_call_when_the_table_refuses_its_action_then_it_is_a_"
         "conflict_at_once_and_nothing_is_begun",
         f"{ACTIONS}/test_refused_actions.py::test_plan_of_a_drain_when_a_server_may_not_migrate_live_then_it_"
         "says_the_words_of_the_refusal",
         f"{MODEL}/test_action_restrictions.py::test_restriction_when_a_server_has_something_then_it_refuses_these_"
         "actions_and_no_others",
         f"{LIBVIRT}/test_devices_held.py"
         "::test_devices_held_for_a_port_then_the_driver_refuses_a_live_migration_where_the_table_does",
         f"{MANAGE}/test_host_drain.py::test_plan_names_a_way_or_a_reason_for_every_state")),
    "F6": Proof("A node is a state machine.", not_yet="There is no driver for bare metal.", absent=BARE_METAL),
}
