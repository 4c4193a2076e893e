package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// benchmarked is a stream of n pieces of a token each.
func benchmarked(piece string, n int) []byte {
	return []byte(strings.Repeat(data(piece), n))
}

func BenchmarkNext(b *testing.B) {
	chat := `{"id":"chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT","object":"chat.completion.chunk","created":1741569952,"model":"gpt-4.1-2025-04-14","service_tier":"default","system_fingerprint":"fp_b4a7d7d2b1","choices":[{"index":0,"delta":{"content":" Hello\n"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"1kB4XpSl2"}`
	claude := `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" Hello\n"}}`
	response := `{"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_67c9fdcf37fc8190ba82116e33fb28c50b8b0d29b9eb816e","output_index":0,"content_index":0,"delta":" Hello\n","logprobs":[]}`
	for name, c := range map[string]struct {
		from, to Form
		piece    string
		start    string
	}{
		"chat": {Chat, Chat, chat, ""}, "messages": {Messages, Messages, claude, ""}, "responses": {Responses, Responses, response, ""},
		"chat_to_messages": {Chat, Messages, chat, ""},
		"messages_to_chat": {Messages, Chat, claude, data(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)},
	} {
		b.Run(name, func(b *testing.B) {
			stream := append([]byte(c.start), benchmarked(c.piece, 1000)...)
			b.SetBytes(int64(len(stream) / 1000))
			b.ReportAllocs()
			var out []byte
			for n := 0; n < b.N; {
				s, r := NewStream(c.from, c.to, StreamOptions{}), NewReader(c.from, bytes.NewReader(stream))
				for {
					e, err := r.Next()
					if errors.Is(err, io.EOF) {
						break
					}
					out = s.Next(out[:0], e)
					n++
				}
			}
		})
	}
}

// The race detector empties pools at random, which allows for a few.
func TestAnEventThatPassesTakesHardlyAnyMemory(t *testing.T) {
	e := Event{Data: []byte(`{"id":"x","choices":[{"index":0,"delta":{"content":" Hello\n"},"finish_reason":null}],"usage":null}`), HasData: true}
	e.Text = append(append([]byte("data: "), e.Data...), "\n\n"...)
	s, out := NewStream(Chat, Chat, StreamOptions{}), make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(2000, func() { out = s.Next(out[:0], e) }); n > 5 {
		t.Errorf("%v allocations for an event", n)
	}
}
