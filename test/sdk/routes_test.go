package sdk

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"

	"weir/internal/catalogue/mimic"
	"weir/test/stack"
)

func TestEmbeddingsComeAsNumbersAndAsBase64(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	for _, format := range []openai.EmbeddingNewParamsEncodingFormat{"", openai.EmbeddingNewParamsEncodingFormatFloat, openai.EmbeddingNewParamsEncodingFormatBase64} {
		got, err := c.Embeddings.New(t.Context(), openai.EmbeddingNewParams{
			Model: "test-small", EncodingFormat: format, Dimensions: openai.Int(4),
			Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"weir", "sluice"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Data) != 2 || got.Data[1].Index != 1 || len(got.Data[1].Embedding) != 4 || got.Data[1].Embedding[1] != 0.5 {
			t.Errorf("%q: %s", format, got.RawJSON())
		}
		if u := got.Usage; u.PromptTokens != int64(w.counted(t, 0).Input) || u.TotalTokens != u.PromptTokens {
			t.Errorf("%q: usage %s", format, u.RawJSON())
		}
	}
}

func TestACompletionIsAnsweredWholeAndStreamed(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	params := openai.CompletionNewParams{Model: "test-small", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String(question)}}
	got, err := c.Completions.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	if got.Choices[0].Text != answer || got.Choices[0].FinishReason != "stop" {
		t.Errorf("%s", got.RawJSON())
	}
	wantUsage(t, w, got.Usage)
	for _, asked := range []bool{false, true} {
		if asked {
			params.StreamOptions.IncludeUsage = openai.Bool(true)
		}
		stream := c.Completions.NewStreaming(t.Context(), params)
		var text strings.Builder
		frames := 0
		for stream.Next() {
			piece := stream.Current()
			if len(piece.Choices) == 0 {
				frames++
				wantUsage(t, w, piece.Usage)
				continue
			}
			text.WriteString(piece.Choices[0].Text)
		}
		if err := errors.Join(stream.Err(), stream.Close()); err != nil {
			t.Fatal(err)
		}
		if text.String() != answer || asked != (frames == 1) {
			t.Errorf("%q, and %d pieces with usage, asked for: %v", text.String(), frames, asked)
		}
	}
}

// moderates is an alias by which a tenant says who serves OpenAI's own default.
const moderates = `{"name": "omni-moderation-latest", "candidates": [{"model": "test-small"}]}`

// TestAModerationNeedsNoModel: the client leaves it out, as OpenAI allows.
func TestAModerationNeedsNoModel(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	weir.Want(t, 201, "POST", "/api/v1/model-aliases", w.ManagementKey, moderates)
	c, _ := openAI(t, w.Key)
	params := openai.ModerationNewParams{Input: openai.ModerationNewParamsInputUnion{OfStringArray: []string{"one", "two"}}}
	for _, model := range []string{"test-small", ""} {
		params.Model = model
		got, err := c.Moderations.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Results) != 2 || got.Results[0].Flagged {
			t.Errorf("%s", got.RawJSON())
		}
		if !bytes.Contains(w.up.Last().Body, []byte(`"model":"test-small"`)) {
			t.Errorf("the provider got %s", w.up.Last().Body)
		}
	}
}

func TestAnImageIsMade(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	got, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "test-small", Prompt: "A weir at dawn", N: openai.Int(2)})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 2 || got.Data[1].B64JSON != grey {
		t.Errorf("%s", got.RawJSON())
	}
}

func TestSpeechComesAsItsBytes(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	resp, err := c.Audio.Speech.New(t.Context(), openai.AudioSpeechNewParams{
		Model: "test-small", Input: question, Voice: openai.AudioSpeechNewParamsVoiceUnion{OfString: openai.String("alloy")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	_, want := mimic.Call{Route: mimic.Speech}.Whole(mimic.Reply{})
	if err != nil || string(got) != want || resp.Header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("%d bytes of %s, %v, want %d", len(got), resp.Header.Get("Content-Type"), err, len(want))
	}
}

func TestAFileIsTranscribed(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	sound := "RIFF\x00\x01\r\n\xff" + strings.Repeat("\x80", 4096)
	got, err := c.Audio.Transcriptions.New(t.Context(), openai.AudioTranscriptionNewParams{
		Model: "test-small", File: openai.File(strings.NewReader(sound), "weir.wav", "audio/wav"), Language: openai.String("en"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Text != answer {
		t.Errorf("%s", got.RawJSON())
	}
	last := w.up.Last()
	for _, part := range []string{sound, `filename="weir.wav"`, "Content-Type: audio/wav", `name="language"`} {
		if !bytes.Contains(last.Body, []byte(part)) {
			t.Errorf("the provider did not get %.20q", part)
		}
	}
}

// TestMediaAreInTheBooksAsRequests: with tokens only where the provider states
// them.
func TestMediaAreInTheBooksAsRequests(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	if _, err := c.Moderations.New(t.Context(), openai.ModerationNewParams{Model: "test-small", Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("one")}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Images.Generate(t.Context(), openai.ImageGenerateParams{Model: "test-small", Prompt: "A weir at dawn"}); err != nil {
		t.Fatal(err)
	}
	stated := w.counted(t, 0)
	stack.Eventually(t, patience, func() string {
		a := weir.Call(t, "GET", "/api/v1/usage", w.ManagementKey, nil)
		if a.JSON("totals.requests") == 2.0 && a.JSON("totals.input_tokens") == float64(stated.Input) && a.JSON("totals.output_tokens") == float64(stated.Output) {
			return ""
		}
		return a.String()
	})
}

// TestWhatIsNotServedIsAskedOnce, and never sent on.
func TestWhatIsNotServedIsAskedOnce(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, wire := openAI(t, w.Key)
	_, err := c.Batches.List(t.Context(), openai.BatchListParams{})
	if e := apiError(t, err); e.StatusCode != http.StatusNotFound || e.Code != "unknown_url" || e.Type != "invalid_request_error" {
		t.Errorf("%v", err)
	}
	if wire.calls() != 1 || len(w.up.Calls()) != 0 {
		t.Errorf("%d HTTP calls, %d at the provider", wire.calls(), len(w.up.Calls()))
	}
}
