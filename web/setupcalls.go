package web

import (
	"context"
	"slices"
	"time"

	"weir/internal/usage"
	"weir/web/ui"
)

// newestCalls is how many calls are looked through at once.
const newestCalls = 100

// setupCalls reads the first call that passed, else the newest one that failed,
// and the newest refusal, however many calls of the other kind came since.
func (p *Pages) setupCalls(ctx context.Context, v *setupPage, says map[string]string) error {
	newest, err := p.setupEvents(ctx, v, "", newestCalls)
	if err != nil {
		return err
	}
	list := newest
	for outcome, is := range map[usage.Outcome]func(usage.Event) bool{"ok": passed, "refused": refused} {
		if len(newest) < newestCalls || slices.ContainsFunc(newest, is) {
			continue
		}
		older, err := p.setupEvents(ctx, v, outcome, 1)
		if err != nil {
			return err
		}
		list = append(list, older...)
	}
	for i := range list {
		e := &list[i]
		switch {
		case passed(*e):
			v.Call = e
		case refused(*e):
			if v.Refusal == nil {
				v.Refusal, says["refusal"] = refusalOf(*e, v.Now), "Seen at "+v.clock(*e)+"."
			}
		case v.Call == nil && e.Outcome != usage.Correction:
			v.Call = e
		}
	}
	if v.Call != nil && passed(*v.Call) {
		says["call"] = ui.Of(v.Call.Tokens.Total(), "token", "tokens") + ", at " + v.clock(*v.Call) + "."
	}
	return nil
}

func passed(e usage.Event) bool  { return e.Outcome == usage.OK }
func refused(e usage.Event) bool { return e.Outcome.Refused() }

func (p *Pages) setupEvents(ctx context.Context, v *setupPage, o usage.Outcome, limit int) ([]usage.Event, error) {
	f := usage.Filter{Tests: usage.WithTests, Outcome: o}
	return p.reports.Requests(ctx, v.Tenant.ID, usage.RequestFilter{Filter: f, Limit: limit})
}

// clock is when a call was made, by the tenant's clock.
func (v *setupPage) clock(e usage.Event) string {
	return e.StartedAt.In(v.Now.Location()).Format("15:04:05")
}

// setupSeen is setupCalls for who needs no more than that they were: it reads
// totals, so that it takes as long for ten calls as for ten million.
func (p *Pages) setupSeen(ctx context.Context, v *setupPage, says map[string]string) error {
	report, err := p.reports.Report(ctx, v.Tenant.ID, usage.Query{
		From: v.Now.AddDate(0, 0, -30), To: v.Now.Add(time.Minute), Bucket: usage.Day, Zone: v.Now.Location(), Filter: usage.Filter{Tests: usage.WithTests},
	})
	if report.Totals.Requests > report.Totals.Errors {
		says["call"] = ""
	}
	if report.Totals.Refused > 0 {
		says["refusal"] = ""
	}
	return err
}
