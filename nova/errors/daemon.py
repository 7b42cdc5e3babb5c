"""Errors between services, and about the database and the journal."""

from __future__ import annotations

from nova.errors import config, kinds

DbSchemaBehind = kinds.Unavailable.row("db.schema_behind",
    "the {schema} database is at schema {have}, but this release needs {want}: run 'nova-manage {command} sync'")
DbNoSuchRevision = config.Wrong.row("db.no_such_revision",
    "the {schema} database has no such revision in this release: omit it for the newest, {newest}, or give one of "
    "{known}")
DbSchemaAhead = kinds.Conflict.row("db.schema_ahead",
    "the {schema} database has a newer schema than this release knows: sync it with the release that created it",
    "Conductors of this release can work with it meanwhile; run `nova-manage db sync` of the newest release.")
DbSyncUnderWay = kinds.Unavailable.row("db.sync_under_way",
    "another sync of the {schema} database has been running for ten minutes: check whether it still runs",
    "Check whether that `nova-manage db sync` still runs; if not, run it again.")
DamagedRow = kinds.Bug.row("db.damaged_row", "The row with {row} is damaged: {column}: {reason}",
    "Correct the column in the database, or restore a backup. No release writes such a value.")
RowTooLong = DamagedRow.row("db.row_too_long",
    "The database returned NULL for a row of {table}, which is longer than its max_allowed_packet.",
    "Raise max_allowed_packet in the database server's configuration: 64M is enough.")
BackupUnreadable = kinds.Invalid.row(
    "db.backup_unreadable", "{path} cannot be read as a backup: {reason}",
    "Use another backup; `nova-manage backup` gives a file its final name only when it is complete.")
RestoreNotEmpty = kinds.Conflict.row(
    "db.restore_not_empty", "The {schema} database is not empty: it has {what}.",
    "Restore into new databases: create them, set them in nova-conductor.conf, and run the command again.")

ReleaseTooOld = kinds.Forbidden.row("daemon.release_too_old",
    "{binary} on {host} is of release {release}. This cloud runs {ours}, which supports {oldest} and newer.",
    "Install the cloud's release on that host. Servers on the host keep running meanwhile.")
NotAControlDaemon = kinds.Forbidden.row("daemon.not_a_control_daemon",
    "{binary} on '{host}' cannot register here: '{binary}' is not a control plane service.",
    "Compute hosts' services register by [DEFAULT]hosts_transport_url, after `nova-manage host enroll`.")
TooManyDaemons = kinds.Forbidden.row("daemon.too_many_daemons",
    "{binary} cannot register: the maximum of {most} rows of {binary} is reached.",
    "`nova-manage service list` shows them, and `nova-manage service delete` removes the rows of removed services.")
LongRegistration = kinds.Invalid.row("daemon.long_registration",
    "A {binary} registers with a name, a topic or a release that is too long: install the conductors' release there.")
NotItsFile = kinds.Unavailable.row("daemon.not_its_file",
    "The user {user} may not use {path}: run `chown {user} {path}`, or run the service as the previous user.",
    "A service that ran as another user, or a command run as root, created the file.")
StillUp = kinds.Conflict.row("daemon.still_up",
    "{binary} on {host} is up and would register again. Stop it first; after [DEFAULT]service_down_time its row can be "
    "deleted.")

RpcBrokerAway = kinds.Unavailable.row("rpc.broker_away",
    "The message broker does not answer, so {method} could not be sent: {reason}",
    "See `rabbitmqctl status`; [DEFAULT]transport_url has the broker's address.")
RpcForged = kinds.Forbidden.row("rpc.forged", "The sender '{sender}' is not allowed to make this call.")
RpcMalformed = kinds.Bug.row("rpc.malformed", "The message does not match the RPC contract: {reason}",
    "A peer of another release sent it: upgrade the peer, or pin [upgrade_levels].")
RpcNoAnswer = kinds.Unavailable.row("rpc.no_answer",
    "{topic}{where} did not answer {method} within {seconds} s: is it running, and connected to the broker?",
    "Check whether the service runs (`openstack compute service list`), and see its log.")
RpcNotDelivered = kinds.Unavailable.row("rpc.not_delivered",
    "{topic}{where} has no queue on the broker for {method}: it has never started, or was removed.",
    "Start the service on that host.")
RpcNoConductorYet = RpcNotDelivered.row("rpc.no_conductor_yet",
    "{method} could not be sent: no nova-conductor has ever started in this cloud.", "Start nova-conductor.")
RpcCallsNotTaken = RpcNotDelivered.row("rpc.calls_not_taken",
    "{method} could not be sent: no conductor accepts calls from this host. It was never enrolled, or was revoked, or "
    "no nova-conductor has started yet.",
    "On a controller, see `nova-manage host list`; `nova-manage host enroll` admits the host.")
RpcQueueFull = RpcNotDelivered.row("rpc.queue_full",
    "{method} could not be sent: this host's call queue is full. Do conductors read it?",
    "Check whether nova-conductor runs, and which call this host sends so often.")
RpcAnswerNotProven = kinds.Unavailable.row("rpc.answer_not_proven",
    "A reply is not signed with this host's secret; it was rejected.",
    "Another copy of this host may run with another state_path/host_secret: see `nova-manage host list`.")
RpcNoExchange = kinds.Unavailable.row("rpc.no_exchange",
    "The exchange {exchange} does not exist on the broker: no nova-conductor has started there yet, or this host is "
    "not enrolled (`nova-manage host enroll` on a controller).")
RpcNotEnrolled = kinds.Unavailable.row("rpc.not_enrolled",
    "The host '{host}' is not enrolled, so its messages are refused. On a controller, run `nova-manage host "
    "enroll {host}`, and write the token it prints into state_path/host_token on that host (mode 0600).")
RpcIsolated = kinds.Unavailable.row("rpc.isolated",
    "The host '{host}' is isolated: it may reach conductors only through the hosts' own vhost. Set "
    "[DEFAULT]hosts_transport_url in its nova.conf, or run `nova-manage host isolate --revert {host}` on a controller.")
RpcNotProven = RpcForged.row("rpc.not_proven",
    "The message is not signed with the secret of host '{host}', which is registered: state_path/host_secret is "
    "missing there, or belongs to another machine. Restore that file. If the machine was reinstalled, or replaces "
    "that host, run `nova-manage host readmit {host}` on a controller, which prints the next steps.")
RpcOrderNotProven = kinds.Unavailable.row("rpc.order_not_proven",
    "The host rejected this conductor's order: {reason}",
    "Check whether all conductors use one database, and whether the host has its own state_path/host_secret.")
#: The request was not carried out: the caller waits a little and repeats it.
RpcProjectBusy = kinds.Unavailable.row("rpc.project_busy",
    "Project {sender} already has {most} requests in progress, the maximum for a project.",
    "Try again when some of them have ended.")
RpcReplayed = RpcForged.row("rpc.replayed", "A message from or for '{host}' was received a second time.")
RpcTooManyCalls = kinds.Unavailable.row("rpc.too_many_calls",
    "'{sender}' already has {most} calls in progress, the maximum for a host.",
    "See that host's log; run `nova-manage host revoke` if the host is not part of the cloud any more.")
RpcWrongTime = RpcForged.row("rpc.wrong_time",
    "The clocks of '{host}' and of the conductors differ by {seconds:.0f} s; one minute is allowed: check NTP on both.")

RunnerLeaseLost = kinds.Overtaken.row("runner.lease_lost",
    "This runner could not renew its lease in time; other runners continue its work.")

#: A step can neither continue nor be undone while a service is away. Its operation waits, and a later sweep repeats
#: the step, for as long as necessary (or until another action, such as a delete, overtakes the operation).
WorkflowNotYet = kinds.Unavailable.row("workflow.not_yet", "Waiting for {what}.")

NotificationsNoSuchDriver = config.Wrong.row("notifications.no_such_driver",
    "[oslo_messaging_notifications]driver names an unknown driver, so no notifications would be sent. Known drivers: "
    "{known}.")

NotInACell = kinds.Bug.row("cell.not_in_a_cell",
    "{caller} needs {what}, which a cell conductor does not have.",
    "This is a bug of nova: report it with the log. A conductor with [api_database]connection can make the call.")

LedgerClosed = kinds.Bug.row("ledger.closed",
    "The ledger row of {server} was closed before the server could be scheduled; create the server again.")
LedgerOpen = kinds.Conflict.row("ledger.open", "These servers were requested already.")

SchedulerBadRatio = config.Wrong.row("scheduler.bad_ratio", "{option}: each item of the list must be NAME=NUMBER.")
SchedulerHostsExhausted = kinds.NoValidHost.row("scheduler.hosts_exhausted",
    "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance "
    "{server}. Last error: {last}",
    "`nova-manage request show` shows which hosts were tried, and why each failed.")
SchedulerNoValidHost = kinds.NoValidHost.row("scheduler.no_valid_host", "No valid host was found. {reason}",
    "`nova-manage request show` shows which filter rejected which host.")
SchedulerNotReady = kinds.Unavailable.row("scheduler.not_ready",
    "The scheduler has not received the host states yet: is nova-conductor running?",
    "Start nova-conductor; a scheduler that has just started waits some seconds for the host states.")
SchedulerUnknownPlugin = config.Wrong.row("scheduler.unknown_plugin", "[filter_scheduler]{option} {problem}.")
