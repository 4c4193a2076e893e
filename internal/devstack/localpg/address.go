package localpg

import (
	"errors"
	"net/url"
	"strings"
)

// Address is how a server is reached, as its superuser and as roles of ours.
type Address struct {
	super    url.URL
	password string // of our roles; "" where the socket's folder is the proof
}

// Elsewhere is the address of a server that others run, given as a superuser's
// URL. Our roles there get the password.
func Elsewhere(superURL, password string) (Address, error) {
	u, err := url.Parse(superURL)
	if err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return Address{}, errors.New("the database URL is not of the form postgres://user:password@host:port/database")
	}
	return Address{super: *u, password: password}, nil
}

func onSocket(folder string) Address {
	q := url.Values{"host": {folder}, "port": {"5432"}}
	return Address{super: url.URL{Scheme: "postgres", User: url.User(Superuser), RawQuery: q.Encode()}}
}

// URL is the connection string for a role of ours and a database.
func (a Address) URL(role, database string) string {
	u := a.super
	u.Path, u.User = "/"+database, url.User(role)
	if a.password != "" {
		u.User = url.UserPassword(role, a.password)
	}
	return u.String()
}

// SuperURL is the connection string for the superuser and a database.
func (a Address) SuperURL(database string) string {
	u := a.super
	u.Path = "/" + database
	return u.String()
}

// Database is the database that the given URL named, "" when it named none.
func (a Address) Database() string { return strings.TrimPrefix(a.super.Path, "/") }
