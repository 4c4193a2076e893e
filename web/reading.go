package web

import "github.com/labstack/echo/v4"

// mountReading puts the pages on e that are read: home, usage, requests, and
// files of them.
func (p *Pages) mountReading(e *echo.Echo) {
	p.get(e, "/", p.atDoor(p.page("", p.home)))
	p.get(e, "/tiles/flow", p.page("", p.flowTile))
	p.get(e, "/tiles/today", p.page("", p.todayTile))
	p.get(e, "/tiles/caps", p.page("", p.capsTile))
	p.get(e, "/limits", p.page("", p.limitsPage))
	p.get(e, "/tiles/limits", p.page("", p.limitsTile))
	p.get(e, "/tiles/needs", p.page("", p.needsTile))
	p.get(e, "/live", p.signedIn(p.live))
	p.get(e, "/usage", p.page("", p.usagePage))
	p.get(e, "/usage.csv", p.page("", p.usageCSV))
	p.get(e, "/usage/what-if", p.page(seeCustomers, p.whatIfPage))
	p.get(e, "/exports", p.page("", p.exportsPage))
	p.get(e, "/tiles/exports", p.page("", p.exportsTile))
	p.get(e, "/exports/:id/content", p.page("", p.exportContent))
	p.post(e, "/exports", p.page("", p.makeExport))
	p.get(e, "/requests", p.page("", p.requestsPage))
	p.get(e, "/requests/:id", p.page("", p.requestPage))
	p.get(e, "/reconcile", p.page("", p.reconcilePage))
	p.post(e, "/reconcile/rebuild", p.page(keepBooks, p.rebuildDay))
	p.get(e, "/search", p.page("", p.search))
	p.get(e, "/pipeline", p.operators(p.pipelinePage))
	p.get(e, "/pipeline/letters/:letter", p.operators(p.letterPage))
	p.post(e, "/pipeline/letters/:letter", p.operators(p.letterPage))
	p.post(e, "/pipeline/retire", p.operators(p.retireInstance))
	p.post(e, "/pipeline/replay", p.operators(p.replayLetter))
}
