package faults

// Fault is one deliberate change of one file.
type Fault struct {
	// Name says what is broken, as a promise that does not hold.
	Name string
	// File is the file, from the root of the repository.
	File string
	// Old occurs once in the file, and New takes its place.
	Old, New string
	// Package and Run select tests that must fail.
	Package, Run string
}

// List returns all faults.
func List() []Fault {
	return append(append(storeFaults(), runFaults()...), outsideFaults()...)
}

// storeFaults break what a store promises.
func storeFaults() []Fault {
	const memory, sqlite = "./store/memory", "./store/sqlite"
	return []Fault{
		{
			"the memory store accepts a commit of an owner that lost its lease", "store/memory/memory.go",
			"if before != r.fence || a.Fence <= 0", "if a.Fence <= 0", memory, "",
		},
		{
			"the memory store accepts a commit twice", "store/memory/memory.go",
			"if c.Seq != r.row.Commits+1 || c.First != r.row.Events+1 {", "if c.Seq < 0 {", memory, "",
		},
		{
			"a commit under an old fence is called out of sequence", "store/sqlite/append.go",
			"if now != fence || take && !free {", "if take && !free {", sqlite, "(?i)Suite|Storetest|Fenc|Lease",
		},
		{
			"SQLite does not wait for the disk", "store/sqlite/sync.go",
			`"synchronous(FULL)"`, `"synchronous(OFF)"`, sqlite, "(?i)Open|Pragma|Setting|Database",
		},
		{
			"the name of a new database is not made durable", "store/sqlite/open.go",
			"return errors.Join(d.Sync(), d.Close())", "return d.Close()", sqlite, "(?i)Open|Folder|Durable|New",
		},
		{
			"the chain of a fork does not begin with the run's origin", "store/chain.go",
			"func FirstTag(base Tag, origin Hash) Tag { return base.Next(Header{}, origin) }",
			"func FirstTag(base Tag, _ Hash) Tag { return base }", "./store/...", "(?i)Chain|Head|Link|Golden|Suite",
		},
		{
			"verification ignores that a commit is missing", "store/chain_verify.go",
			"if l.Seq != w.Seq+1 {", "if l.Seq < 0 {", "./store/...", "(?i)Chain|Link|Walk|Suite|Gap",
		},
		{
			"a filter by user lists what is remembered of all users", "memory/memory.go",
			"(f.User == \"\" || f.User == s.User)", "(f.User == \"\" || s.User != \"\")", "./memory ./store/memory ./store/sqlite", "(?i)Recall|Memory|Remember|Filter|Suite|Scope",
		},
	}
}

// runFaults break what the engine and the runner promise.
func runFaults() []Fault {
	const effects, ledger = "runner/effects.go", "runner/budget_ledger.go"
	return []Fault{
		{
			"events may follow the end of a run", "engine/apply.go",
			"if r.ended != Pending {", "if r.ended == Cancelled {", "./engine ./runner", "(?i)Apply|Golden|End|Simulation",
		},
		{
			"two unordered nodes may write one key of the state", "engine/write.go",
			"if w := writers[c.Key]; w != nil && red == \"\" && !r.runsAfter(w, n) {", "if w := writers[c.Key]; w != nil && red == \"-\" && !r.runsAfter(w, n) {",
			"./engine", "Golden",
		},
		{
			"two iterations may write one key of the state", "engine/write.go",
			"if ok && j != i && r.plan.reducers[c.Key] == \"\" {", "if ok && j < 0 {", "./engine", "Golden",
		},
		{
			"a node is tried once more than its policy says", "engine/decide.go",
			"return int(n.attempt-free) < p.Attempts && policyRetries(p, err)", "return int(n.attempt-free) <= p.Attempts && policyRetries(p, err)", "./engine", "Golden",
		},
		{
			"whatever does not refuse is an approval", "engine/approval.go",
			"return v == \"approve\"", "return v != \"reject\"", "./engine ./runner ./session ./node/builtin", "(?i)Golden|Approv|Leave",
		},
		{
			"the timeout of a node does not reach what waits", "engine/timeout.go",
			"if total > 0 && !n.scope.cancelled() {", "if total < 0 {", "./engine ./runner ./node/builtin", "(?i)Golden|Timeout|Time",
		},
		{
			"a commit may be replayed twice", "runner/machine.go",
			"if c.Seq != m.seq+1 {", "if c.Seq < 0 {", "./runner", "Journal",
		},
		{
			"a completed effect runs again after a crash", effects,
			"if known := a.completedEffect(key); known != nil {", "if known := a.completedEffect(key); known != nil && a.m == nil {", "./runner", "(?i)Simulation|Effect|Crash",
		},
		{
			"an effect that must not be repeated is not announced", effects,
			"if e.Unknown != node.UnknownRetry || e.Reserve != nil || lost", "if e.Reserve != nil || lost", "./runner", "StartOfAnEffect",
		},
		{
			"a recorded result is returned for another request", effects,
			"if known.Digest != digest {", "if known.Digest == \"\" {", ". ./node/builtin", "DifferentRequest|ApprovalIsBound",
		},
		{
			"calls in flight hold nothing of a budget", ledger,
			"l.ledger.reserved[l.prefix+key] = r.Usage", "delete(l.ledger.reserved, l.prefix+key)", "./runner ./session", "(?i)Budget|Reserv|Flight",
		},
		{
			"an answer may be longer than what the budget leaves", ledger,
			"output = min(output, can)", "_ = can", "./runner ./session", "(?i)Budget|Answer",
		},
		{
			"the cost that others have reserved is not counted", ledger,
			"free.CostMicros -= u.CostMicros", "_ = u", "./runner", "Reserv",
		},
		{
			"messages of a child run have the ids of its parent's", "runner/local.go",
			"return b.ID + \"/\"", "return \"\"", "./runner", "MessagesOfAChild",
		},
		{
			"a run whose lease was lost continues", "runner/lease.go",
			"for _, id := range lost {", "for _, id := range lost[:0] {", "./runner", "LeaseIsLost",
		},
		{
			"the owner of a run on another machine is taken for dead", "runner/owner_dead.go",
			"if len(parts) != 3 || parts[0] != processScope() {", "if len(parts) != 3 {", "./runner", "(?i)Owner|Dead|Process|Machine",
		},
	}
}

// outsideFaults break what is promised of models, tools, requests and code.
func outsideFaults() []Fault {
	const exchange = "node/builtin/http_exchange.go"
	return []Fault{
		{
			"the results of tool calls are separated from their calls", "convo/repair.go",
			"for i++; i < len(ms) && ms[i].Role == Tool; {", "for i++; i < len(ms) && ms[i].Role == Tool && i < 0; {", "./convo", "",
		},
		{
			"a vendor's Retry-After is ignored", "llm/retry.go",
			"return max(wait, e.RetryAfter), true", "return wait, true", "./llm", "(?i)Retry|Wait|After|Limit",
		},
		{
			"a request to an address of a carrier's network is allowed", "node/builtin/safehttp/address.go",
			`"100.64.0.0/10", `, `"100.64.0.0/32", `, "./node/builtin/safehttp", "",
		},
		{
			"a redirect from https to http is followed", "node/builtin/safehttp/safehttp.go",
			"case last.URL.Scheme == \"https\" && next.URL.Scheme == \"http\":", "case last == nil:", "./node/builtin/safehttp", "",
		},
		{
			"a request whose outcome is unknown fails as if it was not sent", exchange,
			"case err.Sent && n.OnUnknown != \"retry\":", "case err.Sent && n.OnUnknown == \"\":", "./node/builtin", "(?i)HTTP|Http|Request|Unknown",
		},
		{
			"a repeated request has no idempotency key", "internal/httpcall/httpcall.go",
			"req.Header.Set(\"Idempotency-Key\", c.IdempotencyKey)", "req.Header.Del(c.IdempotencyKey)", "./node/builtin", "(?i)HTTP|Http|Request|Idempot|Key",
		},
		{
			"code may run longer than its timeout", "sandbox/starlark/process.go",
			"context.WithTimeoutCause(ctx, limits.Time, errTime)", "context.WithTimeoutCause(ctx, 1000*limits.Time, errTime)", "./sandbox/starlark", "StarlarkExecutor",
		},
		{
			"a changed MCP tool is offered without being accepted", "tool/mcp/client.go",
			"case pin.Hash != refusal.Offered.Hash:", "case pin.Hash == \"\":", "./tool/mcp", "",
		},
	}
}
