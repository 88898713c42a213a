package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/v2"
)

// Options say where configuration is.
type Options struct {
	// File is what --config names. It, or else what WEIR_CONFIG names, is then
	// the only file that is read, and must be there.
	File string
	// Dir is the folder of the project's config.yaml; empty is ".weir".
	Dir string
	// UserDir is the folder that holds the user's weir/config.yaml; empty is
	// os.UserConfigDir.
	UserDir string
	// Env looks up environment variables; nil is os.LookupEnv.
	Env func(string) (string, bool)
	// Reserved names cannot be given to providers.
	Reserved []string
}

// name of the file in its folder.
const fileName = "config.yaml"

// separator of koanf's paths: nothing that a key may hold, as models' names
// hold dots.
const separator = "\x00"

// Candidates lists the files that Load looks for, the strongest last.
func (o Options) Candidates() []string {
	if named := o.named(); named != "" {
		return []string{named}
	}
	var files []string
	user := o.UserDir
	if user == "" {
		user, _ = os.UserConfigDir()
	}
	if user != "" {
		files = append(files, filepath.Join(user, "weir", fileName))
	}
	dir := o.Dir
	if dir == "" {
		dir = ".weir"
	}
	return append(files, filepath.Join(dir, fileName))
}

func (o Options) named() string {
	if o.File != "" {
		return o.File
	}
	named, _ := o.lookup("WEIR_CONFIG")
	return named
}

func (o Options) lookup(name string) (string, bool) {
	if o.Env == nil {
		return os.LookupEnv(name)
	}
	return o.Env(name)
}

// Load reads what there is. Later files override earlier ones: a provider, MCP
// server, limit or secret as a whole, so that the key of one file never meets
// the address of another; models, HTTP tools and flows by their name, the rest
// key by key. The error is an *Invalid where a file says what it cannot; a key that is
// not known is one, since it would have no effect.
func Load(o Options) (*Config, error) {
	k := koanf.New(separator)
	c := &Config{env: o.lookup, candidates: o.Candidates(), replaced: new(atomic.Pointer[map[string]Key])}
	problems, form := &Invalid{}, sync.OnceValue(compiledSchema)
	for _, path := range c.candidates {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) && o.named() == "" {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		c.Files = append(c.Files, path)
		doc := parse(path, data, form(), o.Reserved)
		if len(doc.problems) > 0 {
			problems.Problems = append(problems.Problems, doc.problems...)
			continue
		}
		doc.resolvePaths()
		if err := k.Load(doc, nil, koanf.WithMergeFunc(merge)); err != nil {
			return nil, fmt.Errorf("configuration %s: %w", path, err)
		}
	}
	if len(problems.Problems) > 0 {
		return nil, problems
	}
	if err := k.Load(environment(o.lookup), nil); err != nil {
		return nil, fmt.Errorf("environment: %w", err)
	}
	err := k.UnmarshalWithConf("", c, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: c, ErrorUnused: true, WeaklyTypedInput: true, TagName: "json",
		DecodeHook: mapstructure.ComposeDecodeHookFunc(mapstructure.StringToTimeDurationHookFunc(), textHook, memoryHook),
	}})
	if err != nil { // of files only the environment is not checked yet
		return nil, fmt.Errorf("environment: %w", err)
	}
	c.applyDefaults()
	return c, nil
}

// LockFile returns the path of the file with the accepted definitions of tools. It is next to the
// last configuration file, so that both are in version control.
func (c *Config) LockFile() string {
	files := c.Files
	if len(files) == 0 {
		files = c.candidates
	}
	return filepath.Join(filepath.Dir(files[len(files)-1]), "tools.lock")
}

// environment returns what single variables say: WEIR_PARALLEL.
func environment(lookup func(string) (string, bool)) koanf.Provider {
	return env.Provider(separator, env.Opt{
		EnvironFunc: func() []string {
			if v, ok := lookup("WEIR_PARALLEL"); ok && v != "" {
				return []string{"WEIR_PARALLEL=" + v}
			}
			return nil
		},
		TransformFunc: func(key, value string) (string, any) {
			return strings.ToLower(strings.TrimPrefix(key, "WEIR_")), value
		},
	})
}

// textHook reads a Text that is given as it is.
func textHook(from, to reflect.Type, v any) (any, error) {
	if to != reflect.TypeFor[Text]() {
		return v, nil
	}
	if from.Kind() == reflect.String {
		return Text{Plain: v.(string)}, nil
	}
	var k Key
	err := mapstructure.Decode(v, &k)
	return Text{Key: k}, err
}

// merge lays one file over what earlier ones said.
func merge(src, dest map[string]any) error {
	for key, v := range src {
		switch key {
		case "models":
			dest[key] = joinLists(dest[key], v)
		case "tools":
			tools, _ := dest[key].(map[string]any)
			tools = maps.Clone(tools)
			if tools == nil {
				tools = make(map[string]any)
			}
			for kind, list := range v.(map[string]any) {
				if kind == "http" || kind == "flows" {
					tools[kind] = joinLists(tools[kind], list)
				} else {
					tools[kind] = overrideValue(tools[kind], list)
				}
			}
			dest[key] = tools
		default:
			dest[key] = overrideValue(dest[key], v)
		}
	}
	return nil
}

// overrideValue replaces entry by entry where both are maps.
func overrideValue(earlier, later any) any {
	a, ok := earlier.(map[string]any)
	b, both := later.(map[string]any)
	if !ok || !both {
		return later
	}
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// joinLists appends a list to an earlier one, without what has a name of the later.
func joinLists(earlier, later any) any {
	a, _ := earlier.([]any)
	b, _ := later.([]any)
	kept := slices.DeleteFunc(slices.Clone(a), func(x any) bool {
		return slices.ContainsFunc(b, func(y any) bool { return nameOf(x) == nameOf(y) })
	})
	return append(kept, b...)
}

func nameOf(v any) any {
	m, _ := v.(map[string]any)
	return m["name"]
}
