package trigger_test

import (
	"testing"
	"time"

	"github.com/weir-run/weir/server/trigger"
)

func TestTheNextTimesOfSchedules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schedule, zone, after, want string }{
		{"* * * * *", "", "2026-11-23T10:00:30Z", "2026-11-23T10:01:00Z"},
		{"*/15 9-17 * * mon-fri", "", "2026-11-20T17:45:00Z", "2026-11-23T09:00:00Z"},
		{"0 8 1 jan,jul *", "", "2026-02-01T00:00:00Z", "2026-07-01T08:00:00Z"},
		{"0 0 13 * 5", "", "2026-11-14T00:00:00Z", "2026-11-20T00:00:00Z"},
		{"0 0 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 12 * * 7", "", "2026-11-23T00:00:00Z", "2026-11-29T12:00:00Z"},
		{"@monthly", "", "2026-11-23T00:00:00Z", "2026-12-01T00:00:00Z"},
		{"30 8 * * *", "Europe/Berlin", "2026-07-01T00:00:00Z", "2026-07-01T06:30:00Z"},
		{"30 8 * * *", "Europe/Berlin", "2026-12-01T00:00:00Z", "2026-12-01T07:30:00Z"},
		// The clocks go from 02:00 to 03:00 on 29 March: 02:30 is 03:00.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		// At midnight, in a zone that has no midnight on that day.
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-06T04:00:00Z"},
	} {
		x, err := trigger.ParseCron(c.schedule, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.schedule, err)
			continue
		}
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		if got := x.Next(after).UTC().Format(time.RFC3339); got != c.want {
			t.Errorf("%s %s after %s: %s, not %s", c.schedule, c.zone, c.after, got, c.want)
		}
	}
}

func TestATimeThatComesTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	x, err := trigger.ParseCron("30 2 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	first := x.Next(time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC))
	second := x.Next(first)
	if first.UTC().Day() != 25 || second.UTC().Day() != 26 {
		t.Errorf("%v, then %v", first, second)
	}
}

func TestSchedulesThatCannotBeReadAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *", "0 0 31 2 *", "1,,2 * * * *"} {
		if _, err := trigger.ParseCron(s, ""); err == nil {
			t.Errorf("%q is accepted", s)
		}
	}
	for _, zone := range []string{"Nowhere", "Local", "../etc/passwd"} {
		if _, err := trigger.ParseCron("* * * * *", zone); err == nil {
			t.Errorf("zone %q is accepted", zone)
		}
	}
}
