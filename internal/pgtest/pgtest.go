//go:build unix

// Package pgtest starts PostgreSQL servers for tests: programs of Debian's package, in a
// folder of the test. A test is skipped where they are not installed.
//
// It must not know what the tests keep in the database.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Server is a server of a test. Its methods must not be called at the same time.
type Server struct {
	bin, dir string
	port     int
	settings []string
	as       *syscall.Credential // nil is the user of the test
	process  *exec.Cmd
	log      *os.File
	schemas  atomic.Int64
}

// required is the environment variable that makes a missing server a failure.
const required = "WEIR_REQUIRE_POSTGRES"

// Start starts a server that ends with the test. settings are lines of postgresql.conf. It
// skips the test if PostgreSQL is not installed, unless WEIR_REQUIRE_POSTGRES is set.
func Start(tb testing.TB, settings ...string) *Server {
	tb.Helper()
	bin := programs()
	if bin == "" {
		if os.Getenv(required) != "" {
			tb.Fatalf("%s is set, and there is no initdb in /usr/lib/postgresql/*/bin or in PATH", required)
		}
		tb.Skip("PostgreSQL is not installed (apt-get install postgresql): there is no initdb in /usr/lib/postgresql/*/bin or in PATH")
	}
	s := &Server{bin: bin, settings: settings}
	s.chooseUser(tb)
	s.chooseFolder(tb)
	s.run(tb, "initdb", "--pgdata="+s.data(), "--username=weir", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
	s.port = freePort(tb)
	s.Restart(tb)
	tb.Cleanup(func() {
		s.Stop(tb)
		_ = os.RemoveAll(s.dir)
	})
	return s
}

// programs returns the folder with the programs of PostgreSQL, "" if there is none.
func programs() string {
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); err == nil && len(found) > 0 {
		slices.Sort(found)
		return filepath.Dir(found[len(found)-1])
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(path)
	}
	return ""
}

// chooseUser finds a user for the server, which refuses to run as root.
func (s *Server) chooseUser(tb testing.TB) {
	tb.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(u.Uid, 10, 32)
		gid, _ := strconv.ParseUint(u.Gid, 10, 32)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return
	}
	tb.Skip("PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody")
}

// chooseFolder makes a folder that belongs to the user of the server: in memory if there is a
// place for it, because tests make many schemas and wait for each commit, and on a disk for a
// benchmark. The folder of tb.TempDir is below folders that other users cannot enter.
func (s *Server) chooseFolder(tb testing.TB) {
	tb.Helper()
	place := "/dev/shm"
	var free syscall.Statfs_t
	_, measures := tb.(*testing.B)
	if err := syscall.Statfs(place, &free); err != nil || measures || free.Bavail*uint64(free.Bsize) < minimumMemory {
		place = "/tmp"
	}
	dir, err := os.MkdirTemp(place, "weirpg") //nolint:usetesting // see above
	if err == nil && s.as != nil {
		err = os.Chown(dir, int(s.as.Uid), int(s.as.Gid))
	}
	if err != nil {
		tb.Fatal(err)
	}
	s.dir = dir
}

// minimumMemory is how much memory must be free for the folder of a server.
const minimumMemory = 2 << 30

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, filepath.Join(s.bin, program), args...)
	c.Dir = s.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + s.dir, "TZ=UTC"}
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	return c
}

func (s *Server) run(tb testing.TB, program string, args ...string) {
	tb.Helper()
	if out, err := s.command(tb.Context(), program, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v\n%s", program, err, out)
	}
}

// freePort returns a port that no connection takes while the server does not run: the system
// gives those from 32768 on to clients, who could even reach themselves by one.
func freePort(tb testing.TB) int {
	tb.Helper()
	for range 100 {
		port := 20000 + rand.N(12000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // it is closed at once
		if err == nil {
			_ = l.Close()
			return port
		}
	}
	tb.Fatal("no port is free")
	return 0
}

// Restart starts the server if it does not run, and waits until it accepts connections.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	if s.process != nil {
		tb.Fatal("the server runs already")
	}
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port), "-k", s.dir, "-h", "127.0.0.1", "-c", "max_connections=200"}
	for _, x := range s.settings {
		args = append(args, "-c", x)
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		tb.Fatal(err)
	}
	c := s.command(context.Background(), "postgres", args...)
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	s.process, s.log = c, log
	for range 600 {
		if s.command(tb.Context(), "pg_isready", "-q", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-d", "postgres").Run() == nil {
			return
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // pg_isready is the only way to ask
	}
	data, _ := os.ReadFile(log.Name())
	tb.Fatalf("PostgreSQL does not start:\n%s", data)
}

// Kill kills all processes of the server with SIGKILL, as a crash of the machine does apart
// from the loss of what the operating system has not written yet.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	if err := s.process.Process.Signal(syscall.SIGSTOP); err != nil { // it starts fewer processes meanwhile
		tb.Fatal(err)
	}
	// A server does not start while a process of the one before has its memory.
	for {
		pids := s.processes()
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				tb.Fatal(err)
			}
		}
		if len(pids) == 0 {
			break
		}
		time.Sleep(time.Millisecond) //nolint:forbidigo // they are no children of ours
	}
	s.wait()
}

// processes lists the processes of the server, which work in its data folder.
func (s *Server) processes() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		// That of a process that has ended cannot be read.
		if folder, err := os.Readlink(link); err != nil || folder != s.data() {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Stop ends the server and its connections. It does nothing if the server does not run.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if s.process == nil {
		return
	}
	if err := s.process.Process.Signal(syscall.SIGQUIT); err != nil {
		tb.Error(err)
	}
	s.wait()
}

func (s *Server) wait() {
	_ = s.process.Wait() // it was killed
	_ = s.log.Close()
	s.process = nil
}

// Address returns the TCP address of the server.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL returns the URL of a database at an address, which is "" for that of the server.
func (s *Server) URL(address, query string) string {
	if address == "" {
		address = s.Address()
	}
	return fmt.Sprintf("postgres://weir@%s/postgres?sslmode=disable%s", address, query)
}

// Schema makes an empty schema and returns the URL of the database with it.
func (s *Server) Schema(tb testing.TB) string {
	tb.Helper()
	name := fmt.Sprintf("s%d", s.schemas.Add(1))
	s.SQL(tb, "CREATE SCHEMA "+name)
	return s.URL("", "&search_path="+name)
}

// SQL runs statements with psql and returns what they print, without headers.
func (s *Server) SQL(tb testing.TB, query string) string {
	tb.Helper()
	c := s.command(context.Background(), "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port), "-U", "weir", "-d", "postgres", "-c", query)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		tb.Fatalf("psql -c %q: %v\n%s", query, err, stderr.String())
	}
	return string(bytes.TrimSpace(out))
}
