package jsonbody

import (
	"strings"
	"testing"
	"time"

	"weir/internal/fault"
)

type sample struct {
	Name   string     `json:"name"`
	Amount *int64     `json:"amount"`
	At     *time.Time `json:"at"`
	On     bool       `json:"on"`
	Items  []struct {
		N int64 `json:"n"`
	} `json:"items"`
	Map map[string]int64 `json:"map"`
}

func TestEveryFaultNamesItsMemberAndReason(t *testing.T) {
	for body, want := range map[string]string{
		``:                                 " required",
		`{`:                                " bad_json",
		`{"name":"a"} x`:                   " bad_json",
		`{"name":"a"}{}`:                   " bad_json",
		`[]`:                               " wrong_type",
		`null`:                             " wrong_type",
		`{"name":1}`:                       "/name wrong_type",
		`{"Name":"a"}`:                     "/Name unknown_field",
		`{"nam":"a"}`:                      "/nam unknown_field",
		`{"name":"a","name":"b"}`:          "/name ambiguous_json",
		`{"amount":1.5}`:                   "/amount out_of_range",
		`{"amount":1e400}`:                 "/amount out_of_range",
		`{"amount":9223372036854775808}`:   "/amount out_of_range",
		`{"amount":"5"}`:                   "/amount wrong_type",
		`{"at":"tomorrow"}`:                "/at wrong_type",
		`{"on":"yes"}`:                     "/on wrong_type",
		`{"items":{}}`:                     "/items wrong_type",
		`{"items":[{"n":1},{"n":true}]}`:   "/items/1/n wrong_type",
		`{"items":[{"m":1}]}`:              "/items/0/m unknown_field",
		`{"map":{"a":1,"a":2}}`:            "/map/a ambiguous_json",
		"{\"name\":\"\xff\"}":              " bad_json",
		`{"a":` + strings.Repeat("[", 100): " too_deep",
		`{"name":"a","amount":5,"on":true,"at":"2026-12-01T00:00:00Z","items":[{"n":1}],"map":{"x":1}}`: "",
	} {
		err := Decode([]byte(body), &sample{})
		got := ""
		if err != nil {
			f := fault.Of(err)
			got = f.Fields[0].Pointer + " " + f.Fields[0].Code
			if f.Kind != fault.Invalid || f.Message == "" || f.Code != f.Fields[0].Code {
				t.Errorf("%s: %v", body, f)
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q (%v)", body, got, want, err)
		}
	}
}

func TestAnObjectKeepsWhatItDoesNotKnow(t *testing.T) {
	in := `{"model":"m","x":{"a":[1, 2.50]},"n":1e2}`
	o, err := ParseObject([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(o.Bytes()); got != in {
		t.Fatalf("got %s", got)
	}
	o.Set("model", []byte(`"k"`))
	o.Set("new", []byte(`true`))
	if got := string(o.Bytes()); got != `{"model":"k","x":{"a":[1, 2.50]},"n":1e2,"new":true}` {
		t.Fatalf("got %s", got)
	}
	o.Drop("x")
	o.Drop("absent")
	if got := string(o.Bytes()); got != `{"model":"k","n":1e2,"new":true}` {
		t.Fatalf("got %s", got)
	}
}

func TestAnAmbiguousObjectIsRefused(t *testing.T) {
	for _, body := range []string{
		`{"model":"cheap","model":"dear"}`, `{"model":"cheap","MODEL":"dear"}`, `{"a":{"x":1,"x":2}}`, `{"model":"a"}{"model":"b"}`, `{"model":"a"} trailing`, `[]`, `"x"`, ``,
	} {
		if _, err := ParseObject([]byte(body)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", body, err)
		}
	}
}

func FuzzParseObjectGivesBackWhatItRead(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := ParseObject(b)
		if err != nil {
			return
		}
		again, err := ParseObject(o.Bytes())
		if err != nil || string(again.Bytes()) != string(o.Bytes()) {
			t.Fatalf("%q: %q, %v", b, o.Bytes(), err)
		}
	})
}
