package temporal

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"log/slog"
	"time"
)

// Name is the name of the runner in configuration and journals.
const Name = "temporal"

// Options say how a process reaches a Temporal cluster. The zero value is a server of this machine.
type Options struct {
	// Address is the frontend of the cluster; "" is "localhost:7233".
	Address string
	// Namespace is "default" if it is "".
	Namespace string
	// TaskQueue is the queue that workers poll; "" is "weir". TaskQueues has those of single flows, by name.
	TaskQueue  string
	TaskQueues map[string]string
	// TLS secures the connection; nil does not, unless there is an APIKey.
	TLS *tls.Config
	// APIKey is sent with each request; "" sends none.
	APIKey string
	// Heartbeat is how long a worker may be silent before another one takes its runs; 0 is 10 seconds.
	Heartbeat time.Duration
	// SearchAttributes sets WeirFlow, WeirStatus and WeirSession on workflows, which the namespace must have as keywords.
	SearchAttributes bool
	// UserKey, with SearchAttributes, sets the keyword WeirUser: HashUser of the user of the run. Without a key, nothing is
	// said about the user.
	UserKey string
	// Notify is called with what a person should know while a request waits; nil ignores it.
	Notify func(note string)
	Logger *slog.Logger
}

// withDefaults returns the options with their defaults filled in.
func (o Options) withDefaults() Options {
	o.Address = cmp.Or(o.Address, "localhost:7233")
	o.Namespace = cmp.Or(o.Namespace, "default")
	o.TaskQueue = cmp.Or(o.TaskQueue, "weir")
	o.Heartbeat = cmp.Or(o.Heartbeat, 10*time.Second)
	if o.Notify == nil {
		o.Notify = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.TLS == nil && o.APIKey != "" {
		o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return o
}

// queueOf returns the task queue of a flow.
func (o *Options) queueOf(flow string) string { return cmp.Or(o.TaskQueues[flow], o.TaskQueue) }

// HashUser returns what the search attribute WeirUser has for a user: the first 32 hexadecimal digits of HMAC-SHA256 with the
// key. It finds the runs of a user and does not tell who that is.
func HashUser(key, user string) string {
	h := hmac.New(sha256.New, []byte(key))
	_, _ = h.Write([]byte(user)) // it never fails
	return hex.EncodeToString(h.Sum(nil))[:32]
}
