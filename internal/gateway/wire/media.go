package wire

import (
	"encoding/base64"
	"strings"
)

// fromDataURL takes a data: URL with base64 apart
// (https://www.rfc-editor.org/rfc/rfc2397).
func fromDataURL(url string) (mediaType, data string, ok bool) {
	rest, ok := strings.CutPrefix(url, "data:")
	if !ok {
		return "", "", false
	}
	head, data, ok := strings.Cut(rest, ",")
	if !ok {
		return "", "", false
	}
	mediaType, ok = strings.CutSuffix(head, ";base64")
	mediaType, _, _ = strings.Cut(mediaType, ";") // parameters
	return mediaType, data, ok && mediaType != ""
}

func toDataURL(mediaType, data string) string { return "data:" + mediaType + ";base64," + data }

func isWebURL(url string) bool {
	return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "http://")
}

// imageBlock is an image of OpenAI's form in Anthropic's; nil where it is
// neither data nor at an address.
func imageBlock(url string) *claudeBlock {
	if mediaType, data, ok := fromDataURL(url); ok {
		return &claudeBlock{Type: "image", Source: &claudeSource{Type: "base64", MediaType: mediaType, Data: data}}
	}
	if isWebURL(url) {
		return &claudeBlock{Type: "image", Source: &claudeSource{Type: "url", URL: url}}
	}
	return nil
}

// documentBlock is a file of OpenAI's form in Anthropic's, which reads PDF and
// plain text; nil for any other.
func documentBlock(f *chatFile) *claudeBlock {
	b := &claudeBlock{Type: "document", Title: f.Name}
	mediaType, data, ok := fromDataURL(f.Data)
	if !ok && strings.HasSuffix(strings.ToLower(f.Name), ".pdf") {
		mediaType, data = "application/pdf", f.Data // OpenAI takes the bare base64 too
	}
	switch mediaType {
	case "application/pdf":
		b.Source = &claudeSource{Type: "base64", MediaType: mediaType, Data: data}
	case "text/plain":
		plain, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			return nil
		}
		b.Source = &claudeSource{Type: "text", MediaType: mediaType, Data: string(plain)}
	default:
		return nil
	}
	return b
}
