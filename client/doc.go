// Package client speaks Weir's decision API: for those who call providers
// themselves and want only the verdict.
//
// A call is reserved at its estimate, kept alive while it runs, and settled at
// what it really took; one that never left for its provider is cancelled. [Client.Do]
// does all of it around a function. Reserve, KeepAlive, Extend, Settle and Cancel are
// its parts; ReserveBatch and SettleBatch take up to 500 at a time; Limits reads
// the live state of every limit.
//
//	weir, err := client.New(client.Options{BaseURL: "https://weir.example", Key: os.Getenv("WEIR_KEY")})
//
// # Errors
//
// A refused call is a [*Refusal]: which limits refused, how long this very call
// would have to wait, and whether waiting can help at all. Every other answer that
// is no success is a [*Problem], which [errors.Is] holds against ErrInvalid, ErrUnauthorized,
// ErrForbidden, ErrNotFound, ErrConflict, ErrMismatch and ErrUnavailable. Anything
// else says that no answer came: the network, or the context.
//
// # Retries
//
// What got no answer, and what Weir says is out for now (502, 503, 504, an answer that
// is still being made), is sent again: a few times, after the wait that the answer states or
// else after a growing pause with jitter, and never where a stated wait is longer than MaxPause.
// A refusal is an answer, and comes back at once; with Call.MaxWait a call may wait for room, in
// Weir's own line and so in its turn, and is asked once more here only where the wait that the
// refusal states still fits. Every reservation goes out under an idempotency key, so that one which is
// sent twice is made once.
//
// # Import
//
// The package needs the standard library alone. Weir's module is called weir and is on no
// proxy: a module of your own names the folder or repository that you have it in.
//
//	go mod edit -require weir@v0.0.0 -replace weir=../weir
package client
