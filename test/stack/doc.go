// Package stack runs the whole of Weir for tests as a person runs it: bin/dev as
// a process of its own on fresh data, bin/api beside it, HTTP from outside. It
// can kill all of it at any instant and start it again on what is left.
package stack
