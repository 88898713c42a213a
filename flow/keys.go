package flow

// FlowKeys are the keys of a flow file. The loader, the JSON Schema and the Go
// definition have these and no other.
func FlowKeys() []string {
	return []string{"weir", "name", "description", "context", "session", "budget", "inputs", "state", "uses", "nodes", "edges", "outputs"}
}

// NodeKeys are the keys of a node in a flow file, with the same promise.
func NodeKeys() []string {
	return []string{
		"type", "in", "after", "with", "context", "join", "retry", "timeout", "onError", "cache",
		"isolation", "budget", "interruptBefore", "interruptAfter", "artifacts", "description",
	}
}
