package web

import "github.com/labstack/echo/v4"

// mountTelling puts the pages on e by which a tenant says whom to tell what.
func (p *Pages) mountTelling(e *echo.Echo) {
	p.get(e, "/alerts", p.page(seeAlerts, p.alerts))
	p.post(e, "/alerts", p.page(seeAlerts, p.addAlert))
	p.get(e, "/alerts/:id", p.page(seeAlerts, p.alert))
	p.post(e, "/alerts/:id", p.page(seeAlerts, p.alert))
	p.get(e, "/alerts/:id/remove", p.page(seeAlerts, p.removeAlert))
	p.post(e, "/alerts/:id/remove", p.page(seeAlerts, p.removeAlert))
	p.get(e, "/webhooks", p.page(seeWebhooks, p.webhooks))
	p.get(e, "/webhooks/new", p.page(seeWebhooks, p.newWebhook))
	p.post(e, "/webhooks", p.page(seeWebhooks, p.addWebhook))
	p.get(e, "/webhooks/messages/:id", p.page(seeWebhooks, p.webhookMessage))
	p.post(e, "/webhooks/messages/:id/resend", p.page(seeWebhooks, p.resendMessage))
	p.get(e, "/webhooks/:id", p.page(seeWebhooks, p.webhook))
	p.post(e, "/webhooks/:id", p.page(seeWebhooks, p.webhook))
	p.post(e, "/webhooks/:id/test", p.page(seeWebhooks, p.testWebhook))
	p.post(e, "/webhooks/:id/switch", p.page(seeWebhooks, p.switchWebhook))
	p.post(e, "/webhooks/:id/replay", p.page(seeWebhooks, p.replayWebhook))
	p.post(e, "/webhooks/:id/rotate", p.page(seeWebhooks, p.rotateWebhook))
	p.get(e, "/webhooks/:id/remove", p.page(seeWebhooks, p.removeWebhook))
	p.post(e, "/webhooks/:id/remove", p.page(seeWebhooks, p.removeWebhook))
}
