package flow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SessionSettings is the `session:` key of a flow: the settings of conversations over many
// runs. They are read when a round starts, so an edit takes effect with the next round.
// Zero values mean the defaults.
type SessionSettings struct {
	// Busy says what happens to a message that arrives during a round: "queue" (the
	// default) queues it, "reject" refuses it, "fork" sends it to a new session that starts
	// with the history so far.
	Busy string
	// MaxMessages and MaxTokens limit the history that a round starts with: the number and
	// tokens of the newest messages; 0 means no limit besides the context's budget.
	MaxMessages, MaxTokens int
	// Spend limits the spending of all rounds of a session together.
	Spend SpendLimits
	// TTL is the time after its last round when a session may be deleted; 0 means never.
	TTL time.Duration
}

// What a session does with a message that arrives during a round.
const (
	BusyQueue  = "queue"
	BusyReject = "reject"
	BusyFork   = "fork"
)

// maxSessionMessages and maxSessionTokens are the largest values allowed in a file.
const (
	maxSessionMessages = 10_000_000
	maxSessionTokens   = 100_000_000
)

// sessions reads the `session:` key.
func (l *loader) sessions(v *value) SessionSettings {
	if v.kind == kindNull {
		return SessionSettings{}
	}
	f, ok := l.object(v, "session")
	if !ok {
		return SessionSettings{}
	}
	f.rejectUnknown("busy", "maxMessages", "maxTokens", "budget", "ttl")
	s := SessionSettings{
		Busy:        f.choice("busy", BusyQueue, BusyReject, BusyFork),
		MaxMessages: f.count("maxMessages", maxSessionMessages),
		MaxTokens:   f.count("maxTokens", maxSessionTokens),
	}
	if b := v.get("budget"); b != nil {
		s.Spend = l.spend(b)
	}
	if t := v.get("ttl"); t != nil {
		s.TTL = l.lifetime(t)
	}
	return s
}

// lifetime reads a duration above 0, which may also be in whole days.
func (l *loader) lifetime(v *value) time.Duration {
	text, _ := v.asText()
	d, err := ParseLifetime(text)
	if v.kind == kindInt {
		d = l.duration(v, "ttl")
		err = nil
	}
	if err != nil || d <= 0 {
		l.reportAt(v, CodeBadDuration, fmt.Sprintf("ttl must be a duration above 0 and at most ten years; got %s", l.describe(v)), "write 30d, 12h, or whole seconds")
		return 0
	}
	return d
}

// ParseLifetime parses a retention time: whole days ("30d"), or a duration in Go's syntax
// ("12h"), at most ten years.
func ParseLifetime(text string) (time.Duration, error) {
	var d time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a number of days", text)
		}
		d = time.Duration(n) * 24 * time.Hour
	} else {
		var err error
		if d, err = time.ParseDuration(text); err != nil {
			return 0, fmt.Errorf("%q is not a time such as 30d or 12h", text)
		}
	}
	if d < 0 || d > maxDuration {
		return 0, fmt.Errorf("%q is not between 0 and ten years", text)
	}
	return d, nil
}

// sessions writes the `session:` key.
func (w *writer) sessions(s SessionSettings) {
	if s == (SessionSettings{}) {
		return
	}
	w.key("session")
	w.open('{')
	w.text("busy", s.Busy)
	w.count("maxMessages", s.MaxMessages)
	w.count("maxTokens", s.MaxTokens)
	w.spend(s.Spend)
	w.duration("ttl", s.TTL)
	w.close('}')
}

func sessionsSchema() obj {
	s := closed(obj{
		"busy": obj{"enum": []any{BusyQueue, BusyReject, BusyFork}, "description": "What happens to a message that arrives during a round. Default: queue."},
		"maxMessages": obj{
			"type": "integer", "minimum": 1, "maximum": maxSessionMessages,
			"description": "The number of newest messages that a round starts with. Default: as many as fit the context's budget.",
		},
		"maxTokens": obj{
			"type": "integer", "minimum": 1, "maximum": maxSessionTokens,
			"description": "The maximum number of tokens of these messages. Default: as many as fit the context's budget.",
		},
		"budget": spendSchema(),
		"ttl":    obj{"type": []any{"string", "integer"}, "minimum": 1, "description": "The time after its last round when a session may be deleted: 30d, 12h, or whole seconds. Default: never."},
	})
	s["type"] = []any{"object", "null"}
	s["description"] = "Settings of conversations over many runs."
	return s
}
