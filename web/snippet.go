package web

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"weir/internal/limits"
	"weir/internal/tenants"
	"weir/web/ui"
)

// callTabs are a call with a key, in each language. Each runs as it is pasted;
// the official SDKs need what their first line installs.
func callTabs(publicURL, key, model string) []ui.Tab {
	fill := strings.NewReplacer("{url}", publicURL, "{key}", key, "{model}", model)
	return []ui.Tab{
		{Name: "curl", Text: fill.Replace(callCurl)},
		{Name: "Go", Text: fill.Replace(callGo)},
		{Name: "Python", Text: fill.Replace(callPython)},
		{Name: "Node", Text: fill.Replace(callNode)},
	}
}

// lookTabs are a management key asking who it is.
func lookTabs(publicURL, key string) []ui.Tab {
	fill := strings.NewReplacer("{url}", publicURL, "{key}", key)
	return []ui.Tab{
		{Name: "curl", Text: fill.Replace(lookCurl)},
		{Name: "Go", Text: fill.Replace(lookGo)},
		{Name: "Python", Text: fill.Replace(lookPython)},
		{Name: "Node", Text: fill.Replace(lookNode)},
	}
}

// modelFor is a model that a call with the key can reach now.
func (p *Pages) modelFor(ctx context.Context, tenant uuid.UUID, key tenants.APIKey) string {
	const practice = "practice-small"
	if key.Test {
		return practice
	}
	keys, err := p.tenants.ProviderKeys(ctx, tenant, uuid.Nil, 25)
	if err != nil {
		return practice
	}
	for _, wanted := range []tenants.Status{tenants.Active, tenants.Unverified} {
		for _, k := range keys.Items {
			if k.Status != wanted || k.Provider == "practice" {
				continue
			}
			if i := slices.IndexFunc(k.Models, limits.Limit{Models: key.Models}.Applies); i >= 0 {
				return k.Models[i]
			}
		}
	}
	return practice
}

const callCurl = `curl {url}/v1/chat/completions \
  -H "Authorization: Bearer {key}" \
  -H "Content-Type: application/json" \
  -d '{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}'`

const callGo = `// go mod init hello && go get github.com/openai/openai-go/v3
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	client := openai.NewClient(option.WithBaseURL("{url}/v1"), option.WithAPIKey("{key}"))
	answer, err := client.Chat.Completions.New(context.Background(), openai.ChatCompletionNewParams{
		Model:    "{model}",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello")},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Choices[0].Message.Content)
}`

const callPython = `# pip install openai
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="{key}")
answer = client.chat.completions.create(
    model="{model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`

const callNode = `// npm install openai, and save as hello.mjs
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "{url}/v1", apiKey: "{key}" });
const answer = await client.chat.completions.create({
  model: "{model}",
  messages: [{ role: "user", content: "Hello" }],
});
console.log(answer.choices[0].message.content);`

const lookCurl = `curl {url}/api/v1/me -H "Authorization: Bearer {key}"`

const lookGo = `package main

import (
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	req, err := http.NewRequest("GET", "{url}/api/v1/me", nil)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer {key}")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer res.Body.Close()
	io.Copy(os.Stdout, res.Body)
}`

const lookPython = `from urllib.request import Request, urlopen

ask = Request("{url}/api/v1/me", headers={"Authorization": "Bearer {key}"})
print(urlopen(ask).read().decode())`

const lookNode = `const answer = await fetch("{url}/api/v1/me", {
  headers: { Authorization: "Bearer {key}" },
});
console.log(await answer.json());`
