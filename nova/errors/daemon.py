"""Errors between daemons, and about the database and the journal."""

from __future__ import annotations

from nova.errors import config, kinds

DbSchemaBehind = kinds.Unavailable.row("db.schema_behind",
    "the {schema} database is at schema {have}, this release needs {want}: run 'nova-manage {command} sync'")
DbNoSuchRevision = config.Wrong.row("db.no_such_revision",
    "the {schema} database has no such revision in this release: leave it out for the newest, {newest}, or say one of "
    "{known}")
DbSchemaAhead = kinds.Conflict.row("db.schema_ahead",
    "the {schema} database is at a schema that this release does not know: sync it with the newer release that made it",
    "Conductors of this release work with it meanwhile; run `nova-manage db sync` of the newest release.")
DbSyncUnderWay = kinds.Unavailable.row("db.sync_under_way",
    "another sync of the {schema} database has been under way for ten minutes: see whether it still is",
    "See whether that `nova-manage db sync` still runs; if not, say it again.")
BackupUnreadable = kinds.Invalid.row(
    "db.backup_unreadable", "{path} cannot be read as a backup: {reason}",
    "Take another one; `nova-manage backup` writes a file under its own name only when it is whole.")
RestoreNotEmpty = kinds.Conflict.row(
    "db.restore_not_empty", "The {schema} database is not empty: it has {what}.",
    "Restore into new databases: create them, name them in nova-conductor.conf, and say it again.")

ReleaseTooOld = kinds.Forbidden.row("daemon.release_too_old",
    "{binary} on {host} is of release {release}. This cloud runs {ours}, beside which {oldest} is the oldest.",
    "Install the cloud's release on that host. A server that is there runs on meanwhile.")
NotAControlDaemon = kinds.Forbidden.row("daemon.not_a_control_daemon",
    "{binary} on '{host}' cannot register here: it is none of the control daemons that do.",
    "Hosts' daemons register by [DEFAULT]hosts_transport_url, after `nova-manage host enroll`.")
TooManyDaemons = kinds.Forbidden.row("daemon.too_many_daemons",
    "There are {most} rows of {binary} already, as many as there may be.",
    "`nova-manage service list` shows them, and `nova-manage service delete` removes the rows of removed daemons.")
LongRegistration = kinds.Invalid.row("daemon.long_registration",
    "A {binary} registers with a name, a topic or a release that is too long: install the conductors' release there.")
NotItsFile = kinds.Unavailable.row("daemon.not_its_file",
    "{path} is not for the user {user} to use: `chown {user} {path}`, or run the daemon as the user before.",
    "A daemon that ran as another user, or a command said as root, has made the file.")
StillUp = kinds.Conflict.row("daemon.still_up",
    "{binary} on {host} is up: it would register again. Stop it first; after [DEFAULT]service_down_time its row can be "
    "deleted.")

RpcBrokerAway = kinds.Unavailable.row("rpc.broker_away",
    "The message broker does not answer, so {method} could not be sent: {reason}",
    "rabbitmqctl status; [DEFAULT]transport_url says where the broker is looked for.")
RpcForged = kinds.Forbidden.row("rpc.forged", "The sender '{sender}' has no right to make this call.")
RpcMalformed = kinds.Bug.row("rpc.malformed", "The message does not keep the contract: {reason}",
    "A peer of another release sent it: upgrade it, or pin [upgrade_levels].")
RpcNoAnswer = kinds.Unavailable.row("rpc.no_answer",
    "{topic}{where} did not answer {method} within {seconds} s: is it running, and connected to the broker?",
    "See whether the daemon runs (`openstack compute service list`), and its log for what it does.")
RpcNotDelivered = kinds.Unavailable.row("rpc.not_delivered",
    "{topic}{where} has no queue on the broker for {method}: it has never started, or is gone.",
    "Start the daemon on that host.")
RpcNoConductorYet = RpcNotDelivered.row("rpc.no_conductor_yet",
    "{method} could not be sent: no nova-conductor has ever started in this cloud.", "Start nova-conductor.")
RpcCallsNotTaken = RpcNotDelivered.row("rpc.calls_not_taken",
    "{method} could not be sent: no conductor takes calls of this host. It was never enrolled, or it was expelled, or "
    "no nova-conductor has started yet.",
    "On a controller, see `nova-manage host list`; `nova-manage host enroll` lets the host in.")
RpcQueueFull = RpcNotDelivered.row("rpc.queue_full",
    "{method} could not be sent: this host's queue of calls is full. Do conductors read it?",
    "See whether nova-conductor runs, and what this host sends so often.")
RpcAnswerNotProven = kinds.Unavailable.row("rpc.answer_not_proven",
    "An answer came that is not proven by this host's secret: it is not believed.",
    "Another copy of this host may run with another state_path/host_secret: see `nova-manage host list`.")
RpcNoExchange = kinds.Unavailable.row("rpc.no_exchange",
    "The exchange {exchange} is not on the broker: no nova-conductor has started there yet, or this host is not "
    "enrolled (`nova-manage host enroll` on a controller).")
RpcNotEnrolled = kinds.Unavailable.row("rpc.not_enrolled",
    "The host '{host}' is not enrolled, so its messages are refused. On a controller, run `nova-manage host "
    "enroll {host}`, and write the token it prints into state_path/host_token on that host (mode 0600).")
RpcIsolated = kinds.Unavailable.row("rpc.isolated",
    "The host '{host}' is isolated: it speaks with conductors in the hosts' own vhost alone. Set "
    "[DEFAULT]hosts_transport_url in its nova.conf, or run `nova-manage host isolate --revert {host}` on a controller.")
RpcNotProven = RpcForged.row("rpc.not_proven",
    "This is not proven to come from the host '{host}', which is known: state_path/host_secret is missing there, or "
    "another machine's. Restore that file. If the machine was installed anew, or takes the place of that host, run "
    "`nova-manage host readmit {host}` on a controller, which says what to do next.")
RpcOrderNotProven = kinds.Unavailable.row("rpc.order_not_proven",
    "The host does not take this conductor's order: {reason}",
    "See whether the conductors run with one database, and the host with its own state_path/host_secret.")
#: It was not carried out: whoever asked waits a little and asks again.
RpcProjectBusy = kinds.Unavailable.row("rpc.project_busy",
    "Project {sender} has {most} requests under way already, as many as one project may have at a time.",
    "Try again when some of them have ended.")
RpcReplayed = RpcForged.row("rpc.replayed", "A message that says it is from or for '{host}' came a second time.")
RpcTooManyCalls = kinds.Unavailable.row("rpc.too_many_calls",
    "'{sender}' has {most} calls under way already, as many as one host may have.",
    "See what that host does: its log, and `nova-manage host revoke` should it not be yours any more.")
RpcWrongTime = RpcForged.row("rpc.wrong_time",
    "The clocks of '{host}' and of the conductors differ by {seconds:.0f} s; a minute is allowed: see NTP on both.")

RunnerLeaseLost = kinds.Overtaken.row("runner.lease_lost",
    "This runner could not renew its lease in time; others go on with its work.")

#: A step can neither go on nor be undone while something is away: its operation waits, and the step is done again by
#: a later sweep, as long as it takes (or until a delete, say, overtakes it).
WorkflowNotYet = kinds.Unavailable.row("workflow.not_yet", "It waits for {what}.")

NotificationsNoSuchDriver = config.Wrong.row("notifications.no_such_driver",
    "[oslo_messaging_notifications]driver names a driver that is not there, and nothing would be sent. There are: "
    "{known}.")

LedgerClosed = kinds.Bug.row("ledger.closed",
    "The ledger row of {server} was closed before it could be placed; ask for the server again.")
LedgerOpen = kinds.Conflict.row("ledger.open", "These servers were asked for already.")

SchedulerBadRatio = config.Wrong.row("scheduler.bad_ratio", "{option}: each of the list must be NAME=NUMBER.")
SchedulerHostsExhausted = kinds.NoValidHost.row("scheduler.hosts_exhausted",
    "Exceeded maximum number of retries. Exhausted all hosts available for retrying build failures for instance "
    "{server}. Last error: {last}",
    "`nova-manage request show` tells which hosts were tried, and why each failed.")
SchedulerNoValidHost = kinds.NoValidHost.row("scheduler.no_valid_host", "No valid host was found. {reason}",
    "`nova-manage request show` tells which filter took which host out.")
SchedulerNotReady = kinds.Unavailable.row("scheduler.not_ready",
    "The scheduler has not been told of the hosts yet: is nova-conductor running?",
    "Start nova-conductor; a scheduler that was just started waits some seconds for the hosts' states.")
SchedulerUnknownPlugin = config.Wrong.row("scheduler.unknown_plugin", "[filter_scheduler]{option} {problem}.")
