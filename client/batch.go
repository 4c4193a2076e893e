package client

import (
	"context"
	"fmt"
	"net/http"
)

// MaxBatch is the most entries of one batch.
const MaxBatch = 500

// Verdict is the answer to one call of a batch: a reservation, or why there is
// none.
type Verdict struct {
	Reservation Reservation
	Err         error // a *Refusal or *Problem, or nil
}

// ReserveBatch asks for up to 500 calls, each for itself: one that is wrong or
// refused harms no other. The verdicts are in the calls' order. None waits, and
// their keys are not used: the batch has one of its own.
func (c *Client) ReserveBatch(ctx context.Context, calls []Call) ([]Verdict, error) {
	var body struct {
		Reservations []callJSON `json:"reservations"`
	}
	for _, k := range calls {
		k.MaxWait = 0
		body.Reservations = append(body.Reservations, k.json())
	}
	var answer struct {
		Results []struct {
			Reservation *Reservation `json:"reservation"`
			Error       *problem     `json:"error"`
		} `json:"results"`
	}
	if err := c.send(ctx, request{method: http.MethodPost, path: "/v1/reservations:batch", once: once(), body: body}, &answer); err != nil {
		return nil, err
	}
	out := make([]Verdict, len(answer.Results))
	for i, r := range answer.Results {
		switch {
		case r.Error != nil:
			out[i].Err = r.Error.err()
		case r.Reservation != nil:
			out[i].Reservation = *r.Reservation
		}
	}
	return out, complete(len(out), len(calls))
}

// Settlement is how one reservation of a batch ended.
type Settlement struct {
	ID string `json:"id"`
	Result
}

// SettlementVerdict is the answer to one settlement of a batch.
type SettlementVerdict struct {
	Settled Settled
	Err     error // a *Problem, or nil
}

// SettleBatch settles up to 500 reservations, each for itself. The verdicts are
// in the settlements' order.
func (c *Client) SettleBatch(ctx context.Context, list []Settlement) ([]SettlementVerdict, error) {
	body := struct {
		Settlements []Settlement `json:"settlements"`
	}{list}
	var answer struct {
		Results []struct {
			Settlement *Settled `json:"settlement"`
			Error      *problem `json:"error"`
		} `json:"results"`
	}
	if err := c.send(ctx, request{method: http.MethodPost, path: "/v1/settlements:batch", body: body}, &answer); err != nil {
		return nil, err
	}
	out := make([]SettlementVerdict, len(answer.Results))
	for i, r := range answer.Results {
		switch {
		case r.Error != nil:
			out[i].Err = r.Error.err()
		case r.Settlement != nil:
			out[i].Settled = *r.Settlement
		}
	}
	return out, complete(len(out), len(list))
}

func complete(got, want int) error {
	if got != want {
		return fmt.Errorf("weir: %d answers to a batch of %d", got, want)
	}
	return nil
}
