package starlark

import (
	"runtime/metrics"
	"time"
)

// watchEvery is how often the child looks at its own memory.
const watchEvery = 10 * time.Millisecond

// watchMemory calls over when what is held is past the limit, in bytes. It
// never returns otherwise.
func watchMemory(limit int64, over func()) {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	for range time.Tick(watchEvery) {
		metrics.Read(sample)
		if sample[0].Value.Uint64() > uint64(limit) {
			over()
			return
		}
	}
}
