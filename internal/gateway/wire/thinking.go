package wire

import (
	"strconv"
	"strings"
)

// What models of Anthropic's take differs by their generation, which stands in
// the name (https://platform.claude.com/docs/en/about-claude/models/overview).
// Those of others that speak the form are taken as the generation that takes
// both sampling members and a thinking budget.
var (
	firstThinking = generation{3, 7}
	firstStrict   = generation{4, 5} // schemas are kept to, of answers and of tools
	firstAdaptive = generation{4, 6} // thinking is steered by an effort
	noSampling    = generation{4, 7} // temperature, top_p and top_k are errors
	other         = generation{4, 5}
	newest        = generation{99, 0}
)

type generation struct{ major, minor int }

func (g generation) before(o generation) bool {
	return g.major < o.major || g.major == o.major && g.minor < o.minor
}

// generationOf reads claude-3-7-sonnet-20250219, claude-opus-4-20250514,
// anthropic/claude-opus-4.8 and the like. A Claude without a number is of the
// newest.
func generationOf(model string) generation {
	_, name, claude := strings.Cut(strings.ToLower(model), "claude-")
	if !claude {
		return other
	}
	var numbers []int
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '.' || r == '@' || r == ':' }) {
		n, err := strconv.Atoi(part)
		if err != nil && len(numbers) > 0 || err == nil && n > 99 { // a date, or what follows the number
			break
		}
		if err == nil {
			numbers = append(numbers, n)
		}
	}
	switch len(numbers) {
	case 0:
		return newest
	case 1:
		return generation{numbers[0], 0}
	}
	return generation{numbers[0], numbers[1]}
}

// leastBudget is the smallest thinking budget that Anthropic takes.
const leastBudget = 1024

// budgets are how much of the output ceiling an effort may think, in percent.
var budgets = map[string]int64{"minimal": 10, "low": 20, "medium": 50, "high": 80, "xhigh": 90}

// budget is the thinking budget of an effort under an output ceiling; 0 where
// there is no room for one.
func budget(effort string, ceiling int64) int64 {
	if ceiling <= leastBudget {
		return 0
	}
	return max(ceiling*budgets[effort]/100, leastBudget)
}

// effortOf is the effort that a budget is nearest to.
func effortOf(budget, ceiling int64) string {
	switch share := budget * 100 / max(ceiling, 1); {
	case share <= 35:
		return "low"
	case share <= 65:
		return "medium"
	}
	return "high"
}

// claudeEffort is OpenAI's effort in the words of a generation.
func claudeEffort(effort string, g generation) string {
	switch {
	case effort == "minimal":
		return "low"
	case effort == "xhigh" && g.before(noSampling):
		return "high"
	}
	return effort
}
