package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

//go:embed starter/*.yaml
var starterFiles embed.FS

// starterPaths returns where the files of a new project go, by their names in starter.
func starterPaths() [][2]string {
	return [][2]string{
		{"flow.yaml", "flow.yaml"},
		{"script.yaml", "script.yaml"},
		{"flow.test.yaml", "flow.test.yaml"},
		{"config.yaml", filepath.Join(".weir", "config.yaml")},
	}
}

func (p *cli) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Create a flow, its test and a configuration that run at once",
		Long: `Create a flow, the answers of a scripted model, a test and a configuration in a folder,
the current one by default. They run without a model and without a key. Files that exist are
never overwritten: if one of them exists, nothing is created.`,
		Example: `  weir init
  weir init harbour`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("did not expect %q; see `weir init --help`", args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			return p.initProject(filepath.Clean(strings.Join(args, "")))
		},
	}
}

// initProject writes the files of a new project to a folder.
func (p *cli) initProject(dir string) error {
	var there []string
	for _, f := range starterPaths() {
		if _, err := os.Lstat(filepath.Join(dir, f[1])); err == nil {
			there = append(there, filepath.Join(dir, f[1]))
		}
	}
	if there != nil {
		return usagef("nothing was created: %s exists already; name another folder, or move the file", strings.Join(there, ", "))
	}
	for _, f := range starterPaths() {
		data, err := starterFiles.ReadFile("starter/" + f[0])
		if err == nil {
			err = writeNewFile(filepath.Join(dir, f[1]), data)
		}
		if errors.Is(err, fs.ErrExist) {
			return usagef("%s exists already, and was not changed", filepath.Join(dir, f[1]))
		}
		if err != nil {
			return fmt.Errorf("create %s: %w", f[1], err)
		}
		fmt.Fprintln(p.out, filepath.Join(dir, f[1]))
	}
	in := ""
	if dir != "." {
		in = "cd " + dir + " && "
	}
	p.notef("next: %sweir run flow.yaml -i message=Hello; weir chat flow.yaml; weir test .", in)
	return nil
}

// writeNewFile creates a file and the folders above it. It does not overwrite one.
func writeNewFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a project's folder, as others can read it
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // the caller names the folder, and files of a project are readable
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
