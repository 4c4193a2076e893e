package gateway

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/gateway/wire"
	"weir/internal/jsonbody"
	"weir/internal/keyring"
	"weir/internal/limits"
	"weir/internal/money"
	"weir/internal/usage"
)

// read is a chat completion as it is parsed.
func read(t *testing.T, body string) (*call, error) {
	t.Helper()
	o, err := jsonbody.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	call := &call{form: formAt(wire.Chat), body: o, model: "m", maxOutput: -1, choices: 1}
	return call, call.readChat()
}

func reserved(t *testing.T, body string, plan []limits.Limit) limits.Tokens {
	t.Helper()
	call, err := read(t, body)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := call.estimate(plan, nil, known{})
	return c.Tokens
}

func tpm(amount int64) []limits.Limit {
	return []limits.Limit{limits.Default(limits.Limit{Dimension: limits.DimensionTokens, Window: limits.WindowMinute, Amount: amount})}
}

func TestAGuessNeverMakesTheFirstCallOfASmallPlanImpossible(t *testing.T) {
	for _, ceiling := range []int64{20, 100, 1000, 200_000} {
		if got := reserved(t, `{"messages":[{"role":"user","content":"hi"}]}`, tpm(ceiling)); got.Total() > ceiling || got.Input < 1 {
			t.Errorf("ceiling %d: reserves %+v", ceiling, got)
		}
	}
}

func TestTheLargerOutputCapTimesTheChoicesIsReserved(t *testing.T) {
	for body, want := range map[string]int64{
		`{"messages":[],"max_tokens":1,"max_completion_tokens":10000}`: 10_000,
		`{"messages":[],"max_tokens":300,"n":4}`:                       1200,
		`{"messages":[],"max_tokens":null,"max_completion_tokens":7}`:  7,
	} {
		if got := reserved(t, body, tpm(1000)).Output; got != want {
			t.Errorf("%s: reserves %d, want %d", body, got, want)
		}
	}
}

func TestAbsurdCeilingsAreRefused(t *testing.T) {
	for _, value := range []string{"-1", "0", "1e2", "1e400", "9223372036854775808", `"5"`, "1.5", "true", "[]", "{}"} {
		if call, err := read(t, `{"messages":[],"max_tokens":`+value+`}`); err == nil {
			t.Errorf("max_tokens %s accepted as %d", value, call.maxOutput)
		}
	}
}

func TestAnImageIsNotCountedAsText(t *testing.T) {
	data := "data:image/png;base64," + strings.Repeat("iVBORw0KGgo", 100_000)
	if got := reserved(t, `{"messages":[{"role":"user","content":[{"type":"text","text":"what is this"},{"type":"image_url","image_url":{"url":"`+data+`"}}]}]}`, nil).Input; got < 500 || got > 2000 {
		t.Fatalf("input estimated at %d", got)
	}
}

// messages is a call of Anthropic's form, as it is parsed.
func messages(t *testing.T, body string) *call {
	t.Helper()
	o, err := jsonbody.ParseObject([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return &call{form: formAt(wire.Messages), body: o, maxOutput: -1, choices: 1}
}

// TestTextIsCountedWhateverItIsCalled: names that belong to media stand for text
// too, in documents and in what a tool is called with.
func TestTextIsCountedWhateverItIsCalled(t *testing.T) {
	text := strings.Repeat("every word of this counts ", 20_000)
	content := func(block string) int64 {
		return messages(t, `{"messages":[{"role":"user","content":[`+block+`]}]}`).guess()
	}
	want := content(fmt.Sprintf(`{"type":"text","text":%q}`, text))
	for _, block := range []string{
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":%q}}`,
		`{"type":"document","source":{"data":%q,"media_type":"text/plain","type":"text"}}`,
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":%q}]}}`,
		`{"type":"tool_use","id":"a","name":"write","input":{"source":%q}}`,
		`{"type":"tool_use","id":"a","name":"write","input":{"file":%q}}`,
		`{"type":"tool_use","id":"a","name":"write","input":{"type":%q}}`,
		`{"type":"tool_use","id":"a","name":"write","input":{"role":%q}}`,
		`{"type":"tool_use","id":"a","name":"write","input":{"to":{"type":"base64","data":%q}}}`,
		`{"type":"tool_use","id":"a","name":"write","input":[{"type":"image_url","image_url":%q}]}`,
		`{"type":"text","text":"data:image/png;base64,%s"}`,
	} {
		if n := content(fmt.Sprintf(block, text)); n < want*9/10 || n > want*11/10 {
			t.Errorf("%s: %d tokens, as text %d", block, n, want)
		}
	}
}

// TestMediaAreNotCountedAsTextWhereverTheirTypeStands, in the forms of OpenAI and
// Anthropic.
func TestMediaAreNotCountedAsTextWhereverTheirTypeStands(t *testing.T) {
	data := strings.Repeat("iVBORw0KGgo", 20_000)
	for _, block := range []string{
		`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`,
		`{"source":{"data":%q,"media_type":"image/png","type":"base64"},"type":"image"}`,
		`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":%q}}`,
		`{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}]}`,
		`{"type":"image","source":{"type":"url","url":"https://pictures.example/1.png"}}`,
		`{"image_url":{"url":"data:image/png;base64,%s"},"type":"image_url"}`,
		`{"type":"input_image","image_url":"data:image/png;base64,%s","file_id":null}`,
		`{"type":"input_audio","input_audio":{"data":%q,"format":"wav"}}`,
		`{"type":"file","file":{"filename":"a.pdf","file_data":%q}}`,
		`{"type":"input_file","filename":"a.pdf","file_data":%q}`,
	} {
		if strings.Contains(block, "%") {
			block = fmt.Sprintf(block, data)
		}
		if n := messages(t, `{"messages":[{"role":"user","content":[`+block+`]}]}`).guess(); n < perImage || n > perImage+50 {
			t.Errorf("%.120s: %d tokens", block, n)
		}
	}
}

// TestATextInAFileIsCountedAsText, whatever its size, in both of OpenAI's forms.
func TestATextInAFileIsCountedAsText(t *testing.T) {
	text := strings.Repeat("every word of this counts ", 20_000)
	want := guess(text)
	data := base64.StdEncoding.EncodeToString([]byte(text))
	for _, block := range []string{
		`{"type":"file","file":{"filename":"a.txt","file_data":"data:text/plain;base64,%s"}}`,
		`{"file":{"file_data":"data:text/csv;charset=utf-8;base64,%s","filename":"a.csv"},"type":"file"}`,
		`{"type":"input_file","filename":"a.json","file_data":"data:application/json;base64,%s"}`,
	} {
		if n := messages(t, `{"messages":[{"role":"user","content":[`+fmt.Sprintf(block, data)+`]}]}`).guess(); n < want*9/10 || n > want*11/10 {
			t.Errorf("%s: %d tokens, as text %d", block, n, want)
		}
	}
}

// TestAGuessFitsIntoASmallAmountOfMoney: an answer that nobody limits is reserved
// as what a quarter of a spend cap buys.
func TestAGuessFitsIntoASmallAmountOfMoney(t *testing.T) {
	rates := []usage.Rate{{Class: usage.Input, MicrosPerMillion: 3_000_000}, {Class: usage.Output, MicrosPerMillion: 15_000_000}}
	daily := func(micros int64) []limits.Limit {
		return []limits.Limit{limits.Default(limits.Limit{Dimension: limits.DimensionSpend, Window: limits.WindowDay, Amount: micros})}
	}
	for micros, want := range map[int64]int64{100: 1, 1000: 16, 10_000: 166, 1_000_000: defaultOutput, 1_000_000_000_000_000: defaultOutput} {
		call, err := read(t, `{"messages":[{"role":"user","content":"hi"}]}`)
		if err != nil {
			t.Fatal(err)
		}
		c, _ := call.estimate(daily(micros), rates, known{})
		charge, _ := usage.Charge(rates, c)
		if charge.Sub(money.Times(micros, 1_000_000)).Sign() > 0 || c.Tokens.Output != want {
			t.Errorf("%d micro-units: %d tokens are reserved for %s pico-units, want %d", micros, c.Tokens.Output, charge, want)
		}
	}
}

// TestASmallToolIsNoImage: the name of a parameter makes no small call too large
// for a small plan.
func TestASmallToolIsNoImage(t *testing.T) {
	n := reserved(t, `{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"copy","parameters":{"type":"object","properties":{"source":{"type":"string"},"file":{"type":"string"}}}}}]}`, nil).Input
	if n > 200 {
		t.Errorf("a tool with two strings is reserved as %d tokens", n)
	}
}

func TestAStatedWaitIsReadInEveryFormAndGarbageInNone(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"30": 30 * time.Second, "1.5": 1500 * time.Millisecond, "1000000000000": 24 * time.Hour, "-5": 0, "0": 0, "soon": 0, "": 0, "NaN": 0, "Inf": 24 * time.Hour,
		"Tue, 01 Dec 2026 12:01:00 GMT": time.Minute, "Tuesday, 01-Dec-26 12:01:00 GMT": time.Minute, "Tue Dec  1 12:01:00 2026": time.Minute,
		"Tue, 01 Dec 2026 11:00:00 GMT": 0, "Tue, 01 Dec 2030 11:00:00 GMT": 24 * time.Hour,
	} {
		got, stated := statedWait(http.Header{"Retry-After": {value}}, now)
		if got != want || stated != (want > 0) {
			t.Errorf("%q: got %v, %v", value, got, stated)
		}
	}
	both := http.Header{"Retry-After": {"1", "garbage"}, "Retry-After-Ms": {"2500"}}
	if got, _ := statedWait(both, now); got != 2500*time.Millisecond {
		t.Errorf("the longest of several: got %v", got)
	}
}

func TestWordsOfAProviderCarryNoCredential(t *testing.T) {
	secret := keyring.NewSecret("canary-secret-1234")
	for _, body := range []string{
		`{"error":{"message":"Incorrect API key: canary-secret-1234."}}`, `{"error":"bad key sk-proj-abcDEF123456789"}`,
		`{"error":{"message":"Incorrect API key provided: sk-abc*******wxyz."}}`, `{"error":{"message":"Bearer abcdefghijklmnop is wrong"}}`,
	} {
		got := messageOf([]byte(body), secret)
		if strings.Contains(got, "canary") || strings.Contains(got, "abcDEF") || strings.Contains(got, "wxyz") || strings.Contains(got, "ghijk") {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// BenchmarkOneLongWordIsCounted with a vocabulary, as long as may be.
func BenchmarkOneLongWordIsCounted(b *testing.B) {
	for _, c := range []string{"a", "é", "=", " ", "1"} {
		v := []byte(`"` + strings.Repeat(c, (exactBytes-100)/len(c)) + `"`)
		b.Run(c, func(b *testing.B) {
			for b.Loop() {
				exactJSON(v, "gpt-4o")
			}
		})
	}
}

// BenchmarkAPromptIsGuessed: it is on every call's path.
func BenchmarkAPromptIsGuessed(b *testing.B) {
	turn := `{"role":"user","content":[{"type":"text","text":"some words of a conversation, of which there are many"}]},`
	v := []byte("[" + strings.Repeat(turn, 2000) + "{}]")
	b.SetBytes(int64(len(v)))
	for b.Loop() {
		guessJSON(v)
	}
}
