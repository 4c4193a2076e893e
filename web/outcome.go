package web

import (
	"strings"

	"weir/internal/usage"
	"weir/web/ui"
)

// outcomes are what a call can be filtered by, in the order to offer them.
var outcomes = []usage.Outcome{
	usage.OK, "refused", usage.ClientError, usage.ProviderError, usage.ProviderLimited, usage.Aborted, usage.Expired, usage.Correction,
}

// outcomeWords say how a call ended.
func outcomeWords(o usage.Outcome) string {
	switch o {
	case usage.OK:
		return "passed"
	case "refused":
		return "refused"
	case usage.ClientError:
		return "wrong request"
	case usage.ProviderError:
		return "provider failed"
	case usage.ProviderLimited:
		return "provider’s own limit"
	case usage.Aborted:
		return "stopped by client"
	case usage.Expired:
		return "never settled"
	case usage.Correction:
		return "correction"
	}
	return "refused: " + limitWords(o)
}

// limitWords are the dimension and window of a refusal: "tokens a minute".
func limitWords(o usage.Outcome) string {
	rest := strings.TrimPrefix(string(o), "refused_")
	for suffix, words := range map[string]string{"_minute": " a minute", "_rolling_day": " in 24 hours", "_day": " a day", "_month": " a month", "_none": " at once"} {
		if d, ok := strings.CutSuffix(rest, suffix); ok {
			if d == "concurrency" {
				return "calls at once"
			}
			if suffix == "_day" && strings.HasSuffix(d, "_rolling") {
				continue
			}
			return strings.ReplaceAll(d, "_", " ") + words
		}
	}
	return strings.ReplaceAll(rest, "_", " ")
}

// outcomeTone colours an outcome: red is for refusals and errors only.
func outcomeTone(e usage.Event) (ui.Tone, string) {
	switch {
	case e.Outcome == usage.OK && len(e.Attempts) > 1:
		return ui.Warn, "passed, " + ordinal(len(e.Attempts)) + " try"
	case e.Outcome == usage.OK:
		return ui.OK, "passed"
	case e.Outcome.Refused():
		return ui.Bad, limitWords(e.Outcome)
	case e.Outcome == usage.ProviderError || e.Outcome == usage.ProviderLimited:
		return ui.Bad, outcomeWords(e.Outcome)
	case e.Outcome == usage.ClientError || e.Outcome == usage.Expired:
		return ui.Warn, outcomeWords(e.Outcome)
	}
	return ui.Idle, outcomeWords(e.Outcome)
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "1st"
	case 2:
		return "2nd"
	case 3:
		return "3rd"
	}
	return ui.Count(int64(n)) + "th"
}
