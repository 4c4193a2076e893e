package gateway

import (
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net/textproto"
	"slices"
	"strings"

	"weir/internal/fault"
	"weir/internal/jsonbody"
)

// audioLimit is the largest form with an audio file: OpenAI's 25 MB and a
// little for what stands around it.
const audioLimit = 26 << 20

const (
	maxParts   = 100
	valueLimit = 64 << 10 // of a part that is no file
)

// single are members that make no list: a provider that reads "model[]" as the
// model would serve another than is metered.
var single = []string{"model", "stream", "file"}

// parts is a form of several parts, in their order.
type parts struct {
	list []part
}

type part struct {
	disposition
	media string // its Content-Type; "": none is said
	body  []byte
}

// readParts reads a form whole. A name that stands twice, unless it is a list
// ("timestamp_granularities[]"), is Invalid ambiguous_form; one that could be read
// in two ways is Invalid bad_form.
func readParts(body io.Reader, boundary string) (*parts, error) {
	raw, err := jsonbody.Read(body, audioLimit)
	if err != nil {
		return nil, err
	}
	if boundary == "" {
		return nil, badForm(errors.New("no boundary"))
	}
	r := multipart.NewReader(bytes.NewReader(raw), boundary)
	p := &parts{}
	for {
		next, err := r.NextRawPart()
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return nil, badForm(err)
		}
		if err := p.add(next); err != nil {
			return nil, err
		}
	}
}

func badForm(cause error) error {
	return fault.New(fault.Invalid, "bad_form", "The body is not a valid multipart form.").Because(cause)
}

func (p *parts) add(next *multipart.Part) (err error) {
	x := part{media: next.Header.Get("Content-Type")}
	if x.disposition, err = readDisposition(next.Header["Content-Disposition"]); err != nil {
		return badForm(err)
	}
	member, _, isList := strings.Cut(strings.ToLower(x.name), "[")
	switch {
	case slices.Contains(steering, member):
		return steers(x.name)
	case isList && slices.Contains(single, member):
		return badForm(errors.New("a list of what is single"))
	case len(p.list) == maxParts:
		return jsonbody.Field("", "too_many", "The form has more than 100 parts.")
	case !strings.HasSuffix(x.name, "[]") && slices.ContainsFunc(p.list, func(o part) bool { return strings.EqualFold(o.name, x.name) }):
		return jsonbody.Field("/"+x.name, "ambiguous_form", "This part stands twice in the form.")
	}
	if x.body, err = io.ReadAll(next); err != nil {
		return badForm(err)
	}
	if x.file == "" && len(x.body) > valueLimit {
		return jsonbody.Field("/"+x.name, "too_large", "A part that is no file has at most 64 KiB.")
	}
	p.list = append(p.list, x)
	return nil
}

// value is the text of a part, or "".
func (p *parts) value(name string) string {
	for _, x := range p.list {
		if x.name == name && x.file == "" {
			return string(x.body)
		}
	}
	return ""
}

func (p *parts) has(name string) bool {
	return slices.ContainsFunc(p.list, func(x part) bool { return x.name == name })
}

// bytes writes the form anew, with this model.
func (p *parts) bytes(model string) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, x := range p.list {
		out, err := w.CreatePart(x.headers())
		if err != nil {
			return nil, "", err
		}
		if x.name == "model" {
			x.body = []byte(model)
		}
		_, _ = out.Write(x.body) // to memory
	}
	err = w.Close()
	return b.Bytes(), w.FormDataContentType(), err
}

// headers are a part's own, said anew: a provider cannot read another name in
// them than was read here.
func (x part) headers() textproto.MIMEHeader {
	h := textproto.MIMEHeader{}
	h.Set("Content-Disposition", x.String())
	if x.media != "" {
		h.Set("Content-Type", x.media)
	}
	return h
}
