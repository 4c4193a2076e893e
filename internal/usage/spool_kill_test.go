package usage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"weir/internal/fault"
	"weir/internal/id"
)

// process is this binary in a role, with the lines that it writes.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
	wait  func() error // may be called again
}

func child(t *testing.T, role string, env ...string) process {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "WEIR_TEST_CHILD="+role)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := process{cmd, bufio.NewScanner(out), sync.OnceValue(cmd.Wait)}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = p.wait() })
	return p
}

// spoolChild admits and ends calls on several goroutines and says each record
// that was acknowledged, until it is killed.
func spoolChild() {
	s, _, err := OpenSpool(os.Getenv("WEIR_TEST_DIR"), SpoolOptions{SegmentBytes: 64 << 10, SyncEvery: 20 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	say := func(what string, e Event) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, e.ID, e.Shard, e.Number)
	}
	for range 4 {
		go func() {
			tenant := id.New()
			for n := 0; ; n++ {
				e := call(tenant, time.Now())
				if s.Admit(admission(e)) != nil {
					panic("not admitted")
				}
				say("admitted", e)
				if n%3 == 0 {
					continue
				}
				if s.Finish(&e) != nil {
					panic("not finished")
				}
				say("ended", e)
			}
		}()
	}
	select {}
}

func TestKilledProcessLosesNoAcknowledgedRecord(t *testing.T) {
	t.Parallel()
	dir, r := t.TempDir(), random(t)
	admitted, ended := map[uuid.UUID]bool{}, map[uuid.UUID]int64{}
	for range 5 {
		p := child(t, "spool", "WEIR_TEST_DIR="+dir)
		for n := 200 + r.IntN(800); n > 0 && p.lines.Scan(); n-- {
			var what, u string
			var shard int
			var number int64
			_, err := fmt.Sscan(p.lines.Text(), &what, &u, &shard, &number)
			must(t, err)
			if what == "admitted" {
				admitted[uuid.MustParse(u)] = true
			} else {
				ended[uuid.MustParse(u)] = number
			}
		}
		must(t, p.Process.Signal(syscall.SIGKILL))
		_ = p.wait()
	}
	_, rec := spoolAt(t, dir, SpoolOptions{})
	open := map[uuid.UUID]bool{}
	for _, o := range rec.Open {
		open[o.Event.ID] = true
	}
	tail := map[uuid.UUID]int64{}
	type place struct {
		shard  int
		number int64
	}
	given := map[place]bool{}
	for _, e := range rec.Tail {
		tail[e.ID] = e.Number
		if given[place{e.Shard, e.Number}] {
			t.Fatalf("number %d of shard %d was given twice", e.Number, e.Shard)
		}
		given[place{e.Shard, e.Number}] = true
	}
	for u, number := range ended {
		if tail[u] != number {
			t.Errorf("an acknowledged end %s with number %d is read as %d", u, number, tail[u])
		}
	}
	for u := range admitted {
		if !open[u] && tail[u] == 0 {
			t.Errorf("an acknowledged admission %s is lost", u)
		}
	}
	if len(rec.Damage) > 0 {
		t.Errorf("a kill is taken for damage: %v", rec.Damage)
	}
}

// fullDiskChild fills its spool under a limit of file size, which cuts a write
// in the middle as a full disk does, and then has the limit lifted.
func fullDiskChild() {
	signal.Ignore(syscall.SIGXFSZ)
	s, _, err := OpenSpool(os.Getenv("WEIR_TEST_DIR"), SpoolOptions{SyncEvery: time.Hour})
	if err != nil {
		panic(err)
	}
	limit := func(n uint64) {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: 1 << 40}); err != nil {
			panic(err)
		}
	}
	limit(20_000)
	tenant := id.New()
	finish := func() error { e := refusal(tenant, time.Now()); return s.Finish(&e) }
	for err == nil {
		err = finish()
	}
	report := map[string]string{"code": fault.Of(err).Code, "health": fmt.Sprint(s.Health())}
	info, _ := os.Stat(s.tail().path)
	report["cut"] = fmt.Sprint(info.Size() == s.tail().size)
	limit(1 << 40)
	report["again"] = fmt.Sprint(finish(), s.Health())
	report["given"] = fmt.Sprint(s.progress().given[ShardOf(tenant)])
	_ = json.NewEncoder(os.Stdout).Encode(report)
}

func TestFullDiskIsUnavailableAndLeavesNoHalfRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := child(t, "full", "WEIR_TEST_DIR="+dir)
	if !p.lines.Scan() {
		t.Fatal("no report")
	}
	var got map[string]string
	must(t, json.Unmarshal(p.lines.Bytes(), &got))
	must(t, p.wait())
	if got["code"] != "metering_unavailable" || got["cut"] != "true" || got["again"] != "<nil> <nil>" || got["health"] == "<nil>" {
		t.Fatalf("the full disk gave %v", got)
	}
	_, rec := spoolAt(t, dir, SpoolOptions{})
	if fmt.Sprint(len(rec.Tail)) != got["given"] || len(rec.Damage) > 0 {
		t.Fatalf("%d events, %v given, damage %v", len(rec.Tail), got["given"], rec.Damage)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "damaged-*")); len(left) > 0 {
		t.Fatalf("a half record was left: %v", left)
	}
}
