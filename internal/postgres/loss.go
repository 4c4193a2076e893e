package postgres

import (
	"errors"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
)

var errClosed = net.ErrClosed

// isNet tells whether err came from the connection and not from the server or
// from our own code.
func isNet(err error) bool {
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, pgx.ErrTxClosed)
}
