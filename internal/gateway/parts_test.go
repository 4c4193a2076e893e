package gateway

import (
	"bytes"
	"strings"
	"testing"

	"weir/internal/fault"
)

// formOf is a form whose parts have these dispositions, each with its value.
func formOf(pairs ...string) (*parts, error) {
	var b strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString("--b\r\n" + pairs[i] + "\r\n\r\n" + pairs[i+1] + "\r\n")
	}
	return readParts(strings.NewReader(b.String()+"--b--\r\n"), "b")
}

// TestAPartHasOneName: a name that others could read otherwise, of a model beside
// the one that is metered, is refused.
func TestAPartHasOneName(t *testing.T) {
	const head = "Content-Disposition: form-data; "
	for _, smuggled := range []string{
		head + `name="model"; name*=UTF-8''note`, head + `name*=UTF-8''note; name="model"`, head + `name*0="no"; name*1="te"; name="model"`,
		head + `name="note"; name="model"`, head + `name="note"; NAME="model"`, head + `name="note"; name*=UTF-8''model`,
		head + `name="model\""`, head + `name="mo\del"`, head + `name=" model"`, head + `name="model "`, head + "name=\"model\x00\"", head + "name=\"model\u0085\"", head + "name=\"model\xff\"",
		head + `name="model[]"`, head + `name="MODEL[0]"`, head + `name="stream[]"`, head + `name="file[]"; filename="b.wav"`,
		head + `name=""`, head + `filename="a.wav"`, head + `name="note`, head + `name=a b`, "Content-Disposition: attachment; name=\"model\"", "X-Other: 1",
		head + "name=\"note\"\r\n" + head + "name=\"model\"",
	} {
		_, err := formOf(head+`name="model"`, "cheap", smuggled, "dear", head+`name="file"; filename="a.wav"`, "RIFF")
		if f := fault.Of(err); err == nil || f.Kind != fault.Invalid || f.Code != "bad_form" {
			t.Errorf("%q is read: %v", smuggled, err)
		}
	}
}

// TestAPartIsSaidAnew, as it was read: with its name, a file's and its type.
func TestAPartIsSaidAnew(t *testing.T) {
	for was, want := range map[string]string{
		"content-disposition: Form-Data ;name=note ; FileName=a.wav;":                           `Content-Disposition: form-data; name="note"; filename="a.wav"`,
		"Content-Disposition: form-data; filename=\"größe; x=1.wav\"; name=\"file\"; size=9":    `Content-Disposition: form-data; name="file"; filename="größe; x=1.wav"`,
		`Content-Disposition: form-data; name=file; filename=a.wav; filename*=utf-8''a.wav`:     `Content-Disposition: form-data; name="file"; filename="a.wav"`,
		"Content-Disposition: form-data; name=\"note\"; filename=\"\"":                          `Content-Disposition: form-data; name="note"`,
		"Content-Disposition: form-data; name=\"timestamp_granularities[]\"":                    `Content-Disposition: form-data; name="timestamp_granularities[]"`,
		"Content-Disposition: form-data; name=\"f\"; filename=\"a\"\r\nContent-Type: audio/wav": "Content-Disposition: form-data; name=\"f\"; filename=\"a\"\r\nContent-Type: audio/wav",
	} {
		p, err := formOf(was, "RIFF")
		if err != nil {
			t.Errorf("%s: %v", was, err)
			continue
		}
		if got, _, err := p.bytes("m"); err != nil || !bytes.Contains(got, []byte("\r\n"+want+"\r\n\r\nRIFF\r\n")) {
			t.Errorf("%s goes on as %s, %v", was, got, err)
		}
	}
}
