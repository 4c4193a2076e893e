package usage

import "testing"

func TestNoCellIsAFormula(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"=1+1": "'=1+1", "+x": "'+x", "-x": "'-x", "@x": "'@x", "\tx": "'\tx", "\rx": "'\rx", "\nx": "'\nx", "＝1": "'＝1", "＋1": "'＋1", "－1": "'－1", "＠x": "'＠x",
		"-12.5": "-12.5", "-1-1": "'-1-1", "-inf": "'-inf", "": "", "a=b": "a=b", "12": "12",
	} {
		if got := Cell(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
