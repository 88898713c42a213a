package store

import (
	"context"
	"time"
)

// PostLiveText is the Post.Kind by which Inbox.PostsForOwner reports that processes read the live text of a run. Its Name
// changes when a reader needs the text from the start. Such a post has no ID and is in no inbox.
const PostLiveText = "live text"

// LiveTextStore passes the live text of runs from the process that executes them to readers in other processes. All
// of it may be lost at any time. It is in no journal, chain, archive, copy or backup, and is deleted with its run.
type LiveTextStore interface {
	// RequestLiveText records for ttl that the live text of runs is read, and with fresh that a reader needs it from the start.
	// Until then, PostsForOwner reports each of the runs to its owner. It also deletes what nothing else deletes: expired
	// requests, and the live text of runs that no process executes. An unknown run is no error.
	RequestLiveText(ctx context.Context, runs []string, fresh bool, ttl time.Duration) error
	// PutLiveText adds parts, all in one transaction. It ignores parts of runs whose fence is another one.
	PutLiveText(ctx context.Context, parts []LiveTextPart) error
	// RemoveLiveText deletes the parts of writers, by run.
	RemoveLiveText(ctx context.Context, writers map[string]string) error
	// LiveText returns the parts of runs whose number is above the given one, in the order of their numbers.
	LiveText(ctx context.Context, after map[string]int64) ([]LiveTextPart, error)
}

// LiveTextPart is what a process adds to the live text of a run at a time.
type LiveTextPart struct {
	Run string
	// Number is given by the store and grows with each part of the run.
	Number int64
	// Fence is that under which the process executes the run. It is not returned.
	Fence int64
	// Writer names the execution that added it.
	Writer string
	// Whole means that the part has all of the live text of the run. It replaces the earlier parts.
	Whole bool
	// Data is the text in a form of the runner's.
	Data []byte
}
