package boot_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/queue/queuetest"
	"weir/test/stack"
)

// The other sides of the gateway's benchmark, each in a process of its own.
var sides = map[string]func(args []string) error{"upstream": upstreamSide, "bus": busSide, "proxy": proxySide, "rate": rateSide, "hold": holdSide}

const (
	constantAnswer = `{"id":"chatcmpl-bench","object":"chat.completion","created":1764547200,"model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"A weir holds a flow to what was agreed, and is how a flow is measured."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":17,"total_tokens":37}}`
	constantChunk  = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764547200,"model":"bench","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
	constantEnd    = `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764547200,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1764547200,"model":"bench","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":17,"total_tokens":37}}` + "\n\ndata: [DONE]\n\n"
)

// upstreamSide is a provider that costs next to nothing: constant answers, and
// streams of one word, of which those of "held" go on until their client leaves.
func upstreamSide([]string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"bench","object":"model"},{"id":"held","object":"model"}]}`)
		case !bytes.Contains(body, []byte(`"stream":true`)):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, constantAnswer)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, constantChunk)
			w.(http.Flusher).Flush()
			if bytes.Contains(body, []byte(`"held"`)) {
				<-r.Context().Done()
			}
			_, _ = io.WriteString(w, constantEnd)
		}
	})}
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // it ends with who started it
	return server.Serve(l)
}

// busSide is the queue, which is never a part of an API process.
func busSide(args []string) error {
	bus, err := queuetest.Serve(args[0])
	if err != nil {
		return err
	}
	fmt.Println(bus)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// rateSide sends a request so often a second for a while, whether answers have
// come or not, and prints medians and 99th percentiles, in µs, of the time to
// the first byte of a body and to the end.
func rateSide(args []string) error {
	addr, request := args[0], args[1]
	perSecond, _ := strconv.Atoi(args[2])
	seconds, _ := strconv.Atoi(args[3])
	conns := make(chan *persistent, 512)
	var mu sync.Mutex
	var firsts, ends []time.Duration
	var wrong error
	var group sync.WaitGroup
	begun, n := time.Now(), perSecond*seconds
	for i := range n {
		time.Sleep(time.Until(begun.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		group.Go(func() {
			var c *persistent
			select {
			case c = <-conns:
			default:
				fresh, err := net.Dial("tcp", addr)
				if err != nil {
					wrong = err
					return
				}
				c = &persistent{fresh, bufio.NewReader(fresh)}
			}
			first, end, err := c.ask(request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				wrong = err
				return
			}
			if i >= n/10 { // the beginning opens connections
				firsts, ends = append(firsts, first), append(ends, end)
			}
			conns <- c
		})
	}
	group.Wait()
	if wrong != nil {
		return wrong
	}
	slices.Sort(firsts)
	slices.Sort(ends)
	at := func(list []time.Duration, share float64) int64 {
		return list[int(float64(len(list)-1)*share)].Microseconds()
	}
	fmt.Println(at(firsts, 0.5), at(firsts, 0.99), at(ends, 0.5), at(ends, 0.99))
	return nil
}

type persistent struct {
	net.Conn
	r *bufio.Reader
}

func (c *persistent) ask(request string) (first, end time.Duration, err error) {
	begun := time.Now()
	if _, err := io.WriteString(c, request); err != nil {
		return 0, 0, err
	}
	a, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, 0, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return 0, 0, fmt.Errorf("status %d", a.StatusCode)
	}
	if _, err := io.ReadFull(a.Body, make([]byte, 1)); err != nil {
		return 0, 0, err
	}
	first = time.Since(begun)
	_, err = io.Copy(io.Discard, a.Body)
	return first, time.Since(begun), err
}

// holdSide opens so many streams, says when each has its first word, and holds
// them until its input ends.
func holdSide(args []string) error {
	n, _ := strconv.Atoi(args[2])
	for range n {
		c, err := net.Dial("tcp", args[0])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(c, args[1]); err != nil {
			return err
		}
		r := bufio.NewReaderSize(c, 512)
		a, err := http.ReadResponse(r, nil) //nolint:bodyclose // it is held until the process ends
		if err != nil {
			return err
		}
		if _, err := io.ReadFull(a.Body, make([]byte, 1)); err != nil {
			return err
		}
	}
	fmt.Println("open")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// side starts another side and returns the first line that it prints.
func side(b *testing.B, args ...string) (line string, stop func()) {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), os.Args[0], args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	var printed bytes.Buffer
	cmd.Stderr = &printed
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		b.Fatalf("%v: %s", err, &printed)
	}
	return strings.TrimSpace(line), func() { _ = in.Close(); _ = cmd.Wait() }
}

// bareProxy is the peer.
func bareProxy(to string) http.Handler {
	target := &url.URL{Scheme: "http", Host: to}
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			// Left to itself it loses a stream now and then whose answer begins
			// before it has seen the end of the body.
			body, _ := io.ReadAll(r.In.Body)
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
		Transport: &http.Transport{MaxIdleConns: 256, MaxIdleConnsPerHost: 64, DisableCompression: true},
	}
}

// reverseProxy is the peer in this process too, whose collector it shares.
func reverseProxy(b *testing.B, to string) string {
	b.Helper()
	l := listen(b)
	server := &http.Server{Handler: bareProxy(to), ReadHeaderTimeout: time.Second}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(l) })
	b.Cleanup(func() { _ = server.Close(); group.Wait() })
	return l.Addr().String()
}

// proxySide is the peer as a process of its own, with Go's defaults. It says where
// it is, and its process.
func proxySide(args []string) error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr(), os.Getpid())
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); os.Exit(0) }()
	return (&http.Server{Handler: bareProxy(args[0]), ReadHeaderTimeout: time.Second}).Serve(l)
}

// cpuOf is what another process has used, to a hundredth of a second
// (proc_pid_stat(5): fields 14 and 15).
func cpuOf(b *testing.B, pid string) time.Duration {
	b.Helper()
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}

func chatRequest(key, model string, stream bool) string {
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"max_tokens":200,"messages":[{"role":"system","content":"You answer in one sentence."},{"role":"user","content":"What is a weir, and what is it good for?"}]}`, model, stream)
	return strings.Join([]string{
		"POST /v1/chat/completions HTTP/1.1", "Host: 127.0.0.1", "Authorization: Bearer " + key, "Content-Type: application/json",
		"Content-Length: " + strconv.Itoa(len(body)), "", body,
	}, "\r\n")
}

// BenchmarkGateway holds a chat completion through the gateway, with everything
// on, against a bare httputil.ReverseProxy in the same process, in front of the
// same constant provider: CPU of a request, then what each adds at a steady rate
// to a call without either, then memory with 2,000 streams open.
func BenchmarkGateway(b *testing.B) {
	provider, stop := side(b, "upstream")
	b.Cleanup(stop)
	s, ours := api(b)
	w := s.Setup(b, stack.Options{
		BaseURL: "http://" + provider + "/v1",
		Plan: []stack.Limit{
			{Dimension: "requests", Window: "minute", Amount: 1_000_000_000},
			{Dimension: "tokens", Window: "minute", Amount: 1_000_000_000},
			{Dimension: "tokens", Window: "day", Amount: 1_000_000_000_000},
		},
		Prices: []stack.Price{{Models: "*", Class: "input", MicrosPerMillion: 1_000_000}, {Models: "*", Class: "output", MicrosPerMillion: 3_000_000}},
	})
	theirs := reverseProxy(b, provider)
	whole, stream := chatRequest(w.Key, "bench", false), chatRequest(w.Key, "bench", true)
	for _, x := range []struct {
		name    string
		measure func(*testing.B)
	}{
		{"CPU", func(b *testing.B) { gatewayCPU(b, provider, ours, theirs, whole) }},
		{"@300", func(b *testing.B) { gatewayRate(b, provider, ours, theirs, whole, 300, true) }},
		{"@1000", func(b *testing.B) { gatewayRate(b, provider, ours, theirs, whole, 1000, true) }},
		{"stream@300", func(b *testing.B) { gatewayRate(b, provider, ours, theirs, stream, 300, false) }},
		{"memory", func(b *testing.B) { gatewayMemory(b, ours, chatRequest(w.Key, "held", true)) }},
	} {
		b.Run(x.name, func(b *testing.B) {
			for b.Loop() {
				x.measure(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// gatewayCPU takes turns, since other work on the machine makes everything dearer.
func gatewayCPU(b *testing.B, provider, ours, theirs, request string) {
	b.Helper()
	const n, rounds = 4_000, 12
	line, stop := side(b, "proxy", provider)
	defer stop()
	alone, pid, _ := strings.Cut(line, " ")
	var peer, mine, apart []float64
	for i := range rounds + 1 {
		before := cpuOf(b, pid)
		_ = cost(b, alone, request, n)
		spent := float64((cpuOf(b, pid) - before).Microseconds()) / n
		same := float64(cost(b, theirs, request, n).Nanoseconds()) / 1000
		all := float64(cost(b, ours, request, n).Nanoseconds()) / 1000
		if i > 0 { // the first opens connections
			apart, peer, mine = append(apart, spent), append(peer, same), append(mine, all)
		}
	}
	slices.Sort(apart)
	slices.Sort(peer)
	slices.Sort(mine)
	b.ReportMetric(mine[rounds/2], "µs-CPU")
	b.ReportMetric(apart[rounds/2], "proxy-alone-µs-CPU")
	b.ReportMetric(mine[rounds/2]/apart[rounds/2], "times-proxy-alone")
	b.ReportMetric(peer[rounds/2], "proxy-inside-µs-CPU")
	b.ReportMetric(mine[rounds/2]/peer[rounds/2], "times-proxy-inside")
}

// gatewayRate reports what gateway and proxy add: to whole answers, or to the
// first word of streams.
func gatewayRate(b *testing.B, provider, ours, theirs, request string, rate int, whole bool) {
	b.Helper()
	measure := func(addr string) (median, p99 float64) {
		line, stop := side(b, "rate", addr, request, strconv.Itoa(rate), "8")
		stop()
		var first50, first99, end50, end99 float64
		if _, err := fmt.Sscan(line, &first50, &first99, &end50, &end99); err != nil {
			b.Fatal(err)
		}
		if whole {
			return end50, end99
		}
		return first50, first99
	}
	direct50, direct99 := measure(provider)
	for _, x := range []struct{ who, addr string }{{"proxy", theirs}, {"gateway", ours}} {
		median, p99 := measure(x.addr)
		b.ReportMetric(median-direct50, x.who+"-added-median-µs")
		b.ReportMetric(p99-direct99, x.who+"-added-p99-µs")
	}
}

func gatewayMemory(b *testing.B, ours, request string) {
	b.Helper()
	before := resident(b)
	line, stop := side(b, "hold", ours, request, "2000")
	if line != "open" {
		b.Fatal(line)
	}
	b.ReportMetric(resident(b), "MiB-at-2000-streams")
	b.ReportMetric(before, "MiB-before")
	stop()
}

// resident is the memory of this process that is not free, in MiB.
func resident(b *testing.B) float64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(rest, &kib); err != nil || !found {
		b.Fatal(errors.Join(err, errors.New("no VmRSS")))
	}
	return kib / 1024
}
