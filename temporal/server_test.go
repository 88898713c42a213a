//go:build linux

package temporal_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-run/weir/temporal"
)

// serverVersion is that of .ci/tool.
const serverVersion = "v1.5.1"

// server is the development server that all tests of a process share.
type server struct {
	address string
	process *exec.Cmd
}

var (
	shared  = sync.OnceValues(startServer)
	running atomic.Pointer[server]
)

// errNoServer says why tests are skipped.
var errNoServer = errors.New("there is no development server of Temporal; `.ci/tool temporal` builds it")

// serverProgram finds the program that .ci/tool builds.
func serverProgram() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "weir-tools", runtime.Version(), "temporal@"+serverVersion, "temporal")
	if _, err := os.Stat(path); err != nil {
		return "", errNoServer
	}
	return path, nil
}

// startServer starts a server that TestMain stops.
func startServer() (*server, error) {
	s, err := newServer()
	if err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, err
	}
	running.Store(s)
	return s, nil
}

// newServer returns a server that start starts.
func newServer() (*server, error) {
	port, err := freePort()
	return &server{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, err
}

// start starts the server, with more arguments, and returns when it answers.
func (s *server) start(args ...string) error {
	program, err := serverProgram()
	if err != nil {
		return err
	}
	_, port, _ := net.SplitHostPort(s.address)
	s.process = exec.Command(program, append([]string{
		"server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", port,
		"--log-level", "never", "--search-attribute", "WeirFlow=Keyword", "--search-attribute", "WeirStatus=Keyword",
		"--search-attribute", "WeirSession=Keyword", "--search-attribute", "WeirUser=Keyword",
		"--dynamic-config-value", "history.transferProcessorMaxPollRPS=200",
		"--dynamic-config-value", "limit.historyCount.suggestContinueAsNew=60",
		// Workflows are deleted once these have passed the tasks of their end; the defaults are 30 and 10 seconds.
		"--dynamic-config-value", `history.transferProcessorUpdateAckInterval="500ms"`,
		"--dynamic-config-value", `history.visibilityProcessorUpdateAckInterval="500ms"`,
	}, args...)...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		c, err := temporal.Dial(ctx, temporal.Options{Address: s.address})
		cancel()
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) {
			kill(s.process)
			return err
		}
		pause(context.Background(), 100*time.Millisecond)
	}
}

// freePort returns a port of which the next one is free as well: the server takes it for metrics.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func TestMain(m *testing.M) {
	if os.Getenv(workerRole) != "" {
		os.Exit(workerProcess())
	}
	code := m.Run()
	if s := running.Load(); s != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
	os.Exit(code)
}

// required is the environment variable that makes a missing server a failure.
const required = "WEIR_REQUIRE_TEMPORAL"

// needServer returns the address of the server, or skips the test.
func needServer(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("short: the tests on a server of Temporal take minutes")
	}
	s, err := shared()
	switch {
	case errors.Is(err, errNoServer) && os.Getenv(required) == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return s.address
}
