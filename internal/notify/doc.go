// Package notify tells people and programs what happened: webhooks and mail.
//
// What is told is written down in the transaction that did it (internal/message,
// and mail that is owed). A Deliverer sends it: it leases what is due, tries, and
// writes down what became of the try, so that a worker which dies in between has
// its work done again by another, with the same id and bytes. Webhooks follow
// Standard Webhooks (https://www.standardwebhooks.com). Tries go on for three
// days; each endpoint has its own few places, so that one which is down or slow
// holds up no other. Of an answer nothing but its status is kept.
//
// Mail goes out by SMTP, or, in development, into an outbox that the browser
// shows. Texts are plain and made here; links begin with the configured
// address, never with a request's.
package notify
