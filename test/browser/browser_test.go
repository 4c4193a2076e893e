// Package browser uses the dashboard as people do, in a real Chromium, against a
// real installation.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"weir/test/browser/chrome"
	"weir/test/stack"
)

var (
	weir    *stack.Stack
	browser *chrome.Browser
)

func TestMain(m *testing.M) {
	os.Exit(func() int {
		b, err := chrome.Start()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer b.Close()
		browser = b
		return stack.Run(m, func(s *stack.Stack) { weir = s })
	}())
}

// visitor is somebody whom the installation has never seen.
func visitor(t *testing.T) *chrome.Tab {
	t.Helper()
	return browser.Tab(t, weir.BaseURL())
}

// owner is signed in to a tenant of its own that is ready to serve.
func owner(t *testing.T) (*chrome.Tab, stack.World) {
	t.Helper()
	w := weir.Setup(t, stack.Options{
		Plan:   []stack.Limit{{Dimension: "requests", Window: "minute", Amount: 500}, {Dimension: "tokens", Window: "day", Amount: 100_000}},
		Prices: []stack.Price{{Models: "test-*", Class: "input", MicrosPerMillion: 2_500_000}},
	})
	tab := visitor(t)
	signIn(tab, w.SignInLink)
	return tab, w
}

// newcomer is signed in to a tenant of its own that has nothing yet.
func newcomer(t *testing.T) *chrome.Tab {
	t.Helper()
	tab := visitor(t)
	signIn(tab, weir.Tenant(t, "Europe/Berlin").SignInLink)
	return tab
}

// signIn opens a sign-in link and presses its button.
func signIn(tab *chrome.Tab, link string) {
	tab.Open(link)
	tab.Press("Sign in")
	tab.See("Home")
}

// demo fills the installation with tenants that have a history, once: full
// pages to look at.
var demo = sync.OnceValue(func() error {
	bin, err := stack.Bin()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "dev"), "demo-data", "-days", "8")
	cmd.Env = append(os.Environ(), "WEIR_DATA="+weir.Dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("demo-data: %w\n%s", err, out)
	}
	return nil
})

// busy is signed in as the owner of a tenant with history.
func busy(t *testing.T) *chrome.Tab {
	t.Helper()
	if err := demo(); err != nil {
		t.Fatal(err)
	}
	a, err := weir.Admin(t.Context(), "sign-in-link", "--email", "ines@brook.example")
	if err != nil {
		t.Fatal(err)
	}
	tab := visitor(t)
	signIn(tab, a.Text("sign_in_link"))
	return tab
}

// run pastes a command into a shell.
func run(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}
