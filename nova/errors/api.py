"""Errors about requests as such: their bodies, versions, pages and policies."""

from __future__ import annotations

from nova.errors import config, kinds

BadInput = kinds.Invalid.row("api.bad_input", "Invalid input for field/attribute {field}. Value: {value}. {reason}")
BadQuery = kinds.Invalid.row("api.bad_query", "Malformed query string: it is not encoded in UTF-8.")
BadUser = kinds.Invalid.row("api.bad_user", "Invalid user_id: it must be at most {longest} printable characters.")
ConsoleNoFit = kinds.Invalid.row("api.console_no_fit",
    "Unavailable console type {type}: protocol {protocol} has {types}.")
ConsoleTokensRdpOnly = kinds.Invalid.row("api.console_tokens_rdp_only",
    "Below version 2.31 this shows tokens of RDP consoles alone, and there are none: ask with version 2.31 or newer.")
#: The words are Nova's, and HTTP's: clients compare them. What ``operation`` was, the request says.
Gone = kinds.Gone.row("api.gone", "This resource is no longer available. No forwarding address is given.")
IdentityAway = kinds.Unavailable.row("api.identity_away",
    "The identity service (Keystone) does not answer, so that no token can be checked. Try again later.")
IdentityRefuses = kinds.Unavailable.row("api.identity_refuses",
    "The identity service (Keystone) checks no signature for this service. Try again later.",
    "The log says why. Our user in [keystone] or [keystone_authtoken] needs the role service, and keystone_ec2_url "
    "must be right.")
SignaturesAway = kinds.Unavailable.row("api.signatures_away",
    "The identity service (Keystone) does not answer, so that no signature can be checked. Try again later.")
MalformedBody = kinds.Invalid.row("api.malformed_body", "Malformed request body: it must be JSON. {reason}")
MalformedXml = kinds.Invalid.row("api.malformed_xml", "Malformed request body: it must be XML. {reason}")
MediaType = kinds.NovaError.row("api.media_type",
    "Unsupported Content-Type {content_type}: send application/json.", status=415)
NeedsProject = kinds.Forbidden.row("api.needs_project",
    "The token is not of a project, and this operation is of the caller's own: ask for a token with one.",
    "Log in with a project's name or id (`OS_PROJECT_NAME` or `OS_PROJECT_ID`).")
NoSuchAction = kinds.Invalid.row("api.no_such_action",
    "There is no such action: {name}. The body must be an object with the action's name as its only key.")
#: The path is known, the operation does not exist in the version asked for.
NotInVersion = kinds.NotFound.row("api.not_in_version", "The resource could not be found.")
NotYet = kinds.NotSupported.row("api.not_yet", "{operation} is not implemented by this release.")
#: How /v2 said of some conflicts that it could not do it.
ProjectBusy = kinds.OverQuota.row("api.project_busy",
    "This project has too many requests under way. Try again when some of them have ended.",
    "Send fewer requests side by side.", status=429)
Unprocessable = kinds.Invalid.row("api.unprocessable", status=422)
UnusableBody = kinds.Invalid.row("api.unusable_body", "Malformed request body: {reason}")
#: Below /v2 alone, where it is 400 and not 415.
UnsupportedType = kinds.Invalid.row("api.unsupported_type",
    "Unsupported Content-Type {content_type}: send application/json or application/xml.")
VersionMalformed = kinds.Invalid.row("api.version_malformed",
    "API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum, for example 2.1, or latest.")
#: The version is well formed and not one of ours. The answer carries the version that was asked for.
VersionOutOfRange = kinds.NovaError.row("api.version_out_of_range",
    "Version {asked} is not supported by the API. Minimum is {minimum} and maximum is {maximum}.", status=406)
WrongProject = kinds.Invalid.row("api.wrong_project",
    "Malformed request URL: URL's project_id '{in_url}' doesn't match Context's project_id '{in_token}'")

PageBadRegex = kinds.Invalid.row("page.bad_regex",
    "A filter is no regular expression that the database takes: {reason}")
PageTooManyPatterns = kinds.OverQuota.row("page.too_many_patterns",
    "This project's lists by regular expression are {most} at a time: try again when one has ended.",
    "Filter by exact values; a list by a pattern reads every server of the project.", status=429)
PageMarkerNotFound = kinds.Invalid.row("page.marker_not_found", "marker [{marker}] not found")

ExtensionNotFound = kinds.NotFound.row("extension.not_found", "There is no extension with the alias {alias}.")

PolicyBadFile = config.Wrong.row("policy.bad_file", "{path} is no policy file: {reason}",
    "The reason names line and rule; `nova-policy` checks a file before it is used.")
PolicyMissingFile = config.Wrong.row("policy.missing_file",
    "{option} names a policy file that is not there: write it, or take the option out for the rules of this release.")
PolicyBadTarget = config.Wrong.row("policy.bad_target", "--target {word}: write KEY=VALUE, with KEY one of {known}.")
PolicyNoSuchRule = config.Wrong.row("policy.no_such_rule",
    "No rule's name contains '{part}'. nova-policy sample lists them all.")
PolicyNotAllowed = kinds.Forbidden.row("policy.not_allowed", "Policy doesn't allow {rule} to be performed.")
