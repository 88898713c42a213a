package expr

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones must mean the same on every machine

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/weir-run/weir/internal/excerpt"
)

func timeLibrary() []cel.EnvOption {
	t, s, i := cel.TimestampType, cel.StringType, cel.IntType
	return []cel.EnvOption{
		global("parseTime", "parse_time", parseTime, t, s, s),
		global("parseTime", "parse_time_zone", parseTime, t, s, s, s),
		method("formatTime", "format_time", formatTime, s, t, s),
		method("formatTime", "format_time_zone", formatTime, s, t, s, s),
		method("addDate", "add_date", addDate, t, t, i, i, i),
		method("addDate", "add_date_zone", addDate, t, t, i, i, i, s),
		method("startOf", "start_of", startOf, t, t, s),
		method("startOf", "start_of_zone", startOf, t, t, s, s),
	}
}

// timeLayout returns the layout in Go of a directive of strftime.
func timeLayout(directive string) (string, bool) {
	switch directive {
	case "Y":
		return "2006", true
	case "y":
		return "06", true
	case "m":
		return "01", true
	case "-m":
		return "1", true
	case "d":
		return "02", true
	case "-d":
		return "2", true
	case "e":
		return "_2", true
	case "j":
		return "002", true
	case "H":
		return "15", true
	case "I":
		return "03", true
	case "-I":
		return "3", true
	case "M":
		return "04", true
	case "S":
		return "05", true
	case "L":
		return "000", true
	case "p":
		return "PM", true
	case "a":
		return "Mon", true
	case "A":
		return "Monday", true
	case "b":
		return "Jan", true
	case "B":
		return "January", true
	case "z":
		return "-0700", true
	case ":z":
		return "-07:00", true
	case "Z":
		return "MST", true
	case "F":
		return "2006-01-02", true
	case "T":
		return "15:04:05", true
	}
	return "", false
}

// timeFormat is a part of a format: literal text, or a layout of Go.
type timeFormat struct {
	text     string
	isLayout bool
}

// parseTimeFormat splits a format at its directives.
func parseTimeFormat(format string) ([]timeFormat, error) {
	if len(format) > 1024 {
		return nil, fmt.Errorf("the format is longer than 1024 bytes")
	}
	var parts []timeFormat
	for rest := format; rest != ""; {
		text, after, found := strings.Cut(rest, "%")
		if text != "" {
			parts = append(parts, timeFormat{text: text})
		}
		if !found {
			break
		}
		n := min(1, len(after))
		if strings.HasPrefix(after, "-") || strings.HasPrefix(after, ":") {
			n = min(2, len(after))
		}
		directive := after[:n]
		rest = after[n:]
		if directive == "%" {
			parts = append(parts, timeFormat{text: "%"})
			continue
		}
		layout, ok := timeLayout(directive)
		if !ok {
			return nil, fmt.Errorf("the format has %%%s, which is no directive; use %%Y %%m %%d %%H %%M %%S and others", directive)
		}
		parts = append(parts, timeFormat{layout, true})
	}
	return parts, nil
}

// zoneOf returns the time zone of the last argument, UTC if there are fewer than n
// arguments.
func zoneOf(a []ref.Val, n int) (*time.Location, error) {
	if len(a) < n {
		return time.UTC, nil
	}
	name := string(a[n-1].(types.String))
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("the time zone %q is not known; use a name such as Europe/Berlin or UTC", name)
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("the time zone %q is not known; use a name such as Europe/Berlin or UTC", name)
	}
	return zone, nil
}

func formatTime(a ...ref.Val) ref.Val {
	zone, err := zoneOf(a, 3)
	if err != nil {
		return types.NewErr("formatTime: %v", err)
	}
	parts, err := parseTimeFormat(string(a[1].(types.String)))
	if err != nil {
		return types.NewErr("formatTime: %v", err)
	}
	t := a[0].(types.Timestamp).In(zone)
	var b strings.Builder
	for _, p := range parts {
		switch {
		case !p.isLayout:
			b.WriteString(p.text)
		case p.text == "000":
			fmt.Fprintf(&b, "%03d", t.Nanosecond()/int(time.Millisecond))
		default:
			b.WriteString(t.Format(p.text))
		}
	}
	return types.String(b.String())
}

func parseTime(a ...ref.Val) ref.Val {
	text, format := string(a[0].(types.String)), string(a[1].(types.String))
	zone, err := zoneOf(a, 3)
	if err != nil {
		return types.NewErr("parseTime: %v", err)
	}
	parts, err := parseTimeFormat(format)
	if err != nil {
		return types.NewErr("parseTime: %v", err)
	}
	layout := ""
	for _, p := range parts {
		switch {
		case p.isLayout && p.text == "000" && !strings.HasSuffix(layout, ".") && !strings.HasSuffix(layout, ","):
			return types.NewErr("parseTime: %%L must follow a point or a comma")
		case !p.isLayout && hasLayout(p.text):
			return types.NewErr("parseTime: the format has the text %q, which looks like a part of the time", excerpt.Bytes(p.text, maxQuoted))
		}
		layout += p.text
	}
	t, err := time.ParseInLocation(layout, text, zone)
	if err != nil {
		return types.NewErr("parseTime: the text %q does not have the format %q", excerpt.Bytes(text, maxQuoted), format)
	}
	return types.Timestamp{Time: t.UTC()}
}

// hasLayout reports whether Go's time package reads a literal text as a part of a time.
func hasLayout(text string) bool {
	a := time.Date(2001, 3, 4, 17, 6, 7, 891_000_000, time.FixedZone("ABC", 3600))
	return a.Format(text) != text || strings.ContainsAny(text, "0123456789") || strings.HasSuffix(text, "_")
}

func addDate(a ...ref.Val) ref.Val {
	zone, err := zoneOf(a, 5)
	if err != nil {
		return types.NewErr("addDate: %v", err)
	}
	t := a[0].(types.Timestamp).In(zone)
	n := [3]int{}
	for i := range n {
		x := int64(a[i+1].(types.Int))
		if x < -4_000_000 || x > 4_000_000 {
			return types.NewErr("addDate: %d is too large", x)
		}
		n[i] = int(x)
	}
	year, month, day := t.Date()
	first := time.Date(year+n[0], month+time.Month(n[1]), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	out := time.Date(first.Year(), first.Month(), min(day, last)+n[2], t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), zone).UTC()
	if out.Year() < 1 || out.Year() > 9999 {
		return types.NewErr("addDate: the year %d is outside of 1 to 9999", out.Year())
	}
	return types.Timestamp{Time: out}
}

func startOf(a ...ref.Val) ref.Val {
	zone, err := zoneOf(a, 3)
	if err != nil {
		return types.NewErr("startOf: %v", err)
	}
	t := a[0].(types.Timestamp).In(zone)
	year, month, day := t.Date()
	switch unit := string(a[1].(types.String)); unit {
	case "minute":
		t = t.Add(-time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case "hour":
		t = t.Add(-time.Duration(t.Minute())*time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	case "day":
		t = time.Date(year, month, day, 0, 0, 0, 0, zone)
	case "week":
		t = time.Date(year, month, day-(int(t.Weekday())+6)%7, 0, 0, 0, 0, zone)
	case "month":
		t = time.Date(year, month, 1, 0, 0, 0, 0, zone)
	case "year":
		t = time.Date(year, 1, 1, 0, 0, 0, 0, zone)
	default:
		return types.NewErr("startOf: %q is no unit; use minute, hour, day, week, month or year", excerpt.Bytes(unit, maxQuoted))
	}
	return types.Timestamp{Time: t.UTC()}
}
