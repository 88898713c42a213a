package main

import (
	"strings"
	"testing"
)

const trace = `init internal/bytealg @0.006 ms, 0 ms clock, 0 bytes, 0 allocs
init example.com/big @0.1 ms, 3.1 ms clock, 2900000 bytes, 21278 allocs
init os @0.5 ms, 0.052 ms clock, 432 bytes, 12 allocs
weir v1.2.3
`

func TestTheTraceOfInitializationIsReadAndBounded(t *testing.T) {
	t.Parallel()
	list := parseInitTrace(trace)
	if len(list) != 3 || list[0] != (packageInit{"example.com/big", 2900000, 21278}) || list[1] != (packageInit{"os", 432, 12}) {
		t.Fatalf("read %+v", list)
	}
	if line, err := checkInit(list); err != nil || !strings.Contains(line, "2.9 MB, 21290 allocations") {
		t.Errorf("%s, %v", line, err)
	}
	for _, more := range []packageInit{{"example.com/table", 200_000, 1}, {"example.com/pieces", 1, 20_000}} {
		if _, err := checkInit(append([]packageInit{more}, list...)); err == nil || !strings.Contains(err.Error(), more.name) {
			t.Errorf("%+v is accepted: %v", more, err)
		}
	}
}
