package limits

import (
	"bytes"
	"compress/flate"
	"io"
	"strings"
	"sync"
)

// What definitions of limits have in common; what Redis keeps refers to it, so it
// is never changed.
const commonDefinitions = `"policy":"calendar","window":"month","zone":"UTC","models":["each_model":true,"weights":{"input":1000,"cached_input":` +
	`"cache_write":"output":"reasoning":"burst":"policy":"sliding","policy":"gauge","window":"none","dimension":"concurrency","dimension":"units",` +
	`"dimension":"spend","dimension":"input_tokens","dimension":"output_tokens","outage":"closed","outage":"open","mode":"shadow","kind":"client_token",` +
	`"kind":"end_user","kind":"pool","kind":"provider_key","kind":"api_key","kind":"tenant","kind":"customer","window":"day",` +
	`"amount":1000000,"policy":"bucket","mode":"enforce","outage":"share"},{"id":"00000000-0000-0000-0000-000000000000","scope":{"kind":"customer",` +
	`"id":"0"},"dimension":"tokens","window":"minute","amount":1000,{"id":"00000000-0000-0000-0000-000000000000","dimension":"requests","window":"minute",`

var squeezers = sync.Pool{New: func() any {
	w, _ := flate.NewWriterDict(nil, flate.BestCompression, []byte(commonDefinitions)) // the level is one there is
	return w
}}

// squeezed is definitions as many reservations keep them: a mark, and then what
// unsqueezed reads; it also reads what is not squeezed.
func squeezed(definitions string) string {
	var b strings.Builder
	b.WriteByte(squeezedMark)
	w := squeezers.Get().(*flate.Writer)
	defer squeezers.Put(w)
	w.Reset(&b)
	_, _ = io.WriteString(w, definitions) // to memory
	_ = w.Close()
	return b.String()
}

const squeezedMark = 1

// mostDefinition is how long definitions are at most, in bytes.
const mostDefinition = 16 << 20

func unsqueezed(s string) ([]byte, error) {
	if s == "" || s[0] != squeezedMark {
		return []byte(s), nil
	}
	r := flate.NewReaderDict(strings.NewReader(s[1:]), []byte(commonDefinitions))
	var b bytes.Buffer
	_, err := io.Copy(&b, io.LimitReader(r, mostDefinition))
	return b.Bytes(), err
}
