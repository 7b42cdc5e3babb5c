"""Errors about API requests in general: their bodies, versions, pages and policies."""

from __future__ import annotations

from nova.errors import config, kinds

BadInput = kinds.Invalid.row("api.bad_input", "Invalid input for field/attribute {field}. Value: {value}. {reason}")
BadQuery = kinds.Invalid.row("api.bad_query", "Malformed query string: it is not valid UTF-8.")
BadUser = kinds.Invalid.row("api.bad_user", "Invalid user_id: it must be at most {longest} printable characters.")
ConsoleNoFit = kinds.Invalid.row("api.console_no_fit",
    "Unavailable console type {type}: protocol {protocol} has {types}.")
ConsoleTokensRdpOnly = kinds.Invalid.row("api.console_tokens_rdp_only",
    "Before version 2.31 this call shows only tokens of RDP consoles, which do not exist here: use version 2.31 or "
    "newer.")
#: The wording is OpenStack Nova's and HTTP's, because clients compare it. The request names the ``operation``.
Gone = kinds.Gone.row("api.gone", "This resource is no longer available. No forwarding address is given.")
IdentityAway = kinds.Unavailable.row("api.identity_away",
    "The identity service (Keystone) does not answer, so tokens cannot be checked. Try again later.")
IdentityRefuses = kinds.Unavailable.row("api.identity_refuses",
    "The identity service (Keystone) refuses to check signatures for this service. Try again later.",
    "The log has the reason. The user in [keystone] or [keystone_authtoken] needs the role service, and "
    "keystone_ec2_url must be correct.")
SignaturesAway = kinds.Unavailable.row("api.signatures_away",
    "The identity service (Keystone) does not answer, so signatures cannot be checked. Try again later.")
MalformedBody = kinds.Invalid.row("api.malformed_body", "Malformed request body: it must be JSON. {reason}")
MalformedXml = kinds.Invalid.row("api.malformed_xml", "Malformed request body: it must be XML. {reason}")
MediaType = kinds.NovaError.row("api.media_type",
    "Unsupported Content-Type {content_type}: send application/json.", status=415)
NeedsProject = kinds.Forbidden.row("api.needs_project",
    "The token has no project, and this operation needs the caller's project: request a project-scoped token.",
    "Log in with a project's name or id (`OS_PROJECT_NAME` or `OS_PROJECT_ID`).")
NoSuchAction = kinds.Invalid.row("api.no_such_action",
    "There is no such action: {name}. The body must be an object with the action's name as its only key.")
#: The path exists, but not this operation in the requested version.
NotInVersion = kinds.NotFound.row("api.not_in_version", "The resource could not be found.")
NotYet = kinds.NotSupported.row("api.not_yet", "{operation} is not implemented by this release.")
ProjectBusy = kinds.OverQuota.row("api.project_busy",
    "This project has too many requests in progress. Try again when some of them have ended.",
    "Send fewer requests at the same time.", status=429)
#: The status that /v2 has for some conflicts.
Unprocessable = kinds.Invalid.row("api.unprocessable", status=422)
UnusableBody = kinds.Invalid.row("api.unusable_body", "Malformed request body: {reason}")
#: Only under /v2, where the status is 400 and not 415.
UnsupportedType = kinds.Invalid.row("api.unsupported_type",
    "Unsupported Content-Type {content_type}: send application/json or application/xml.")
VersionMalformed = kinds.Invalid.row("api.version_malformed",
    "API Version String {text} is of invalid format. Must be of format MajorNum.MinorNum, for example 2.1, or latest.")
#: The version is well formed but not supported. The response carries the requested version.
VersionOutOfRange = kinds.NovaError.row("api.version_out_of_range",
    "Version {asked} is not supported by the API. Minimum is {minimum} and maximum is {maximum}.", status=406)
WrongProject = kinds.Invalid.row("api.wrong_project",
    "Malformed request URL: URL's project_id '{in_url}' doesn't match Context's project_id '{in_token}'")

PageBadRegex = kinds.Invalid.row("page.bad_regex",
    "A filter is not a regular expression that the database accepts: {reason}")
PageTooManyPatterns = kinds.OverQuota.row("page.too_many_patterns",
    "A project can run at most {most} lists by regular expression at a time: try again when one has ended.",
    "Filter by exact values; a list by a pattern reads every server of the project.", status=429)
PageMarkerNotFound = kinds.Invalid.row("page.marker_not_found", "marker [{marker}] not found")

ExtensionNotFound = kinds.NotFound.row("extension.not_found", "Extension with alias {alias} could not be found.")

PolicyBadFile = config.Wrong.row("policy.bad_file", "{path} is not a valid policy file: {reason}",
    "The reason names the line and the rule; `nova-policy` checks a file before it is used.")
PolicyMissingFile = config.Wrong.row("policy.missing_file",
    "{option} names a policy file that does not exist: create it, or remove the option to use the default rules of "
    "this release.")
PolicyBadTarget = config.Wrong.row("policy.bad_target", "--target {word}: write KEY=VALUE, with KEY one of {known}.")
PolicyNoSuchRule = config.Wrong.row("policy.no_such_rule",
    "No rule's name contains '{part}'. 'nova-policy sample' lists all rules.")
PolicyNotAllowed = kinds.Forbidden.row("policy.not_allowed", "Policy doesn't allow {rule} to be performed.")
