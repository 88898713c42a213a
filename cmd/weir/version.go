package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// build says which build this is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value + b.Commit
		case "vcs.modified":
			if s.Value == "true" {
				b.Commit += "+changes"
			}
		}
	}
	return b
}

func (p *cli) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  exactArgs(),
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				writeJSON(p.out, b)
				return nil
			}
			fmt.Fprintf(p.out, "weir %s, %s, %s/%s\n", b.Version, b.Go, b.OS, b.Arch)
			if b.Commit != "" {
				fmt.Fprintf(p.out, "commit %s\n", b.Commit)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}
