package server

import (
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weir-run/weir/engine"
)

// rateLimit bounds how many requests each key may send: burst at once, and rate a second
// afterwards. It belongs to one process.
type rateLimit struct {
	rate, burst float64

	mu   sync.Mutex // guards what follows
	left map[string]*allowance
}

// allowance is how many requests a key may send, as of a time.
type allowance struct {
	left float64
	at   time.Time
}

// maxRateKeys bounds the memory of a limit. Beyond it those are forgotten that may send a
// whole burst anyway, and then all.
const maxRateKeys = 20_000

func newRateLimit(rate, burst float64) *rateLimit {
	return &rateLimit{rate: rate, burst: burst, left: make(map[string]*allowance)}
}

// take counts a request of a key and returns 0, or how long to wait before the next one is
// accepted.
func (l *rateLimit) take(key string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.left[key]
	if a == nil {
		if len(l.left) >= maxRateKeys {
			l.forget(now)
		}
		a = &allowance{l.burst, now}
		l.left[key] = a
	}
	a.left = min(l.burst, a.left+now.Sub(a.at).Seconds()*l.rate)
	a.at = now
	if a.left < 1 {
		return time.Duration((1 - a.left) / l.rate * float64(time.Second))
	}
	a.left--
	return 0
}

func (l *rateLimit) forget(now time.Time) {
	for key, a := range l.left { // order: each is judged alone
		if a.left+now.Sub(a.at).Seconds()*l.rate >= l.burst {
			delete(l.left, key)
		}
	}
	if len(l.left) >= maxRateKeys {
		clear(l.left)
	}
}

// tooMany answers a request that comes too early.
func tooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	newProblem(http.StatusTooManyRequests, engine.CodeTooMany, "too many requests in a short time").write(w)
}
