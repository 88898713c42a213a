package app

import (
	"runtime"
	"runtime/debug"
)

// Build identifies the build of this program, as `weir version --json` prints it.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// ThisBuild reads what the Go toolchain recorded in the program.
func ThisBuild() Build {
	b := Build{Version: "unknown", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
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
