package notify

import (
	"context"
	"crypto/tls"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"net/smtp"
	"strings"
	"sync"
	"time"

	"weir/internal/fault"
)

// Mail is one message to one person.
type Mail struct {
	To      string
	Subject string
	Text    string
	At      time.Time
	// FromName and ReplyTo are whose mail it is, "" the installation's own. The
	// address that it is from is the installation's always.
	FromName, ReplyTo string
	Link              string // of a mail that is owed: stands where Text has LinkHere, and is kept sealed
}

// Mailer sends mail. An error is Unavailable, and nothing was sent.
type Mailer interface {
	Send(ctx context.Context, m Mail) error
}

// SMTP sends through a server.
type SMTP struct {
	Addr     string // host:port; port 465 speaks TLS at once, others STARTTLS where it is offered
	User     string
	Password string
	From     string // "Weir <weir@example.com>"
}

const smtpTimeout = 20 * time.Second

// Send delivers one message. A password goes out over TLS only.
func (s SMTP) Send(ctx context.Context, m Mail) error {
	body, from, err := s.compose(m)
	if err != nil {
		return fault.New(fault.Invalid, "bad_email", "This is not an e-mail address that mail can be sent to.").Because(err)
	}
	ctx, cancel := context.WithTimeout(ctx, smtpTimeout)
	defer cancel()
	if err := s.deliver(ctx, from, m.To, body); err != nil {
		return fault.New(fault.Unavailable, "mail_unavailable", "Mail cannot be sent right now. Try again in a minute.").Because(err).After(time.Minute)
	}
	return nil
}

// compose writes the message (RFC 5322). Header values cannot hold a line
// break: addresses are parsed, the subject is ours.
func (s SMTP) compose(m Mail) (body []byte, from string, err error) {
	sender, err := mail.ParseAddress(s.From)
	if err != nil {
		return nil, "", fmt.Errorf("sender: %w", err)
	}
	to, err := mail.ParseAddress(m.To)
	if err != nil || strings.ContainsAny(m.Subject, "\r\n") {
		return nil, "", fmt.Errorf("recipient or subject: %w", err)
	}
	shown := *sender
	if m.FromName != "" {
		shown.Name = m.FromName
	}
	var b strings.Builder
	fmt.Fprintf(&b, "From: %s\r\nTo: %s\r\nSubject: %s\r\nDate: %s\r\n", &shown, to, mime.QEncoding.Encode("utf-8", m.Subject), m.At.Format(time.RFC1123Z))
	if m.ReplyTo != "" {
		back, err := mail.ParseAddress(m.ReplyTo)
		if err != nil {
			return nil, "", fmt.Errorf("reply to: %w", err)
		}
		fmt.Fprintf(&b, "Reply-To: %s\r\n", back)
	}
	b.WriteString("MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\nAuto-Submitted: auto-generated\r\n\r\n")
	b.WriteString(strings.ReplaceAll(m.Text, "\n", "\r\n"))
	return []byte(b.String()), sender.Address, nil
}

func (s SMTP) deliver(ctx context.Context, from, to string, body []byte) error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	conn, err := s.dial(ctx, host, port)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline) // a connection that has none ends with ctx
	c, err := smtp.NewClient(conn, host)
	if err != nil {
		return err
	}
	if ok, _ := c.Extension("STARTTLS"); ok && port != "465" {
		if err := c.StartTLS(&tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}); err != nil {
			return err
		}
	}
	if s.User != "" {
		if err := c.Auth(smtp.PlainAuth("", s.User, s.Password, host)); err != nil {
			return err
		}
	}
	return hand(c, from, to, body)
}

func (s SMTP) dial(ctx context.Context, host, port string) (net.Conn, error) {
	if port == "465" {
		return (&tls.Dialer{Config: &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}}).DialContext(ctx, "tcp", s.Addr)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", s.Addr)
}

func hand(c *smtp.Client, from, to string, body []byte) error {
	if err := c.Mail(from); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(body); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	return c.Quit()
}

// Outbox keeps the last messages in memory, for development: nothing is sent.
// It is safe for concurrent use.
type Outbox struct {
	mu   sync.Mutex
	kept []Mail
}

const outboxKeeps = 100

// Send keeps the message.
func (o *Outbox) Send(_ context.Context, m Mail) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = append(o.kept, m)
	if len(o.kept) > outboxKeeps {
		o.kept = o.kept[len(o.kept)-outboxKeeps:]
	}
	return nil
}

// Messages are the kept ones, newest first.
func (o *Outbox) Messages() []Mail {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := make([]Mail, 0, len(o.kept))
	for i := len(o.kept) - 1; i >= 0; i-- {
		out = append(out, o.kept[i])
	}
	return out
}
