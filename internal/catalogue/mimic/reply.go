package mimic

import (
	"iter"
	"strings"
	"time"
)

// Reply is what a provider says to a call.
type Reply struct {
	ID    string // what ids end with
	At    time.Time
	Words []string // the pieces of its text, or of the demanded tool's arguments
	Usage string   // the usage object; "": none is stated
	Cut   bool     // it is as long as was allowed
	Fails string   // a stream ends after its words with this error; "": it does not
}

// Honest is the reply with these words, no more of them than allowed, or with the
// tool that the call demands, and the usage that it takes.
func (c Call) Honest(words []string, at time.Time) Reply {
	r := Reply{At: at, Words: words}
	if c.Tool != "" {
		r.Words = c.pieces()
	} else if c.MaxOutput >= 0 && c.MaxOutput < len(words) {
		r.Words, r.Cut = words[:c.MaxOutput], true
	}
	r.Usage = Usage(c.Route, c.Counts(len(r.Words)))
	return r
}

// text is the reply in one piece.
func (r Reply) text() string { return strings.Join(r.Words, "") }

// Event is one event of a stream.
type Event struct{ Name, Data string }

// Text is the event on the wire, with this end of lines.
func (e Event) Text(end string) string {
	if e.Name == "" {
		return "data: " + e.Data + end + end
	}
	return "event: " + e.Name + end + "data: " + e.Data + end + end
}

// Step is what a stream sends at once: its opening, a word, why it ended, its
// usage, or its last word.
type Step struct {
	Events []Event
	Last   bool // what says that the stream is complete
}

// Steps are the steps of the call's stream, made one by one. The call's route
// has streams.
func (c Call) Steps(r Reply) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		s := &stream{Call: c, Reply: r, yield: yield}
		voice := voices[c.Route]
		voice.open(s)
		for _, w := range r.Words {
			voice.word(s, w)
			s.step()
			if s.over {
				return
			}
		}
		if r.Fails != "" {
			voice.fail(s)
			s.step()
			return
		}
		voice.close(s)
	}
}

// stream is a stream as it is written.
type stream struct {
	Call
	Reply
	yield    func(Step) bool
	events   []Event
	sequence int
	over     bool // nobody takes more
}

func (s *stream) add(name, data string) { s.events = append(s.events, Event{name, data}) }

// step hands on what was added.
func (s *stream) step() { s.hand(Step{Events: s.events}) }

func (s *stream) last() { s.hand(Step{Events: s.events, Last: true}) }

func (s *stream) hand(st Step) {
	s.events = nil
	if !s.over {
		s.over = !s.yield(st)
	}
}

// voice is how a route's stream sounds. open and close end their steps.
type voice struct {
	open  func(*stream)
	word  func(*stream, string)
	fail  func(*stream)
	close func(*stream)
}

var voices = map[string]voice{
	Chat:        {chatOpens, chatSays, openAIFails, chatCloses},
	Completions: {textOpens, textSays, openAIFails, textCloses},
	Responses:   {responseOpens, responseSays, responseFails, responseCloses},
	Messages:    {messageOpens, messageSays, messageFails, messageCloses},
}

// Whole is the whole answer to the call, and its content type.
func (c Call) Whole(r Reply) (contentType, body string) {
	switch c.Route {
	case Chat:
		body = c.chat(r)
	case Completions:
		body = c.completion(r)
	case Responses:
		body = c.response(r)
	case Messages:
		body = c.message(r)
	case CountTokens:
		body = `{"input_tokens":` + js(Tokens(c.Parts...)) + `}`
	case Embeddings:
		body = c.embeddings(r)
	case Moderations:
		body = c.moderation(r)
	case Images:
		body = c.images(r)
	case Speech:
		return c.speech()
	case Transcriptions:
		return c.transcription(r)
	}
	return "application/json", body
}
