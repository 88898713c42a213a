package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"
)

// config is what the files of configuration may say; later ones override
// earlier ones key by key.
type config struct {
	// Parallel bounds how many nodes of one run are running at once.
	Parallel int `koanf:"parallel"`
	// Providers call models, by the name before the slash in "local/llama".
	Providers map[string]providerConfig `koanf:"providers"`
	// HTTP is how httpRequest reaches the network.
	HTTP httpConfig `koanf:"http"`

	files []string // that were read
}

// httpConfig says what httpRequest may reach.
type httpConfig struct {
	// AllowPrivate lists what may be reached although it is not public: CIDR
	// prefixes, addresses and host names, each with any port or with one.
	AllowPrivate []string `koanf:"allowPrivate"`
}

// providerConfig is one server of models that speaks OpenAI's wire. Keys are
// given by the name of the environment variable that holds them, so that a
// file of configuration can be committed.
type providerConfig struct {
	BaseURL      string `koanf:"baseURL"`
	APIKeyEnv    string `koanf:"apiKeyEnv"`
	API          string `koanf:"api"`
	Organization string `koanf:"organization"`
	Project      string `koanf:"project"`
	Summary      string `koanf:"summary"`
}

// configFiles lists where configuration is looked for, the last one strongest.
func (p *program) configFiles() []string {
	var files []string
	if dir, ok := p.env("XDG_CONFIG_HOME"); ok && dir != "" {
		files = append(files, filepath.Join(dir, "weir", "config.yaml"))
	} else if home, ok := p.env("HOME"); ok && home != "" {
		files = append(files, filepath.Join(home, ".config", "weir", "config.yaml"))
	}
	return append(files, filepath.Join(".weir", "config.yaml"))
}

// config reads the files of configuration and the environment. A key that is
// not known is an error, since it is a setting that would have no effect.
func (p *program) config() (*config, error) {
	k := koanf.New(".")
	cfg := &config{}
	for _, path := range p.configFiles() {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
			return nil, usagef("configuration %s: %w", path, err)
		}
		cfg.files = append(cfg.files, path)
	}
	fromEnv := env.Provider(".", env.Opt{Prefix: "WEIR_PARALLEL", TransformFunc: func(key, value string) (string, any) {
		return strings.ToLower(strings.TrimPrefix(key, "WEIR_")), value
	}})
	if err := k.Load(fromEnv, nil); err != nil {
		return nil, usagef("environment: %w", err)
	}
	err := k.UnmarshalWithConf("", cfg, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		Result: cfg, ErrorUnused: true, WeaklyTypedInput: true, TagName: "koanf",
	}})
	if err != nil {
		return nil, usagef("configuration (%s): %w", strings.Join(cfg.files, ", "), err)
	}
	return cfg, cfg.check()
}

func (c *config) check() error {
	for name, p := range c.Providers {
		switch {
		case name == scriptProvider:
			return usagef("configuration: provider %q is the one that reads scripts; choose another name", name)
		case strings.Contains(name, "/"):
			return usagef("configuration: provider %q: a name cannot hold a slash", name)
		case name != openaiProvider && p.BaseURL == "":
			return fmt.Errorf("configuration: %w", usagef("provider %q has no baseURL", name))
		}
	}
	return nil
}
