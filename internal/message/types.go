package message

import (
	"slices"
	"strings"
)

// Type is what a message is about: a group, a dot, and what happened.
type Type string

// The types of messages.
const (
	WebhookTest          Type = "webhook.test"
	AlertFired           Type = "alert.fired"
	CustomerCreated      Type = "customer.created"
	CustomerChanged      Type = "customer.changed"
	CustomerSuspended    Type = "customer.suspended"
	CustomerResumed      Type = "customer.resumed"
	APIKeyCreated        Type = "api_key.created"
	APIKeyRotated        Type = "api_key.rotated"
	APIKeyRevoked        Type = "api_key.revoked"
	ProviderKeyCooling   Type = "provider_key.cooling"
	ProviderKeyRecovered Type = "provider_key.recovered"
	ProviderKeyFailed    Type = "provider_key.failed"
	PlanPublished        Type = "plan.published"
	SubscriptionCreated  Type = "subscription.created"
	SubscriptionChanged  Type = "subscription.changed"
	QuoteSent            Type = "quote.sent"
	QuoteAccepted        Type = "quote.accepted"
	QuoteDeclined        Type = "quote.declined"
	QuoteExpired         Type = "quote.expired"

	SubscriptionScheduled   Type = "subscription.scheduled"
	SubscriptionUnscheduled Type = "subscription.unscheduled"
	SubscriptionActivated   Type = "subscription.activated"
	SubscriptionRenewed     Type = "subscription.renewed"
	SubscriptionPastDue     Type = "subscription.past_due"
	SubscriptionSettled     Type = "subscription.settled"
	SubscriptionSuspended   Type = "subscription.suspended"
	SubscriptionResumed     Type = "subscription.resumed"
	SubscriptionCancelled   Type = "subscription.cancelled"
	SubscriptionKept        Type = "subscription.kept"
	SubscriptionEnded       Type = "subscription.ended"
	OverrideCreated         Type = "override.created"
	OverrideEnded           Type = "override.ended"

	ExportFinished Type = "export.finished"
)

// Described is a type with what it says.
type Described struct {
	Type Type
	Says string
}

// Types lists every type, group by group.
var Types = []Described{
	{AlertFired, "an alert told: once a period that its threshold was passed, or once that something is not well"},
	{CustomerCreated, "a customer was added"},
	{CustomerChanged, "a customer's name, address or external id changed"},
	{CustomerSuspended, "every call of a customer is refused from now on"},
	{CustomerResumed, "a suspended customer may call again"},
	{APIKeyCreated, "an API key was made"},
	{APIKeyRotated, "an API key was given a new secret"},
	{APIKeyRevoked, "an API key was revoked"},
	{ProviderKeyCooling, "a provider key rests, as a whole or for one model"},
	{ProviderKeyRecovered, "a provider key that rested is called again"},
	{ProviderKeyFailed, "a provider refused a key"},
	{PlanPublished, "a plan version was published"},
	{SubscriptionCreated, "a customer was put on a plan"},
	{SubscriptionChanged, "a customer was moved to another plan version"},
	{SubscriptionScheduled, "a subscription goes to another plan version when its period ends"},
	{SubscriptionUnscheduled, "the change that waited for the period's end was taken back"},
	{SubscriptionActivated, "a trial is over"},
	{SubscriptionRenewed, "the next period has begun"},
	{SubscriptionPastDue, "something is owed for a subscription"},
	{SubscriptionSettled, "nothing is owed any more"},
	{SubscriptionSuspended, "a subscription was suspended: its calls are refused"},
	{SubscriptionResumed, "a suspended subscription goes on"},
	{SubscriptionCancelled, "a subscription ends with its period"},
	{SubscriptionKept, "a cancellation was taken back"},
	{SubscriptionEnded, "a subscription has ended"},
	{OverrideCreated, "a customer has a limit of its own for a time"},
	{OverrideEnded, "an override was ended before its time"},
	{QuoteSent, "a quote, or its next version, was sent"},
	{QuoteAccepted, "a quote was accepted: customer, subscription and key are there"},
	{QuoteDeclined, "a quote was declined, with the reason if one was given"},
	{QuoteExpired, "a quote's time is over, and nobody answered"},
	{ExportFinished, "an export is ready, or failed"},
	{WebhookTest, "somebody sent a test; it goes to one endpoint"},
}

// Known tells whether the type is listed.
func (t Type) Known() bool {
	return slices.ContainsFunc(Types, func(d Described) bool { return d.Type == t })
}

// Group is the part before the dot: "customer" of customer.created.
func (t Type) Group() string {
	group, _, _ := strings.Cut(string(t), ".")
	return group
}

// Wanted tells whether s can stand in an endpoint's list: a type, or a group
// with a star.
func Wanted(s string) bool {
	return slices.ContainsFunc(Types, func(d Described) bool { return s == string(d.Type) || s == d.Type.Group()+".*" })
}
