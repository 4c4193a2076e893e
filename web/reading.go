package web

import "github.com/labstack/echo/v4"

// mountReading puts the pages on e that change nothing: home, usage, requests.
func (p *Pages) mountReading(e *echo.Echo) {
	p.get(e, "/usage", p.page("", p.usagePage))
	p.get(e, "/usage.csv", p.page("", p.usageCSV))
	p.get(e, "/requests", p.page("", p.requestsPage))
	p.get(e, "/requests/:id", p.page("", p.requestPage))
}
