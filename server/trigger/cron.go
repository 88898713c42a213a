package trigger

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cron is a schedule in the five fields of cron: minute, hour, day of the month, month, day
// of the week.
type Cron struct {
	minute, hour, day, month, weekday uint64 // a bit for each value
	anyDay, anyWeekday                bool
	zone                              *time.Location
}

// cronField is the range of a field and the names of its values.
type cronField struct {
	name     string
	min, max int
	names    []string // of min and the following
}

func cronFields() []cronField {
	return []cronField{
		{"minute", 0, 59, nil},
		{"hour", 0, 23, nil},
		{"day of the month", 1, 31, nil},
		{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
		{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
	}
}

// ParseCron reads a schedule: five fields with numbers, names of months and days, lists,
// ranges and steps, or @hourly, @daily, @weekly or @monthly. Zone is a name of the IANA
// database, "" for UTC. If both days are limited, either of them must match, as in cron.
func ParseCron(text, zone string) (*Cron, error) {
	if zone == "Local" {
		return nil, fmt.Errorf("zone: expected a name such as Europe/Berlin")
	}
	at, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("zone: %q is no name of a time zone, such as Europe/Berlin", zone)
	}
	if short, ok := map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}[text]; ok {
		text = short
	}
	fields := strings.Fields(text)
	known := cronFields()
	if len(fields) != len(known) {
		return nil, fmt.Errorf("schedule: expected 5 fields (minute hour day month weekday), got %d", len(fields))
	}
	c := &Cron{zone: at, anyDay: fields[2] == "*", anyWeekday: fields[4] == "*"}
	for i, to := range []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday} {
		if *to, err = known[i].parse(strings.ToLower(fields[i])); err != nil {
			return nil, fmt.Errorf("schedule: %s: %w", known[i].name, err)
		}
	}
	if c.weekday&(1<<7) != 0 { // 7 is Sunday too
		c.weekday |= 1
	}
	if c.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("schedule: there is no such day")
	}
	return c, nil
}

// parse reads a field as a set of values.
func (f *cronField) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		values, stepText, stepped := strings.Cut(part, "/")
		low, high, err := f.bounds(values, stepped)
		if err != nil {
			return 0, err
		}
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.max {
				return 0, fmt.Errorf("%q is no step", stepText)
			}
		}
		for v := low; v <= high; v += step {
			set |= 1 << v
		}
	}
	return set, nil
}

// bounds reads the values of one part of a field: *, a value, or a range. With a step, a
// value alone is the beginning of a range to the end.
func (f *cronField) bounds(values string, stepped bool) (low, high int, err error) {
	if values == "*" {
		return f.min, f.max, nil
	}
	first, last, isRange := strings.Cut(values, "-")
	if low, err = f.value(first); err != nil {
		return 0, 0, err
	}
	switch {
	case isRange:
		if high, err = f.value(last); err != nil {
			return 0, 0, err
		}
	case stepped:
		high = f.max
	default:
		high = low
	}
	if high < low {
		return 0, 0, fmt.Errorf("the range %s ends before it begins", values)
	}
	return low, high, nil
}

func (f *cronField) value(text string) (int, error) {
	for i, name := range f.names {
		if text == name {
			return f.min + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < f.min || v > f.max {
		return 0, fmt.Errorf("%q is not from %d to %d", text, f.min, f.max)
	}
	return v, nil
}

// maxDays is how many days Next looks ahead: 29 February on one weekday is at most 40 years
// away.
const maxDays = 41 * 366

// Next returns the first time of the schedule after a time; zero if there is none. A time of
// day that a change of the clocks skips is that of the next minute that there is; one that comes twice counts once.
func (c *Cron) Next(after time.Time) time.Time {
	local := after.In(c.zone)
	year, month, day := local.Date()
	for n := range maxDays {
		noon := time.Date(year, month, day+n, 12, 0, 0, 0, c.zone)
		if !c.matchesDay(noon) {
			continue
		}
		for hour := range 24 {
			if c.hour&(1<<hour) == 0 {
				continue
			}
			for minute := range 60 {
				if c.minute&(1<<minute) == 0 {
					continue
				}
				if at := c.moment(noon, hour, minute); at.After(after) {
					return at
				}
			}
		}
	}
	return time.Time{}
}

func (c *Cron) matchesDay(t time.Time) bool {
	if c.month&(1<<int(t.Month())) == 0 {
		return false
	}
	day, weekday := c.day&(1<<t.Day()) != 0, c.weekday&(1<<int(t.Weekday())) != 0
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// moment returns a time of day, or the next minute that there is on that day.
func (c *Cron) moment(noon time.Time, hour, minute int) time.Time {
	for k := range 24 * 60 {
		want := hour*60 + minute + k
		at := time.Date(noon.Year(), noon.Month(), noon.Day(), want/60, want%60, 0, 0, c.zone)
		if at.Hour() == want/60%24 && at.Minute() == want%60 {
			return at
		}
	}
	return time.Time{}
}
