package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"weir/web/ui"
)

// stringLiteral is a text as a literal of JSON, Go, Python and JavaScript alike.
func stringLiteral(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string
	return strings.TrimSpace(b.String())
}

// sameCallTabs are a call of the playground in each language. The secret is the
// reader's to put in: nobody can show it again.
func sameCallTabs(publicURL string, call playCall, body playBody) []ui.Tab {
	return []ui.Tab{
		{Name: "curl", Text: sameCurl(publicURL, call)},
		{Name: "Go", Text: sameGo(publicURL, call, body)},
		{Name: "Python", Text: samePython(publicURL, call, body)},
		{Name: "Node", Text: sameNode(publicURL, call, body)},
	}
}

func sameCurl(publicURL string, call playCall) string {
	flag, wait := "", ""
	if call.Stream {
		flag = "-N "
	}
	if call.Wait > 0 {
		wait = fmt.Sprintf("  -H \"x-weir-max-wait-ms: %d\" \\\n", call.Wait)
	}
	return "curl " + flag + publicURL + "/v1/chat/completions \\\n  -H \"Authorization: Bearer $WEIR_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n" + wait +
		"  -d '" + strings.ReplaceAll(string(call.Body), "'", `'\''`) + "'"
}

func sameGo(publicURL string, call playCall, body playBody) string {
	var messages []string
	for _, m := range body.Messages {
		kind := map[string]string{"system": "SystemMessage", "user": "UserMessage"}[m.Role]
		messages = append(messages, "\t\t\topenai."+kind+"("+stringLiteral(m.Content)+"),\n")
	}
	params := "\t\tModel: " + stringLiteral(body.Model) + ",\n\t\tMessages: []openai.ChatCompletionMessageParamUnion{\n" + strings.Join(messages, "") + "\t\t},\n"
	if body.MaxTokens > 0 {
		params += fmt.Sprintf("\t\tMaxTokens: openai.Int(%d),\n", body.MaxTokens)
	}
	if body.Temperature != nil {
		params += "\t\tTemperature: openai.Float(" + number(*body.Temperature) + "),\n"
	}
	options := ""
	if call.Wait > 0 {
		options = fmt.Sprintf(", option.WithHeader(\"x-weir-max-wait-ms\", \"%d\")", call.Wait)
	}
	do := "\tanswer, err := client.Chat.Completions.New(context.Background(), params)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tfmt.Println(answer.Choices[0].Message.Content)\n"
	if call.Stream {
		do = "\tstream := client.Chat.Completions.NewStreaming(context.Background(), params)\n\tfor stream.Next() {\n\t\tif c := stream.Current(); len(c.Choices) > 0 {\n\t\t\tfmt.Print(c.Choices[0].Delta.Content)\n\t\t}\n\t}\n\tif err := stream.Err(); err != nil {\n\t\tlog.Fatal(err)\n\t}\n"
	}
	return "// go mod init hello && go get github.com/openai/openai-go/v3\npackage main\n\nimport (\n\t\"context\"\n\t\"fmt\"\n\t\"log\"\n\t\"os\"\n\n\t\"github.com/openai/openai-go/v3\"\n\t\"github.com/openai/openai-go/v3/option\"\n)\n\nfunc main() {\n" +
		"\tclient := openai.NewClient(option.WithBaseURL(" + stringLiteral(publicURL+"/v1") + "), option.WithAPIKey(os.Getenv(\"WEIR_KEY\"))" + options + ")\n" +
		"\tparams := openai.ChatCompletionNewParams{\n" + params + "\t}\n" + do + "}"
}

func samePython(publicURL string, call playCall, body playBody) string {
	lines := []string{"    model=" + stringLiteral(body.Model) + ",", "    messages=["}
	for _, m := range body.Messages {
		lines = append(lines, "        {\"role\": "+stringLiteral(m.Role)+", \"content\": "+stringLiteral(m.Content)+"},")
	}
	lines = append(lines, "    ],")
	if body.MaxTokens > 0 {
		lines = append(lines, fmt.Sprintf("    max_tokens=%d,", body.MaxTokens))
	}
	if body.Temperature != nil {
		lines = append(lines, "    temperature="+number(*body.Temperature)+",")
	}
	if call.Wait > 0 {
		lines = append(lines, fmt.Sprintf("    extra_headers={\"x-weir-max-wait-ms\": \"%d\"},", call.Wait))
	}
	last := "print(answer.choices[0].message.content)"
	if call.Stream {
		lines = append(lines, "    stream=True,")
		last = "for piece in answer:\n    if piece.choices:\n        print(piece.choices[0].delta.content or \"\", end=\"\", flush=True)"
	}
	return "# pip install openai\nimport os\n\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=" + stringLiteral(publicURL+"/v1") + ", api_key=os.environ[\"WEIR_KEY\"])\n" +
		"answer = client.chat.completions.create(\n" + strings.Join(lines, "\n") + "\n)\n" + last
}

func sameNode(publicURL string, call playCall, body playBody) string {
	lines := []string{"  model: " + stringLiteral(body.Model) + ",", "  messages: ["}
	for _, m := range body.Messages {
		lines = append(lines, "    { role: "+stringLiteral(m.Role)+", content: "+stringLiteral(m.Content)+" },")
	}
	lines = append(lines, "  ],")
	if body.MaxTokens > 0 {
		lines = append(lines, fmt.Sprintf("  max_tokens: %d,", body.MaxTokens))
	}
	if body.Temperature != nil {
		lines = append(lines, "  temperature: "+number(*body.Temperature)+",")
	}
	last := "console.log(answer.choices[0].message.content);"
	if call.Stream {
		lines = append(lines, "  stream: true,")
		last = "for await (const piece of answer) process.stdout.write(piece.choices[0]?.delta?.content ?? \"\");"
	}
	end := "});\n"
	if call.Wait > 0 {
		end = fmt.Sprintf("}, { headers: { \"x-weir-max-wait-ms\": \"%d\" } });\n", call.Wait)
	}
	return "// npm install openai, and save as hello.mjs\nimport OpenAI from \"openai\";\n\nconst client = new OpenAI({ baseURL: " + stringLiteral(publicURL+"/v1") + ", apiKey: process.env.WEIR_KEY });\n" +
		"const answer = await client.chat.completions.create({\n" + strings.Join(lines, "\n") + "\n" + end + last
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
