package gateway

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/jsonbody"
)

// noText are the members that hold what is no text, by the type of the object in
// which they stand: the parts of OpenAI's forms, and the sources of Anthropic's
// images and documents. A source of text is text.
var noText = map[string][]string{
	"image_url": {"image_url"}, "video_url": {"video_url"}, "input_audio": {"input_audio"},
	"input_image": {"image_url", "file_id"}, "computer_screenshot": {"image_url", "file_id"}, "image_generation_call": {"result"},
	"base64": {"data"}, "url": {"url"},
}

// meaning is what the name of a member says of its value.
type meaning uint8

const (
	mayBeMedia meaning = iota + 1 // as the type says, which may come later
	ownNames                      // a tool's: below it every name is the tool's own, and nothing is media
	roleName
	typeName
	mediaType
	fileData // of a file: text where it says so
	fileElsewhere
)

var meanings = func() map[string]meaning {
	m := map[string]meaning{"role": roleName, "type": typeName, "media_type": mediaType}
	for _, name := range []string{"input", "arguments", "parameters", "input_schema", "input_examples", "schema", "properties"} {
		m[name] = ownNames
	}
	for _, list := range noText {
		for _, name := range list {
			m[name] = mayBeMedia
		}
	}
	m["file_data"], m["file_id"], m["file_url"] = fileData, fileElsewhere, fileElsewhere
	return m
}()

// wordLimit is the longest role or type: what is longer is a text.
const wordLimit = 40

// countJSON sums a count over every string in a JSON value, with a fixed figure
// for each message and each image, whose data is no text. It goes through the
// value once and keeps a little for each level on which it stands.
func countJSON(v jsontext.Value, count func(string) int64) int64 {
	if v == nil {
		return 0
	}
	d, done := jsonbody.Decoder(v, jsontext.AllowDuplicateNames(true), lenient)
	defer done()
	w := prompt{d: d, count: count, levels: make([]nested, 1, 16)}
	for {
		t, err := w.d.ReadToken()
		if err != nil {
			return w.levels[0].sum // the end; what is no JSON was refused before
		}
		w.take(t)
	}
}

// prompt is a JSON value while it is counted.
type prompt struct {
	d      *jsontext.Decoder
	count  func(string) int64
	levels []nested // the last is where it stands
}

// nested is an object or a list that has begun.
type nested struct {
	plain bool     // below a tool's own names
	at    meaning  // whose value comes
	typed bool     // its type came
	media []string // what holds media in an object of its type
	found bool     // such a member came
	sum   int64
	held  int64 // of members that are media if the type that comes says so
}

func (w *prompt) take(t jsontext.Token) {
	last := len(w.levels) - 1
	switch t.Kind() {
	case '{', '[':
		l := &w.levels[last]
		w.levels = append(w.levels, nested{plain: l.plain || l.at == ownNames})
	case '}', ']':
		n := w.levels[last].total()
		w.levels = w.levels[:last]
		w.levels[last-1].add(n)
	case '"':
		if kind, length := w.d.StackIndex(w.d.StackDepth()); kind == '{' && length%2 == 1 {
			w.name(&w.levels[last], t.String())
		} else {
			w.text(&w.levels[last], t.String())
		}
	case '0', 't', 'f':
		w.levels[last].add(1)
	}
}

// total is what an object or a list takes, once it has ended.
func (l *nested) total() int64 {
	switch {
	case !l.found:
		return l.sum
	case l.media != nil:
		return l.sum + perImage
	}
	return l.sum + l.held
}

// add counts to the member whose value comes.
func (l *nested) add(n int64) {
	if l.at == mayBeMedia {
		l.held += n
	} else {
		l.sum += n
	}
}

// name takes the name of a member.
func (w *prompt) name(l *nested, name string) {
	if l.plain {
		l.sum++
		return
	}
	l.at = meanings[name]
	switch {
	case l.at >= fileData && w.d.PeekKind() == '"':
		v, _ := w.d.ReadValue() // its end shows at the next token
		l.sum += w.file(v, l.at)
		l.at = 0
	case l.at == mayBeMedia && !l.typed:
		l.found = true
		l.held++
	case l.at == mayBeMedia && slices.Contains(l.media, name):
		l.found, l.at = true, 0
		_ = w.d.SkipValue() // its end shows at the next token
	case l.at == mayBeMedia:
		l.at = 0
		l.sum++
	case l.at < roleName:
		l.sum++
	}
}

// text counts a string, unless it is the role or the type of something.
func (w *prompt) text(l *nested, s string) {
	if len(s) > wordLimit || l.at < roleName {
		l.add(w.count(s))
		return
	}
	switch l.at {
	case roleName:
		l.sum += perMessage
	case typeName:
		l.typed, l.media = true, noText[s]
	}
}

// file counts a file: its words where it is a text, else about a page.
func (w *prompt) file(v jsontext.Value, at meaning) int64 {
	if at == fileElsewhere || !bytes.HasPrefix(v, []byte(`"data:`)) {
		return perImage
	}
	head, data, _ := bytes.Cut(v[len(`"data:`):], []byte(","))
	media, _, _ := bytes.Cut(head, []byte(";"))
	if !isText(string(media)) {
		return perImage
	}
	data = bytes.TrimSuffix(data, []byte(`"`))
	if bytes.HasSuffix(head, []byte(";base64")) {
		plain := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
		n, _ := base64.StdEncoding.Decode(plain, data) // what came before a fault is enough for a guess
		data = plain[:n]
	}
	return w.count(string(data))
}

// isText tells whether files of a type hold their words as they are.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || media == "application/json" || media == "application/xml" || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "+xml") && !strings.HasPrefix(media, "image/")
}
