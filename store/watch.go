package store

// Topic is a kind of change that a Watcher reports.
type Topic string

// The topics.
const (
	// TopicCommit is a commit of a run; the id is the run's.
	TopicCommit Topic = "commit"
	// TopicInbox is a message in the inbox of a run, or a request for its live text; the id is the run's.
	TopicInbox Topic = "inbox"
	// TopicLiveText is a part of the live text of a run; the id is the run's.
	TopicLiveText Topic = "live text"
)

// Watcher reports changes that this or another process has made. A report is a hint: it may come late or not at all,
// or without a change, so that callers also read the store at intervals.
type Watcher interface {
	// Watch returns a channel that receives a value after changes of ids that matches selects. It holds one value: changes
	// that follow each other may give one, and the beginning of the watch gives one. matches is called on another goroutine and must not block; it is not called
	// for changes that the watcher cannot tell apart. The caller must call stop.
	Watch(topic Topic, matches func(id string) bool) (changed <-chan struct{}, stop func())
}
