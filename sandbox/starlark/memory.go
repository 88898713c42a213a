package starlark

import (
	"runtime/metrics"
	"time"
)

// watchEvery is the interval at which the child checks its memory.
const watchEvery = 10 * time.Millisecond

// watchMemory calls over when the memory exceeds the limit, in bytes. Otherwise it never returns.
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
