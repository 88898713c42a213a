package flow

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// SessionSettings is the `session:` key of a flow: how its conversations go on over
// many runs. It is read when a round begins, so that an edit takes effect with
// the next one. Zero values are the defaults.
type SessionSettings struct {
	// Busy is what becomes of a message that comes while a round is going on:
	// "queue" (the default) has it wait its turn, "reject" refuses it, "fork"
	// says it in a new session that begins with what was said so far.
	Busy string
	// MaxMessages and MaxTokens bound how much of the history a round begins
	// with: the newest so many messages, of so many tokens; 0 is no bound beside
	// the context's budget.
	MaxMessages, MaxTokens int
	// Spend bounds what all rounds of a session may spend together.
	Spend SpendLimits
	// TTL is how long after its last round a session may be deleted; 0 is never.
	TTL time.Duration
}

// What a session may do with a message while a round is going on.
const (
	BusyQueue  = "queue"
	BusyReject = "reject"
	BusyFork   = "fork"
)

// maxSessionMessages and maxSessionTokens bound what a file may ask for.
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

// lifetime is a duration that may be in whole days as well, above 0.
func (l *loader) lifetime(v *value) time.Duration {
	text, _ := v.asText()
	d, err := ParseLifetime(text)
	if v.kind == kindInt {
		d = l.duration(v, "ttl")
		err = nil
	}
	if err != nil || d <= 0 {
		l.reportAt(v, CodeBadDuration, fmt.Sprintf("ttl is how long a session is kept, above 0 and at most ten years; this is %s", l.describe(v)), "write 30d, 12h, or whole seconds")
		return 0
	}
	return d
}

// ParseLifetime reads how long something is kept: whole days ("30d"), or a
// duration as Go writes it ("12h"), at most ten years.
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
		"busy": obj{"enum": []any{BusyQueue, BusyReject, BusyFork}, "description": "What becomes of a message that comes while a round is going on. Default: queue."},
		"maxMessages": obj{
			"type": "integer", "minimum": 1, "maximum": maxSessionMessages,
			"description": "The newest so many messages are what a round begins with. Default: as many as the context's budget has room for.",
		},
		"maxTokens": obj{
			"type": "integer", "minimum": 1, "maximum": maxSessionTokens,
			"description": "They have at most so many tokens. Default: as many as the context's budget has room for.",
		},
		"budget": spendSchema(),
		"ttl":    obj{"type": []any{"string", "integer"}, "minimum": 1, "description": "How long after its last round a session may be deleted: 30d, 12h, or whole seconds. Default: never."},
	})
	s["type"] = []any{"object", "null"}
	s["description"] = "How conversations over many runs go on."
	return s
}
