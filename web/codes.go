package web

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// codeGroup is a part of the table of error codes.
type codeGroup struct {
	Title, Slug string
	About       string
	Codes       []code
}

// code is a stable error code: its status, what it means, and what to do.
type code struct {
	Name, Status, Means, Do string
}

// errorsPage answers GET /docs/errors, where the type of every problem leads.
func (p *Pages) errorsPage(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return show(c, http.StatusOK, codesView(codeGroups))
}

// codeGroups are all error codes. A test finds those of the source that are
// missing.
var codeGroups = []codeGroup{
	{"The key", "key", "Who calls, and whether this key may.", []code{
		{"invalid_api_key", "401", "No key came, or one that is not known. The gateway also answers this for revoked and expired keys.", "Send Authorization: Bearer weir_live_…, the whole key."},
		{"key_revoked", "401", "Somebody revoked the key.", "Use another key."},
		{"key_expired", "401", "The key was made with an end, which has passed.", "Make a new key."},
		{"ip_not_allowed", "401", "The key may be used from certain addresses only, and this is none of them.", "Call from there, or make a key without the list."},
		{"tenant_suspended", "401, 403", "The whole account is suspended.", "Ask whoever runs this installation."},
		{"customer_suspended", "403", "The tenant suspended this customer.", "Ask the tenant."},
		{"no_active_subscription", "403", "The customer is on no plan, so nothing is allowed.", "Put the customer on a plan."},
		{"wrong_scope", "403", "The key is of the other kind, or lacks the scope that is named.", "Use a key of the right kind with that scope."},
		{"settle_not_allowed", "403", "A customer's key may settle only where it was made so.", "Settle with a management key, or make the key with may_settle."},
		{"credential_in_url", "400", "A key stood in the address, where logs keep it.", "Replace the key, and send it as a header."},
		{"cross_site", "403", "A page of another site asked for this, or something that has a session and does not say where it comes from.", "Go to the page itself."},
		{"role_not_allowed", "403", "The member's role does not reach what the page does.", "Ask an owner or admin of the tenant."},
		{"session_ended", "401", "The session was ended, or not used for twelve hours, or is seven days old.", "Sign in again."},
		{"sign_in_failed", "401", "E-mail address and password do not go together.", "Type them again, or set a new password by mail."},
		{"too_many_attempts", "429", "Too many tries of an account or network.", "Wait as long as it says."},
		{"too_many_sign_ins", "429", "Too many people sign in at this moment.", "Try again in a few seconds."},
		{"no_membership", "403", "The person is a member of no tenant any more.", "Ask whoever runs the tenant."},
		{"no_mail", "422", "This installation sends no mail.", "Ask whoever runs it for a sign-in link."},
		{"token_invalid", "401", "The sign-in link was used, is too old, or is not whole.", "Ask for a new one."},
		{"first_token_wrong", "401", "This is not the token that the empty installation printed when it started.", "Look at the first lines of its process or at its log; each start prints a new one."},
		{"already_begun", "409", "The installation has its first organisation already.", "Sign in, or ask whoever made it to let you in."},
		{"tenant_needed", "400", "The person belongs to several tenants.", "Say which one."},
	}},
	{"Limits", "limits", "A refusal is an answer: nothing was charged anywhere.", []code{
		{"rate_limit_exceeded", "429", "A limit per minute has no room for this call now.", "Wait as long as retry_after_ms says; it is exact for this call."},
		{"concurrency_limit_exceeded", "429", "As many calls run at once as may.", "Wait until one has ended."},
		{"daily_cap_reached", "429", "A cap of the day or month is spent. The gateway says insufficient_quota.", "Wait until reset_at, or ask for a larger plan."},
		{"spend_cap_reached", "429", "The agreed amount of money is spent. The gateway says insufficient_quota.", "Wait until reset_at, or ask for a larger plan."},
		{"insufficient_quota", "429", "The gateway's word, from OpenAI's API, for a spent cap.", "Wait until the cap begins anew; retrying earlier does not help."},
		{"request_too_large", "413", "The call asks for more than the whole limit. No wait helps.", "Ask for less: a shorter prompt, a lower max_tokens."},
		{"provider_capacity", "503", "The provider's own limit is reached for every key that serves the model. No limit of the plan is.", "Try again after retry-after."},
	}},
	{"The request", "request", "What was sent cannot be taken as it is.", []code{
		{"invalid_fields", "400", "Some members are not valid; errors names each, with a code of the last table.", "Correct those members."},
		{"invalid_max_wait", "400", "x-weir-max-wait-ms is no whole number of milliseconds up to 60000.", "Correct the header, or leave it out."},
		{"not_found", "404", "Nothing of yours has this id or address.", "Check it; ids of other tenants answer the same."},
		{"unknown_url", "404", "The gateway serves no such address.", "Compare the base URL: it ends in /v1."},
		{"model_not_found", "404", "No provider key serves this model for this key.", "Ask GET /v1/models which there are."},
		{"unsupported_for_model", "400", "The provider of this model does not serve this route.", "Use a model that does; GET /v1/models lists what there is."},
		{"unsupported_parameter", "400", "The gateway does not pass this on: it would choose where a call goes, or the model's provider cannot say it.", "Leave out what the message names."},
		{"request_not_found", "404", "No call has this request id.", "Take the id from the answer's x-request-id; a call shows a few seconds after its end."},
		{"request_counted", "404", "The call was refused in a storm: in its second so many were refused that most were only counted, by several keys or limits.", "Look at the requests of that second."},
		{"event_not_found", "404", "No event has this id.", "Check the id."},
		{"reservation_not_found", "404", "No reservation has this id.", "Check the id; reservations are forgotten some time after they end."},
		{"secret_required", "422", "The key's address would change, and a secret is only ever sent to the address that it was given for.", "Send the secret again, with the new base URL."},
		{"url_not_allowed", "422", "The base URL leads where calls may not go: private networks, other ports, plain http.", "Use a public https address."},
		{"body_too_large", "413", "The body is larger than what is read.", "Send less."},
		{"form_unreadable", "400", "A form arrived cut off, or is too large.", "Send it again."},
		{"body_unreadable", "400", "The body ended early.", "Send it again."},
		{"unsupported_media_type", "415", "The body is not said to be JSON.", "Send Content-Type: application/json."},
		{"unsupported_encoding", "415", "A compressed body is not read.", "Send it plain."},
	}},
	{"State", "state", "The request is right, but not now.", []code{
		{"already_made", "409", "The form of a new key was sent a second time.", "Use the key that was made; if its secret is lost, revoke it and make another."},
		{"already_subscribed", "409", "The customer has an active subscription.", "Change or end that one first."},
		{"email_taken", "409", "Another user has this e-mail address.", "Use another one."},
		{"external_id_taken", "409", "Another customer has this external_id.", "Find that customer, or use another id."},
		{"key_changed", "409", "Somebody changed the provider key's secret or address in the same moment. Nothing of yours is stored.", "Look at the key, and try again."},
		{"name_taken", "409", "Another one has this name.", "Choose another name."},
		{"operator_exists", "409", "There is an operator tenant already.", "Leave operator out."},
		{"plan_not_published", "409", "The plan has no published version.", "Publish one first."},
		{"plan_version_frozen", "409", "A published version does not change.", "Make a new version."},
		{"publish_in_flight", "409", "Somebody published at the same moment.", "Look at the plan again."},
		{"version_in_flight", "409", "Somebody made a version at the same moment.", "Try again."},
		{"reservation_exists", "409", "The id is reserved already.", "Use the reservation that is there."},
		{"reservation_expired", "409", "Nobody settled in time: the estimate was charged.", "Settle within the ttl, or extend it."},
		{"reservation_moved", "409", "The attempt is not the one that runs, or ended with other figures.", "Look at the reservation again."},
		{"version_changed", "409", "Somebody changed the plan after you opened it. Nothing of yours is saved.", "Compare, and save again."},
		{"reservation_settled", "409", "It has an outcome already, with other figures.", "The first outcome counts; look at it."},
	}},
	{"The provider", "provider", "It went out, and did not come back well.", []code{
		{"upstream_error", "502", "The provider answered with an error; its words are in the message.", "See the message; try again if it is the provider's fault."},
		{"upstream_auth_failed", "502", "The provider refuses the credential.", "Renew the provider key. Trying again does not help."},
		{"upstream_timeout", "504", "The provider took too long.", "Try again."},
		{"upstream_unreachable", "502", "The provider's address does not answer or cannot be resolved.", "Check the base URL; try again."},
		{"upstream_tls_failed", "502", "The provider's certificate cannot be verified.", "Renew it there, or check the base URL."},
		{"upstream_redirect", "502", "The provider answered with a redirect, which is never followed.", "Put the final address into the base URL."},
		{"upstream_blocked", "502", "The address is one that may not be called.", "Check the base URL."},
		{"upstream_cut", "502", "The answer ended early. What came is charged.", "Try again."},
		{"upstream_invalid_response", "502", "The answer is not what the API promises.", "Check that the base URL speaks the OpenAI API."},
		{"provider_key_invalid", "401, 422", "The provider refused the key when it was checked.", "Put in a key that works."},
		{"provider_key_refused", "401", "A check that Weir makes by a call of its own was refused by the provider: for the credential, the balance, the account or a limit.", "Look at the account at the provider. The check is made again by itself."},
		{"provider_check_failed", "502", "The provider's list of models could not be read.", "List the models yourself, or check again later."},
	}},
	{"Our side", "ours", "Nothing is wrong with the request.", []code{
		{"limiter_unavailable", "503", "It cannot be decided whether the call may pass.", "Try again after retry-after."},
		{"too_many_viewers", "503", "More pages of one account are open at once than are told what moves.", "Close some, or load the page again to see what is there."},
		{"metering_unavailable", "503", "Calls cannot be written down, so none is let through.", "Try again after retry-after."},
		{"database_unavailable", "503", "The database does not answer. Nothing was changed.", "Try again in a few seconds."},
		{"queue_unavailable", "503", "The message queue does not answer.", "Try again in a few seconds."},
		{"credential_unavailable", "503", "A stored credential cannot be opened.", "Tell whoever runs this installation: a key of the key ring is missing."},
		{"mail_unavailable", "503", "Mail cannot be sent right now.", "Try again in a minute."},
		{"reservation_pending", "503", "How the reservation ended is being stored after a restart.", "Try again in a second."},
		{"server_stopping", "503", "This server is being replaced.", "Send the call again."},
		{"internal_error", "500", "Something nobody foresaw. It was logged.", "Tell whoever runs this installation the request id."},
	}},
	{"Single members", "members", "The code of each entry of errors; pointer says which member, ?name a query parameter.", []code{
		{"required", "400", "It is missing or empty.", "Send it."},
		{"unknown_field", "400", "There is no such member.", "Check spelling and case."},
		{"wrong_type", "400", "It has another JSON type.", "Send the type that the reference names."},
		{"bad_json", "400", "This is not valid JSON.", "Check the body."},
		{"bad_csv", "400", "The file is no CSV with the columns that an export has.", "Export the sheet, and change that."},
		{"wrong_length", "400", "A line has more or fewer cells than the header.", "Compare the line with the header; a text with a comma stands in quotes."},
		{"bad_day", "400", "This is not a day.", "Write it as 2026-11-30."},
		{"bad_text", "400", "A text is empty, too long or holds control characters.", "Write it in one line."},
		{"unknown_tier", "400", "The provider publishes no limits for such a tier.", "Ask GET /api/v1/provider-keys/offers which there are."},
		{"bad_form", "400", "The body is not a valid multipart form.", "Send it as multipart/form-data, as curl -F does."},
		{"ambiguous_form", "400", "A part stands twice in the form.", "Send each part once."},
		{"ambiguous_json", "400", "A member stands twice, so that two readers could see two things.", "Send it once."},
		{"too_deep", "400", "Objects or lists are nested too deep.", "Send it flatter."},
		{"not_one_of", "400", "The value is none of those that are taken.", "Use one that the message lists."},
		{"unknown_value", "400", "The value is none of those that are taken.", "Use one that the message lists."},
		{"missing_required_parameter", "400", "A member that the API demands is missing.", "Send it."},
		{"not_allowed", "400", "The member or value does not go with the others.", "See the message."},
		{"model_not_allowed", "403", "The key may not use this model.", "Use one of its models, or another key."},
		{"too_late", "400", "The time lies too far ahead.", "Choose an earlier one, or leave it out."},
		{"wrong_password", "400", "It is not the present password.", "Type it again, or set a new one by mail."},
		{"not_narrower", "400", "A client token may only narrow what its key allows, and this does not.", "Stay within the key."},
		{"out_of_range", "400", "The number or time is too small or too large.", "Stay within what the message says."},
		{"too_long", "400", "The text is too long.", "Shorten it."},
		{"too_many", "400", "There are too many entries.", "Send fewer."},
		{"empty", "400", "An empty list would allow nothing.", "Leave it out, or name something."},
		{"duplicate", "400", "Two entries say the same thing.", "Keep one."},
		{"not_for_this_kind", "400", "The member does not go with the others.", "Leave it out."},
		{"bad_characters", "400", "There are characters that may not be there.", "Use printable text."},
		{"bad_amount", "400", "This is no amount of that currency.", `Send a decimal string such as "49.00".`},
		{"bad_cidr", "400", "This is no address block.", "Send one such as 203.0.113.0/24."},
		{"bad_currency", "400", "This is no currency code.", "Send one such as USD."},
		{"wrong_currency", "400", "The tenant bills in another currency.", "Use the tenant's."},
		{"bad_email", "400", "This is no e-mail address.", "Send one such as ann@example.com."},
		{"bad_label", "400", "An end user or tag does not have the form it needs.", "See the message."},
		{"bad_model", "400", "This is no model name or pattern.", "See the message."},
		{"invalid_pattern", "400", "This is no model name or pattern.", "See the message."},
		{"bad_id", "400", "This is no id of the kind that is asked for.", "Send the id as it was given to you, with its prefix."},
		{"bad_time", "400", "This is no time.", "Send RFC 3339, or a date."},
		{"bad_idempotency_key", "400", "The Idempotency-Key cannot be used.", "Send one header of at most 255 printable characters."},
		{"idempotency_mismatch", "422", "The Idempotency-Key was used for another request.", "Use a new one for each request, and for each reservation."},
		{"idempotency_in_flight", "409", "The same request is being carried out.", "Send it again after a second."},
		{"idempotency_answer_lost", "409", "The request was carried out once, and its answer was lost.", "Read what it made from its list."},
		{"customer_needed", "409", "The step needs a customer with a key.", "Make both first."},
		{"already_on_plan", "409", "The customer is on this version of the plan.", "Choose another plan, or publish a new version."},
		{"already_rotated", "409", "Another key took over from this one.", "Rotate the one that is named, or use it."},
		{"key_not_active", "409", "The key has ended.", "Make a new one."},
		{"zone_changed_often", "409", "The tenant's time zone was changed 8 times within 100 days.", "Stay with the present one for now."},
		{"bad_zone", "400", "This is no IANA time zone.", "Send one such as Europe/Berlin."},
		{"unknown_zone", "400", "This is no IANA time zone.", "Send one such as Europe/Berlin."},
		{"in_the_past", "400", "The time has passed.", "Send a later one."},
		{"invalid_cursor", "400", "The cursor is not one of this list.", "Begin again without it."},
		{"range_too_long", "400", "The range has too many buckets.", "Use longer buckets or a shorter range."},
		{"too_many_rows", "400", "The report would have too many rows.", "Group by less, or filter."},
		{"unknown_provider", "400", "There is no such provider.", "Use custom with a base_url."},
		{"other_provider", "400", "The key is at another provider or address than its pool's account.", "Pool keys of one account only."},
		{"in_other_pool", "409", "The provider key is in another pool.", "Take it out there first."},
		{"alias_of_alias", "400", "A candidate's model is an alias, and no provider key serves a model of that name.", "Name the provider's model."},
		{"alias_of_itself", "400", "A candidate is the alias itself, and no provider key serves a model of that name.", "Name the provider's model."},
		{"too_many_aliases", "409", "A tenant has at most 500 aliases.", "Remove one that nobody asks for."},
		{"unknown_scope", "400", "There is no such scope.", "Use one that the message lists."},
	}},
}
