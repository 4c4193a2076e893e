package httpapi

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"weir/internal/catalogue"
)

func TestTheDocumentNamesEveryProvider(t *testing.T) {
	field, _ := reflect.TypeFor[providerKeyBody]().FieldByName("Provider")
	var want []string
	for _, p := range catalogue.Providers() {
		want = append(want, p.Slug)
	}
	if diff := cmp.Diff(want, strings.Split(field.Tag.Get("enum"), ",")); diff != "" {
		t.Error(diff)
	}
}
