package cli

import (
	"github.com/weir-run/weir"
	"github.com/weir-run/weir/app"
	"github.com/weir-run/weir/app/config"
)

// configOptions returns where this command line finds its configuration.
func (p *cli) configOptions() config.Options {
	return config.Options{File: p.configFile, Env: p.env, Reserved: []string{app.ScriptProvider}}
}

// config reads the configuration files and the environment. Mistakes in them are usage
// errors.
func (p *cli) config() (*config.Config, error) {
	defer p.interrupts.atOnce()()
	cfg, err := config.Load(p.configOptions())
	if err != nil {
		return nil, &usageError{Err: err}
	}
	return cfg, nil
}

// loadFlow reads a flow file; the configuration lists the folders that the flows it uses
// may be in.
func (p *cli) loadFlow(path string) (*weir.Flow, error) {
	cfg, err := p.config()
	if err != nil {
		return nil, err
	}
	f, _, err := app.LoadFlow(path, cfg.Flows.Folders...)
	return f, err
}
