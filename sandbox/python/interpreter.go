package python

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weir-run/weir/sandbox"
)

// installation is a CPython and the files that it needs.
type installation struct {
	Version    string      // "3.11.2"
	Executable string      // its path with links resolved
	loader     string      // the program that loads it, "" if it is linked statically
	binds      []bindMount // the part of the file system that sandboxes show, read-only
	path       []string
	// run and check are the compiled harnesses in marshal's format.
	run, check []byte
	system
}

// bindMount is a file or folder outside the sandbox that is visible at to.
type bindMount struct {
	from, to string
	folder   bool
	execute  bool
	device   bool
}

// describeTimeout limits the time for describing an interpreter.
const describeTimeout = 20 * time.Second

// describeProgram is a Python program that describes the interpreter and its loaded libraries, and compiles the
// harnesses. It runs outside a sandbox, with an interpreter that the user of Weir chose.
const describeProgram = `
import base64, json, marshal, os, sys
run, check = json.loads(sys.stdin.read())
maps = []
try:
    with open("/proc/self/maps") as f:
        maps = sorted({l.split(None, 5)[5].strip() for l in f if ".so" in l})
except OSError:
    pass
code = lambda s, n: base64.b64encode(marshal.dumps(compile(s, n, "exec"))).decode()
executable = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps({
    "implementation": sys.implementation.name, "version": list(sys.version_info[:3]),
    "executable": os.path.realpath(executable), "path": [p for p in sys.path if p], "maps": maps,
    "run": code(run, "<run>"), "check": code(check, "<check>"),
}))
`

// description is the output of describeProgram.
type description struct {
	Implementation string   `json:"implementation"`
	Version        []int    `json:"version"`
	Executable     string   `json:"executable"`
	Path           []string `json:"path"`
	Maps           []string `json:"maps"`
	Run            []byte   `json:"run"`
	Check          []byte   `json:"check"`
}

// installation returns the interpreter for jobs. It is searched once, and after a failure again some time later.
func (e *Executor) installation(ctx context.Context) (*installation, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found != nil || time.Now().Before(e.retryAfter) {
		return e.found, e.failed
	}
	e.found, e.failed = findInstallation(ctx, e.options)
	if e.failed != nil && ctx.Err() == nil {
		e.retryAfter = time.Now().Add(10 * time.Second)
	}
	return e.found, e.failed
}

// forget makes the next call search again if a part of the installation has disappeared, for example in a system
// upgrade.
func (e *Executor) forget(in *installation, err error) {
	if !errors.Is(err, os.ErrNotExist) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.found == in {
		e.found = nil
	}
}

const interpreterHint = "install Python 3.8 or later (Debian, Ubuntu: apt install python3), or name one in the configuration: sandbox.python.interpreter"

// findInstallation finds the interpreter and the files that it needs.
func findInstallation(ctx context.Context, o Options) (*installation, error) {
	candidates := []string{o.Interpreter}
	if o.Interpreter == "" {
		candidates = nil
		if path, err := exec.LookPath("python3"); err == nil {
			candidates = append(candidates, path)
		}
		candidates = append(candidates, "/usr/bin/python3", "/usr/local/bin/python3")
	}
	var errs []error
	for i, path := range candidates {
		if slices.Contains(candidates[:i], path) {
			continue
		}
		d, err := describeInterpreter(ctx, path)
		if err == nil {
			return d.installation(o)
		}
		errs = append(errs, fmt.Errorf("%s: %w", path, err))
	}
	return nil, unavailable("there is no Python 3 that runs: "+errors.Join(errs...).Error(), interpreterHint)
}

// describeInterpreter starts an interpreter to describe itself.
func describeInterpreter(ctx context.Context, path string) (*description, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	sources, err := json.Marshal([]string{sandbox.HarnessPython() + runDriver, sandbox.CheckPython() + checkDriver})
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, path, "-I", "-S", "-B", "-X", "utf8", "-c", describeProgram)
	c.Stdin = bytes.NewReader(sources)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")} // for shims, which are scripts
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, lastLine(stderr.String()))
	}
	d := &description{}
	if err := json.Unmarshal(out, d); err != nil {
		return nil, fmt.Errorf("it is no Python 3: %w", err)
	}
	if d.Implementation != "cpython" || len(d.Version) < 3 || d.Version[0] != 3 || d.Version[1] < 8 {
		return nil, fmt.Errorf("it is %s %v; CPython 3.8 or later is needed", d.Implementation, d.Version)
	}
	return d, nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	return ": " + s[strings.LastIndexByte(s, '\n')+1:]
}

// installation returns the files that a sandbox needs for the interpreter.
func (d *description) installation(o Options) (*installation, error) {
	in := &installation{
		Version: fmt.Sprintf("%d.%d.%d", d.Version[0], d.Version[1], d.Version[2]), Executable: d.Executable, run: d.Run, check: d.Check,
	}
	f, err := elf.Open(d.Executable)
	if err != nil {
		return nil, unavailable("the interpreter is no program that can be shown to a sandbox: "+err.Error(), interpreterHint)
	}
	defer f.Close() //nolint:errcheck // the file was only read
	if in.system, err = newSystem(); err != nil {
		return nil, failed("look at the system", err)
	}
	in.loader = loader(f)
	in.add(bindMount{from: d.Executable, execute: true})
	if in.loader != "" {
		in.add(bindMount{from: in.loader, to: resolveFolder(in.loader), execute: true})
	}
	for _, lib := range d.Maps {
		if dir := filepath.Dir(lib); systemFolder(dir) {
			in.add(bindMount{from: dir, folder: true})
		} else {
			in.add(bindMount{from: lib})
		}
	}
	for _, p := range d.Path {
		in.addPath(p)
	}
	for _, p := range o.Packages {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, failed("find the packages "+p, err)
		}
		if info, err := os.Stat(abs); err != nil || !info.IsDir() {
			return nil, unavailable("the folder of packages "+abs+" is not there", "correct sandbox.python.packages in the configuration")
		}
		in.add(bindMount{from: abs, folder: true})
		in.path = append(in.path, abs)
	}
	for _, p := range []string{"/usr/share/zoneinfo", "/etc/ld.so.cache"} {
		in.addPath(p)
	}
	for _, p := range []string{"/dev/null", "/dev/zero", "/dev/urandom"} {
		in.add(bindMount{from: p, device: true})
	}
	return in, nil
}

// addPath shows a file or folder if it exists.
func (in *installation) addPath(p string) {
	if info, err := os.Stat(p); err == nil {
		in.add(bindMount{from: p, folder: info.IsDir()})
	}
}

// add shows b, by default under its own path, unless a folder that is already shown contains it.
func (in *installation) add(b bindMount) {
	if b.to == "" {
		b.to = b.from
		if dir, err := filepath.EvalSymlinks(filepath.Dir(b.from)); err == nil {
			b.to = filepath.Join(dir, filepath.Base(b.from))
		}
	}
	for _, have := range in.binds {
		if have.to == b.to || have.folder && !b.execute && strings.HasPrefix(b.to, have.to+"/") {
			return
		}
	}
	in.binds = append(in.binds, b)
}

// loader returns the program that an executable names as its loader.
func loader(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP && p.Filesz < 4096 {
			b := make([]byte, p.Filesz)
			if _, err := p.ReadAt(b, 0); err == nil {
				return strings.TrimRight(string(b), "\x00")
			}
		}
	}
	return ""
}

// resolveFolder resolves the links of path's folder, but not of its last element.
func resolveFolder(path string) string {
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return path
	}
	return filepath.Join(dir, filepath.Base(path))
}

// systemFolder reports whether a folder contains the system's shared libraries and may be shown completely.
func systemFolder(dir string) bool {
	for _, root := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"} {
		if dir == root || strings.HasPrefix(dir, root+"/") {
			return true
		}
	}
	return false
}
