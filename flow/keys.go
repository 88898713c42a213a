package flow

// FlowKeys returns the keys of a flow file. The loader, the JSON Schema and the Go
// definition have exactly these.
func FlowKeys() []string {
	return []string{"weir", "name", "description", "context", "session", "budget", "timeout", "inputs", "state", "uses", "nodes", "edges", "outputs"}
}

// NodeKeys returns the keys of a node in a flow file, likewise.
func NodeKeys() []string {
	return []string{
		"type", "in", "after", "with", "context", "join", "retry", "timeout", "onError", "cache",
		"isolation", "budget", "interruptBefore", "interruptAfter", "artifacts", "description",
	}
}
