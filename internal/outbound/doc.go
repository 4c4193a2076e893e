// Package outbound is the one way out of Weir to addresses that a tenant
// chose: providers now, webhooks and identity providers later.
//
// Base URLs are input from outside, so they are checked twice. CheckURL refuses
// what can be seen in the text, when it is stored. The dialer refuses the
// address that a name resolved to, at the moment of connecting, so that a name
// which changes its mind reaches nothing: every connection goes through it,
// whatever the redirect, the resolver or the environment say. There is no
// proxy, no redirect, no decompression, and a ceiling on every wait and size.
package outbound
