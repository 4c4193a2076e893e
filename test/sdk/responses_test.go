package sdk

import (
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"

	"weir/internal/gateway/upstreamtest"
)

func response() responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "test-small", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(question)}}
}

func wantResponse(t *testing.T, w world, got responses.Response) {
	t.Helper()
	prompt := int64(w.counted(t, 6).Input)
	if got.OutputText() != answer || got.Status != "completed" || got.Usage.InputTokens != prompt || got.Usage.OutputTokens != 6 || got.Usage.TotalTokens != prompt+6 {
		t.Errorf("%s, want %d and 6 tokens", got.RawJSON(), prompt)
	}
}

func TestAResponseIsAnsweredWholeAndStreamed(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	got, err := c.Responses.New(t.Context(), response())
	if err != nil {
		t.Fatal(err)
	}
	wantResponse(t, w, *got)
	stream := c.Responses.NewStreaming(t.Context(), response())
	var text strings.Builder
	ended := false
	number := int64(-1)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != number+1 {
			t.Errorf("event %d follows %d", e.SequenceNumber, number)
		}
		number = e.SequenceNumber
		switch e.Type {
		case "response.output_text.delta":
			text.WriteString(e.Delta)
		case "response.completed":
			ended = true
			wantResponse(t, w, e.Response)
		}
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil {
		t.Fatal(err)
	}
	if text.String() != answer || !ended {
		t.Errorf("%q, ended: %v", text.String(), ended)
	}
}

func TestAResponseCanCallATool(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	params := response()
	params.Tools = []responses.ToolUnionParam{responses.ToolParamOfFunction("river_level", map[string]any{
		"type": "object", "properties": map[string]any{"river": map[string]any{"type": "string"}}, "required": []string{"river"},
	}, false)}
	params.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsRequired)}
	got, err := c.Responses.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	call := got.Output[0]
	if call.Type != "function_call" || call.Name != "river_level" || call.CallID == "" {
		t.Errorf("%s", got.RawJSON())
	}
	output := responses.ResponseInputItemParamOfFunctionCallOutput("2.4 m")
	output.OfFunctionCallOutput.CallID = openai.String(call.CallID)
	params.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(question, responses.EasyInputMessageRoleUser),
		responses.ResponseInputItemParamOfFunctionCall(`{"river":"weir"}`, call.CallID, call.Name),
		output,
	}}
	params.ToolChoice = responses.ResponseNewParamsToolChoiceUnion{}
	got, err = c.Responses.New(t.Context(), params)
	if err != nil || got.OutputText() != answer {
		t.Errorf("%v %v", got, err)
	}
	if body := string(w.up.Last().Body); !strings.Contains(body, "2.4 m") {
		t.Errorf("the provider got %s", body)
	}
}

// TestAStreamOfAResponseThatBreaksEndsWithAnErrorEvent. openai-go 3.99.0 makes
// an error of an event only where it has a member "error"; those of responses
// have none, at OpenAI either, and it hands them on as events.
func TestAStreamOfAResponseThatBreaksEndsWithAnErrorEvent(t *testing.T) {
	t.Parallel()
	w := serving(t, openAIForm)
	c, _ := openAI(t, w.Key)
	w.up.Next(upstreamtest.Script{Cut: 3})
	stream := c.Responses.NewStreaming(t.Context(), response())
	var last responses.ResponseStreamEventUnion
	for stream.Next() {
		last = stream.Current()
	}
	if last.Type != "error" || last.Code != "upstream_cut" || last.Message == "" {
		t.Errorf("the stream ended with %s, %v", last.RawJSON(), stream.Err())
	}
	_ = stream.Close()

	w.up.Next(upstreamtest.ErrorEvent())
	stream = c.Responses.NewStreaming(t.Context(), response())
	for stream.Next() {
		last = stream.Current()
	}
	if last.Type != "response.failed" && last.Type != "error" {
		t.Errorf("the stream ended with %s, %v", last.RawJSON(), stream.Err())
	}
	_ = stream.Close()
}
