package main

import (
	"path/filepath"

	"github.com/weir-run/weir/app/config"
)

// configOptions say where the configuration of this use of the command is.
func (p *cli) configOptions() config.Options {
	return config.Options{File: p.configFile, Env: p.env, Reserved: []string{scriptProvider}}
}

// config reads the files of configuration and the environment. What is wrong
// with them is the user's to correct before anything can be done.
func (p *cli) config() (*config.Config, error) {
	cfg, err := config.Load(p.configOptions())
	if err != nil {
		return nil, &usageError{err}
	}
	return cfg, nil
}

// lockFile keeps which definitions of tools were accepted: it lies beside the
// strongest file of configuration, so that both are kept in version control.
func (p *cli) lockFile(cfg *config.Config) string {
	files := cfg.Files
	if len(files) == 0 {
		files = p.configOptions().Candidates()
	}
	return filepath.Join(filepath.Dir(files[len(files)-1]), "tools.lock")
}
