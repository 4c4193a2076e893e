package notify

import (
	"bufio"
	"fmt"
	"mime"
	"net"
	"net/mail"
	"strings"
	"testing"
	"time"

	"weir/internal/fault"
)

// mailServer takes one message by SMTP (RFC 5321) and hands it over.
func mailServer(t *testing.T, refuse bool) (addr string, got <-chan string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	messages := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		lines := bufio.NewScanner(c)
		fmt.Fprint(c, "220 test\r\n")
		for lines.Scan() {
			switch verb := strings.ToUpper(lines.Text()); {
			case strings.HasPrefix(verb, "EHLO"):
				fmt.Fprint(c, "250-test\r\n250 8BITMIME\r\n")
			case strings.HasPrefix(verb, "RCPT") && refuse:
				fmt.Fprint(c, "550 nobody\r\n")
			case verb == "DATA":
				fmt.Fprint(c, "354 go on\r\n")
				var b strings.Builder
				for lines.Scan() && lines.Text() != "." {
					b.WriteString(lines.Text() + "\r\n")
				}
				messages <- b.String()
				fmt.Fprint(c, "250 taken\r\n")
			case verb == "QUIT":
				fmt.Fprint(c, "221 bye\r\n")
				return
			default:
				fmt.Fprint(c, "250 ok\r\n")
			}
		}
	}()
	return l.Addr().String(), messages
}

func TestMailArrivesAsItWasWritten(t *testing.T) {
	addr, got := mailServer(t, false)
	m := Mail{To: "ann@acme.example", Subject: "Confirm your address", Text: "Hello Änn,\n\nhttps://weir.example/confirm/x\n", At: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	if err := (SMTP{Addr: addr, From: "Weir <weir@example.com>"}).Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	msg, err := mail.ReadMessage(strings.NewReader(<-got))
	if err != nil {
		t.Fatal(err)
	}
	body := new(strings.Builder)
	if _, err := bufio.NewReader(msg.Body).WriteTo(body); err != nil {
		t.Fatal(err)
	}
	if msg.Header.Get("Subject") != m.Subject || msg.Header.Get("To") != "<ann@acme.example>" || strings.ReplaceAll(body.String(), "\r\n", "\n") != m.Text {
		t.Fatalf("got %v %q", msg.Header, body)
	}
}

func TestMailThatIsNotTakenIsUnavailableAndNeverBreaksItsHeaders(t *testing.T) {
	addr, _ := mailServer(t, true)
	m := Mail{To: "ann@acme.example", Subject: "x", Text: "x", At: time.Now()}
	if err := (SMTP{Addr: addr, From: "weir@example.com"}).Send(t.Context(), m); !fault.Is(err, fault.Unavailable) {
		t.Errorf("refused: %v", err)
	}
	if err := (SMTP{Addr: "127.0.0.1:1", From: "weir@example.com"}).Send(t.Context(), m); !fault.Is(err, fault.Unavailable) {
		t.Errorf("nobody there: %v", err)
	}
	for _, bad := range []Mail{{To: "a@b.example\r\nBcc: c@d.example", Subject: "x"}, {To: "ann@acme.example", Subject: "x\r\nBcc: c@d.example"}} {
		if err := (SMTP{Addr: addr, From: "weir@example.com"}).Send(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestAMailMayBeFromATenantByNameAndIsFromTheInstallationByAddress(t *testing.T) {
	s := SMTP{From: "Weir <weir@example.com>"}
	body, from, err := s.compose(Mail{To: "ann@kestrel.example", Subject: "Grüße von Müller", FromName: "Müller, AI", ReplyTo: "help@mueller.example"})
	if err != nil || from != "weir@example.com" {
		t.Fatalf("got %q, %v", from, err)
	}
	m, err := mail.ReadMessage(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	sender, err := m.Header.AddressList("From")
	if err != nil || len(sender) != 1 || sender[0].Name != "Müller, AI" || sender[0].Address != "weir@example.com" {
		t.Errorf("from %v, %v", sender, err)
	}
	if back, err := m.Header.AddressList("Reply-To"); err != nil || back[0].Address != "help@mueller.example" {
		t.Errorf("answers to %v, %v", back, err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != "Grüße von Müller" || !isASCII(string(body[:strings.Index(string(body), "\r\n\r\n")])) {
		t.Errorf("subject %q, %v", subject, err)
	}
	for _, bad := range []Mail{{To: "a@b.example", FromName: "x\r\nBcc: c@d.example"}, {To: "a@b.example", ReplyTo: "a@b.example\r\nBcc: c@d.example"}} {
		if body, _, err := s.compose(bad); err == nil && strings.Contains(string(body), "\nBcc:") {
			t.Errorf("a header was put in: %q", body)
		}
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 126 }) < 0
}
