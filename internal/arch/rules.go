package arch

import "slices"

// PackageRule says what one package, or all below a folder, may import of ours.
type PackageRule struct {
	// Dir is a folder, or "folder/..." for those below it; the longest match
	// holds.
	Dir string
	// Allowed lists folders and patterns like Dir.
	Allowed []string
	// Why is the reason, shown where the rule is broken.
	Why string
}

// PackageRules returns the arrows of the design. A package without an entry is a finding,
// so that a new package is a decision. Test files may look up: a golden run of the
// parser may use the catalogue.
func PackageRules() []PackageRule {
	return slices.Concat(corePackageRules(), productPackageRules(), upperPackageRules(), internalPackageRules())
}

// contractPackages returns what nodes and runners stand on.
func contractPackages() []string {
	return []string{"scrub", "flow", "flow/expr", "convo", "engine", "llm", "llm/structured", "tool", "sandbox", "trajectory", "node"}
}

// corePackageRules returns those of the packages below the runner.
func corePackageRules() []PackageRule {
	contracts := contractPackages()
	return []PackageRule{
		{"scrub", nil, "a text is taken out of another, whatever the two are"},
		{"flow/expr", []string{"internal/excerpt", "internal/jsonkey", "internal/lru"}, "the package that has the values evaluates expressions; they know no flow"},
		{"flow/schema", nil, "whether a value fits a schema is a question of the two"},
		{"flow", []string{"flow/expr", "flow/schema", "internal/excerpt"}, "a definition is read and checked without anything that runs it"},
		{"flow/graph", []string{"flow", "internal/layered"}, "a drawing needs the definition alone"},
		{"convo", []string{"internal/lru"}, "contexts are used by every runner and provider; counters and summarisers are passed in"},
		{"token", []string{"convo"}, "counting is a function of text and of messages"},
		{"engine", []string{"flow", "internal/jsonkey"}, "the core decides from the flow and the events alone"},
		{"llm", []string{"llm/structured", "convo", "token", "tool", "engine", "flow/schema", "internal/guard", "internal/breaker", "internal/jsonkey"}, "the service knows contexts and tools, and not the nodes that call it"},
		{"llm/...", []string{"llm", "llm/vendorapi", "convo", "tool", "engine", "internal/httpcall"}, "a provider is swapped without touching what calls it"},
		{"llm/stops", []string{"llm", "store"}, "which models are stopped is kept in the store, for every process on it"},
		{"llm/structured", []string{"flow/schema", "internal/excerpt", "internal/jsonkey"}, "what a model wrote is read by its schema alone"},
		{"llm/vendorapi", []string{"llm", "engine", "internal/excerpt", "internal/httpcall"}, "what the providers share knows no vendor and no conversation"},
		{"llm/llmtest", []string{"llm", "llm/recorded", "convo", "tool", "engine", "internal/shareddata"}, "the suite sees providers from outside, and knows real conversations"},
		{"sandbox", []string{"engine", "internal/jsonkey", "internal/guard"}, "a job is code and values, and what comes back is the change of those"},
		{"sandbox/...", []string{"sandbox", "engine"}, "an executor is swapped without touching what uses it"},
		{"tool", []string{"engine", "flow/schema", "trajectory", "internal/guard"}, "a tool is a name, a schema and a function, and declares the data it made"},
		{"tool/...", []string{"tool", "tool/template", "engine", "trajectory", "internal/httpcall", "internal/excerpt"}, "a kind of tool is swapped without touching what calls it"},
		{"tool/memory", []string{"tool", "memory", "convo", "trajectory", "internal/excerpt"}, "what is remembered is shown to models as data"},
		{"tool/template", []string{"scrub"}, "references are looked up in what is passed in"},
		{
			"node",
			[]string{"flow", "flow/expr", "flow/schema", "convo", "engine", "llm", "tool", "sandbox", "trajectory", "internal/guard"},
			"the contract of nodes does not know the catalogue, the runner or the store",
		},
		{"node/...", append([]string{"internal/excerpt", "internal/breaker"}, contracts...), "a node sees the world through its Ctx only"},
		{
			"node/builtin", append([]string{"node/builtin/redact", "node/builtin/safefile", "node/builtin/safehttp", "node/codegen", "node/queue", "memory", "internal/httpcall", "internal/excerpt", "internal/breaker"}, contracts...),
			"a node sees the world through its Ctx only; the client it is given refuses inside addresses, the agents are asked through it, and tools are found by the terms of the memory",
		},
		{"node/builtin/...", []string{"node"}, "which addresses and files may be reached is a question of addresses and paths"},
		{"trajectory", []string{"engine", "convo"}, "a trajectory is made of messages and values, and says itself what it wants of a storage"},
		{"trajectory/...", []string{"trajectory", "convo", "internal/layered"}, "storages and drawings are swapped without touching what records"},
		{"trajectory/trajectorytest", []string{"trajectory", "trajectory/tables", "convo", "internal/shareddata"}, "the suite sees storages and tables from outside"},
		{
			"trajectory/follow",
			[]string{"trajectory", "engine", "flow", "convo", "node", "scrub", "internal/excerpt"},
			"what a run did is read from its journal and its flow alone",
		},
	}
}

// productPackageRules returns those of stores, the runner, the API and what stands on it.
func productPackageRules() []PackageRule {
	contracts := contractPackages()
	product := []string{
		".", "session", "history", "otel", "audit", "scrub", "flow/...", "flow", "convo", "token", "engine", "llm", "llm/...",
		"tool", "tool/...", "sandbox", "sandbox/...", "trajectory", "trajectory/...", "memory", "node", "node/...", "store", "store/...", "runner", "runner/...", "weirtest", "flowtest",
	}
	return []PackageRule{
		{"otel", []string{"engine", "convo", "flow", "llm", "store", "internal/excerpt"}, "traces are made from journals, whichever process executes the runs"},
		{"memory", nil, "memory stands beside conversations, and says itself what it wants of a store"},
		{"store", []string{"engine", "convo", "trajectory", "trajectory/tables", "memory"}, "a store keeps commits and decides nothing; it declares the interfaces of all that it can keep"},
		{"store/codec", nil, "an encoding of bytes does not depend on what they are of"},
		{"store/...", []string{"store", "store/codec", "store/dependents", "store/rowaudit", "engine", "convo", "trajectory", "trajectory/tables", "memory"}, "a store is swapped without touching what uses it"},
		{"audit", []string{"store", "engine", "memory", "trajectory"}, "a record is verified, exported, imported and copied without what wrote it; a copy names the trajectories that it takes"},
		{
			"runner", append([]string{"internal/guard", "internal/lru", "internal/excerpt", "runner/childrun", "store", "trajectory/follow"}, contracts...),
			"the runner takes a store and a catalogue; it names none",
		},
		{"runner/childrun", []string{"engine"}, "the protocol between parent and child runs is the same for every runner"},
		{
			"runner/...", append([]string{"runner", "store", "store/memory", "node/builtin"}, contracts...),
			"simulation and the conformance suite run on the memory store",
		},
		{
			".",
			[]string{
				"session", "history", "otel",
				"flow", "flow/expr", "convo", "token", "engine", "llm", "llm/recorded", "llm/stops", "tool",
				"tool/...", "sandbox", "trajectory", "trajectory/...", "node", "node/...", "store", "store/...", "runner", "runner/...",
			},
			"the public API wires the packages and links no vendor SDK",
		},
		{"weirtest", product, "a test kit stands on the public API of the library"},
		{"flowtest", append([]string{"internal/excerpt"}, product...), "tests of flows see the library from outside, as its users do"},
		{
			"app", append([]string{"app/config", "internal/lru"}, product...),
			"what wires a process is shared by the command and a server; it knows neither flags nor terminals",
		},
		{"app/config", []string{"llm"}, "configuration is data; what it opens is decided above it"},
		{"cmd/...", []string{"..."}, "a command wires everything"},
		{"bench", product, "measures the product"},
		{"bench/...", product, "measures the product"},
		{"examples/...", product, "an example uses what a user may use"},
	}
}

// upperPackageRules returns those of the packages between the runner and the API.
func upperPackageRules() []PackageRule {
	return []PackageRule{
		{
			"server",
			[]string{".", "server/auditlog", "server/filestore", "server/oidc", "server/webhook", "server/trigger", "app", "llm", "llm/stops", "audit", "history", "session", "store", "memory", "trajectory/draw", "tool", "runner", "flow", "flow/graph", "flowtest", "convo", "engine", "internal/excerpt", "internal/guard", "internal/jsonkey", "internal/lru"},
			"the API calls the library and shows its reports; it knows neither flags nor terminals",
		},
		{"node/codegen/learned", []string{"node/codegen", "store", "engine"}, "learned code is listed and deleted in a store, without a run"},
		{"server/openai", []string{"server", "server/livetext", "app", ".", "session", "store", "runner", "tool", "flow", "convo", "engine"}, "a protocol of others works through the server's Caller"},
		{"server/agui", []string{"server", "server/livetext", "app", ".", "session", "runner", "node", "flow", "convo", "engine"}, "a protocol of others works through the server's Caller"},
		{"server/mcp", []string{"server", "app", ".", "store", "node", "engine"}, "a protocol of others works through the server's Caller"},
		{"server/livetext", []string{".", "flow", "engine"}, "which text is an answer does not depend on the protocol that sends it"},
		{"server/servertest", []string{".", "app", "app/config", "convo", "llm", "llm/llmtest", "runner", "server"}, "it opens servers as the command does, for tests"},
		{"server/auditlog", []string{"store"}, "who did what is recorded in the same way, whatever API did it"},
		{"server/webhook", []string{"store", "engine"}, "deliveries follow from notices of the store, whatever API shows them"},
		{"server/oidc", nil, "who a person is at an issuer does not depend on what the person may do here"},
		{"server/filestore", []string{"store"}, "how files are kept does not depend on who may read them"},
		{"server/trigger", []string{"store", "engine"}, "when a run starts does not depend on how it is started"},
		{"server/...", nil, "a client knows the API by its description alone, and links nothing of the engine"},
		{
			"session",
			[]string{"flow", "convo", "token", "engine", "llm", "node", "runner", "store", "trajectory/follow"},
			"conversations need runs, a store and flows, and not the API that offers them",
		},
		{
			"history",
			[]string{"flow", "convo", "engine", "runner", "store", "trajectory", "trajectory/follow"},
			"what happened is read from journals, by the API, the command and the server alike",
		},
	}
}

// internalPackageRules returns those below internal/, which nothing outside may import.
func internalPackageRules() []PackageRule {
	return []PackageRule{
		{"internal/crash", []string{"convo", "llm", "llm/llmtest"}, "it sees the binary from outside; the ledger speaks a model's wire"},
		{"internal/proof", nil, "it has tests alone, which wire what they need"},
		{"internal/arch", nil, "the rules stand outside what they judge"},
		{"internal/faults", nil, "what is broken on purpose is named by its text alone"},
		{"internal/lru", nil, "a map of limited size does not know what it stores"},
		{"internal/layered", nil, "rows of numbers are ordered without knowing what is drawn"},
		{"internal/jsonkey", nil, "a text is checked without knowing where it comes from"},
		{"internal/excerpt", nil, "a text is cut without knowing what it says"},
		{"internal/httpcall", nil, "a request is sent without knowing for whom"},
		{"internal/shareddata", nil, "it opens files for tests and reads none"},
		{"internal/pgtest", nil, "it starts servers and knows nothing of their tables"},
		{"internal/breaker", nil, "it counts calls without knowing what they are for"},
		{"internal/guard", nil, "it calls functions without knowing what they are for"},
		{"internal/licenses", nil, "texts of others, which know nothing of ours"},
		{"internal/bom", []string{"internal/licenses"}, "it reads what the linker wrote, and the licences"},
		{"internal/weight", nil, "it sees the binary from outside"},
		{
			"internal/weirkit",
			[]string{".", "history", "session", "convo", "engine", "llm", "tool", "weirtest", "store/memory", "store/sqlite"},
			"it helps tests of the library, which see it from outside",
		},
		{"internal/docgen", []string{"flow", "flow/expr", "engine"}, "pages follow from specs and tables, which run nothing"},
	}
}

// DependencyRule says which packages may import a module of others.
type DependencyRule struct {
	// Prefix of the import path.
	Prefix string
	// Only lists the folders that may; a test file elsewhere may not either.
	Only []string
	// Hide: its types must not appear in what those folders export.
	Hide bool
	// Unlinked: the root package must not reach it through any import.
	Unlinked bool
	Why      string
}

const modelSDK = "the providers write and read the wires of models themselves (ADR 033): an SDK would double the build"

// DependencyRules returns the modules that have one home.
func DependencyRules() []DependencyRule {
	return []DependencyRule{
		{"github.com/openai/openai-go", nil, true, true, modelSDK},
		{"github.com/anthropics/anthropic-sdk-go", nil, true, true, modelSDK},
		{"google.golang.org/genai", nil, true, true, modelSDK},
		{"google.golang.org/grpc", nil, true, true, "what Weir sends is JSON over HTTP; gRPC would add megabytes to the binary"},
		{
			"github.com/modelcontextprotocol/go-sdk",
			[]string{"tool/mcp", "server/mcp", "cmd/cli"}, // whose tests have a server to call
			true, true,
			"the protocol's types stay behind tool/mcp and server/mcp, and the library must not link its SDK unasked",
		},
		{"github.com/coreos/go-oidc", []string{"server/oidc"}, true, true, "tokens of an issuer are verified in one place, and the library must not link what does it unasked"},
		{"golang.org/x/oauth2", []string{"server/oidc"}, true, false, "codes are exchanged in one place"},
		{"github.com/danielgtaylor/huma", []string{"server"}, true, true, "the router of the API stays behind its handlers, and the library must not link it unasked"},
		{"github.com/google/jsonschema-go", []string{"tool"}, true, false, "schemas of structs are inferred in one place"},
		{
			"go.starlark.net",
			[]string{"sandbox/starlark"},
			true, true,
			"code is run by one executor, in a process of its own; the library must not link an interpreter unasked",
		},
		{"cel.dev/", []string{"flow/expr"}, true, false, "there is one expression language, behind flow/expr"},
		{
			"modernc.org/sqlite",
			[]string{"store/sqlite", "store/sqlite/...", "bench"},
			true, false,
			"SQL stays in the store (the benchmarks measure a raw commit beside it)",
		},
		{
			"github.com/jackc/pgx",
			[]string{"store/postgres", "store/postgres/..."},
			true, true,
			"SQL stays in the store",
		},
		{"github.com/spf13/cobra", []string{"cmd/..."}, false, true, "flags are the command's"},
		{"charm.land/", []string{"cmd/..."}, false, true, "the terminal is the command's"},
		{"github.com/charmbracelet/", []string{"cmd/..."}, false, true, "the terminal is the command's"},
		{"go.temporal.io/", nil, false, true, "the Temporal runner is a module of its own"},
		{"github.com/cloudwego/eino", nil, false, true, "peers are measured from a module of their own"},
	}
}

// PurityRule says what a package must not use.
type PurityRule struct {
	Dir string
	// Std lists the standard packages it may import; nil allows all.
	Std []string
	// Calls lists functions it must not name, as "time.Now" or "fmt.Print*".
	Calls []string
	// Sequential forbids goroutines, channels and select.
	Sequential bool
	// Ordered wants a comment "// order: why" at every range over a map.
	Ordered bool
	Why     string
}

// PurityRules returns what keeps the core a function and nodes repeatable.
func PurityRules() []PurityRule {
	clock := []string{
		"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.AfterFunc",
		"time.Tick", "time.NewTimer", "time.NewTicker", "time.Local", "time.LoadLocation",
	}
	return []PurityRule{
		{
			Dir: "engine",
			Std: []string{
				"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/base64", "encoding/hex",
				"encoding/json", "errors", "fmt", "hash/fnv", "iter", "maps", "math", "math/bits", "slices",
				"sort", "strconv", "strings", "time", "unicode", "unicode/utf8",
			},
			Calls:      append([]string{"fmt.Print*", "fmt.Fprint*", "fmt.Scan*"}, clock...),
			Sequential: true,
			Ordered:    true,
			Why: "every runner drives the core and a journal must replay the same anywhere: " +
				"no I/O, clock, chance, goroutine, logger or map order",
		},
		{
			Dir:        "runner/childrun",
			Std:        []string{"reflect", "slices", "strings"},
			Sequential: true,
			Ordered:    true,
			Why:        "every runner and the simulation drive the same protocol: no I/O, clock, chance or goroutine",
		},
		{
			Dir: "node/builtin",
			Calls: append([]string{
				"os.*", "math/rand.*", "math/rand/v2.*", "crypto/rand.*", "os/exec.*",
				"net.Dial*", "net/http.Get", "net/http.Head", "net/http.Post*", "net/http.DefaultClient",
			}, clock...),
			Why: "a node is entered again after a crash or a wait: time, chance and I/O come through its Ctx",
		},
		{
			Dir: "convo",
			Calls: append([]string{
				"os.*", "math/rand.*", "math/rand/v2.*", "crypto/rand.*", "net.*",
				"net/http.*",
			}, clock...),
			Why: "a history rebuilt from the journal must equal the one that was live",
		},
	}
}

// Ceilings of STYLE, in lines.
const (
	MaxFile = 600
	MaxFunc = 80 // from func to the closing brace
)

// BadNames are package names that say nothing of what is inside.
func BadNames() []string {
	return []string{"util", "utils", "common", "models", "helper", "helpers", "pkg", "misc", "shared"}
}
