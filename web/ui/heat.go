package ui

import "strconv"

// HeatRow is a row of hours: what share of the calls of each was refused.
type HeatRow struct {
	Name  string
	Cells []HeatCell // of the hours 0 to 23
	Total int64      // refused
}

// HeatCell is one hour.
type HeatCell struct {
	Refused, Asked int64
	Ahead          bool // it has not come yet
}

// class is how red the hour is: h0 for none, h4 for more than 30 of 100.
func (c HeatCell) class() string {
	switch {
	case c.Ahead:
		return "hx"
	case c.Asked == 0:
		return ""
	case c.Refused == 0:
		return "h0"
	case c.Refused*100 <= c.Asked*5:
		return "h1"
	case c.Refused*100 <= c.Asked*15:
		return "h2"
	case c.Refused*100 <= c.Asked*30:
		return "h3"
	}
	return "h4"
}

// words are for who does not see the colour.
func (c HeatCell) words() string {
	switch {
	case c.Ahead:
		return "not yet"
	case c.Asked == 0:
		return "no calls"
	}
	return Count(c.Refused) + " of " + Count(c.Asked)
}

// hourHead is an hour's name, shown for every third.
func hourHead(hour int) string {
	if hour < 10 {
		return "0" + strconv.Itoa(hour)
	}
	return strconv.Itoa(hour)
}
