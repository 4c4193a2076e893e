package usage

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"weir/internal/money"
)

// fill puts something into every exported field, or now and then nothing.
func fill(r *rand.Rand, v reflect.Value) {
	if r.IntN(4) == 0 {
		v.SetZero()
		return
	}
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMicro(r.Int64N(4e15)).UTC()))
		return
	case money.Pico:
		v.Set(reflect.ValueOf(money.FromInt(r.Int64() - r.Int64())))
		return
	case uuid.UUID:
		for i := range v.Len() {
			v.Index(i).SetUint(r.Uint64N(256))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString([]string{"gpt-4o", "a \"b\"\\\n", "größer 流れ", "x\xffy", "</script>\u2028"}[r.IntN(5)] + strconv.Itoa(r.IntN(10)))
	case reflect.Int, reflect.Int64:
		v.SetInt(r.Int64N(2e9) - 1e9)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), r.IntN(4), 4))
		for i := range v.Len() {
			fill(r, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(4) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key)
			fill(r, value)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(r, v.Field(i))
			}
		}
	default:
		panic(v.Type())
	}
}

// TestARecordReadsAsTheLibraryWouldWriteIt: a field that is new and not written
// fails here.
func TestARecordReadsAsTheLibraryWouldWriteIt(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 500 {
		var a Admission
		fill(r, reflect.ValueOf(&a).Elem())
		body, err := encode(&a)
		if err != nil {
			t.Fatal(err)
		}
		var want, got Admission
		if err := decode(body, &want); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		written := appendAdmission(nil, &a)
		if err := decode(written, &got); err != nil {
			t.Fatalf("%v: %s", err, written)
		}
		same := cmp.Comparer(func(a, b money.Pico) bool { return a.String() == b.String() })
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), same); diff != "" {
			t.Fatalf("%s\nof %s", diff, written)
		}
	}
}

// TestADetailIsWhatTheLibraryWouldWrite, to the byte.
func TestADetailIsWhatTheLibraryWouldWrite(t *testing.T) {
	t.Parallel()
	r := random(t)
	for range 500 {
		var d detail
		fill(r, reflect.ValueOf(&d).Elem())
		want, err := encode(&d)
		must(t, err)
		if got := appendDetail(nil, &d); !bytes.Equal(got, want) {
			t.Fatalf("written:\n%s\nwant:\n%s", got, want)
		}
	}
}
