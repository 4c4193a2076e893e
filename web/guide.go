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

// guides are the documents of docs/ that are pages, by their paths. Each is
// rendered once.
var guides = map[string]func() (guide, error){
	"/docs/gateway":   guideAt("/docs/gateway", prose.Gateway),
	"/docs/limits":    guideAt("/docs/limits", prose.Limits),
	"/docs/decisions": guideAt("/docs/decisions", prose.Decisions),
	"/docs/plans":     guideAt("/docs/plans", prose.Plans),
	"/docs/usage":     guideAt("/docs/usage", prose.Usage),
	"/docs/webhooks":  guideAt("/docs/webhooks", prose.Webhooks),
	"/docs/models":    guideAt("/docs/models", prose.Models),
	"/docs/catalogue": guideAt("/docs/catalogue", prose.Catalogue),
}

func guideAt(path string, source []byte) func() (guide, error) {
	return sync.OnceValues(func() (guide, error) {
		g, err := guideOf(source)
		g.Path = path
		return g, err
	})
}

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
	linkPages(root)
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

// pagesOf are where the documents that others link to are read.
var pagesOf = map[string]string{"limits.md": "/docs/limits", "gateway.md": "/docs/gateway", "decision-api.md": "/docs/decisions", "models.md": "/docs/models", "webhooks.md": "/docs/webhooks", "usage.md": "/docs/usage", "plans.md": "/docs/plans", "catalogue.md": "/docs/catalogue"}

// linkPages leads links between documents to their pages.
func linkPages(root ast.Node) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if l, ok := n.(*ast.Link); ok && entering {
			if page, found := pagesOf[string(l.Destination)]; found {
				l.Destination = []byte(page)
			}
		}
		return ast.WalkContinue, nil
	})
}

// guidePage answers the addresses of guides. They are for everybody.
func (p *Pages) guidePage(c echo.Context) error {
	g, err := guides[c.Path()]()
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-cache")
	return show(c, http.StatusOK, guideView(g))
}
