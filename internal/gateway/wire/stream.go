package wire

import (
	"bytes"

	"weir/internal/limits"
)

// maxChoices is the most answers that are told apart in a stream.
const maxChoices = 128

// StreamOptions are what a stream has to know of its call.
type StreamOptions struct {
	WantUsage bool   // the client asked for the usage frame itself
	Choices   int64  // how many answers it asked for; 0 is 1
	ID        string // of a translated answer; "": what the provider says
	Model     string // of a translated answer; "": what the provider says
	Created   int64  // of a translated answer, in Unix seconds
}

// Stream follows a provider's stream in one form and makes the client's in
// another, event by event. It belongs to one goroutine.
type Stream struct {
	form      Form
	o         StreamOptions
	translate translator // nil: events pass as they came
	usage     statement
	pieces    int64 // with text
	textBytes int64
	begun     bool           // something of an answer came
	choices   map[place]bool // by index: whether it said why it ended
	tier      Tier
	done      bool
	held      []byte // the event that said so
	failure   []byte
	chunk     chunk
	event     claudeEvent
	typed     typedEvent
}

// translator makes a client's events of a provider's.
type translator interface {
	next(out []byte, e Event) []byte
	end(out []byte, t limits.Tokens) []byte
}

// NewStream follows a stream in form from for a client that expects to. Where
// they are equal, events pass as they came, but for a usage frame that the
// client did not ask for. Only Chat and Messages are made of each other.
func NewStream(from, to Form, o StreamOptions) *Stream {
	s := &Stream{form: from, o: o, choices: map[place]bool{}}
	s.o.Choices = max(o.Choices, 1)
	switch {
	case from == Messages && to == Chat:
		s.translate = &chatWriter{o: s.o, blocks: map[int]*claudeStreamBlock{}}
	case from == Chat && to == Messages:
		s.translate = &messagesWriter{o: s.o, calls: map[int]*segment{}}
	}
	return s
}

// Next appends what the client gets now that e has come. An event that ends
// the stream, well or badly, gives nothing: see Done and Failed; what follows
// it gives nothing either. Bytes of e are not kept.
func (s *Stream) Next(out []byte, e Event) []byte {
	switch {
	case s.done || s.failure != nil:
		return out
	case !e.HasData:
		return append(out, e.Text...) // comments keep a connection alive
	case string(bytes.TrimSpace(e.Data)) == "[DONE]":
		s.done = true
		return out
	}
	pass := s.note(e)
	switch {
	case s.failure != nil:
		return out
	case s.done:
		s.held = append(s.held, e.Text...)
		return out
	case s.translate != nil:
		return s.translate.next(out, e)
	case pass:
		return append(out, e.Text...)
	}
	return out
}

// Done tells whether the event came with which the form says that a stream is
// complete. It is held back until End.
func (s *Stream) Done() bool { return s.done }

// Begun tells whether anything of an answer came: a stream that only says that
// it is complete is none.
func (s *Stream) Begun() bool { return s.begun }

// Finished tells whether every answer that was asked for said why it ended: a
// stream that is then over without its last event is whole all the same.
func (s *Stream) Finished() bool {
	if s.form != Chat && s.form != Completions && s.form != Messages {
		return s.done
	}
	for _, ended := range s.choices {
		if !ended {
			return false
		}
	}
	return int64(len(s.choices)) >= s.o.Choices
}

// Failed is the provider's own report of a failure, if one came: a JSON object
// with an error member. The client has not got it.
func (s *Stream) Failed() ([]byte, bool) { return s.failure, s.failure != nil }

// Usage is the last full statement that came, as Usage reads it.
func (s *Stream) Usage() (limits.Tokens, string) { return s.usage.tokens() }

// Apart tells whether the answer took something that prices of tokens do not
// cover, and in what tier it was served, as far as was said.
func (s *Stream) Apart() (apart bool, tier Tier) {
	apart, tier = s.usage.apart()
	return apart, Tier(first(string(s.tier), string(tier)))
}

// OutputStated tells whether Usage has the whole output: a stream of Anthropic's
// form begins with a figure of it that is none, and states it at its end.
func (s *Stream) OutputStated() bool { return s.form != Messages || s.usage.output }

// Streamed is how many events with text came, and how many bytes of it, tool
// arguments and reasoning included.
func (s *Stream) Streamed() (pieces, textBytes int64) { return s.pieces, s.textBytes }

// End appends the last words of a stream that is Done or Finished, once it is
// settled: t is what it was settled with, which a translated stream states.
func (s *Stream) End(out []byte, t limits.Tokens) []byte {
	switch {
	case s.translate != nil:
		return s.translate.end(out, t)
	case s.held != nil:
		return append(out, s.held...)
	case s.form == Messages:
		return append(out, "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
	case s.form == Chat || s.form == Completions:
		return append(out, "data: [DONE]\n\n"...)
	}
	return out
}
