package web

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/labstack/echo/v4"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	prose "weir/docs"
)

// guide is a page of prose that is written in docs/.
type guide struct {
	Title    string
	Path     string
	HTML     string
	Contents []anchor
}

// anchor leads to a part of a page.
type anchor struct{ Title, Slug string }

// limitsGuide is how limits count. It is rendered once.
var limitsGuide = sync.OnceValues(func() (guide, error) {
	g, err := guideOf(prose.Limits)
	g.Path = "/docs/limits"
	return g, err
})

// guideOf renders a document of this repository: its first heading is the
// title, the second level the contents.
func guideOf(source []byte) (guide, error) {
	var g guide
	md := goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	root := md.Parser().Parse(text.NewReader(source))
	var title ast.Node
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if !ok {
			continue
		}
		words := string(h.Lines().Value(source))
		slug, _ := h.AttributeString("id")
		if h.Level == 1 {
			g.Title, title = words, n
		} else if id, ok := slug.([]byte); ok && h.Level == 2 {
			g.Contents = append(g.Contents, anchor{words, string(id)})
		}
	}
	if title != nil {
		root.RemoveChild(root, title)
	}
	var out bytes.Buffer
	err := md.Renderer().Render(&out, source, root)
	g.HTML = reachable.Replace(out.String())
	return g, err
}

// reachable lets keys scroll what is wider than a phone.
var reachable = strings.NewReplacer(
	"<pre>", `<pre tabindex="0" role="region" aria-label="Example">`,
	"<table>", `<div class="x" tabindex="0" role="region" aria-label="Table"><table>`, "</table>", "</table></div>",
)

// limitsGuidePage answers GET /docs/limits. It is for everybody.
func (p *Pages) limitsGuidePage(c echo.Context) error {
	g, err := limitsGuide()
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return show(c, http.StatusOK, guideView(g))
}
