package catalogue

import "slices"

// What speaks OpenAI's form may have all of its routes; of a server that the
// tenant names, only the server knows.
var everyOpenAI = []string{
	RouteChat, RouteCompletions, RouteResponses, RouteEmbeddings, RouteImages, RouteSpeech, RouteTranscriptions, RouteModerations,
}

var everyAnthropic = []string{RouteMessages, RouteCountTokens}

// The providers. Routes are those of each vendor's API reference as of
// November 2026. A zone is stated by Google alone (midnight Pacific); the usage
// days of the others are UTC. Groq's requests figures are per day
// (console.groq.com/docs/rate-limits); Anthropic answers 400 at a spend limit
// that a workspace set for itself.
var providers = []Provider{
	{
		Slug: "openai", Name: "OpenAI", BaseURL: "https://api.openai.com/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.openai.com", routes: everyOpenAI,
	},
	{
		Slug: "anthropic", Name: "Anthropic", BaseURL: "https://api.anthropic.com/v1", Zone: "UTC", NeedsSecret: true,
		Form: Anthropic, Auth: AuthAnthropic, FailuresCount: true, PoolsKeys: true, host: "api.anthropic.com", routes: everyAnthropic,
		Quirks: Quirks{SpendIn400: true},
	},
	{
		Slug: "google", Name: "Google Gemini", BaseURL: "https://generativelanguage.googleapis.com/v1beta/openai", Zone: "America/Los_Angeles", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "googleapis.com", routes: []string{RouteChat, RouteEmbeddings, RouteImages},
		Quirks: Quirks{Zone: "America/Los_Angeles"},
	},
	{
		Slug: "groq", Name: "Groq", BaseURL: "https://api.groq.com/openai/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.groq.com", routes: []string{RouteChat, RouteResponses, RouteSpeech, RouteTranscriptions},
		Quirks: Quirks{Zone: "UTC", RequestsPerDay: true},
	},
	{
		// Its list of models is public: only /key shows whether a key is good.
		Slug: "openrouter", Name: "OpenRouter", BaseURL: "https://openrouter.ai/api/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "openrouter.ai", check: "/key",
		routes: []string{RouteChat, RouteCompletions, RouteResponses, RouteEmbeddings},
	},
	{
		Slug: "mistral", Name: "Mistral", BaseURL: "https://api.mistral.ai/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.mistral.ai",
		routes: []string{RouteChat, RouteEmbeddings, RouteTranscriptions, RouteModerations},
	},
	{
		Slug: "cerebras", Name: "Cerebras", BaseURL: "https://api.cerebras.ai/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.cerebras.ai", routes: []string{RouteChat, RouteCompletions},
	},
	{
		Slug: "deepseek", Name: "DeepSeek", BaseURL: "https://api.deepseek.com/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.deepseek.com", routes: []string{RouteChat},
	},
	{
		Slug: "together", Name: "Together AI", BaseURL: "https://api.together.xyz/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.together.xyz",
		routes: []string{RouteChat, RouteCompletions, RouteEmbeddings, RouteImages, RouteSpeech, RouteTranscriptions},
	},
	{
		Slug: "xai", Name: "xAI", BaseURL: "https://api.x.ai/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api.x.ai", routes: []string{RouteChat, RouteCompletions, RouteResponses, RouteImages},
	},
	{
		// Quotas are of a deployment in a subscription and region, whichever key.
		Slug: "azure-openai", Name: "Azure OpenAI", Zone: "UTC", NeedsSecret: true, NeedsBaseURL: true,
		Form: OpenAI, Auth: AuthAPIKey, FailuresCount: true, PoolsKeys: true, host: "openai.azure.com",
		routes: []string{RouteChat, RouteCompletions, RouteResponses, RouteEmbeddings, RouteImages, RouteSpeech, RouteTranscriptions},
	},
	{
		Slug: "nvidia", Name: "NVIDIA NIM", BaseURL: "https://integrate.api.nvidia.com/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "integrate.api.nvidia.com", routes: []string{RouteChat, RouteCompletions, RouteEmbeddings},
	},
	{
		Slug: "modelscope", Name: "ModelScope", BaseURL: "https://api-inference.modelscope.cn/v1", Zone: "UTC", NeedsSecret: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, PoolsKeys: true, host: "api-inference.modelscope.cn", routes: []string{RouteChat},
	},
	{
		Slug: "ollama", Name: "Ollama", Zone: "UTC", NeedsBaseURL: true,
		Form: OpenAI, Auth: AuthBearer, routes: everyOpenAI,
	},
	{
		Slug: "vllm", Name: "vLLM", Zone: "UTC", NeedsBaseURL: true,
		Form: OpenAI, Auth: AuthBearer, routes: everyOpenAI,
	},
	{
		Slug: "custom", Name: "Custom, OpenAI-compatible", Zone: "UTC", NeedsBaseURL: true,
		Form: OpenAI, Auth: AuthBearer, FailuresCount: true, routes: everyOpenAI,
	},
	{
		Slug: "custom-anthropic", Name: "Custom, Anthropic-compatible", Zone: "UTC", NeedsBaseURL: true,
		Form: Anthropic, Auth: AuthAnthropic, FailuresCount: true, routes: everyAnthropic,
	},
	{
		Slug: "practice", Name: "Practice provider", Zone: "UTC", Practice: true,
		Form: OpenAI, Auth: AuthBearer, routes: slices.Concat(everyOpenAI, everyAnthropic),
	},
}
