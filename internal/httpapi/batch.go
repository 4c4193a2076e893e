package httpapi

import (
	"fmt"
	"net/http"
	"strconv"

	"weir/internal/fault"
	"weir/internal/id"
	"weir/internal/jsonbody"
)

// maxBatch is the most items of one batch.
const maxBatch = 500

// item is one body of a batch. What is wrong with it is kept, so that it harms
// no other item.
type item[T any] struct {
	body T
	err  error
}

// UnmarshalJSON never fails: broken JSON is found before, and is the whole
// batch's.
func (i *item[T]) UnmarshalJSON(raw []byte) error {
	i.err = jsonbody.Decode(raw, &i.body)
	return nil
}

type reserveBatchBody struct {
	Reservations []item[reservationBody] `json:"reservations" required:"true" nullable:"false" minItems:"1" maxItems:"500" description:"Decided one after the other, each for itself; none waits (max_wait_ms)"`
}

type reservedItem struct {
	Status      int              `json:"status" description:"As POST /v1/reservations would have answered" example:"201"`
	RequestID   string           `json:"request_id" example:"req_01kb0000000000000000000000"`
	Replayed    bool             `json:"replayed,omitempty" description:"It stood already, under the same Idempotency-Key"`
	Reservation *reservationJSON `json:"reservation,omitempty"`
	Error       *problem         `json:"error,omitempty" description:"Why there is no reservation; pointers begin at the batch"`
}

type reservedJSON struct {
	Results []reservedItem `json:"results" required:"true" description:"One for each, in order"`
}

func reserveBatch(s *Server, r *request, _ none, b reserveBatchBody) (reservedJSON, error) {
	key, err := requestKey(r.echo.Request())
	if err == nil {
		err = checkBatch("/reservations", len(b.Reservations))
	}
	if err != nil {
		return reservedJSON{}, err
	}
	out := reservedJSON{Results: make([]reservedItem, len(b.Reservations))}
	for i, it := range b.Reservations {
		if err := r.ctx.Err(); err != nil {
			return reservedJSON{}, err
		}
		out.Results[i] = s.reserveItem(r, it, i, key)
	}
	return out, nil
}

func (s *Server) reserveItem(r *request, it item[reservationBody], i int, key string) reservedItem {
	of := id.New()
	out := reservedItem{Status: http.StatusCreated, RequestID: id.Request.Format(of)}
	if key != "" {
		key = strconv.Itoa(i) + " " + key
	}
	err := it.err
	if err == nil && it.body.MaxWaitMS != 0 {
		err = fault.InvalidFields(fault.Field{Pointer: "/max_wait_ms", Code: "not_allowed", Message: "In a batch no call waits for room: those behind it would wait too. Send it by itself."})
	}
	if err == nil {
		made, d, failed := s.decide(r, it.body, of, key)
		out.Reservation, out.Replayed, err = &made, d.Again, failed
	}
	if err != nil {
		p := s.itemProblem(r, err, out.RequestID, fmt.Sprintf("/reservations/%d", i))
		out.Status, out.Reservation, out.Error = p.Status, nil, p
	}
	return out
}

type settlementBody struct {
	ID string `json:"id" required:"true" example:"rsv_01kb0000000000000000000000"`
	settleBody
}

type settleBatchBody struct {
	Settlements []item[settlementBody] `json:"settlements" required:"true" nullable:"false" minItems:"1" maxItems:"500" description:"Settled one after the other, each for itself"`
}

type settledItem struct {
	Status     int          `json:"status" description:"As POST /v1/reservations/{id}/settle would have answered" example:"200"`
	Settlement *settledJSON `json:"settlement,omitempty"`
	Error      *problem     `json:"error,omitempty" description:"Why it is not settled; pointers begin at the batch"`
}

type settlementsJSON struct {
	Results []settledItem `json:"results" required:"true" description:"One for each, in order"`
}

func settleBatch(s *Server, r *request, _ none, b settleBatchBody) (settlementsJSON, error) {
	if err := checkBatch("/settlements", len(b.Settlements)); err != nil {
		return settlementsJSON{}, err
	}
	out := settlementsJSON{Results: make([]settledItem, len(b.Settlements))}
	for i, it := range b.Settlements {
		if err := r.ctx.Err(); err != nil {
			return settlementsJSON{}, err
		}
		out.Results[i] = s.settleItem(r, it, i)
	}
	return out, nil
}

func (s *Server) settleItem(r *request, it item[settlementBody], i int) settledItem {
	err := it.err
	if err == nil && it.body.ID == "" {
		err = required(map[string]string{"/id": ""})
	}
	if err == nil {
		var out settledJSON
		if out, _, err = s.settle(r, it.body.ID, it.body.settleBody); err == nil {
			return settledItem{Status: http.StatusOK, Settlement: &out}
		}
	}
	p := s.itemProblem(r, err, requestID(r.echo), fmt.Sprintf("/settlements/%d", i))
	return settledItem{Status: p.Status, Error: p}
}

func checkBatch(pointer string, n int) error {
	switch {
	case n == 0:
		return required(map[string]string{pointer: ""})
	case n > maxBatch:
		return fault.InvalidFields(fault.Field{Pointer: pointer, Code: "too_many", Message: "A batch has at most 500 entries."})
	}
	return nil
}

// itemProblem is what is wrong with one item; its pointers begin at the batch.
func (s *Server) itemProblem(r *request, err error, request, at string) *problem {
	f := s.faultOf(err)
	p := problemOf(f, err, request)
	s.logFailure(r.echo, f, p.Status)
	fields := make([]fault.Field, len(p.Errors))
	for i, e := range p.Errors {
		e.Pointer = at + e.Pointer
		fields[i] = e
	}
	p.Errors = fields
	return &p
}
